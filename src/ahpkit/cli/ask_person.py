"""Asks a person at the terminal: approvals with a key press, questions with a line.

`Decisions` asks for all that a chat waits for, until this person or another client decides.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from ahpkit.cli.choosing import Choice, Question, hint, read_answer
from ahpkit.cli.console import Console
from ahpkit.cli.edits import Reader, describe_edits, describe_input
from ahpkit.cli.line_editor import LineEditor
from ahpkit.cli.text import plain, shorten
from ahpkit.client import Answer, Approve, Chat, Client, Decline, Deny, Dispatch, Rejected, Subscription
from ahpkit.client.answers import answer_to, open_requests
from ahpkit.client.events import ConfirmationNeeded, InputNeeded, TurnEvent
from ahpkit.client.turn_tracker import TurnTracker
from ahpkit.protocol.chat.turns import find_tool_call, find_turn
from ahpkit.protocol.errors import AhpError
from ahpkit.wire.tasks import running, wait_first

_LINES, _CHARACTERS = 20, 2000
"""Lines and characters of a tool's input that are shown at first. A person can read that much before pressing a key."""

_SENTENCE = 300
"""Characters that are shown of the agent's reason for a call, and of a judge's reason for its assessment."""

_SAFE = 0.5
"""A call with this assessment or a higher one is called safe. The scale goes from 0 to 1."""

_NOBODY = "nobody is there to approve it"

_ONCE = ["allow-once", "deny-once"]
"""The ids of the host's own two options. A request that has no others is a plain yes-or-no question."""

_MOST_KEYS = 9
"""With at most this many options a single digit chooses one. With more options the person presses Enter after the
number, because a digit may be the beginning of a longer number."""

_REMEMBERED = re.compile(r"\b(always|never|forever|session|remember|every)\b")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

_PLAIN_WORDS = {"approve": ("y", "yes", "allow"), "deny": ("n", "no", "deny")}
"""Words that choose an option without its number. They work if only one option of that kind holds for this call
alone."""

_STYLES = {"+": "green", "-": "red"}
"""The colours of lines that are added and removed."""

Check = Callable[[str, Any], Awaitable[str | None]]
"""Checks the answer to one question, given the question's id; returns what is wrong with the answer, or None."""


async def ask_approval(console: Console, event: ConfirmationNeeded, read: Reader) -> Approve | Deny | None:
    """Ask whether a tool call may run. None: the person leaves the decision for later.

    `y` approves and `n` denies; further options have numbers. Options that are remembered for later calls are shown on
    request only, because a person usually means just this call.
    """
    title, details = await _describe(event, read)
    beginning, rest = _at_a_glance(details)
    offered: Sequence[Any] = once_first(event.call.get("options", ())) if event.of == "call" else ()
    rules = [option for option in offered if option["id"].startswith(("allow:", "deny:"))]
    options = [option for option in offered if option not in rules]

    def show() -> None:
        """Show the question, and the details that the person has asked for."""
        console.say(f"? {title}", "bold yellow")
        for line in reasons(event.call):
            console.say(f"  {line}", "yellow")
        _show(console, beginning)
        if rest:
            console.say(f"    … {len(rest)} more characters", "yellow")
        if not _is_plain(options):
            _show_options(console, options)

    show()
    editable, edited = event.of == "call" and event.call.get("editable", False), None
    while True:
        more = _more(editable=editable, rules=rules, rest=rest)
        name = await console.choose(_approval_prompt(options, more), {**_decisions(options), **more}, show)
        if name == "show":
            _show(console, rest.removeprefix("\n"))
            beginning, rest = details, ""
        elif name == "remember":
            options, rules = [*options, *rules], []
            _show_options(console, options)
        elif name == "edit":
            edited = await _edit(console, await _tool_input(event.call, read) if edited is None else edited)
        else:
            break
    return _undecided(console, name) if name in (None, "later") else _decision(options, name, edited)


def reasons(call: Any) -> list[str]:
    """The lines that say why the agent makes a call and how risky the call was judged to be. What is not known is left
    out."""
    intention = shorten(call.get("intention", ""), _SENTENCE)
    judged = verdict(call.get("riskAssessment"))
    return [*([f"Why: {intention}"] if intention else []), *([judged] if judged else [])]


