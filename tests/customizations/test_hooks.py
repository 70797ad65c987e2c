import json
from typing import Any

import pytest

from ahpkit.customizations.details import Dialect, HookDetail
from ahpkit.customizations.hooks import HookEvent, Verdict, command_of, judge, matches, matching, payload, tool_names


def hook(matcher: str | None, dialect: Dialect = "claude", event: str = "PreToolUse") -> HookDetail:
    return HookDetail(event, matcher, ({"type": "command", "command": "x"},), dialect)


@pytest.mark.parametrize(
    ("matcher", "dialect", "tool", "hit"),
    [
        ("Bash", "claude", "Bash", True),
        ("Bash", "claude", "BashOutput", False),
        ("Edit|Write", "claude", "Write", True),
        ("Edit, Write", "claude", "Write", True),
        ("mcp__.*", "claude", "mcp__x", True),
        ("cp__.*", "claude", "mcp__x", True),
        ("cp__.*", "copilot", "mcp__x", False),
        (".*__x", "copilot", "mcp__x", True),
        ("(", "claude", "(", False),
        ("(a+)+$", "claude", "a" * 150 + "b", False),
    ],
)
def test_matchers_are_read_as_their_family_does(matcher: str, dialect: Dialect, tool: str, hit: bool) -> None:
    assert matches(hook(matcher, dialect), tool) is hit


def test_a_hook_without_matcher_hears_everything_of_its_event() -> None:
    hooks = [hook(None), hook("Other"), hook(None, event="Stop")]
    assert len(list(matching(hooks, "PreToolUse", "Bash"))) == 1
    assert len(list(matching(hooks, "PreToolUse", "Other"))) == 2


@pytest.mark.parametrize("matcher", ["create", "git_hub_create", "mcp__git_hub__create", "mcp__git_hub__.*", "mcp__.*"])
def test_a_tool_of_a_server_is_found_by_each_of_its_names(matcher: str) -> None:
    names = tool_names("create", "git hub")
    assert len(list(matching([hook(matcher)], "PreToolUse", *names))) == 1
    assert not list(matching([hook("mcp__other__.*")], "PreToolUse", *names))
    assert tool_names("create", None) == ("create",)


@pytest.mark.parametrize(
    ("action", "argv"),
    [
        ({"command": "node guard.js --strict"}, ("node", "guard.js", "--strict")),
        ({"command": '"${CLAUDE_PLUGIN_ROOT}/a b.sh" x'}, ("/p q/a b.sh", "x")),
        ({"command": "$CLAUDE_PROJECT_DIR/x.sh"}, ("/w/x.sh",)),
        ({"command": "python", "args": ["-c", "a; b"]}, ("python", "-c", "a; b")),
        ({"command": "a && b"}, ("/bin/sh", "-c", "a && b")),
        ({"command": "A=1 b"}, ("/bin/sh", "-c", "A=1 b")),
        ({"command": "echo $HOME"}, ("/bin/sh", "-c", "echo $HOME")),
        ({"command": ". ./x.sh"}, ("/bin/sh", "-c", ". ./x.sh")),
        ({"command": "exit 2"}, ("/bin/sh", "-c", "exit 2")),
        ({"command": "it's"}, ("/bin/sh", "-c", "it's")),
        ({"bash": "./x.sh", "powershell": "x.ps1"}, ("./x.sh",)),
    ],
)
def test_a_simple_line_runs_without_a_shell(action: dict[str, Any], argv: tuple[str, ...]) -> None:
    command = command_of(action, workspace="/w", plugin_root="/p q", environment={})
    assert command is not None
    assert command.argv == argv


@pytest.mark.parametrize(
    "action",
    [
        {"type": "http", "url": "x"},
        {"type": "prompt", "prompt": "x"},
        {"powershell": "x"},
        {"command": " "},
        {"command": 7},
    ],
)
def test_what_is_no_command_is_not_run(action: dict[str, Any]) -> None:
    assert command_of(action, workspace="/w", plugin_root=None, environment={}) is None


def test_folder_environment_and_time_come_from_the_action_within_bounds() -> None:
    action = {"command": "x", "cwd": "sub", "env": {"A": 1, "PLUGIN_ROOT": "faked"}, "timeout": 9_999}
    command = command_of(action, workspace="/w", plugin_root="/p", environment={"PATH": "/bin"})
    assert command is not None
    assert command.cwd == "/w/sub"
    assert command.timeout == 600
    assert command.environment == {
        "PATH": "/bin",
        "A": "1",
        "CLAUDE_PROJECT_DIR": "/w",
        "PLUGIN_ROOT": "/p",
        "CLAUDE_PLUGIN_ROOT": "/p",
    }
    plain = command_of({"command": "x", "timeout": -1}, workspace="/w", plugin_root=None, environment={})
    assert plain is not None
    assert plain.timeout == 30


def test_the_payload_speaks_both_languages() -> None:
    told = json.loads(
        payload("PreToolUse", session_id="s", cwd="/w", now=5, facts={"tool_name": "T", "tool_input": {"a": 1}})
    )
    assert (told["hook_event_name"], told["tool_name"], told["tool_input"]) == ("PreToolUse", "T", {"a": 1})
    assert (told["toolName"], told["toolArgs"], told["timestamp"]) == ("T", '{"a": 1}', 5)


