"""What clients may do to a session, and to the host's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.common.state import JsonObject
from ahpkit.protocol.session.enablement import effective
from support import requirement
from support.policy_cases import ROOT, SESSION, check, session


def change(state: JsonObject, name: str, **fields: Any) -> str | None:
    return check(SESSION, state, f"session/{name}", **fields)


# Title, flags, model


def test_any_client_may_rename_a_session() -> None:
    assert change(session(), "titleChanged", title="Trip") is None


@pytest.mark.parametrize("title", ["", "  \n"])
def test_a_title_is_not_empty(title: str) -> None:
    assert change(session(), "titleChanged", title=title) == "a title must not be empty"


def test_any_client_may_mark_a_session_read_or_archived() -> None:
    assert change(session(), "isReadChanged", isRead=True) is None
    assert change(session(), "isArchivedChanged", isArchived=False) is None


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("small", None),
        ("huge", "demo has no model 'huge'; known: small"),
        ("off", "model 'off' is disabled by policy"),
    ],
)
def test_a_session_uses_models_of_its_provider(model: str, reason: str | None) -> None:
    assert change(session(), "modelChanged", model={"id": model}) == reason


def test_a_provider_that_is_gone_has_no_models() -> None:
    state = session()
    state["summary"] = {**state["summary"], "provider": "gone"}
    assert change(state, "modelChanged", model={"id": "small"}) == "gone has no model 'small'"


# Custom agents and toggles


def with_agent(*, container_enabled: bool = True, **fields: Any) -> JsonObject:
    agent = {"type": "agent", "id": "a", "uri": "file:///a.md", "name": "Tester", **fields}
    plugin = {
        "type": "plugin",
        "id": "p",
        "uri": "file:///p",
        "name": "P",
        "enabled": container_enabled,
        "children": [agent],
    }
    return session(customizations=[plugin])


def select(state: JsonObject, uri: str = "file:///a.md") -> str | None:
    return change(state, "agentChanged", agent={"uri": uri})


def test_a_custom_agent_of_the_session_can_be_selected_by_its_uri() -> None:
    assert select(with_agent()) is None
    assert select(with_agent(), "file:///b.md") == "this session has no custom agent file:///b.md"
    assert select(session()) == "this session has no custom agent file:///a.md"


def test_the_selection_can_always_be_cleared() -> None:
    assert change(session(), "agentChanged") is None


def test_something_else_with_that_uri_is_no_agent() -> None:
    assert select(with_agent(type="skill")) == "this session has no custom agent file:///a.md"


@pytest.mark.parametrize(("container", "child"), [(False, None), (False, True), (True, False), (False, False)])
def test_a_disabled_agent_cannot_be_selected(container: bool, child: bool | None) -> None:
    flags: JsonObject = {} if child is None else {"enabled": child}
    assert select(with_agent(container_enabled=container, **flags)) == "custom agent 'Tester' is disabled"


@requirement("enablement:invocation:agent-user-gate")
def test_an_agent_for_the_model_alone_cannot_be_selected() -> None:
    state = with_agent(disableUserInvocation=True)
    assert select(state) == "custom agent 'Tester' can only be used by the model"
    assert (found := effective(state, "a")) is not None
    assert found.model_invocable


@requirement("enablement:invocation:agent-model-gate")
def test_an_agent_the_model_may_not_use_can_still_be_selected() -> None:
    state = with_agent(disableModelInvocation=True)
    assert select(state) is None
    assert (found := effective(state, "a")) is not None
    assert not found.model_invocable


def test_one_selectable_agent_is_enough_when_two_have_the_same_uri() -> None:
    both = with_agent(enabled=False)["customizations"] + with_agent()["customizations"]
    both[1] = {**both[1], "id": "p2", "children": [{**both[1]["children"][0], "id": "a2"}]}
    assert select(session(customizations=both)) is None


@requirement("customizations:toggle:any-client")
@requirement("customizations:actions:toggle-is-for-clients")
@pytest.mark.parametrize("id", ["p", "a"])
def test_any_client_toggles_containers_and_children_also_of_others(id: str) -> None:
    assert change(with_agent(), "customizationToggled", id=id, enabled=False) is None
    (published,) = with_agent()["customizations"]
    others = session(
        activeClient={"clientId": "other", "tools": []}, customizations=[{**published, "clientId": "other"}]
    )
    assert change(others, "customizationToggled", id=id, enabled=False) is None


def test_a_toggle_of_something_that_is_not_there_is_taken_and_changes_nothing() -> None:
    assert change(with_agent(), "customizationToggled", id="x", enabled=False) is None


# The active client


def claim(state: JsonObject, *, by: str = "me", **fields: Any) -> str | None:
    active: JsonObject = {"clientId": "me", "tools": [], **fields}
    return check(SESSION, state, "session/activeClientChanged", by=by, activeClient=active)


def release(state: JsonObject, *, by: str = "me") -> str | None:
    return check(SESSION, state, "session/activeClientChanged", by=by, activeClient=None)


ACTIVE: JsonObject = {"activeClient": {"clientId": "me", "displayName": "Editor", "tools": []}}


@requirement("client-tools:actions:claim-and-release")
def test_a_client_claims_the_role_refreshes_and_releases_it() -> None:
    assert claim(session()) is None
    assert claim(session(**ACTIVE)) is None
    assert release(session(**ACTIVE)) is None


@requirement("session:action:active-client-own-entry")
def test_a_client_claims_the_role_for_itself_only() -> None:
    assert claim(session(), clientId="other") == "a client can claim the active role only for itself"


@requirement("session:action:active-client-taken")
@requirement("session:active-client:only-one")
def test_a_claim_is_refused_while_another_client_is_active() -> None:
    assert claim(session(**ACTIVE), by="other", clientId="other") == "Editor is active in this session"


def test_only_the_active_client_releases_the_role() -> None:
    reason = "only the session's active client may do this"
    assert release(session(**ACTIVE), by="other") == reason
    assert release(session()) == reason


@requirement("session:action:client-tools-only-by-active")
def test_only_the_active_client_changes_its_tools() -> None:
    tools = [{"name": "look"}]
    assert change(session(**ACTIVE), "activeClientToolsChanged", tools=tools) is None
    reason = check(SESSION, session(**ACTIVE), "session/activeClientToolsChanged", by="other", tools=tools)
    assert reason == "only the session's active client may do this"


@requirement("session:tool:schema-optional")
def test_a_tool_needs_nothing_but_a_name() -> None:
    assert claim(session(), tools=[{"name": "look"}]) is None


@pytest.mark.parametrize(
    ("names", "reason"),
    [(["a", "a"], "tool name 'a' is given twice"), ([""], "the tool name must not be empty")],
)
def test_tool_names_identify(names: list[str], reason: str) -> None:
    tools = [{"name": name} for name in names]
    assert claim(session(), tools=tools) == reason
    assert change(session(**ACTIVE), "activeClientToolsChanged", tools=tools) == reason


def plugin(id: str, **fields: Any) -> JsonObject:
    return {"type": "plugin", "id": id, "uri": f"virtual://me/{id}", "name": id, "enabled": True, **fields}


@requirement("customizations:publish:nonce-optional")
def test_plugins_are_published_with_or_without_a_nonce() -> None:
    assert claim(session(), customizations=[plugin("x"), plugin("y", nonce="1")]) is None


@requirement("customizations:sources:client-publishes-plugins-only")
@pytest.mark.parametrize("type", ["directory", "mcpServer", "skill"])
def test_clients_publish_plugins_only(type: str) -> None:
    assert (
        claim(session(), customizations=[plugin("x", type=type)]) == f"a client can publish plugins only, not a {type}"
    )


@pytest.mark.parametrize("id", ["p", "a"])
def test_a_published_plugin_cannot_take_an_id_of_the_session(id: str) -> None:
    reason = f"this session has another customization with id {id!r}"
    assert claim(with_agent(), customizations=[plugin(id)]) == reason


def test_a_client_publishes_its_own_plugin_again() -> None:
    assert claim(session(customizations=[plugin("x", clientId="me")]), customizations=[plugin("x")]) is None


def test_a_plugin_id_is_not_given_twice() -> None:
    assert claim(session(), customizations=[plugin("x"), plugin("x")]) == "customization id 'x' is given twice"


# Configuration

PROPERTIES: JsonObject = {
    "mode": {"type": "string", "title": "Mode", "enum": ["ask", "do"], "sessionMutable": True},
    "branch": {"type": "string", "title": "Branch", "enum": ["main"], "enumDynamic": True, "sessionMutable": True},
    "depth": {"type": "number", "title": "Depth", "sessionMutable": True},
    "root": {"type": "string", "title": "Root"},
    "locked": {"type": "string", "title": "Locked", "sessionMutable": True, "readOnly": True},
    "list": {"type": "array", "title": "List", "items": {"type": "string", "title": "Item"}, "sessionMutable": True},
}


def configured(**fields: Any) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": PROPERTIES, **fields}
    return session(config={"schema": schema, "values": {"mode": "ask", "root": "/r"}})


def configure(config: JsonObject, *, state: JsonObject | None = None, **fields: Any) -> str | None:
    return change(state or configured(), "configChanged", config=config, **fields)


@requirement("session:config:session-mutable")
def test_only_properties_marked_as_mutable_can_be_changed() -> None:
    assert configure({"mode": "do"}) is None
    assert configure({"root": "/x"}) == "configuration property 'root' cannot be changed now"
    assert configure({"locked": "x"}) == "configuration property 'locked' cannot be changed now"


def test_properties_that_the_agent_reported_after_the_creation_count_too() -> None:
    later: JsonObject = {"effort": {"type": "string", "title": "Effort", "enum": ["low"], "sessionMutable": True}}
    state = {**configured(), "_meta": {"ahpkit/config": {"schema": {"type": "object", "properties": later}}}}

    assert configure({"effort": "low"}, state=state) is None
    assert configure({"effort": "max"}, state=state) is not None
    assert configure({"mode": "do"}, state=state) is None
    assert configure({"effort": "low"}) == "there is no configuration property 'effort'"


def test_repeating_a_value_changes_nothing() -> None:
    assert configure({"root": "/r", "mode": "do"}) is None


@requirement("session:action:config-validated")
@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"nope": 1}, "there is no configuration property 'nope'"),
        ({"mode": "fly"}, 'mode: "fly" is not one of'),
        ({"depth": "deep"}, 'depth: "deep" is not of type "number"'),
        ({"depth": True}, 'depth: true is not of type "number"'),
        ({"list": ["a", 1]}, 'list[1]: 1 is not of type "string"'),
    ],
)
def test_values_are_checked_against_the_schema(config: JsonObject, reason: str) -> None:
    assert (configure(config) or "").startswith(reason)


@requirement("session:config:enum-seeds")
def test_the_listed_values_of_a_dynamic_property_are_suggestions() -> None:
    assert configure({"branch": "feature/x"}) is None


def test_a_replacement_keeps_what_cannot_be_changed() -> None:
    assert configure({"root": "/r", "mode": "do"}, replace=True) is None
    assert configure({"root": "/x"}, replace=True) == "configuration property 'root' cannot be changed now"
    assert configure({"mode": "do"}, replace=True) == (
        "configuration property 'root' cannot be changed now, so a replacement must keep its value"
    )


def test_a_replacement_keeps_what_is_required() -> None:
    state = configured(required=["mode"])
    assert configure({"root": "/r"}, state=state, replace=True) == (
        "configuration property 'mode' is required, so a replacement must give its value"
    )
    assert configure({"depth": 1}, state=state) is None


def test_a_session_without_configuration_has_nothing_to_change() -> None:
    assert configure({"mode": "do"}, state=session()) == "there is no configuration to change"


def test_a_schema_that_is_not_one_lets_nothing_through() -> None:
    state = session(config={"schema": {"type": "object", "properties": {}}, "values": {}})
    state["config"]["schema"]["properties"]["odd"] = {"type": "strnig", "sessionMutable": True}
    assert configure({"odd": "x"}, state=state) == (
        "odd: its schema is not valid, so no value can be checked against it"
    )


def test_the_hosts_configuration_is_checked_against_its_schema() -> None:
    properties = {"theme": {"type": "string", "title": "T"}, "id": {"type": "string", "title": "Id", "readOnly": True}}
    state = {**ROOT, "config": {"schema": {"type": "object", "properties": properties}, "values": {"id": "x"}}}

    def set_root(config: JsonObject, **fields: Any) -> str | None:
        return check(ROOT_URI, state, "root/configChanged", config=config, **fields)

    assert set_root({"theme": "dark"}) is None
    assert set_root({"theme": 1}) == 'theme: 1 is not of type "string"'
    assert set_root({"id": "y"}) == "configuration property 'id' cannot be changed now"
    assert set_root({"theme": "dark"}, replace=True) is not None
    assert check(ROOT_URI, ROOT, "root/configChanged", config={"a": 1}) == "there is no configuration to change"