def verdict(risk: Any) -> str:
    """A line that says how risky a call was judged to be. It informs the person and decides nothing."""
    if not risk:
        return ""
    if risk["status"] != "complete":
        return "The risk is being judged …"
    reason = shorten(plain(risk["reason"]), _SENTENCE)
    return ("Judged risky" if risk["safety"] < _SAFE else "Judged safe") + (f": {reason}" if reason else ".")


def once_first(options: Sequence[Any]) -> list[Any]:
    """The options, ordered so that the first one of each kind holds for this call only."""
    ranks = {"approve": 0, "deny": 1}
    return sorted(options, key=lambda option: (is_remembered(option), ranks.get(option["kind"], 2)))


def is_remembered(option: Any) -> bool:
    """Whether an option is remembered for later calls too. It is if it belongs to a group, or if its words say so."""
    return bool(option.get("group")) or _says_so(option)


def _says_so(option: Any) -> bool:
    words = f"{' '.join(_PARTS.findall(option['id']))} {' '.join(_PARTS.findall(option['label']))}"
    return _REMEMBERED.search(words.casefold()) is not None


def in_words(option: Any) -> str:
    """An option in words. If its label is only an id, the id is split into words, or the kind of option is shown."""
    label = option["label"].strip()
    if " " in label or (re.fullmatch(r"[^\W\d_]+[.!]?", label) and not re.search("[a-z][A-Z]", label)):
        return label[:1].upper() + label[1:]
    if re.fullmatch(r"[A-Za-z]+([_:./-][A-Za-z]+)*", label):
        return " ".join(_PARTS.findall(label)).capitalize()
    if _says_so(option):
        return "Always allow" if option["kind"] == "approve" else "Always deny"
    return "Allow" if option["kind"] == "approve" else "Deny"


def _is_plain(options: Sequence[Any]) -> bool:
    """Whether the only options are yes and no."""
    return not options or [option["id"] for option in options] == _ONCE


def _show_options(console: Console, options: Sequence[Any]) -> None:
    for number, option in enumerate(options, 1):
        console.say(f"  {number}. {in_words(option)}")


async def _edit(console: Console, tool_input: str) -> str:
    editor = LineEditor()
    editor.before = tool_input
    changed = await console.line("  input: ", editor)
    return tool_input if changed is None else changed


def _more(*, editable: bool, rules: Sequence[Any], rest: str) -> dict[str, Choice]:
    """The choices that show or change something without deciding the call."""
    edit = {"edit": Choice("edit the input first", "e", ("edit",))} if editable else {}
    remember = {"remember": Choice("see what can be remembered", "r", ("remember",))} if rules else {}
    show = {"show": Choice("show all", "s", ("show", "show all"))} if rest else {}
    return {**edit, **remember, "later": Choice("later", "l", ("later",)), **show}


def _approval_prompt(options: Sequence[Any], more: Mapping[str, Choice]) -> str:
    number = "choose one, or" if len(options) <= _MOST_KEYS else "type a number and Enter, or"
    question = "approve? [y]es [n]o" if _is_plain(options) else number
    shown = " ".join(f"[{one.key}]{one.words[-1][1:]}" for one in more.values())
    return f"  {question} {shown}: "


def _decisions(options: Sequence[Any]) -> dict[str, Choice]:
    """The choices that decide the call: one for each option. Words such as "yes" and "no" decide about this call
    only."""
    if _is_plain(options):
        return {
            "approve": Choice("allow once", "y", ("yes", "allow", "once", "allow once")),
            "deny": Choice("deny", "n", ("no", "deny")),
        }
    choices: dict[str, Choice] = {}
    only = [[one for one in options if one["kind"] == kind and not is_remembered(one)] for kind in _PLAIN_WORDS]
    for number, option in enumerate(options, 1):
        words = _PLAIN_WORDS[option["kind"]] if [option] in only else ()
        key = str(number) if len(options) <= _MOST_KEYS else ""
        choices[str(number)] = Choice(in_words(option), key, (str(number), *words, in_words(option)))
    return choices


def _decision(options: Sequence[Any], name: str, edited: str | None) -> Approve | Deny:
    if _is_plain(options):
        ids: dict[str, str | None] = {option["kind"]: option["id"] for option in options}
        return Approve(ids.get("approve"), edited) if name == "approve" else Deny(ids.get("deny"))
    option = options[int(name) - 1]
    return Approve(option["id"], edited) if option["kind"] == "approve" else Deny(option["id"])


def _undecided(console: Console, name: str | None) -> Deny | None:
    if name is None and not console.interactive:
        return Deny(reason=_NOBODY, automatic=True)
    console.say("  postponed: :pending asks again, other clients may decide, Ctrl-C cancels the turn", "dim")
    return None


