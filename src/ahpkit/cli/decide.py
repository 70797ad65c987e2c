"""A person decides at the terminal: approvals with a key press, questions with a line. Knows no connection."""

from __future__ import annotations

from typing import Any

from ahpkit.cli.console import Console
from ahpkit.cli.show_turn import plain
from ahpkit.client import Approve, Deny
from ahpkit.client.events import ConfirmationNeeded, InputNeeded

_HINTS = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "y or n",
    "single-select": "a number from the list",
    "multi-select": "numbers from the list, separated by spaces",
}


async def ask_approval(console: Console, event: ConfirmationNeeded) -> Approve | Deny | None:
    """y approves, n denies; with options, their numbers. None: leave it to other clients."""
    options: list[Any] = list(event.call.get("options", ()))
    if not options:
        pressed = await console.key("  approve? [y]es [n]o [l]ater ", "ynl")
        return {"y": Approve(), "n": Deny()}.get(pressed or "l")
    for number, option in enumerate(options, 1):
        console.write(f"  {number}. {option['label']}\n")
    keys = "".join(str(number) for number in range(1, min(len(options), 9) + 1))
    pressed = await console.key("  choose a number, or [l]ater ", f"{keys}l")
    if pressed is None or pressed == "l":
        return None
    chosen = options[int(pressed) - 1]
    return Approve(chosen["id"]) if chosen["kind"] == "approve" else Deny(chosen["id"])


async def ask_questions(console: Console, event: InputNeeded) -> dict[str, Any] | None:
    """Answers by question id; an empty line skips an optional question. None: leave it to other clients."""
    answers: dict[str, Any] = {}
    for question in event.request.get("questions", ()):
        answer = await _ask(console, question)
        if answer is None and question.get("required"):
            return None
        answers[question["id"]] = answer
    return answers


async def _ask(console: Console, question: Any) -> Any:
    console.write(f"  {plain(question['message'])}\n")
    options: list[Any] = list(question.get("options", ()))
    for number, option in enumerate(options, 1):
        console.write(f"    {number}. {option['label']}\n")
    hint = _HINTS.get(question["kind"], "text")
    while True:
        line = await console.line(f"  {hint}> ")
        if not line:
            return None
        try:
            return read_answer(question["kind"], line, [option["id"] for option in options])
        except (ValueError, IndexError):
            console.write(f"  please give {hint}\n")


def read_answer(kind: str, line: str, options: list[str]) -> Any:
    """What a typed line means for a question; raises `ValueError` or `IndexError` when it does not fit."""
    match kind:
        case "integer":
            return int(line)
        case "number":
            return float(line)
        case "boolean":
            return {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}[line.casefold()]
        case "single-select":
            return _option(line, options)
        case "multi-select":
            return [_option(word, options) for word in line.split()]
        case _:
            return line


def _option(word: str, options: list[str]) -> str:
    if word in options:
        return word
    if int(word) < 1:
        raise ValueError(word)
    return options[int(word) - 1]


__all__ = ["ask_approval", "ask_questions", "read_answer"]
