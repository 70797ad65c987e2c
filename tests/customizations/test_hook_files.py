from pathlib import Path
from typing import Any

import pytest

from ahpkit.customizations.details import HookDetail, Parsed
from customizations.builders import children, codes, load, names, read_plugin, write
from support import requirement

COMMAND = {"type": "command", "command": "./guard.sh"}
GROUP = {"matcher": "Bash", "hooks": [COMMAND]}


def read(tmp_path: Path, hooks: Any) -> Parsed:
    return read_plugin(write(tmp_path / "p", {".plugin/plugin.json": {"name": "p"}, "hooks/hooks.json": hooks}))


def details(parsed: Parsed) -> list[HookDetail]:
    return [detail for detail in parsed.details.values() if isinstance(detail, HookDetail)]


@requirement("customizations:children:hook-fields")
@requirement("customizations:children:no-execution-details")
@pytest.mark.parametrize(
    "hooks",
    [
        {"hooks": {"PreToolUse": [GROUP]}},
        {"version": 1, "hooks": {"PreToolUse": [GROUP]}},
        {"PreToolUse": [GROUP]},
        {"hooks": {"preToolUse": [{"matcher": "Bash", **COMMAND}]}},
        {"hooks": {"PreToolUse": {"matcher": "Bash", **COMMAND}}},
        {"hooks": [{"event": "PreToolUse", "matcher": "Bash", **COMMAND}]},
    ],
)
def test_every_shape_gives_the_event_and_the_matcher_but_not_the_command(tmp_path: Path, hooks: Any) -> None:
    parsed = read(tmp_path, hooks)
    [entry] = children(parsed)
    assert (entry["type"], entry["name"]) == ("hook", "PreToolUse (Bash)")
    assert (entry["event"], entry["matcher"]) == ("PreToolUse", "Bash")
    assert "guard" not in str(parsed.container)
    [detail] = details(parsed)
    assert (detail.event, detail.matcher, detail.actions[0]["command"]) == ("PreToolUse", "Bash", "./guard.sh")


@requirement("customizations:identity:inline-declaration-range")
def test_the_range_is_the_group_in_its_file(tmp_path: Path) -> None:
    text = (
        '{\n "hooks": {\n  "Stop": [\n   {"hooks": [{"command": "a"}]},\n   {"hooks": [{"command": "b"}]}\n  ]\n }\n}'
    )
    parsed = read(tmp_path, text)
    first, second = children(parsed)
    assert first["range"] == {"start": {"line": 3, "character": 3}, "end": {"line": 3, "character": 32}}
    assert second["range"]["start"] == {"line": 4, "character": 3}
    assert first["id"] != second["id"]


def test_flat_entries_of_one_event_are_one_group(tmp_path: Path) -> None:
    parsed = read(
        tmp_path, {"version": 1, "hooks": {"sessionStart": [COMMAND, {"bash": "b"}, {"type": "prompt", "prompt": "p"}]}}
    )
    assert names(parsed) == ["SessionStart"]
    assert len(details(parsed)[0].actions) == 3


@pytest.mark.parametrize("matcher", ["", "*", None])
def test_a_matcher_for_everything_is_left_out(tmp_path: Path, matcher: str | None) -> None:
    [entry] = children(read(tmp_path, {"hooks": {"Stop": [{"matcher": matcher, "hooks": [COMMAND]}]}}))
    assert "matcher" not in entry


@pytest.mark.parametrize("event", ["userPromptSubmitted", "beforeSubmitPrompt", "UserPromptSubmit"])
def test_other_products_words_for_an_event_are_known(tmp_path: Path, event: str) -> None:
    assert names(read(tmp_path, {"hooks": {event: [COMMAND]}})) == ["UserPromptSubmit"]


def test_events_nobody_knows_are_listed_as_they_are(tmp_path: Path) -> None:
    assert names(read(tmp_path, {"hooks": {"beforeTabFileRead": [COMMAND]}})) == ["beforeTabFileRead"]


def test_an_event_given_as_text_is_its_command(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"hooks": {"Stop": "./done.sh"}})
    assert details(parsed)[0].actions[0]["command"] == "./done.sh"
    assert "hook-shape" in codes(parsed, "note")


@pytest.mark.parametrize(
    "hooks",
    [
        {"hooks": {"Stop": [GROUP], "Other": [7, {"x": 1}]}},
        {"hooks": {"Stop": [GROUP, {"hooks": [{"nothing": 1}]}]}},
        {"hooks": [{"event": "Stop", **COMMAND}, {"command": "no event"}]},
    ],
)
def test_one_bad_entry_costs_itself_only(tmp_path: Path, hooks: Any) -> None:
    parsed = read(tmp_path, hooks)
    assert load(parsed)["kind"] == "degraded"
    assert names(parsed)[0].startswith("Stop")


@pytest.mark.parametrize("hooks", ["{", "[]]", "42", {"hooks": 1}])
def test_a_broken_file_degrades_and_lists_nothing(tmp_path: Path, hooks: Any) -> None:
    parsed = read(tmp_path, hooks)
    assert (names(parsed), load(parsed)["kind"]) == ([], "degraded")


def test_hooks_that_are_all_disabled_are_listed_as_such(tmp_path: Path) -> None:
    [entry] = children(read(tmp_path, {"disableAllHooks": True, "hooks": {"Stop": [COMMAND]}}))
    assert entry["enabled"] is False


def test_hooks_in_the_manifest_point_into_the_manifest(tmp_path: Path) -> None:
    manifest = {"name": "p", "hooks": {"Stop": [GROUP]}}
    parsed = read_plugin(write(tmp_path / "p", {".plugin/plugin.json": manifest}))
    [entry] = children(parsed)
    assert entry["uri"].endswith("/.plugin/plugin.json")
    assert entry["range"]["start"]["line"] > 0


def test_ids_do_not_depend_on_what_a_hook_runs(tmp_path: Path) -> None:
    before = children(read(tmp_path, {"hooks": {"Stop": [{"hooks": [COMMAND]}]}}))
    after = children(read(tmp_path, {"hooks": {"PreToolUse": [GROUP], "Stop": [{"hooks": [{"command": "new"}]}]}}))
    assert before[0]["id"] == after[1]["id"]


def test_an_event_without_effect_is_named_and_its_plugin_stays_whole(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"hooks": {"PermissionRequest": [GROUP], "preToolUse": [GROUP]}})
    assert codes(parsed).count("hook-event") == 1
    assert load(parsed)["kind"] == "loaded"
