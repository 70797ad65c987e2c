"""A person decides: approvals and questions, without a terminal or a host."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from ahpkit.cli.ask_person import ask_approval, ask_questions, in_words
from ahpkit.cli.choosing import Choices, meant
from ahpkit.cli.console import Console
from ahpkit.cli.line_editor import LineEditor
from ahpkit.client import Answer, Approve, Decline, Deny
from ahpkit.client.events import ConfirmationNeeded, InputNeeded


class Person(Console):
    """Presses and types what it was told to, then has no more to say."""

    interactive = True

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.answers = deque(answers)
        self.said: list[str] = []
        self.prompts: list[str] = []
        self.edited: list[str] = []

    def say(self, text: str, style: str = "", *, error: bool = False) -> None:
        self.said.append(text)

    async def line(self, prompt: str, editor: LineEditor | None = None) -> str | None:
        self.prompts.append(prompt)
        if editor is not None:
            self.edited.append(editor.text)
        return self.answers.popleft() if self.answers else None

    async def choose(self, prompt: str, choices: Choices, show: Callable[[], object] = lambda: None) -> str | None:
        pressed = await self.line(prompt)
        name = None if pressed is None else meant(choices, pressed)
        assert pressed is None or name is not None, f"{pressed!r} is no choice of {prompt!r}"
        return name


OPTIONS = [
    {"id": "once", "label": "Allow once", "kind": "approve"},
    {"id": "always", "label": "Always", "kind": "approve"},
    {"id": "no", "label": "No", "kind": "deny"},
]


TEXTS = {"x:old": "one\ntwo\nthree\nfour\n", "x:new": "one\ntwo\n3\nfour\n"}


async def read(uri: str) -> str | None:
    return TEXTS.get(uri)


def call(**fields: Any) -> Any:
    return {"toolCallId": "c", "toolName": "shell", "displayName": "Shell", "status": "pending-confirmation", **fields}


def confirmation(**fields: Any) -> ConfirmationNeeded:
    return ConfirmationNeeded(call(**fields))


# Approvals.


@pytest.mark.parametrize(("key", "decision"), [("y", Approve()), ("n", Deny()), ("l", None)])
async def test_without_options_it_is_yes_no_or_later(key: str, decision: Any) -> None:
    person = Person(key)
    assert await ask_approval(person, confirmation(), read) == decision
    assert person.prompts == ["  approve? [y]es [n]o [l]ater: "]


@pytest.mark.parametrize(
    ("key", "decision"),
    [
        ("1", Approve("once")),
        ("allow", Approve("once")),
        ("2", Deny("no")),
        ("No", Deny("no")),
        ("3", Approve("always")),
        ("always", Approve("always")),
        ("later", None),
    ],
)
async def test_with_options_each_has_a_number_and_words_and_the_first_is_this_time_only(
    key: str, decision: Any
) -> None:
    person = Person(key)
    assert await ask_approval(person, confirmation(options=OPTIONS), read) == decision
    assert person.said[:4] == ["? Shell", "  1. Allow once", "  2. No", "  3. Always"]
    assert person.prompts == ["  choose one, or [l]ater: "]


@pytest.mark.parametrize(
    ("risk", "line"),
    [
        ({"kind": "judge", "status": "loading"}, "  The risk is being judged …"),
        (
            {"kind": "judge", "status": "complete", "reason": "It deletes.", "safety": 0.1},
            "  Judged risky: It deletes.",
        ),
        ({"kind": "judge", "status": "complete", "reason": "", "safety": 0.9}, "  Judged safe."),
    ],
)
async def test_why_it_is_wanted_and_how_it_was_judged_stand_below_the_title(risk: Any, line: str) -> None:
    person = Person("n")
    await ask_approval(person, confirmation(intention="To free some space", riskAssessment=risk), read)
    assert person.said[:3] == ["? Shell", "  Why: To free some space", line]


def option(id: str, label: str, kind: str = "approve", **fields: Any) -> Any:
    return {"id": id, "label": label, "kind": kind, **fields}


ORDERS = {
    "the agent's own order begins with always": [
        option("a", "Always"),
        option("o", "Just now"),
        option("n", "No", "deny"),
    ],
    "groups say it": [
        option("a", "Yes to all", group=1),
        option("n", "No", "deny", group=0),
        option("o", "Yes", group=0),
    ],
    "only the ids say it": [option("proceed_always", "Go"), option("proceed_once", "Run"), option("no", "No", "deny")],
    "the label says it": [option("1", "Yes, for this session"), option("2", "Yes"), option("3", "No", "deny")],
}


@pytest.mark.parametrize("name", ORDERS)
async def test_whatever_the_order_of_the_options_the_first_is_about_this_call_only(name: str) -> None:
    options = ORDERS[name]
    once = next(one for one in options if one["label"] in ("Just now", "Yes", "Run"))
    for key in ("1", "y", "yes", "allow"):
        assert await ask_approval(Person(key), confirmation(options=options), read) == Approve(once["id"])


async def test_when_every_yes_is_for_ever_the_first_choice_is_no() -> None:
    options = [option("a", "Always"), option("n", "No", "deny")]
    person = Person("1")
    assert await ask_approval(person, confirmation(options=options), read) == Deny("n")
    assert person.said[1:] == ["  1. No", "  2. Always"]


@pytest.mark.parametrize(
    ("offered", "shown"),
    [
        (option("allow_once", "allow_once"), "Allow once"),
        (option("ProceedAlways", "ProceedAlways"), "Proceed always"),
        (option("reject-always", "reject-always", "deny"), "Reject always"),
        (option("opt_3f2a", "opt_3f2a"), "Allow"),
        (option("rule:always:77", "rule:always:77"), "Always allow"),
        (option("7", "7", "deny"), "Deny"),
        (option("x", "", "deny"), "Deny"),
        (option("Red", "Red"), "Red"),
        (option("o", "yes, and use `sed`"), "Yes, and use `sed`"),
    ],
)
def test_options_are_shown_in_words(offered: Any, shown: str) -> None:
    assert in_words(offered) == shown


async def test_many_options_take_a_number_and_enter() -> None:
    options = [option(f"id{number}", "?") for number in range(12)]
    assert await ask_approval(Person("12"), confirmation(options=options), read) == Approve("id11")


async def test_an_input_that_may_be_edited_is_edited_before_it_is_approved() -> None:
    person = Person("e", "ls -l", "e", "ls -la", "3")
    event = confirmation(toolInput="ls", editable=True, options=OPTIONS)
    assert await ask_approval(person, event, read) == Approve("always", "ls -la")
    assert person.edited == ["ls", "ls -l"]
    assert person.prompts[:2] == ["  choose one, or [e]dit [l]ater: ", "  input: "]


async def test_an_edited_input_can_still_be_denied_and_an_edit_given_up() -> None:
    event = confirmation(toolInput="ls", editable=True)
    assert await ask_approval(Person("e", "rm", "n"), event, read) == Deny()
    person = Person("e")
    assert await ask_approval(person, event, read) is None


async def test_what_is_going_to_happen_is_shown() -> None:
    side = {"uri": "file:///a.py", "content": {"uri": "x:"}}
    edits = {
        "items": [
            {"before": side, "after": side, "diff": {"added": 3, "removed": 1}},
            {"after": side},
            {"before": side},
        ]
    }
    person = Person("y")
    await ask_approval(
        person, confirmation(confirmationTitle={"markdown": "Run it?"}, toolInput="ls", edits=edits), read
    )
    assert person.said == [
        "? Run it?",
        "    change /a.py +3 -1",
        "    create /a.py",
        "    delete /a.py",
        "    ls",
    ]


async def test_what_an_edit_changes_is_shown_line_by_line() -> None:
    old, new = ({"uri": "file:///a.py", "content": {"uri": uri}} for uri in ("x:old", "x:new"))
    person = Person("y")
    await ask_approval(person, confirmation(edits={"items": [{"before": old, "after": new}]}), read)
    lines = [" one", " two", "-three", "+3", " four"]
    assert person.said[1:] == ["    change /a.py", "    @@ -1,4 +1,4 @@", *(f"    {line}" for line in lines)]


@pytest.mark.parametrize("text", ["line\n" * 30 + "last", "x" * 3000 + "last"])
async def test_a_long_input_is_cut_and_shown_whole_on_request(text: str) -> None:
    person = Person("s", "y")
    assert await ask_approval(person, confirmation(toolInput=text), read) == Approve()
    shown = [line.removeprefix("    ") for line in person.said[1:]]
    note = next(line for line in shown if "more characters" in line)
    assert note.startswith("… ")
    assert not any("last" in line for line in shown[: shown.index(note)])
    assert "".join(line for line in shown if line != note) == text.replace("\n", "")
    assert person.prompts == ["  approve? [y]es [n]o [l]ater [s]how all: ", "  approve? [y]es [n]o [l]ater: "]


async def test_a_result_is_approved_after_looking_at_it() -> None:
    content = [{"type": "text", "text": "secret"}, {"type": "image"}]
    event = ConfirmationNeeded(call(content=content, options=OPTIONS), of="result")
    person = Person("n")
    assert await ask_approval(person, event, read) == Deny()
    assert person.said == ["? Use the result of Shell?", "    secret"]


async def test_a_person_who_does_not_answer_leaves_it_to_others_and_a_pipe_denies() -> None:
    person = Person()
    assert await ask_approval(person, confirmation(), read) is None
    assert person.said[-1].startswith("  postponed: :pending asks again")
    pipe = Person()
    pipe.interactive = False
    denied = await ask_approval(pipe, confirmation(), read)
    assert denied == Deny(reason="nobody is there to approve it", automatic=True)


# Questions.


async def fine(question_id: str, answer: Any) -> str | None:
    return None


def request(*questions: Any, **fields: Any) -> InputNeeded:
    made: Any = {"id": "r", **({"questions": list(questions)} if questions else {}), **fields}
    return InputNeeded(made)


def question(kind: str = "text", id: str = "q", **fields: Any) -> Any:
    return {"id": id, "kind": kind, "message": f"{id}?", **fields}


async def test_answers_are_given_by_question() -> None:
    person = Person("Ada", "36", "n")
    event = request(question(), question("integer", "age"), question("boolean", "ok"), message="Tell me")
    assert await ask_questions(person, event, fine) == Answer({"q": "Ada", "age": 36, "ok": False})
    assert person.said[0] == "? Tell me"


async def test_an_empty_line_takes_the_default_or_skips() -> None:
    event = request(question(), question("number", "n", defaultValue=0.5), question(id="r", required=True))
    person = Person("", " ", "", "x")
    assert await ask_questions(person, event, fine) == Answer({"q": None, "n": 0.5, "r": "x"})
    assert "  this question needs an answer; Ctrl-D declines all of them" in person.said


async def test_what_does_not_fit_is_asked_again() -> None:
    async def short(question_id: str, answer: Any) -> str | None:
        return "must be short" if len(answer) > 3 else None

    person = Person("too long", "ok", "many", "1")
    event = request(question())
    assert await ask_questions(person, event, short) == Answer({"q": "ok"})
    assert "  must be short" in person.said
    person = Person("many", "1")
    assert await ask_questions(person, request(question("integer")), fine) == Answer({"q": 1})
    assert "  please give a whole number" in person.said


async def test_options_are_numbered_and_described() -> None:
    options = [{"id": "a", "label": "A", "recommended": True, "description": "the first"}, {"id": "b", "label": "B"}]
    person = Person("2")
    assert await ask_questions(person, request(question("single-select", options=options)), fine) == Answer({"q": "b"})
    assert person.said[-2:] == ["    1. A (recommended): the first", "    2. B"]


async def test_the_end_of_the_input_declines_everything() -> None:
    assert await ask_questions(Person("Ada"), request(question(), question(id="b")), fine) == Decline()


@pytest.mark.parametrize(("answer", "reply"), [(["y"], Answer()), (["n"], Decline()), ([], Decline())])
async def test_a_page_to_fill_in_is_shown_and_asked_about(answer: list[str], reply: Any) -> None:
    person = Person(*answer)
    assert await ask_questions(person, request(url="https://example.org/login"), fine) == reply
    assert person.said == ["? The agent asks:", "    https://example.org/login"]


async def test_an_input_that_is_a_reference_is_shown_as_the_text_behind_it() -> None:
    call: Any = {"displayName": "Patch", "toolInput": {"uri": "ahp-content:/x"}, "editable": True}
    texts = {"ahp-content:/x": "the whole patch"}

    async def read(uri: str) -> str | None:
        return texts.get(uri)

    person = Person("n")
    assert isinstance(await ask_approval(person, ConfirmationNeeded(call), read), Deny)
    assert person.said == ["? Patch", "    the whole patch"]
    texts.clear()
    person = Person("n")
    await ask_approval(person, ConfirmationNeeded(call), read)
    assert person.said == ["? Patch", "    ahp-content:/x"], "where it can be read"