async def _describe(event: ConfirmationNeeded, read: Reader) -> tuple[str, str]:
    call: Any = event.call
    if event.of == "result":
        texts = [content["text"] for content in call.get("content", ()) if content["type"] == "text"]
        return f"Use the result of {call['displayName']}?", "\n".join(texts)
    title = plain(call.get("confirmationTitle") or call.get("invocationMessage")) or call["displayName"]
    edits = await describe_edits(call.get("edits", {}).get("items", ()), read)
    tool_input = await _tool_input(call, read)
    if not edits and (edits := await describe_input(tool_input, read)):
        return title, "\n".join(edits)
    return title, "\n".join([*edits, tool_input]).strip("\n")


async def _tool_input(call: Any, read: Reader) -> str:
    """The input of a call as text. If the state has only a reference to the input, its content is fetched."""
    given = call.get("toolInput", "")
    return given if isinstance(given, str) else await read(given["uri"]) or given["uri"]


def _at_a_glance(text: str) -> tuple[str, str]:
    """The text in two parts: what is shown at first, and the rest."""
    beginning = "\n".join(text[:_CHARACTERS].split("\n")[:_LINES])
    return beginning, text[len(beginning) :]


def _show(console: Console, text: str) -> None:
    for line in text.split("\n") if text else ():
        console.say(f"    {line}", _STYLES.get(line[:1], "dim"))


async def ask_questions(console: Console, event: InputNeeded, check: Check) -> Answer | Decline:
    """Ask one question after the other. Ctrl-D, or the end of the input, declines all of them."""
    request: Any = event.request
    console.say(f"? {request.get('message') or 'The agent asks:'}", "bold yellow")
    if "url" in request:
        console.say(f"    {request['url']}")
    questions = request.get("questions", ())
    if not questions:
        yes_or_no = {"yes": Choice("done", "y", ("yes", "done")), "no": Choice("not done", "n", ("no",))}
        done = await console.choose("  done? [y]es [n]o: ", yes_or_no)
        return Answer() if done == "yes" else Decline()
    console.say("  Enter takes the default or skips, Ctrl-D declines.", "dim")
    await console.settle()
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
            problem = "this question needs an answer; Ctrl-D declines all of them"
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


_WAITING = frozenset({"pending-confirmation", "pending-result-confirmation"})

_READING = 5.0
"""Seconds to wait for the text of a file that an edit changes."""

_LONGEST = 1_000_000
"""Characters of a file. The changed lines of a longer file are not computed, because that takes too long."""

Settled = Callable[[Any], bool]
"""Tells from the chat's state whether the decision is no longer needed."""


