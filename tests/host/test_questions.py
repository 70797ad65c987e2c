"""Questions of an agent are parts of its answer: shared, refused when wrong, and kept. Over real sockets."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.client import connect
from ahpkit.host.agent import InputAnswers, Turn
from support import requirement
from support.bench import Bench, say
from support.raw_client import Json, RawClient

STARTED = "2026-11-15T12:00:00.000Z"

OPTIONS = [{"id": "red", "label": "Red"}, {"id": "blue", "label": "Blue"}]
QUESTIONS: Any = [
    {"id": "name", "kind": "text", "message": "Name?", "required": True},
    {"id": "age", "kind": "integer", "message": "Age?"},
    {"id": "share", "kind": "number", "message": "Share?"},
    {"id": "sure", "kind": "boolean", "message": "Sure?"},
    {"id": "colour", "kind": "single-select", "message": "Colour?", "options": OPTIONS},
    {"id": "colours", "kind": "multi-select", "message": "Colours?", "options": OPTIONS},
]
RIGHT: Json = {
    "name": {"kind": "text", "value": "Ann"},
    "age": {"kind": "number", "value": 7},
    "share": {"kind": "number", "value": 0.5},
    "sure": {"kind": "boolean", "value": True},
    "colour": {"kind": "selected", "value": "red"},
    "colours": {"kind": "selected-many", "value": ["red", "blue"]},
}


def start(text: str = "go", turn_id: str = "t1") -> Json:
    return say(text, turn_id, startedAt=STARTED)


def submitted(value: Json) -> Json:
    return {"state": "submitted", "value": value}


def draft(request: str, question: str, answer: Json | None) -> Json:
    action = {"type": "chat/inputAnswerChanged", "requestId": request, "questionId": question}
    return action if answer is None else {**action, "answer": answer}


def done(request: str, answers: Json | None = None, response: str = "accept") -> Json:
    action = {"type": "chat/inputCompleted", "requestId": request, "response": response}
    return action if answers is None else {**action, "answers": answers}


class Asking:
    """A session whose agent asks, and clients of several versions in it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.given: list[InputAnswers] = []
        bench.agent.script = self.script

    async def script(self, turn: Turn) -> None:
        self.given.append(await turn.ask(QUESTIONS, message="Tell me"))
        turn.text("thanks")

    async def begin(self, *versions: str) -> list[RawClient]:
        clients = [
            await self.bench.client("ahp-root://", client_id=f"v{version}", offer=[version]) for version in versions
        ]
        self.session, self.chat = await self.bench.session(clients[0])
        for client in clients[1:]:
            await client.ask("subscribe", self.chat)
        await clients[0].accepted(self.chat, start())
        self.request = (await clients[0].action("chat/inputRequested"))["action"]["request"]["id"]
        return clients


@requirement("gen:input:two-clients", "gen:input:part-appended", "gen:input:completed-in-place")
async def test_answers_of_clients_of_several_versions_are_in_one_record(sockets: Bench) -> None:
    asking = Asking(sockets)
    old, vscode, new = await asking.begin("0.4.0", "0.9.0", "1.0.0")
    chat, request = asking.chat, asking.request
    await old.accepted(chat, draft(request, "name", submitted(RIGHT["name"])))
    await vscode.accepted(chat, draft(request, "age", submitted(RIGHT["age"])))
    await new.accepted(chat, draft(request, "sure", {"state": "draft", "value": RIGHT["sure"]}))
    listed = (await sockets.state(old, chat))["inputRequests"][0]
    part = (await sockets.state(new, chat))["activeTurn"]["responseParts"][0]
    assert part["kind"] == "inputRequest"
    assert "response" not in part
    assert listed == part["request"], "all see what the others filled in"
    await new.accepted(chat, done(request, {"colour": submitted(RIGHT["colour"])}))
    for client in (old, vscode, new):
        await client.action("chat/turnComplete")
    answers = {key: answer["value"] for key, answer in asking.given[0].answers.items() if "value" in answer}
    assert answers == {key: RIGHT[key] for key in ("name", "age", "sure", "colour")}
    for client in (vscode, new):
        parts = (await sockets.state(client, chat))["turns"][0]["responseParts"]
        assert [one["kind"] for one in parts] == ["inputRequest", "markdown"], "the question keeps its place"
        assert parts[0]["response"] == "accept"
        assert {key: answer["value"] for key, answer in parts[0]["request"]["answers"].items()} == answers
    state = await sockets.state(old, chat)
    assert not state.get("inputRequests")
    await sockets.restart()
    again = await sockets.client("ahp-root://", client_id="again", offer=["1.0.0"])
    parts = (await sockets.state(again, chat))["turns"][0]["responseParts"]
    assert parts[0]["request"]["answers"]["name"]["value"] == RIGHT["name"], "also after a restart"