@pytest.mark.parametrize(
    ("event", "status", "stdout", "stderr", "verdict"),
    [
        ("PreToolUse", 0, "", "", Verdict()),
        ("PreToolUse", 2, "", "no!\n", Verdict(denied=True, reason="no!")),
        ("PreToolUse", 1, "", "boom", Verdict(denied=True, reason="a hook that guards this tool failed: boom")),
        (
            "PreToolUse",
            None,
            "",
            "too long",
            Verdict(denied=True, reason="a hook that guards this tool failed: too long"),
        ),
        ("PostToolUse", 1, "", "boom", Verdict(message="a PostToolUse hook failed: boom")),
        (
            "PostToolUse",
            2,
            "",
            "look",
            Verdict(ignored="a PostToolUse hook answered exit status 2, which has no effect here: look"),
        ),
        (
            "Stop",
            2,
            "",
            "go on",
            Verdict(ignored="a Stop hook answered exit status 2, which has no effect here: go on"),
        ),
        ("UserPromptSubmit", 0, "be kind", "", Verdict(context="be kind")),
        ("UserPromptSubmit", 2, "", "", Verdict(denied=True, reason="a hook denied it")),
        ("PostToolUse", 0, "chatter", "", Verdict()),
        ("PreToolUse", 0, '{"permissionDecision": "deny", "permissionDecisionReason": "r"}', "", Verdict(True, "r")),
        ("PreToolUse", 0, '{"decision": "block", "reason": "r"}', "", Verdict(True, "r")),
        ("PreToolUse", 0, '{"permission": "deny", "user_message": "r"}', "", Verdict(True, "r")),
        ("PreToolUse", 0, '{"permission": "ask", "user_message": "r"}', "", Verdict(asks=True, reason="r")),
        ("PreToolUse", 0, '{"permissionDecision": "ask"}', "", Verdict(asks=True)),
        ("PreToolUse", 0, '{"permissionDecision": "defer"}', "", Verdict(asks=True)),
        ("PreToolUse", 0, '{"permissionDecision": "maybe", "reason": "r"}', "", Verdict(asks=True, reason="r")),
        ("PreToolUse", 0, '{"permissionDecision": {"behavior": "deny"}}', "", Verdict(asks=True)),
        ("PreToolUse", 0, '{"permissionDecision": "ask", "decision": "block", "reason": "r"}', "", Verdict(True, "r")),
        ("PreToolUse", 0, '{"decision": "approve", "reason": "fine"}', "", Verdict()),
        ("PreToolUse", 0, '{"continue": true, "suppressOutput": true}', "", Verdict()),
        ("UserPromptSubmit", 0, '{"continue": false, "stopReason": "r"}', "", Verdict(True, "r")),
        ("UserPromptSubmit", 0, '{"decision": "ask"}', "", Verdict()),
        ("Stop", 0, '{"decision": "approve"}', "", Verdict()),
        ("PreToolUse", 0, "{broken", "", Verdict()),
    ],
)
def test_a_hooks_end_is_judged(
    event: HookEvent, status: int | None, stdout: str, stderr: str, verdict: Verdict
) -> None:
    assert judge(event, status, stdout, stderr) == verdict


def test_an_answer_may_carry_context_and_a_message() -> None:
    answer = {"hookSpecificOutput": {"permissionDecision": "allow", "additionalContext": "c"}, "systemMessage": "m"}
    assert judge("UserPromptSubmit", 0, json.dumps(answer), "") == Verdict(context="c", message="m")


def test_an_input_that_a_hook_changes_is_not_run_as_it_was() -> None:
    for key in ("updatedInput", "modifiedArgs", "updated_input"):
        answer = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow", key: {"a": 2}}})
        denied = judge("PreToolUse", 0, answer, "", {"a": 1})
        assert denied.denied
        assert "change the input" in (denied.reason or "")
        assert judge("PreToolUse", 0, answer, "", {"a": 2}) == Verdict()


@pytest.mark.parametrize(
    ("event", "answer", "named"),
    [
        ("PreToolUse", {"additionalContext": "c"}, "`additionalContext`"),
        ("PreToolUse", {"continue": False}, "`continue: false`"),
        ("PostToolUse", {"decision": "block", "reason": "because"}, "`decision`, which has no effect here: because"),
        ("PostToolUse", {"hookSpecificOutput": {"additionalContext": "c"}}, "`additionalContext`"),
        ("PostToolUse", {"updatedMCPToolOutput": "x", "continue": False}, "`updatedMCPToolOutput`, `continue`"),
        ("Stop", {"decision": "block", "reason": "go on"}, "`decision`, which has no effect here: go on"),
        ("Stop", {"continue": False, "stopReason": "r"}, "`continue`"),
        ("SessionStart", {"decision": "block"}, "`decision`"),
        ("UserPromptSubmit", {"sessionTitle": "t"}, "`sessionTitle`"),
    ],
)
def test_what_a_hook_answers_and_the_host_does_not_follow_is_named(
    event: HookEvent, answer: dict[str, Any], named: str
) -> None:
    verdict = judge(event, 0, json.dumps(answer), "")
    assert named in (verdict.ignored or "")
    assert not verdict.asks


@pytest.mark.parametrize(
    "answer",
    [{"continue": True}, {"suppressOutput": True}, {"systemMessage": "m"}, {"hookSpecificOutput": {}}, {"reason": "r"}],
)
def test_what_asks_for_nothing_is_not_named(answer: dict[str, Any]) -> None:
    for event in ("PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit"):
        assert judge(event, 0, json.dumps(answer), "").ignored is None
