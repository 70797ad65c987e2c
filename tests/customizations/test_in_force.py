from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.details import ServerDetail
from ahpkit.customizations.in_force import (
    META_KEY,
    InForce,
    complete,
    fill_context,
    mentioned_paths,
    rules_for,
    servers,
)
from ahpkit.dialects.v0_4.session.reducer import session_reducer
from ahpkit.host.agent import TurnContext
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.common.state import JsonObject
from customizations.builders import Files, read_workspace, skill, text, write
from customizations.desk import Desk
from support import requirement

FILES: Files = {
    ".github/skills/both/SKILL.md": skill("both"),
    ".github/skills/slash/SKILL.md": skill("slash", disable_model_invocation="true"),
    ".github/skills/model/SKILL.md": skill("model", user_invocable="false"),
    ".github/agents/both.md": text("You are both.", name="both"),
    ".github/agents/picked.md": text("You are ${workspaceFolder}.", name="picked", disable_model_invocation="true"),
    ".github/agents/helper.md": text("You help.", name="helper", user_invocable="false"),
    ".claude/rules/always.md": "Always.",
    ".github/instructions/py.instructions.md": text("Python.", applyTo="**/*.py"),
    ".github/instructions/all.instructions.md": text("Everywhere.", applyTo="'**'"),
    ".cursor/rules/manual.mdc": text("Manual.", description="When asked."),
    ".cursor/rules/scoped.mdc": text("Scoped.", alwaysApply="true", globs="docs/**"),
    ".mcp.json": {
        "files": {"command": "${CLAUDE_PROJECT_DIR}/x"},
        "off": {"command": "y", "disabled": True},
        "bad": {},
    },
}


def user(message: str, *attachments: JsonObject) -> Message:
    value: Any = {"text": message, "origin": {"kind": "user"}, "attachments": list(attachments)}
    return value


@pytest.fixture
def in_force(tmp_path: Path) -> InForce:
    discovery = read_workspace(write(tmp_path, FILES))
    return InForce(discovery.containers, discovery.details, discovery.roots, str(tmp_path))


def toggled(in_force: InForce, name: str, enabled: bool, *, type: str | None = None) -> InForce:
    """As after a client's toggle of the first customization called so."""
    state: Any = {"customizations": in_force.customizations}
    everything = [entry for top in state["customizations"] for entry in (top, *top.get("children", ()))]
    found = next(item for item in everything if item["name"] == name and type in (None, item["type"]))
    action = {"type": "session/customizationToggled", "id": found["id"], "enabled": enabled}
    after = session_reducer(state, action, now=1)
    return InForce(after["customizations"], in_force.details, in_force.roots, in_force.workspace)


def context_of(
    in_force: InForce, message: str = "hi", *, agent: str | None = None, trusted: bool = True
) -> TurnContext:
    context = TurnContext()
    fill_context(context, in_force, user(message), agent_uri=agent, environment={})
    return context


@requirement("enablement:invocation:skill-model-gate")
@requirement("enablement:invocation:agent-model-gate")
@requirement("enablement:surface:not-invocable-child-listed")
def test_the_model_sees_only_what_it_may_invoke_by_itself(in_force: InForce) -> None:
    context = context_of(in_force)
    assert [offer.name for offer in context.skills] == ["both", "model"]
    assert [offer.name for offer in context.agents] == ["both", "helper"]
    assert context.skills[0].body == "# both\n"
    assert context.skills[0].description == "Does a thing."


@requirement("enablement:invocation:skill-user-gate")
def test_a_user_calls_only_what_they_may_invoke(in_force: InForce) -> None:
    assert in_force.called("slash", "skill") is not None
    assert in_force.called("model", "skill") is None


@requirement("enablement:invocation:agent-user-gate")
def test_the_selected_agents_body_is_the_system_prompt(in_force: InForce, tmp_path: Path) -> None:
    picked = (tmp_path / ".github/agents/picked.md").as_uri()
    helper = (tmp_path / ".github/agents/helper.md").as_uri()
    assert context_of(in_force, agent=picked).system_prompt == f"You are {tmp_path}.\n"
    assert context_of(in_force, agent=helper).system_prompt is None
    assert context_of(in_force).system_prompt is None


@pytest.mark.parametrize(
    ("message", "rules"),
    [
        ("hi", ["Always.", "Everywhere."]),
        ("look at src/app.py please", ["Python.", "Always.", "Everywhere."]),
        ("and docs/x.md", ["Always.", "Everywhere.", "Scoped."]),
        ("use #manual, ok", ["Always.", "Everywhere.", "Manual."]),
    ],
)
def test_a_rule_applies_always_by_glob_or_when_asked_for(in_force: InForce, message: str, rules: list[str]) -> None:
    assert sorted(rule.strip() for rule in rules_for(in_force, user(message))[0]) == sorted(rules)


