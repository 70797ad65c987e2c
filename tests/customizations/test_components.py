from pathlib import Path

import pytest

from ahpkit.customizations.components import META_KEY
from ahpkit.customizations.details import Parsed, TextDetail
from customizations.builders import child, children, codes, load, names, read_plugin, skill, text, write
from support import requirement

MANIFEST = {".plugin/plugin.json": {"name": "p"}}


def read(tmp_path: Path, files: dict[str, str | bytes]) -> Parsed:
    return read_plugin(write(tmp_path / "p", {**MANIFEST, **files}))


@requirement("customizations:children:skill-fields")
@requirement("customizations:children:metadata-from-definition")
@requirement("customizations:identity:id-and-uri-everywhere")
@requirement("customizations:children:base-fields")
def test_a_skill_has_what_its_header_says_and_nothing_else(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"skills/deploy/SKILL.md": skill("deploy", "Ships it.", disable_model_invocation="true")})
    [entry] = children(parsed)
    assert entry == {
        "type": "skill",
        "id": entry["id"],
        "uri": (tmp_path / "p/skills/deploy/SKILL.md").as_uri(),
        "name": "p:deploy",
        "description": "Ships it.",
        "disableModelInvocation": True,
    }


@requirement("customizations:children:agent-and-prompt-fields")
@requirement("enablement:fields:meta-for-provider-data")
def test_an_agent_keeps_what_only_its_product_knows_in_meta(tmp_path: Path) -> None:
    header = text("You review.", description="Reviews.", model="opus", tools="Read, Grep", maxTurns="3")
    entry = child(read(tmp_path, {"agents/reviewer.md": header}), "p:reviewer")
    assert entry["description"] == "Reviews."
    assert entry["_meta"] == {META_KEY: {"model": "opus", "tools": ["Read", "Grep"]}}


@requirement("enablement:invocation:flags-independent")
@requirement("enablement:invocation:default-allows-both")
@requirement("enablement:fields:first-class")
@requirement("enablement:compat:additive")
@pytest.mark.parametrize("kind", ["skills/x/SKILL.md", "agents/x.md"])
@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ({}, {}),
        ({"disable_model_invocation": "true"}, {"disableModelInvocation": True}),
        ({"disable_model_invocation": "YES"}, {"disableModelInvocation": True}),
        ({"disable_model_invocation": "1"}, {"disableModelInvocation": True}),
        ({"disable_model_invocation": "false"}, {}),
        ({"user_invocable": "false"}, {"disableUserInvocation": True}),
        ({"user_invocable": "off"}, {"disableUserInvocation": True}),
        ({"user_invocable": "true"}, {}),
        (
            {"user_invocable": "false", "disable_model_invocation": "true"},
            {"disableUserInvocation": True, "disableModelInvocation": True},
        ),
    ],
)
def test_invocation_flags_are_read_from_the_header(
    tmp_path: Path, kind: str, header: dict[str, str], fields: dict[str, bool]
) -> None:
    entry = child(read(tmp_path, {kind: text(**header)}), "p:x")
    assert {key: value for key, value in entry.items() if key.startswith("disable")} == fields
    assert "enabled" not in entry
    assert "_meta" not in entry


@pytest.mark.parametrize(
    ("header", "denied", "disagree"),
    [
        ({"infer": "false"}, True, False),
        ({"infer": "true"}, False, False),
        ({"infer": "true", "disable_model_invocation": "true"}, True, True),
        ({"infer": "false", "disable_model_invocation": "false"}, True, True),
        ({"infer": "false", "disable_model_invocation": "true"}, True, False),
    ],
)
def test_infer_is_the_old_word_and_the_restrictive_reading_counts(
    tmp_path: Path, header: dict[str, str], denied: bool, disagree: bool
) -> None:
    parsed = read(tmp_path, {"agents/x.md": text(**header)})
    assert child(parsed, "p:x").get("disableModelInvocation", False) is denied
    assert ("flags-disagree" in codes(parsed, "warning")) is disagree


def test_a_flag_that_is_none_is_ignored_and_said(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"skills/x/SKILL.md": text(user_invocable="sometimes")})
    assert "disableUserInvocation" not in child(parsed, "p:x")
    assert "flag-shape" in codes(parsed, "warning")


def test_a_misspelt_key_is_read_and_said(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"skills/x/SKILL.md": text(user_invokable="false")})
    assert child(parsed, "p:x")["disableUserInvocation"] is True
    assert "misspelt-key" in codes(parsed, "warning")


def test_a_command_is_a_skill_named_by_its_file(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"commands/ship.md": text("Ship $1", name="other", description="Ships.")})
    assert children(parsed)[0]["type"] == "skill"
    assert names(parsed) == ["p:ship"]


def test_a_command_needs_no_header(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"commands/ship.md": "Ship it.\n\nNow."})
    [entry] = children(parsed)
    assert entry["description"] == "Ship it."
    detail = parsed.details[entry["id"]]
    assert isinstance(detail, TextDetail)
    assert (detail.body, detail.description) == ("Ship it.\n\nNow.", "Ship it.")


