"""What is offered with an approval, and what a picked option means."""

from __future__ import annotations

import pytest

from ahpkit.protocol.chat.state import ConfirmationOption
from ahpkit.tools.approvals import ALLOW_ONCE, DENY_ONCE, options_for, rule_from
from ahpkit.tools.rules import Place, judge
from ahpkit.tools.subject import Subject

HERE = Place(chat="chat:1", session="session:1", workspace="file:///project")
SUBJECTS = [
    Subject(owner="agent:x", tool="shell", command="git status --short"),
    Subject(owner="agent:x", tool="edit", paths=("/project/src/a.py",)),
    Subject(owner="mcp:time", tool="now", is_server=True),
    Subject(owner="client:Editor", tool="show"),
]
AGENTS: list[ConfirmationOption] = [{"id": "always", "label": "Always", "kind": "approve"}]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.tool)
def test_allow_once_is_first_and_the_agents_own_choices_are_last(subject: Subject) -> None:
    options = options_for(subject, AGENTS)
    assert [option["id"] for option in options[:2]] == [ALLOW_ONCE, DENY_ONCE]
    assert options[-1]["id"] == "always"
    groups = [option.get("group", 0) for option in options]
    assert groups == sorted(groups)
    assert len({option["id"] for option in options}) == len(options)
    allows = [option["id"].removeprefix("allow:") for option in options if option["id"].startswith("allow:")]
    denials = [option["id"].removeprefix("deny:") for option in options if option["id"].startswith("deny:")]
    assert allows == denials != []


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.tool)
def test_a_picked_option_becomes_a_rule_that_decides_the_same_call(subject: Subject) -> None:
    for option in options_for(subject):
        rule = rule_from(option["id"], subject, HERE, id="r", now=1, by="me")
        if option["id"] in (ALLOW_ONCE, DENY_ONCE):
            assert rule is None
            continue
        assert rule is not None
        rule.check()
        wanted = "allow" if option["kind"] == "approve" else "deny"
        assert judge([rule], subject, HERE).decision == wanted
        assert rule.says() in option["label"] or rule.kind == "server"


def test_what_was_not_offered_makes_no_rule() -> None:
    for odd in (None, "", "allow", "allow:server:session", "allow:tool:planet", "always"):
        assert rule_from(odd, SUBJECTS[0], HERE, id="r", now=1, by="me") is None
