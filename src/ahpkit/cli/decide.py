"""A person decides at the terminal: approvals with a key press, questions with a line. Knows no connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ahpkit.cli.console import Console
from ahpkit.cli.edits import Reader, describe_edits
from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.read_answer import Question, hint, read_answer
from ahpkit.cli.text import plain
from ahpkit.client import Answer, Approve, Decline, Deny
from ahpkit.client.events import ConfirmationNeeded, InputNeeded

_LINES, _CHARACTERS = 20, 2000
"""Of a tool's input, shown without being asked for more: what a person reads before pressing a key."""

_NOBODY = "nobody is there to approve it"

_KEYS = "123456789abcdfghijkmnopqtuvwxyz"
"""For options, in order. Not e, l, r and s: edit, later, remember, and show all."""

_ONCE = {"y": "allow-once", "n": "deny-once"}
"""The host's own two options: where there are no others, they are a plain yes and no."""

_STYLES = {"+": "green", "-": "red"}
"""Of lines that are added and removed."""

Check = Callable[[str, Any], Awaitable[str | None]]
"""Hands one answer, by question id, to whoever knows the limits; what is wrong with it."""


async def ask_approval(console: Console, event: ConfirmationNeeded, read: Reader) -> Approve | Deny | None:
    """y approves, n denies; with options, their numbers. None: leave it to other clients.

    What can be remembered for later calls is shown on request: this time only is what a person usually means.
    """
    title, details = await _describe(event, read)
    console.say(f"? {title}", "bold yellow")
    rest = _show_beginning(console, details)
    offered: Sequence[Any] = event.call.get("options", ()) if event.of == "call" else ()
    rules = [option for option in offered if option["id"].startswith(("allow:", "deny:"))]
    options = [option for option in offered if option not in rules]
    if [option["id"] for option in options] != list(_ONCE.values()):
        _show_options(console, options)
    editable, edited = event.of == "call" and event.call.get("editable", False), None
    while True:
        decisions = _decisions(options, edited)
        more = {"e": "[e]dit"} if editable else {}
        more |= {"r": "[r]emember"} if rules else {}
        more |= {"l": "[l]ater"} | ({"s": "[s]how all"} if rest else {})
        pressed = await console.key(_approval_prompt(options, more), {*decisions, *more})
        if pressed == "s":
            _show(console, rest)
            rest = ""
        elif pressed == "r":
            options, rules = [*options, *rules], []
            _show_options(console, options)
        elif pressed == "e":
            given = event.call.get("toolInput", "")
            edited = await _edit(console, (given if isinstance(given, str) else "") if edited is None else edited)
        else:
            break
    return decisions[pressed] if pressed in decisions else _undecided(console, pressed)


def _show_options(console: Console, options: Sequence[Any]) -> None:
    for key, option in zip(_KEYS, options, strict=False):
        console.say(f"  {key}. {option['label']}")


async def _edit(console: Console, tool_input: str) -> str:
    editor = LineEditor()
    editor.before = tool_input
    changed = await console.line("  input: ", editor)
    return tool_input if changed is None else changed


def _approval_prompt(options: Sequence[Any], more: Mapping[str, str]) -> str:
    plain = not options or [option["id"] for option in options] == list(_ONCE.values())
    question = "approve? [y]es [n]o" if plain else "choose one, or"
    return f"  {question} {' '.join(more.values())}: "


def _decisions(options: Sequence[Any], edited: str | None) -> dict[str, Approve | Deny]:
    """What each key means."""
    if not options:
        return {"y": Approve(edited_input=edited), "n": Deny()}
    if [option["id"] for option in options] == list(_ONCE.values()):
        return {"y": Approve(_ONCE["y"], edited), "n": Deny(_ONCE["n"])}
    return {
        key: Approve(option["id"], edited) if option["kind"] == "approve" else Deny(option["id"])
        for key, option in zip(_KEYS, options, strict=False)
    }


def _undecided(console: Console, pressed: str | None) -> Deny | None:
    if pressed is None and not console.interactive:
        return Deny(reason=_NOBODY)
    console.say("  left to other clients; Ctrl-C cancels the turn", "dim")
    return None


async def _describe(event: ConfirmationNeeded, read: Reader) -> tuple[str, str]:
    call: Any = event.call
    if event.of == "result":
        texts = [content["text"] for content in call.get("content", ()) if content["type"] == "text"]
        return f"Use the result of {call['displayName']}?", "\n".join(texts)
    title = plain(call.get("confirmationTitle") or call.get("invocationMessage")) or call["displayName"]
    edits = await describe_edits(call.get("edits", {}).get("items", ()), read)
    return title, "\n".join([*edits, call.get("toolInput", "")]).strip("\n")


def _show_beginning(console: Console, text: str) -> str:
    """Show as much as a person reads at a glance; what was left out."""
    beginning = "\n".join(text[:_CHARACTERS].split("\n")[:_LINES])
    rest = text[len(beginning) :]
    _show(console, beginning)
    if rest:
        console.say(f"    … {len(rest)} more characters", "yellow")
    return rest.removeprefix("\n")


def _show(console: Console, text: str) -> None:
    for line in text.split("\n") if text else ():
        console.say(f"    {line}", _STYLES.get(line[:1], "dim"))


async def ask_questions(console: Console, event: InputNeeded, check: Check) -> Answer | Decline:
    """Ask one question after the other. Ctrl-D, or the end of the input, declines them all."""
    request: Any = event.request
    console.say(f"? {request.get('message') or 'The agent asks:'}", "bold yellow")
    if "url" in request:
        console.say(f"    {request['url']}")
    questions = request.get("questions", ())
    if not questions:
        done = await console.key("  done? [y]es [n]o: ", "yn")
        return Answer() if done == "y" else Decline()
    console.say("  Enter takes the default or skips, Ctrl-D declines.", "dim")
    answers: dict[str, Any] = {}
    for question in questions:
        answer = await _ask(console, question, check)
        if isinstance(answer, Decline):
            return answer
        answers[question["id"]] = answer
    return Answer(answers)


async def _ask(console: Console, question: Question, check: Check) -> Any:
    console.say(f"  {plain(question['message'])}" + (" (required)" if question.get("required") else ""))
    for number, option in enumerate(question.get("options", ()), 1):
        console.say(f"    {number}. {_describe_option(option)}")
    while (line := await console.line(f"  {hint(question)}: ")) is not None:
        if not line.strip():
            if not question.get("required") or "defaultValue" in question:
                return question.get("defaultValue")
            problem = "please answer this one, or decline with Ctrl-D"
        else:
            try:
                answer = read_answer(question, line)
            except ValueError as error:
                problem = str(error)
            else:
                problem = await check(question["id"], answer)
                if problem is None:
                    return answer
        console.say(f"  {problem}", "yellow")
    return Decline()


def _describe_option(option: Any) -> str:
    recommended = " (recommended)" if option.get("recommended") else ""
    return option["label"] + recommended + (f": {option['description']}" if "description" in option else "")


__all__ = ["Check", "ask_approval", "ask_questions"]
