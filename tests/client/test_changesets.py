"""What a client makes of a catalogue of changesets."""

from __future__ import annotations

import pytest

from ahpkit.client.changesets import expand, offered
from support import requirement

STATIC = {"label": "a", "uriTemplate": "ahp-changeset:/s/session", "changeKind": "session"}
TURN = {"label": "b", "uriTemplate": "ahp-changeset:/s/turn/{turnId}", "changeKind": "turn"}
PAIR = {"label": "c", "uriTemplate": "ahp-changeset:/s/{originalTurnId}/{modifiedTurnId}", "changeKind": "x-new"}


@requirement("changesets:template:static")
def test_a_template_without_variables_is_the_uri() -> None:
    assert expand(STATIC["uriTemplate"]) == "ahp-changeset:/s/session"


@requirement("changesets:template:turn")
@requirement("changesets:template:expansion-escaped")
def test_a_turns_id_is_put_in_percent_encoded() -> None:
    assert expand(TURN["uriTemplate"], turnId="a/b c") == "ahp-changeset:/s/turn/a%2Fb%20c"


@requirement("changesets:template:compare")
def test_two_turns_are_needed_where_two_are_named() -> None:
    assert expand(PAIR["uriTemplate"], originalTurnId="1", modifiedTurnId="2") == "ahp-changeset:/s/1/2"
    with pytest.raises(ValueError, match="needs modifiedTurnId"):
        expand(PAIR["uriTemplate"], originalTurnId="1")


@requirement("changesets:template:unknown-variable")
@requirement("changesets:kind:unknown")
def test_entries_with_unknown_variables_are_left_out_and_unknown_kinds_are_not() -> None:
    strange = {"label": "d", "uriTemplate": "ahp-changeset:/s/{branch}", "changeKind": "branch"}
    assert offered({"changesets": [STATIC, strange, PAIR]}) == [STATIC, PAIR]
    assert offered({}) == []
