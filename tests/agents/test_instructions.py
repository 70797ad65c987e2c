"""Instructions that end: what was told is taken back, commands obey switches, what is gone is not chosen."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpkit.agents.acp import AcpAgent, AcpAgentConfig
from ahpkit.agents.demo import DemoAgent
from ahpkit.agents.openai import OpenAiAgent, OpenAiConfig
from ahpkit.agents.python import PythonAgent
from ahpkit.agents.turn_input import changed_instructions, given_after, instructions
from ahpkit.host.agent import Agent, Command, SkillOffer, Turn, TurnContext
from ahpkit.testing.fake_model import FakeModel
from support import requirement
from support.bench import Bench, say
from support.flow import begun
from support.raw_client import Json
from support.scripted_acp import scripted_command
from support.stage import NOTE, Stage, calling, staged
from support.waiting import until

FILES = {
    ".claude/rules/kind.md": "Be kind to people.",
    ".claude/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files\n---\nRead it.",
    ".claude/agents/critic.md": "---\nname: critic\ndescription: Criticises\n---\nYou are a critic.",
}


def acp(directory: Path, *, idle: float = 900.0, **script: Any) -> AcpAgent:
    record = {"record": str(directory / "record.jsonl"), "store": str(directory / "store")}
    command = scripted_command(directory / "script.json", **{**record, **script})
    return AcpAgent(AcpAgentConfig(name="acp", command=command[0], args=tuple(command[1:]), idle_timeout=idle))


def received(directory: Path, method: str) -> list[Json]:
    lines = map(json.loads, (directory / "record.jsonl").read_text().splitlines())
    return [message["params"] for message in lines if message.get("method") == method]


def last_prompt(directory: Path) -> str:
    return "\n".join(block["text"] for block in received(directory, "session/prompt")[-1]["prompt"])


async def test_an_acp_agent_is_told_what_no_longer_holds_also_when_it_was_the_last(tmp_path: Path) -> None:
    async with staged(acp(tmp_path), tmp_path, files=FILES) as stage:
        await stage.turn("one")
        told = last_prompt(tmp_path)
        assert "Be kind" in told
        assert "- pdf: Reads PDF files" in told
        assert "- critic: Criticises" in told
        assert "no longer" not in told

        await stage.toggle("kind", "rule", on=False)
        await stage.turn("two")
        changed = last_prompt(tmp_path)
        assert "no longer hold:\n- Be kind to people." in changed
        assert "- pdf: Reads PDF files" in changed

        await stage.turn("three")
        assert last_prompt(tmp_path) == "three"

        await stage.toggle("pdf", "skill", on=False)
        await stage.toggle("critic", "agent", on=False)
        await stage.turn("four")
        ended = last_prompt(tmp_path)
        assert "- the skill pdf\n- the agent critic" in ended
        assert "There are no instructions now." in ended
        assert "Instructions for this conversation:" not in ended

        await stage.toggle("kind", "rule", on=True)
        await stage.turn("five")
        assert "Be kind" in last_prompt(tmp_path)


async def test_an_agent_that_was_started_again_is_told_too(tmp_path: Path) -> None:
    agent = acp(tmp_path, idle=0.05)
    async with staged(agent, tmp_path, files={".claude/rules/kind.md": "Be kind to people."}) as stage:
        await stage.turn("one")
        await until(lambda: received(tmp_path, "session/close"))
        await stage.toggle("kind", "rule", on=False)
        await stage.turn("two")
        assert received(tmp_path, "session/resume")
        assert "no longer hold:\n- Be kind to people." in last_prompt(tmp_path)


async def test_a_model_and_a_python_function_get_only_what_holds(tmp_path: Path) -> None:
    async def function(turn: Turn) -> str:
        return instructions(turn.context) or "nothing"

    async with staged(PythonAgent(function, name="python"), tmp_path / "a", files=FILES) as stage:
        assert "Be kind" in (await stage.turn("one")).text
        for name, type in (("kind", "rule"), ("pdf", "skill"), ("critic", "agent")):
            await stage.toggle(name, type, on=False)
        assert (await stage.turn("two")).text == "nothing"
    async with FakeModel() as model:
        agent = OpenAiAgent(OpenAiConfig(name="model", base_url=model.url))
        async with staged(agent, tmp_path / "b", files=FILES) as stage:
            await stage.turn("one")
            assert "Be kind" in json.dumps(model.requests[-1].body)
            await stage.toggle("kind", "rule", on=False)
            await stage.turn("two")
            assert "Be kind" not in json.dumps(model.requests[-1].body)


GATED = {
    ".claude/skills/deploy/SKILL.md": "---\ndescription: Ships\ndisable-model-invocation: true\n---\nPress the button.",
    ".claude/skills/lint/SKILL.md": "---\ndescription: Looks\nuser-invocable: false\n---\nLook closely.",
    ".claude/agents/boss.md": "---\ndescription: Decides\ndisable-model-invocation: true\n---\nYou decide.",
    ".claude/agents/judge.md": "---\ndescription: Judges\nuser-invocable: false\n---\nYou judge.",
}


@asynccontextmanager
async def heard_by(kind: str, directory: Path, **acp_script: Any) -> AsyncGenerator[tuple[Agent, Callable[[], str]]]:
    """An agent, and all that it was told with the last message."""
    last = list[str]()

    async def function(turn: Turn) -> str:
        last.append(f"{instructions(turn.context)}\n{turn.prompt}")
        return "done"

    if kind == "python":
        yield PythonAgent(function, name="python"), lambda: last[-1]
    elif kind == "acp":
        yield acp(directory, **acp_script), lambda: last_prompt(directory)
    else:
        async with FakeModel(calling) as model:
            agent = OpenAiAgent(OpenAiConfig(name="model", base_url=model.url, models=("small", "large")))
            yield agent, lambda: json.dumps(model.requests[-1].body)


@requirement(
    "enablement:invocation:skill-model-gate",
    "enablement:invocation:skill-user-gate",
    "enablement:invocation:agent-model-gate",
    "enablement:invocation:agent-user-gate",
    "session:customization:skill-user-only",
    "gen:message:model-per-message",
)
@pytest.mark.parametrize("kind", ["python", "model", "acp"])
async def test_model_and_user_each_reach_only_what_is_for_them(tmp_path: Path, kind: str) -> None:
    async with heard_by(kind, tmp_path) as (agent, heard), staged(agent, tmp_path, files=GATED) as stage:
        await stage.turn("hello")
        told = heard()
        assert ("Looks" in told, "Judges" in told) == (True, True), "for the model alone"
        assert ("Ships" in told, "Decides" in told) == (False, False), "for the user alone"

        await stage.turn("/deploy now")
        assert "Press the button." in heard(), "the user still can"
        assert "is for the model alone" in str((await stage.turn("/lint now")).record)
        assert "Look closely." not in heard()

        for name, possible in (("boss", True), ("judge", False)):
            chosen = {
                "type": "session/agentChanged",
                "agent": {"uri": (await stage.customization(name, "agent"))["uri"]},
            }
            if possible:
                await stage.client.accepted(stage.session, chosen)
            else:
                assert await stage.client.rejected(stage.session, chosen)
        await stage.turn("hello")
        assert "You decide." in heard()


@requirement("session:action:model-change-deferred", "session:action:agent-change-deferred")
@pytest.mark.parametrize("kind", ["model", "acp"])
async def test_model_and_agent_that_are_chosen_while_a_turn_runs_hold_from_the_next_one(
    tmp_path: Path, kind: str
) -> None:
    """A Python function asks the host, which says the old ones until then: see `test_session_details.py`."""
    listed = {
        "currentModelId": "small",
        "availableModels": [{"modelId": one, "name": one} for one in ("small", "large")],
    }
    script: Json = {"session": {"models": listed}, "mcp": "silent"}
    async with (
        heard_by(kind, tmp_path, **script) as (agent, heard),
        staged(agent, tmp_path, files=GATED, model={"id": "small"}) as stage,
    ):
        boss = (await stage.customization("boss", "agent"))["uri"]
        meanwhile: list[Any] = []

        def at_work() -> tuple[bool, bool]:
            """Whether the last message was for the large model, and for the boss."""
            if kind == "acp":
                models = [one["modelId"] for one in received(tmp_path, "session/set_model")]
                return (models[-1:] == ["large"], "You decide." in heard())
            return ('"model": "large"' in heard(), "You decide." in heard())

        async def choose(about: Json) -> None:
            for chosen in (
                {"type": "modelChanged", "model": {"id": "large"}},
                {"type": "agentChanged", "agent": {"uri": boss}},
            ):
                stage.client.post(stage.session, {**chosen, "type": f"session/{chosen['type']}"})
            summary = (await stage.state())["summary"]
            meanwhile.append((summary["model"]["id"], "agent" in summary, at_work()))
            done = {"success": True, "pastTenseMessage": "Shown", "content": [{"type": "text", "text": "shown"}]}
            stage.client.post(stage.chat, {"type": "chat/toolCallComplete", **about, "result": done})

        assert stage.tools.keys() == {NOTE["name"]}
        seen = await stage.turn('CALL show_note {"text": "hi"}', own=choose)
        assert meanwhile == [("small", False, (False, False))]
        assert "shown" in seen.text
        if kind == "model":
            assert '"model": "small"' in heard(), "it went on after the choice"
        await stage.turn("next")
        assert at_work() == (True, True)


def test_rules_that_wait_for_other_files_still_hold() -> None:
    python, always = "Use tabs in Python.", "Be kind."
    first = TurnContext(rules=[always, python])
    told = given_after([], first)
    without = TurnContext(rules=[always], other_rules=[python])
    assert changed_instructions(told, without) == ""
    assert (
        changed_instructions(given_after(told, without), TurnContext(rules=[always])).splitlines()[1]
        == "- Use tabs in Python."
    )
    again = TurnContext(rules=[always, python])
    assert changed_instructions(given_after(told, without), again) == ""


def test_hundreds_of_rules_are_remembered_in_bounds() -> None:
    many = TurnContext(rules=[f"Rule {number}" for number in range(500)], skills=[SkillOffer("s", "d", "file:///s")])
    told = given_after([], many)
    assert len(told) == 101
    assert changed_instructions(told, many) == ""
    assert "other instructions" in changed_instructions(told, TurnContext(rules=many.rules))


COMMANDS = [Command("plan", "Make a plan"), Command("quit", "Stop")]


async def test_the_commands_of_an_agent_obey_their_switches(tmp_path: Path) -> None:
    said: list[str] = []

    async def function(turn: Turn) -> str:
        said.append(turn.prompt)
        return "done"

    agent = PythonAgent(function, name="python", commands=COMMANDS)
    async with staged(agent, tmp_path) as stage:
        assert await _completed(stage, "/") == ["/plan ", "/quit "]
        await stage.toggle("plan", "prompt", on=False)
        assert await _completed(stage, "/") == ["/quit "]
        refused = await stage.turn("/plan the day")
        assert "switched off" in str(refused.record)
        await stage.turn("/quit")
        assert said == ["/quit"]

        await stage.toggle("Agent commands", "plugin", on=False)
        assert await _completed(stage, "/") == []
        assert "switched off" in str((await stage.turn("/quit")).record)
        await stage.toggle("Agent commands", "plugin", on=True)
        assert await _completed(stage, "/") == ["/quit "]


async def test_a_switch_stays_when_an_agent_tells_its_commands_again(tmp_path: Path) -> None:
    def commands(*names: str) -> Json:
        listed = [{"name": name, "description": name} for name in names]
        return {"update": {"sessionUpdate": "available_commands_update", "availableCommands": listed}}

    agent = acp(tmp_path, opened=[commands("plan", "quit")], turns=[[commands("plan", "quit", "new"), {"text": "ok"}]])
    async with staged(agent, tmp_path) as stage:
        await until(lambda: _has_commands(stage))
        await stage.toggle("plan", "prompt", on=False)
        await stage.turn("go")
        assert await _completed(stage, "/") == ["/quit ", "/new "]


REPORTS: list[Json] = [
    {"name": "plain", "description": "says nothing"},
    {"name": "off", "description": "a skill that is off", "_meta": {"kind": "skill", "enabled": False}},
    {
        "name": "model-only",
        "description": "for the model",
        "_meta": {"acme": {"userInvocable": False, "enabled": True}},
    },
    {"name": "helper", "description": "an agent", "_meta": {"acme": {"type": "agent", "userInvocable": False}}},
]
SHOWN = {
    "plain": ("prompt", None, None),
    "off": ("skill", False, None),
    "model-only": ("skill", True, True),
    "helper": ("agent", None, True),
}


def reporting(kind: str, tmp_path: Path) -> Agent:
    """An agent that reports what it has, and reports it again with each turn: `on` switches the skill on."""
    if kind == "acp":
        on = [{**one, "_meta": {"kind": "skill", "enabled": True}} if one["name"] == "off" else one for one in REPORTS]
        told = [{"sessionUpdate": "available_commands_update", "availableCommands": each} for each in (REPORTS, on)]
        turns = [[{"update": told[0]}, {"text": "ok"}], [{"update": told[1]}, {"text": "ok"}]]
        return acp(tmp_path, opened=[{"update": told[0]}], turns=turns)

    async def function(turn: Turn) -> str:
        turn.chat.commands(
            [
                Command("plain", "says nothing"),
                Command("off", "a skill that is off", kind="skill", enabled=turn.prompt == "on"),
                Command("model-only", "for the model", enabled=True, user_invocable=False),
                Command("helper", "an agent", kind="agent", user_invocable=False),
            ]
        )
        return "ok"

    return PythonAgent(function, name="python")


@requirement("enablement:fields:taken-from-agent-reports")
@pytest.mark.parametrize("kind", ["python", "acp"])
async def test_what_an_agent_reports_of_its_skills_and_agents_is_shown(tmp_path: Path, kind: str) -> None:
    """Models behind an endpoint have no skills of their own, so there is nothing that they could report."""

    async def shown() -> dict[str, tuple[Any, ...]]:
        [plugin] = [one for one in (await stage.state())["customizations"] if one["id"] == "agent-commands"]
        keys = ("type", "enabled", "disableUserInvocation")
        return {child["name"]: tuple(child.get(key) for key in keys) for child in plugin["children"]}

    async with staged(reporting(kind, tmp_path), tmp_path) as stage:
        await stage.turn("go")
        assert await shown() == SHOWN
        assert await _completed(stage, "/") == ["/plain "]
        assert "`/model-only` is for the model alone" in str((await stage.turn("/model-only now")).record)
        await stage.toggle("model-only", "skill", on=False)
        await stage.turn("on")
        assert await shown() == {**SHOWN, "off": ("skill", True, None), "model-only": ("skill", False, True)}
        assert await _completed(stage, "/") == ["/plain ", "/off "]


def _has_commands(stage: Stage) -> bool:
    state = stage.bench.host.services.state(stage.session) or {}
    return "agent-commands" in [one["id"] for one in state.get("customizations", [])]


async def _completed(stage: Stage, text: str) -> list[str]:
    asked = {"kind": "userMessage", "text": text, "offset": len(text)}
    result = await stage.client.ask("completions", stage.chat, **asked)
    return [item["insertText"] for item in result["items"]]


@pytest.mark.parametrize("how", ["switched off", "gone"])
async def test_a_custom_agent_that_is_not_there_is_no_longer_selected(tmp_path: Path, how: str) -> None:
    roles: list[str | None] = []

    async def function(turn: Turn) -> str:
        roles.append(turn.context.system_prompt)
        return "done"

    async with staged(PythonAgent(function, name="python"), tmp_path, files=FILES) as stage:
        critic = await stage.customization("critic", "agent")
        chosen = {"type": "session/agentChanged", "agent": {"uri": critic["uri"]}}
        await stage.client.accepted(stage.session, chosen)
        await stage.turn("one")
        if how == "gone":
            (tmp_path / "work/.claude/agents/critic.md").unlink()
        else:
            await stage.toggle("critic", "agent", on=False)
        await stage.client.action(lambda one: one["action"] == {"type": "session/agentChanged"})
        await stage.turn("two")
        assert [role is not None for role in roles] == [True, False]
        assert "agent" not in await stage.state()
        assert "critic" in await stage.client.rejected(stage.session, chosen)


async def test_one_session_of_the_agent_also_with_servers(tmp_path: Path) -> None:
    servers = {"slow": {"command": "sleep", "args": ["60"]}, "web": {"url": "http://127.0.0.1:9/mcp"}}
    async with staged(acp(tmp_path), tmp_path, servers=servers, patience=0.1) as stage:
        await stage.turn("one")
        await stage.toggle("slow", "mcpServer", on=False)
        await stage.turn("two")
    [new] = received(tmp_path, "session/new")
    assert [server["name"] for server in new["mcpServers"]] == ["ahp"]
    assert len(received(tmp_path, "session/prompt")) == 2


@pytest.mark.parametrize("kind", ["python", "acp", "model", "demo"])
async def test_a_model_that_the_agent_does_not_have_is_refused_also_when_it_lists_none(
    tmp_path: Path, kind: str
) -> None:
    async def function(turn: Turn) -> str:
        return "done"

    def nothing(asked: Any) -> Any:
        raise AssertionError("no model is asked")

    async with FakeModel(nothing) as endpoint:
        agent: Any = {
            "python": lambda: PythonAgent(function, name="python"),
            "acp": lambda: acp(tmp_path),
            "demo": DemoAgent,
            "model": lambda: OpenAiAgent(OpenAiConfig(name="model", base_url=endpoint.url, models=("small",))),
        }[kind]()
        bench = Bench(tmp_path)
        bench.agent = agent
        await bench.start()
        try:
            client = await bench.client()
            session, chat = await bench.session(client)
            wanted = {"type": "session/modelChanged", "model": {"id": "gpt-99"}}
            assert "model" in await client.rejected(session, wanted)
            newer = await bench.connect("newer")
            await newer.initialize(session, chat, protocolVersions=["1.0.0"])
            message = {"text": "hi", "origin": {"kind": "user"}, "model": {"id": "gpt-99"}}
            begun = {**say("hi"), "message": message, "startedAt": "2026-11-15T12:00:00.000Z"}
            assert "model" in await newer.rejected(chat, begun)
            error = await client.call("createSession", "ahp-session:/other", model={"id": "gpt-99"})
            assert "gpt-99" in str(error) or "no models" in str(error)
        finally:
            await bench.stop()


async def test_a_model_chosen_before_the_agent_told_is_looked_at_when_it_did(tmp_path: Path) -> None:
    models = {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}]}
    bench = Bench(tmp_path)
    bench.agent = acp(tmp_path, session={"models": models})  # pyright: ignore[reportAttributeAccessIssue]  # A bench is typed for its usual agent.
    await bench.start()
    try:
        client = await bench.client()
        await client.ask("createSession", "ahp-session:/wrong", model={"id": "b"})
        state = await begun(client, "ahp-session:/wrong")
        assert "'b'" in state["creationError"]["message"]
    finally:
        await bench.stop()


ANNOUNCED = {"agentCapabilities": {"loadSession": True, "_meta": {"example.com/notes": {"version": "1"}}}}


async def test_a_client_calls_an_extension_that_the_agent_of_its_session_announced(tmp_path: Path) -> None:
    methods = {
        "_example.com/notes/search": [{"result": {"found": 1}}],
        "_example.com/notes/wrong": [{"error": {"code": -32050, "message": "no notes"}}],
    }
    async with staged(acp(tmp_path, initialize=ANNOUNCED, methods=methods), tmp_path) as stage:
        for channel in (stage.session, stage.chat):
            assert await stage.client.ask("_example.com/notes/search", channel, words="milk") == {"found": 1}
        [asked, _] = received(tmp_path, "_example.com/notes/search")
        assert (asked["words"], "channel" in asked) == ("milk", False)
        assert asked["sessionId"]
        refused = await stage.client.refused("_example.com/notes/wrong", stage.session)
        assert (refused["code"], refused["message"]) == (-32050, "no notes")
        for method, channel in (
            ("_example.com/other/search", stage.session),
            ("_example.com/notes/search", "ahp-root://"),
            ("_example.com/notes/search", "ahp-session:/nobody"),
        ):
            assert (await stage.client.refused(method, channel))["code"] == -32601
