from typing import Any

import pytest

from ahpkit.customizations.details import TextDetail
from ahpkit.customizations.expand import Invocation, expand, invoked, read_invocation, split_arguments


def detail(body: str, **meta: Any) -> TextDetail:
    return TextDetail("skill", "p:ship", ("p:ship", "ship"), "Ships.", meta, body, "file:///p/skills/ship")


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Ship $ARGUMENTS now", "a 'b c'", "Ship a 'b c' now"),
        ("Ship $ARGUMENTS[1] then $ARGUMENTS[0]", "a 'b c'", "Ship b c then a"),
        ("Ship $1 and $2", "a 'b c'", "Ship a and b c"),
        ("Ship $0 and $1", "a b", "Ship a and b"),
        ("Ship $1 and $2", "a", "Ship a and $2"),
        ("Costs $5", "", "Costs $5"),
        ("Ship it", "", "Ship it"),
        ("Ship it\n", "to prod", "Ship it\n\nARGUMENTS: to prod"),
        ("Ship $ARGUMENTS", "$1 and $ARGUMENTS", "Ship $1 and $ARGUMENTS"),
        ("Ship $ARGUMENTS", "an unclosed 'quote", "Ship an unclosed 'quote"),
        ("Ship ${input:target:where to?}", "prod", "Ship prod"),
        ("Ship ${input:what} to ${input:target}", "target=prod what='the app'", "Ship the app to prod"),
        ("Ship ${input:what} to ${input:target}", "target=prod", "Ship ${input:what} to prod"),
        ("$ARGUMENTSX", "a", "$ARGUMENTSX\n\nARGUMENTS: a"),
    ],
)
def test_arguments_are_filled_in_once(body: str, arguments: str, text: str) -> None:
    assert expand(detail(body), arguments, {}) == text


@pytest.mark.parametrize("names", ["[target, mode]", "target, mode", ["target", "mode"]])
def test_named_arguments_are_filled_in_by_position(names: Any) -> None:
    assert (
        expand(detail("To $target in $mode, not $other", arguments=names), "prod fast", {})
        == "To prod in fast, not $other"
    )


def test_folders_are_known_and_the_environment_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    body = "In ${CLAUDE_PLUGIN_ROOT} but not ${SECRET} or $SECRET"
    assert expand(detail(body), "", {"CLAUDE_PLUGIN_ROOT": "/p"}) == "In /p but not ${SECRET} or $SECRET"


def test_shell_lines_are_shown_as_not_run() -> None:
    body = "Status: !`git status`\n```!\nrm -rf /\n```\nPlain `code`!"
    assert (
        expand(detail(body), "", {}) == "Status: `git status` (not run)\n```sh (not run)\nrm -rf /\n```\nPlain `code`!"
    )


def test_the_agent_is_told_what_was_invoked_and_where_its_files_are() -> None:
    text = invoked(detail("Ship $1"), Invocation("ship", "prod"), {"CLAUDE_SKILL_DIR": "/p/skills/ship"})
    assert text == (
        "The user invoked the skill `p:ship` with: prod. Files it mentions are in /p/skills/ship.\n\nShip prod"
    )


@pytest.mark.parametrize(
    ("text", "invocation"),
    [
        ("/ship", Invocation("ship", "")),
        ("  /p:ship to prod\nnow", Invocation("p:ship", "to prod\nnow")),
        ("ship it", None),
        ("see /etc/passwd", None),
        ("/", None),
        ("// comment", None),
    ],
)
def test_a_command_stands_at_the_beginning(text: str, invocation: Invocation | None) -> None:
    assert read_invocation(text) == invocation


def test_arguments_split_like_in_a_shell() -> None:
    assert split_arguments("a \"b c\" 'd'") == ["a", "b c", "d"]
    assert split_arguments("it's") == ["it's"]


@pytest.mark.parametrize(
    ("body", "arguments"),
    [("${input:a:" * 20_000, "x"), ("$1", "'" + "a" * 200_000), ("${input:" + "a" * 200_000, "x")],
    ids=["placeholders without end", "a quote without end", "a name without end"],
)
def test_texts_of_strangers_cost_little_however_they_are_written(body: str, arguments: str) -> None:
    """The host waits meanwhile: what backtracks here takes minutes."""
    assert len(expand(detail(body), arguments, {})) >= len(body)
