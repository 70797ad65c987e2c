from pathlib import Path

import pytest

from ahpkit.customizations.completion import complete
from ahpkit.customizations.in_force import META_KEY, InForce
from customizations.builders import read_workspace, skill, text, write
from customizations.desk import Desk
from support import requirement


@pytest.fixture
def in_force(tmp_path: Path) -> InForce:
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


def offered(in_force: InForce, typed: str) -> list[str]:
    return [item["insertText"] for item in complete(in_force, typed, len(typed))]


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
def test_each_mark_offers_what_the_user_may_invoke(in_force: InForce, typed: str, items: list[str]) -> None:
    assert offered(in_force, typed) == items


def test_an_item_replaces_what_was_typed_and_says_what_it_stands_for(in_force: InForce, tmp_path: Path) -> None:
    typed = "😀 @rev rest"
    [item] = complete(in_force, typed, 7)
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
    in_force = InForce(discovery.containers, discovery.details, discovery.roots)
    assert (offered(in_force, "/bra"), offered(in_force, "/sto")) == (["/brand-folder "], ["/storm "])


def test_what_contains_the_typed_part_is_offered_behind_what_begins_with_it(tmp_path: Path) -> None:
    files = {f".claude/commands/{name}.md": "x" for name in ("library", "brainstorm", "code-branch", "other")}
    discovery = read_workspace(write(tmp_path, files))
    in_force = InForce(discovery.containers, discovery.details, discovery.roots)
    assert offered(in_force, "/bra") == ["/brainstorm ", "/code-branch ", "/library "]