def test_attached_files_and_attached_rules_count(in_force: InForce, tmp_path: Path) -> None:
    file = {"type": "resource", "label": "x", "uri": (tmp_path / "a b.py").as_uri()}
    rule: JsonObject = {
        "type": "simple",
        "label": "x",
        "_meta": {META_KEY: {"uri": (tmp_path / ".cursor/rules/manual.mdc").as_uri()}},
    }
    assert "Python.\n" in rules_for(in_force, user("hi", file))[0]
    assert "Manual.\n" in rules_for(in_force, user("hi", rule))[0]


def test_paths_are_found_in_prose(tmp_path: Path) -> None:
    message = user(f"Fix src/a-b.ts, {tmp_path}/x/y.py and ./z.md; do.")
    assert mentioned_paths(message, str(tmp_path)) == ["src/a-b.ts", "x/y.py", "z.md"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Look at src/app.ts.", ["src/app.ts"]),
        ("and at main.test.ts, too", ["main.test.ts"]),
        ("not 1.2.3 or / or ... or what.", []),
        ("`./a/b.py`", ["a/b.py"]),
        ("docs/", []),
    ],
)
def test_files_are_told_from_words_and_punctuation(said: str, meant: list[str]) -> None:
    assert mentioned_paths(user(said), None) == meant


@pytest.mark.parametrize("letters", ["a", "a.", "-", "/", "a/", "."])
def test_a_word_without_end_is_looked_at_once(letters: str) -> None:
    """A pattern that backtracks takes minutes here, and the whole host waits with it."""
    assert len(mentioned_paths(user(letters * 100_000), None)) <= 1


@requirement("enablement:precedence:disabled-container-wins")
@requirement("customizations:toggle:children-follow-container")
def test_nothing_of_a_disabled_container_is_offered(in_force: InForce) -> None:
    off = toggled(toggled(in_force, "both", True, type="skill"), ".github/skills", False)
    assert context_of(off).skills == []
    assert off.called("both", "skill") is None
    assert [offer.name for offer in context_of(toggled(off, ".github/skills", True)).skills] == ["both", "model"]


@requirement("enablement:precedence:both-must-be-enabled")
@pytest.mark.parametrize(
    ("name", "type", "kind"),
    [
        ("both", "skill", "skills"),
        ("both", "agent", "agents"),
        ("always", "rule", "rules"),
        ("files", None, "mcp_servers"),
    ],
)
def test_one_disabled_child_is_not_offered_and_its_siblings_are(
    in_force: InForce, name: str, type: str | None, kind: str
) -> None:
    before = len(getattr(context_of(in_force), kind))
    assert len(getattr(context_of(toggled(in_force, name, False, type=type)), kind)) == before - 1


def test_servers_are_offered_filled_in_and_only_where_trusted(in_force: InForce, tmp_path: Path) -> None:
    [offer] = context_of(in_force).mcp_servers
    assert (offer.name, offer.config["command"]) == ("files", f"{tmp_path}/x")
    assert context_of(replace(in_force, standings={})).mcp_servers == []
    assert context_of(replace(in_force, standings={offer.id: "changed"})).mcp_servers == []


@requirement("customizations:tree:mcp-server-either-position")
def test_a_server_at_the_top_level_is_offered_and_toggled_like_a_child(in_force: InForce) -> None:
    bare: JsonObject = {"type": "mcpServer", "id": "bare", "uri": "x:y", "name": "bare", "enabled": True}
    entries: Any = in_force.customizations
    details = {**in_force.details, "bare": ServerDetail("bare", {"command": "b"}, "workspace")}
    both = replace(in_force, customizations=[*entries, bare], details=details)
    assert [offer.name for offer in context_of(both).mcp_servers] == ["files", "bare"]
    assert [offer.name for offer in context_of(toggled(both, "bare", False)).mcp_servers] == ["files"]
    assert [offer.name for offer in context_of(toggled(both, "files", False)).mcp_servers] == ["bare"]


def test_of_two_servers_with_one_name_a_plugins_carries_the_plugins_name(tmp_path: Path) -> None:
    server = {"mcpServers": {"db": {"command": "x"}}}
    plugin = write(tmp_path / "p", {".plugin/plugin.json": {"name": "p"}, ".mcp.json": server})
    work = write(tmp_path / "w", {".mcp.json": server, ".vscode/mcp.json": {"servers": {"db": {"command": "y"}}}})
    discovery = read_workspace(work, plugins=(plugin,))
    in_force = InForce(discovery.containers, discovery.details, discovery.roots)
    assert [(offer.name, offer.config["command"]) for offer in servers(in_force, {})] == [("db", "x"), ("p-db", "x")]


def test_of_two_skills_with_one_name_the_nearer_is_meant_until_it_is_disabled(tmp_path: Path) -> None:
    home = write(tmp_path / "home", {".claude/skills/s/SKILL.md": text("Mine.", name="s")})
    work = write(tmp_path / "w", {".claude/skills/s/SKILL.md": text("Ours.", name="s")})
    discovery = read_workspace(work, home=home)
    in_force = InForce(discovery.containers, discovery.details, discovery.roots)

    def body(in_force: InForce) -> str | None:
        found = in_force.called("s", "skill")
        return None if found is None else found.detail.body.strip()

    assert body(in_force) == "Ours."
    assert body(toggled(in_force, "s", False)) == "Mine."
    assert [offer.body.strip() for offer in context_of(in_force).skills] == ["Ours."]