@requirement("gen:input:refuse-kind")
@pytest.mark.parametrize("version", ["0.4.0", "0.9.0", "1.0.0"])
async def test_an_answer_of_the_wrong_kind_is_refused(sockets: Bench, version: str) -> None:
    asking = Asking(sockets)
    [client] = await asking.begin(version)
    kinds = {value["kind"]: value for value in RIGHT.values()}
    for question, right in RIGHT.items():
        wrong = [value for kind, value in kinds.items() if kind != right["kind"]]
        for value in wrong:
            for action in (
                draft(asking.request, question, submitted(value)),
                done(asking.request, {"name": submitted(RIGHT["name"]), question: submitted(value)}),
            ):
                assert await client.rejected(asking.chat, action), (question, value)
        without_value = draft(asking.request, question, {"state": "submitted"})
        assert await client.rejected(asking.chat, without_value)
        await client.accepted(asking.chat, draft(asking.request, question, submitted(right)))
    assert asking.given == []


@requirement("gen:input:refuse-required", "gen:input:answer-merge")
async def test_what_is_required_has_to_be_submitted(sockets: Bench) -> None:
    asking = Asking(sockets)
    [client] = await asking.begin("1.0.0")
    chat, request = asking.chat, asking.request
    assert await client.rejected(chat, done(request))
    assert await client.rejected(chat, done(request, {"age": submitted(RIGHT["age"])}))
    await client.accepted(chat, draft(request, "name", {"state": "draft", "value": RIGHT["name"]}))
    assert await client.rejected(chat, done(request)), "a draft is no answer"
    assert await client.rejected(chat, done(request, {"name": {"state": "skipped"}}))
    await client.accepted(chat, draft(request, "name", submitted(RIGHT["name"])))
    await client.accepted(chat, draft(request, "name", None))
    assert await client.rejected(chat, done(request)), "it was taken back"
    await client.accepted(chat, done(request, {"name": submitted(RIGHT["name"])}))
    await client.action("chat/turnComplete")


@requirement("gen:input:refuse-required")
@pytest.mark.parametrize("response", ["decline", "cancel"])
async def test_nobody_has_to_answer(sockets: Bench, response: str) -> None:
    asking = Asking(sockets)
    [client] = await asking.begin("1.0.0")
    await client.accepted(asking.chat, done(asking.request, response=response))
    await client.action("chat/turnComplete")
    assert asking.given[0].response == response
    parts = (await sockets.state(client, asking.chat))["turns"][0]["responseParts"]
    assert parts[0]["response"] == response


@requirement("gen:input:refuse-unknown", "gen:input:turn-end-keeps-part")
async def test_only_an_open_question_of_that_chat_is_answered(sockets: Bench) -> None:
    asking = Asking(sockets)
    [client] = await asking.begin("1.0.0")
    await client.ask("createChat", asking.session, chat="ahp-chat:/other")
    name = {"name": submitted(RIGHT["name"])}
    for chat, request in (("ahp-chat:/other", asking.request), (asking.chat, "none")):
        assert "no open input request" in await client.rejected(chat, done(request, name))
        assert "no open input request" in await client.rejected(chat, draft(request, "name", name["name"]))
    await client.accepted(asking.chat, done(asking.request, name))
    await client.action("chat/turnComplete")
    assert "no open input request" in await client.rejected(asking.chat, done(asking.request, name))
    assert "no open input request" in await client.rejected(asking.chat, draft(asking.request, "name", name["name"]))
    await client.accepted(asking.chat, start(turn_id="t2"))
    asked = await client.action(
        lambda said: (
            said["action"]["type"] == "chat/inputRequested" and said["action"]["request"]["id"] != asking.request
        )
    )
    second = asked["action"]["request"]["id"]
    await client.accepted(asking.chat, {"type": "chat/turnCancelled", "turnId": "t2", "duration": 1})
    assert "no open input request" in await client.rejected(asking.chat, done(second, name))
    part = (await sockets.state(client, asking.chat))["turns"][-1]["responseParts"][0]
    assert part["request"]["id"] == second
    assert "response" not in part, "a turn that ended first is no refusal"


async def test_our_client_finds_the_answers_in_the_history(sockets: Bench) -> None:
    asking = Asking(sockets)
    async with connect(sockets.url, on_input=lambda needed: {"name": "Ann", "age": 7}) as client:
        chat = await (await client.create_session()).chat()
        assert await chat.ask("go") == "thanks"
        part: Any = chat.state["turns"][0]["responseParts"][0]
        assert part["response"] == "accept"
        assert part["request"]["answers"]["age"]["value"]["value"] == 7
    assert asking.given[0].answers["name"]