class Decisions:
    """Asks the person at the console for the decisions that one chat waits for. The console shows one question at a
    time, from all chats together."""

    def __init__(self, console: Console, client: Client, chat: Chat, channel: Subscription, *, asker: str = "") -> None:
        """`channel` is a subscription to the chat's channel. `asker` names the chat in questions, if it is not the one
        on the screen."""
        self._console = console
        self._client = client
        self._asker = asker
        self._chat = chat
        self._channel = channel

    async def take(self, event: TurnEvent) -> bool:
        """Ask if an event needs a decision. Returns whether it does."""
        match event:
            case ConfirmationNeeded():
                await self._confirm(event)
            case InputNeeded():
                await self._answer(event)
            case _:
                return False
        return True

    async def ask_again(self) -> int:
        """Ask again about everything that waits for a decision, also about postponed questions; returns how many there
        are."""
        turn_id = self._chat.confirmed.get("activeTurn", {}).get("id", "")
        happened = TurnTracker(turn_id).catch_up(dict(self._chat.confirmed))
        waiting = [event for event in happened if isinstance(event, (ConfirmationNeeded, InputNeeded))]
        for event in waiting:
            await self.take(event)
        return len(waiting)

    async def _confirm(self, event: ConfirmationNeeded) -> None:
        call_id = event.call["toolCallId"]
        decision = await self._unless(_is_decided(call_id), lambda: self._ask_approval(event))
        if decision is None:
            return
        approved = isinstance(decision, Approve)
        if event.of == "result":
            await self._dispatch(lambda: self._chat.confirm_result(call_id, approved=approved))
        elif approved:
            given = {"option_id": decision.option_id, "edited_input": decision.edited_input}
            await self._dispatch(lambda: self._chat.approve(call_id, **given))
        else:
            options = {"option_id": decision.option_id, "reason": decision.reason}
            await self._dispatch(lambda: self._chat.deny(call_id, **options))

    async def _ask_approval(self, event: ConfirmationNeeded) -> Approve | Deny | None:
        """Ask for an approval. If a judge is still assessing the call, show the assessment when it comes."""
        judged: Any = event.call.get("riskAssessment")
        if not judged or judged["status"] == "complete":
            return await ask_approval(self._console, event, self._read)
        async with running(self._tell_verdict(event.call["toolCallId"])):
            return await ask_approval(self._console, event, self._read)

    async def _tell_verdict(self, call_id: str) -> None:
        def risk(state: Any) -> Any:
            call: Any = find_tool_call(state.get("activeTurn"), call_id)
            return {} if call is None else call.get("riskAssessment", {})

        state = await self._channel.wait_for(lambda state: risk(state).get("status") == "complete")
        self._console.say(f"  {verdict(risk(state))}", "yellow")

    async def _read(self, uri: str) -> str | None:
        try:
            found = await self._client.request("resourceRead", {"uri": uri, "encoding": "utf-8"}, timeout=_READING)
        except (AhpError, TimeoutError):  # The decision does not depend on the assessment.
            return None
        return found["data"] if found["encoding"] == "utf-8" and len(found["data"]) <= _LONGEST else None

    async def _answer(self, event: InputNeeded) -> None:
        """Ask the questions of an event. Each answer is sent at once, so that other clients see it and the host checks
        it."""
        request = event.request

        async def check(question_id: str, value: Any) -> str | None:
            answer = answer_to(request, question_id, value)
            reason = await self._refusal(lambda: self._chat.draft(request["id"], question_id, answer))
            # The question is shown right above, and its id means nothing to a person, so the id is cut off.
            return None if reason is None else reason.removeprefix(f"the answer to question {question_id!r} ")

        refused = True
        while refused:
            answered = _is_answered(request["id"])
            reply = await self._unless(answered, lambda: ask_questions(self._console, event, check))
            if reply is None:
                return
            if isinstance(reply, Decline):
                refused = await self._dispatch(lambda: self._chat.decline(request["id"]))
            else:
                refused = await self._dispatch(lambda reply=reply: self._chat.answer(request["id"], reply.answers))

    async def _unless(self, settled: Settled, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The person's decision. None if another client decided first; the person is told so if the question was shown
        already."""
        if settled(self._channel.confirmed):
            return None
        turn_id = self._chat.confirmed.get("activeTurn", {}).get("id", "")
        asked = asyncio.Event()
        name, answer = await wait_first(answer=self._ask(ask, asked), settled=self._channel.wait_for(settled))
        if name == "answer":
            return answer
        if asked.is_set() and self._went_on(turn_id):
            self._console.say("  settled by another client", "dim")
        return None

    async def _ask(self, ask: Callable[[], Coroutine[Any, Any, Any]], asked: asyncio.Event) -> Any:
        async with self._console.asking():
            asked.set()
            if self._asker:
                self._console.say(f"{self._asker} asks:", "dim")
            return await ask()

    def _went_on(self, turn_id: str) -> bool:
        """Whether the turn still runs or has completed, so that it did not end in the middle of a question."""
        turn = find_turn(self._chat.confirmed, turn_id)
        return turn is not None and turn.get("state") in (None, "complete")

    async def _dispatch(self, decide: Callable[[], Dispatch]) -> bool:
        """Send a decision to the host. Returns whether the host refused it; then the person is told why."""
        reason = await self._refusal(decide)
        if reason is not None:
            self._console.say(f"✗ {reason}", "red")
        return reason is not None

    async def _refusal(self, decide: Callable[[], Dispatch]) -> str | None:
        try:
            outcome = await decide()
        except LookupError:  # Another client decided at the same moment.
            return "it is settled already"
        return outcome.reason if isinstance(outcome, Rejected) else None


def _is_decided(call_id: str) -> Settled:
    def decided(state: Any) -> bool:
        call = find_tool_call(state.get("activeTurn"), call_id)
        return call is None or call["status"] not in _WAITING

    return decided


def _is_answered(request_id: str) -> Settled:
    return lambda state: all(one["id"] != request_id for one in open_requests(state))


__all__ = ["Check", "Decisions", "ask_approval", "ask_questions", "in_words", "once_first", "reasons", "verdict"]