@requirement("enablement:invocation:skill-user-gate")
def test_a_command_of_the_agent_may_have_the_name_of_something_that_cannot_be_called(in_force: InForce) -> None:
    assert in_force.why_not("model", "skill") == "`model` is for the model alone; say in words what you need"
    off = "`both` is switched off; switch it on to use it"
    assert toggled(in_force, "both", False, type="skill").why_not("both", "skill") == off
    commands: Any = {"type": "plugin", "id": "c", "uri": "x:/c", "name": "Agent commands", "enabled": True}
    commands["children"] = [{"type": "skill", "id": "c1", "uri": "x:/c1", "name": "model"}]
    everything: Any = [*(in_force.customizations or ()), commands]
    assert replace(in_force, customizations=everything).why_not("model", "skill") is None


@pytest.fixture
def invocable(tmp_path: Path) -> InForce:
    plugin = write(tmp_path / "p", {".plugin/plugin.json": {"name": "p"}, "skills/deploy/SKILL.md": skill("deploy")})
    write(
        tmp_path,
        {
            ".github/skills/review/SKILL.md": skill("review"),
            ".github/skills/hidden/SKILL.md": skill("hidden", user_invocable="false"),
            ".github/prompts/Plan It.prompt.md": text(),
            ".github/agents/reviewer.md": text(),
            ".github/agents/helper.md": text(user_invocable="false"),
            ".cursor/rules/style.mdc": text(),
        },
    )
    discovery = read_workspace(tmp_path, plugins=(plugin,))
    return InForce(discovery.containers, discovery.details, discovery.roots)


def offered(invocable: InForce, typed: str) -> list[str]:
    return [item["insertText"] for item in complete(invocable, typed, len(typed))]


@requirement("enablement:invocation:skill-user-gate")
@requirement("enablement:invocation:agent-user-gate")
@pytest.mark.parametrize(
    ("typed", "items"),
    [
        ("/", ["/review ", "/p:deploy ", "/Plan-It "]),
        ("/re", ["/review "]),
        ("/dep", ["/p:deploy "]),
        ("/p:", ["/p:deploy "]),
        ("/it", ["/Plan-It "]),
        ("/hid", []),
        ("@", ["@reviewer "]),
        ("ask @rev", ["@reviewer "]),
        ("mind #st", ["#style "]),
        ("see a/", []),
        ("then /", []),
        ("mail@", []),
        ("", []),
    ],
)
def test_each_mark_offers_what_the_user_may_invoke(invocable: InForce, typed: str, items: list[str]) -> None:
    assert offered(invocable, typed) == items


def test_an_item_replaces_what_was_typed_and_says_what_it_stands_for(invocable: InForce, tmp_path: Path) -> None:
    typed = "😀 @rev rest"
    [item] = complete(invocable, typed, 7)
    assert (item["insertText"], item.get("rangeStart"), item.get("rangeEnd")) == ("@reviewer ", 3, 7)
    assert item["attachment"] == {
        "type": "simple",
        "label": "reviewer",
        "displayKind": "agent",
        "_meta": {
            "description": "Do it.",
            META_KEY: {"type": "agent", "uri": (tmp_path / ".github/agents/reviewer.md").as_uri()},
        },
    }


@requirement("commands:completions:says-more")
async def test_an_answer_that_leaves_something_out_says_how_much(desk: Desk) -> None:
    desk.files({f".claude/commands/c{number}.md": "x" for number in range(1_020)})
    client = await desk.start()
    session, chat = await desk.session(client)
    await desk.read(client, session, ".claude/commands")
    answer = await client.ask("completions", chat, kind="userMessage", text="/c", offset=2)
    assert (len(answer["items"]), answer["_meta"]) == (1_000, {"ahpkit/more": 20})
    answer = await client.ask("completions", chat, kind="userMessage", text="/c101", offset=5)
    assert (len(answer["items"]), "_meta" in answer) == (11, False)


@requirement("commands:completions:contains")
def test_the_name_that_is_put_in_holds_what_was_typed(tmp_path: Path) -> None:
    """A skill can be called by its folder too."""
    files = {".github/skills/brand-folder/SKILL.md": text(name="storm")}
    discovery = read_workspace(write(tmp_path, files))
    invocable = InForce(discovery.containers, discovery.details, discovery.roots)
    assert (offered(invocable, "/bra"), offered(invocable, "/sto")) == (["/brand-folder "], ["/storm "])


def test_what_contains_the_typed_part_is_offered_behind_what_begins_with_it(tmp_path: Path) -> None:
    files = {f".claude/commands/{name}.md": "x" for name in ("library", "brainstorm", "code-branch", "other")}
    discovery = read_workspace(write(tmp_path, files))
    invocable = InForce(discovery.containers, discovery.details, discovery.roots)
    assert offered(invocable, "/bra") == ["/brainstorm ", "/code-branch ", "/library "]
