"""The active role: kept over reconnects, given up for good, and complete each time it is claimed."""

from __future__ import annotations

import pytest

from ahpkit.client import Client, ClientClosed, InMemoryPlugin, Rejected, Session
from ahpkit.protocol.channels import ROOT_URI
from ahpkit.protocol.errors import NotFound
from ahpkit.testing.fake_host import FakeHost, session_state
from support import requirement
from support.clients import CHAT, QUICKLY, SESSION, eventually, lose_connection, settled


@pytest.fixture
async def session(client: Client) -> Session:
    return await client.session(SESSION)


NOBODY = {"type": "session/activeClientChanged", "activeClient": None}


async def test_a_created_session_can_have_us_as_its_active_client(host: FakeHost, client: Client):
    session = await client.create_session(active_client=True)

    assert host.states[session.uri]["activeClient"]["clientId"] == "me"


@pytest.mark.parametrize("log_lost", [False, True])
async def test_the_role_is_taken_again_after_a_reconnect(
    host: FakeHost, client: Client, session: Session, log_lost: bool
):
    client.tool(name="echo")(lambda: None)
    await session.claim(display_name="Tests").accepted()
    host.accepting = False
    host.drop()
    await eventually(lambda: client.status == "reconnecting")
    host.emit(SESSION, NOBODY)  # What a host does when its active client disconnects.
    if log_lost:
        host.forget()
    host.accepting = True

    await eventually(lambda: host.states[SESSION].get("activeClient"))
    assert host.states[SESSION]["activeClient"]["displayName"] == "Tests"
    assert [tool["name"] for tool in host.states[SESSION]["activeClient"]["tools"]] == ["echo"]


async def test_a_role_that_was_not_lost_is_not_claimed_twice(host: FakeHost, client: Client, session: Session):
    await session.claim().accepted()
    await lose_connection(host, client)
    await settled()

    assert len(host.sent("dispatchAction")) == 1


async def test_a_role_that_gets_lost_on_a_live_connection_is_taken_again(
    host: FakeHost, client: Client, session: Session
):
    """A host may notice the end of our old connection after we are back on a new one."""
    await session.claim().accepted()
    host.emit(SESSION, NOBODY)

    await eventually(lambda: host.states[SESSION].get("activeClient"))


async def test_a_role_that_was_given_up_stays_given_up(host: FakeHost, client: Client, session: Session):
    await session.claim().accepted()
    release = session.release()
    assert release is not None
    await release.accepted()
    await lose_connection(host, client)
    await settled()

    assert "activeClient" not in host.states[SESSION]
    assert session.release() is None
    await eventually(lambda: {"channel": CHAT} in host.sent("unsubscribe"))


async def test_closing_the_client_while_it_is_active_settles_everything(host: FakeHost):
    async with Client(host.dial, backoff=QUICKLY) as client:
        session = await client.session(SESSION)
        await session.claim().accepted()
        host.accepting = False
        host.drop()
        await eventually(lambda: client.status == "reconnecting")
        dispatch = session.rename("x")

    with pytest.raises(ClientClosed):
        await dispatch


async def test_a_refused_claim_says_why(host: FakeHost, session: Session, caplog: pytest.LogCaptureFixture):
    host.decide = lambda channel, action: "another client is active"

    assert await session.claim() == Rejected("another client is active")
    assert not session.is_active


@requirement(
    "customizations:publish:with-active-role",
    "customizations:sources:client-publishes-plugins-only",
    "session:active-client:publishes-plugins",
    "session:customization:nonce-sent",
)
async def test_plugins_are_published_with_the_role(host: FakeHost, session: Session):
    plugin = InMemoryPlugin("notes", {"skills/tidy/SKILL.md": "Tidy up."})
    dispatch = session.publish_plugin(plugin)
    await dispatch.accepted()

    assert dispatch.action["type"] == "session/activeClientSet"
    (published,) = host.states[SESSION]["activeClient"]["customizations"]
    assert published["type"] == "plugin"
    assert published["name"] == "notes"
    assert published["enabled"] is True
    assert published["uri"] == "virtual://me/notes"
    assert published["nonce"].startswith("sha256:")
    assert not {"children", "load", "clientId"} & published.keys(), "these are the host's to say"


async def test_a_plugin_published_again_changes_its_nonce_only_when_it_changed(host: FakeHost, session: Session):
    nonces: list[str] = []
    for text in ("one", "one", "two"):
        await session.publish_plugin(InMemoryPlugin("notes", {"skills/a/SKILL.md": text})).accepted()
        nonces.append(host.states[SESSION]["activeClient"]["customizations"][0]["nonce"])

    assert nonces[0] == nonces[1] != nonces[2]


async def test_a_plugin_can_be_taken_back(host: FakeHost, session: Session):
    await session.publish_plugin(InMemoryPlugin("notes", {})).accepted()
    await session.unpublish_plugin("virtual://me/notes").accepted()

    assert "customizations" not in host.states[SESSION]["activeClient"]


@requirement("canvas:client:render-hint-omitted", "canvas:client:render-hint-independent")
async def test_the_render_hint_is_true_or_absent(host: FakeHost, session: Session):
    await session.claim().accepted()
    assert "canRenderCanvases" not in host.states[SESSION]["activeClient"]
    await session.claim(can_render=True).accepted()
    assert host.states[SESSION]["activeClient"]["canRenderCanvases"] is True
    assert "canvasProviders" not in host.states[SESSION]["activeClient"]


async def test_a_plugin_taken_back_from_one_session_stays_readable_for_another(
    host: FakeHost, client: Client, session: Session
):
    host.open("ahp-session:/two", session_state("ahp-session:/two"))
    other = await client.session("ahp-session:/two")
    plugin = InMemoryPlugin("notes", {"a.md": "A."})
    await session.publish_plugin(plugin).accepted()
    await other.publish_plugin(plugin).accepted()
    await session.unpublish_plugin("virtual://me/notes").accepted()

    asked = {"channel": ROOT_URI, "uri": "virtual://me/notes/a.md"}
    assert (await host.request("resourceRead", asked))["data"] == "A."

    await other.unpublish_plugin("virtual://me/notes").accepted()
    with pytest.raises(NotFound):
        await host.request("resourceRead", asked)