def test_an_argument_hint_in_brackets_is_no_list(tmp_path: Path) -> None:
    parsed = read(
        tmp_path,
        {"commands/a.md": text(argument_hint="[file]"), "commands/b.md": text(argument_hint="[file] [mode]")},
    )
    assert child(parsed, "p:a")["_meta"] == {META_KEY: {"argument-hint": "[file]"}}
    assert child(parsed, "p:b")["_meta"] == {META_KEY: {"argument-hint": "[file] [mode]"}}
    assert codes(parsed, "warning") == []


@requirement("customizations:children:rule-fields")
@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ({"globs": "**/*.{ts,tsx},src/**", "alwaysApply": "false"}, {"globs": ["**/*.{ts,tsx}", "src/**"]}),
        ({"globs": '["a", "b"]'}, {"globs": ["a", "b"]}),
        ({"applyTo": "'**'"}, {"globs": ["**"]}),
        ({"paths": "[a, b]"}, {"globs": ["a", "b"]}),
        ({"globs": "a", "applyTo": "b"}, {"globs": ["a"]}),
        ({"globs": ""}, {}),
        ({"alwaysApply": "true"}, {"alwaysApply": True}),
        ({}, {}),
    ],
)
def test_the_scope_of_a_rule_is_read_from_any_of_its_keys(
    tmp_path: Path, header: dict[str, str], fields: dict[str, object]
) -> None:
    entry = child(read(tmp_path, {"rules/style.mdc": text(**header)}), "style")
    shown = {key: entry[key] for key in ("globs", "alwaysApply") if key in entry}
    assert shown == ({"alwaysApply": False} if header.get("alwaysApply") == "false" else {}) | fields


def test_a_rule_of_a_plugin_is_named_by_its_file(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"rules/a.mdc": text(name="other"), "rules/b.instructions.md": text(), "rules/c.md": "C"})
    assert names(parsed, "rule") == ["a", "b", "c"]


@pytest.mark.parametrize("description", ["", "~", "null"])
def test_without_a_description_the_first_paragraph_is_one(tmp_path: Path, description: str) -> None:
    header = f"---\ndescription: {description}\n---\n"
    files: dict[str, str | bytes] = {
        "skills/x/SKILL.md": f"{header}# Title\n\nDoes a\nthing.\n\nMore.",
        "skills/y/SKILL.md": header,
    }
    parsed = read(tmp_path, files)
    assert child(parsed, "p:x")["description"] == "Does a thing."
    assert "description" not in child(parsed, "p:y")


def test_descriptions_of_other_shapes_are_read_and_said(tmp_path: Path) -> None:
    parsed = read(
        tmp_path,
        {
            "skills/a/SKILL.md": "---\ndescription:\n  - one\n  - two\n---\n",
            "skills/b/SKILL.md": "---\ndescription: {{TODO}}\n---\n",
        },
    )
    assert child(parsed, "p:a")["description"] == "one\ntwo"
    assert child(parsed, "p:b")["description"] == "{{TODO}}"
    assert "description-shape" in codes(parsed, "warning")


def test_a_very_long_description_is_cut_and_said(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"skills/a/SKILL.md": text(description="x" * 20_000)})
    assert len(child(parsed, "p:a")["description"]) == 8_192
    assert "description-cut" in codes(parsed, "warning")


def test_hidden_characters_do_not_reach_clients(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"skills/a/SKILL.md": text(name='"in\u202evisible"', description="a\u200bb\U000e0041c")})
    entry = children(parsed)[0]
    assert (entry["name"], entry["description"]) == ("p:invisible", "abc")
    assert "name-cleaned" in codes(parsed, "warning")


@requirement("customizations:children:no-execution-details")
def test_what_runs_code_stays_on_the_host(tmp_path: Path) -> None:
    header = (
        "---\nname: a\ndescription: d\nhooks:\n  Stop:\n    - command: evil\nmcp-servers:\n  x:\n    command: evil\n"
        "shell: evil\nmetadata:\n  secret: evil\n---\nBody with evil"
    )
    parsed = read(tmp_path, {"agents/a.md": header})
    assert "evil" not in str(parsed.container)
    assert "privileged-keys" in codes(parsed, "note")


def test_keys_nobody_knows_are_said_and_kept_with_the_details(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"skills/a/SKILL.md": text(name="a", flavour="sweet")})
    assert load(parsed) == {"kind": "loaded"}
    assert "unknown-keys" in codes(parsed, "note")
    detail = next(iter(parsed.details.values()))
    assert isinstance(detail, TextDetail)
    assert detail.meta["flavour"] == "sweet"


def test_an_empty_file_is_listed_and_said(tmp_path: Path) -> None:
    parsed = read(tmp_path, {"skills/a/SKILL.md": ""})
    assert names(parsed) == ["p:a"]
    assert "empty" in codes(parsed, "warning")
