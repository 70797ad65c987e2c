"""Builds the prompt of an invoked skill, prompt or agent. It fills in arguments and runs no command. Pure.

`$ARGUMENTS` is the text after the command, `$ARGUMENTS[0]` its first word. `$1` is the first word too, unless the text
also says `$0`: then positions count from 0, as in newer files. `$name` works for names in the header's `arguments`, and
`${input:name}` for `name=value`. Lines that ask for a shell command (``!`git status` ``) are shown as not run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ahpkit.customizations.details import TextDetail
from ahpkit.customizations.yaml_values import words

_PLACEHOLDER = re.compile(
    r"\$ARGUMENTS\[(?P<index>\d{1,3})\]"
    r"|\$(?P<position>\d{1,2})(?!\d)"
    r"|\$\{input:(?P<input>[\w-]{1,100})(?::[^}]{0,200})?\}"
    r"|\$\{(?P<variable>\w+)\}"
    r"|\$(?P<name>[A-Za-z_]\w*)"
)
_QUOTED_LIMIT = 10_000
"""Characters of arguments that are split as a shell would; that takes longer with every character."""

_SHELL_INLINE = re.compile(r"(?<!\w)!`([^`\n]+)`")
_SHELL_BLOCK = re.compile(r"^```!.*$", re.MULTILINE)
_NAMED_VALUE = re.compile(r"([A-Za-z_][\w-]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command at the beginning of a message: `/name the rest`."""

    token: str
    arguments: str


def read_invocation(text: str) -> Invocation | None:
    """The command a message begins with, if it begins with one."""
    match = re.match(r"\s*/([^\s/]\S*)(?:\s+(.*))?$", text, re.DOTALL)
    return None if match is None else Invocation(match[1], (match[2] or "").strip())


def expand(detail: TextDetail, arguments: str, variables: Mapping[str, str]) -> str:
    """The body of `detail` for the model. `variables` are filled in for `${…}`; unknown ones are not changed."""
    body = _not_run(detail.body)
    filler = _Filler(arguments, words(detail.meta.get("arguments")), variables, body)
    filled = _PLACEHOLDER.sub(filler, body)
    if arguments and not filler.used:
        return f"{filled.rstrip()}\n\nARGUMENTS: {arguments}"
    return filled


def invoked(detail: TextDetail, invocation: Invocation, variables: Mapping[str, str]) -> str:
    """The text for the agent in place of `/name …`: the name of the skill, and its body."""
    said = f" with: {invocation.arguments}" if invocation.arguments else ""
    place = variables.get("CLAUDE_SKILL_DIR")
    beside = f" Files it mentions are in {place}." if place and detail.type == "skill" else ""
    text = expand(detail, invocation.arguments, variables)
    return f"The user invoked the {detail.type} `{detail.name}`{said}.{beside}\n\n{text}"


def split_arguments(arguments: str) -> list[str]:
    """Words as a shell would split them; unbalanced quotes, and those of a very long text, are taken literally."""
    if len(arguments) <= _QUOTED_LIMIT:
        with suppress(ValueError):
            return shlex.split(arguments)
    return arguments.split()


class _Filler:
    """Fills in placeholders in one pass, so that placeholders in a value are not filled in."""

    def __init__(self, arguments: str, names: Sequence[str], variables: Mapping[str, str], body: str) -> None:
        self.used = False
        self._arguments = arguments
        self._values = split_arguments(arguments)
        self._named = dict(zip(names, self._values, strict=False))
        self._variables = variables
        self._first = 0 if re.search(r"\$0(?!\d)", body) else 1
        self._inputs = _inputs(arguments, self._values, body)

    def __call__(self, match: re.Match[str]) -> str:
        if match["variable"]:
            return self._variables.get(match["variable"], match[0])
        value = self._argument(match)
        self.used = self.used or value is not None
        return match[0] if value is None else value

    def _argument(self, match: re.Match[str]) -> str | None:
        if match["input"]:
            return self._inputs.get(match["input"])
        if match["name"]:
            return self._arguments if match["name"] == "ARGUMENTS" else self._named.get(match["name"])
        index = int(match["index"]) if match["index"] else int(match["position"]) - self._first
        return self._values[index] if 0 <= index < len(self._values) else None


def _inputs(arguments: str, values: Sequence[str], body: str) -> Mapping[str, str]:
    """VS Code's `${input:name:hint}`: its value is taken from `name=value`, or is the whole text if there is only one
    input."""
    wanted = {match["input"] for match in _PLACEHOLDER.finditer(body) if match["input"]}
    given: dict[str, str] = {}
    for word in values:
        if match := _NAMED_VALUE.fullmatch(word):
            given[match[1]] = match[2]
    if len(wanted) == 1 and arguments and wanted.isdisjoint(given):
        return {wanted.pop(): arguments}
    return given


def _not_run(body: str) -> str:
    body = _SHELL_INLINE.sub(lambda match: f"`{match[1]}` (not run)", body)
    return _SHELL_BLOCK.sub("```sh (not run)", body)


__all__ = ["Invocation", "expand", "invoked", "read_invocation", "split_arguments"]
