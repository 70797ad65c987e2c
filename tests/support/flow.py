"""The beginning of every end-to-end test: a session and its chat, over the wire."""

from __future__ import annotations

import itertools
from typing import Any

from support.raw_client import Json, RawClient

_numbers = itertools.count(1)


async def begun(client: RawClient, uri: str) -> Json:
    """The state of a session that has begun, or failed to begin; the first snapshot may already show that."""
    state = (await client.ask("subscribe", uri))["snapshot"]["state"]
    if state["lifecycle"] != "creating":
        return state
    ends = ("session/ready", "session/creationFailed")
    await client.action(lambda said: said["channel"] == uri and said["action"]["type"] in ends)
    return (await client.ask("subscribe", uri))["snapshot"]["state"]


async def open_session(client: RawClient, uri: str | None = None, **params: Any) -> tuple[str, str]:
    """A ready session and its default chat, both subscribed: their URIs."""
    uri = uri or f"ahp-session:/s{next(_numbers)}"
    await client.ask("createSession", uri, **params)
    state = (await client.ask("subscribe", uri))["snapshot"]["state"]
    if state["lifecycle"] == "creating":
        await client.action(lambda said: said["channel"] == uri and said["action"]["type"] == "session/ready")
    await client.ask("subscribe", state["defaultChat"])
    return uri, state["defaultChat"]


async def state_of(client: RawClient, uri: str) -> Json:
    return (await client.ask("subscribe", uri))["snapshot"]["state"]


def say(text: str, turn_id: str = "t1") -> Json:
    """The action that starts a turn."""
    return {"type": "chat/turnStarted", "turnId": turn_id, "message": {"text": text, "origin": {"kind": "user"}}}


def title(text: str) -> Json:
    """The cheapest action with a body of any size: text that is too long for a title is sent as `_meta`."""
    rest = {"_meta": {"rest": text[900:]}} if len(text) > 900 else {}
    return {"type": "session/titleChanged", "title": text[:900], **rest}


def remark(text: str) -> Json:
    """An action on a session's annotations that makes their state as large as the text."""
    entry = {"id": "e", "text": text}
    annotation = {"id": "a", "turnId": "t", "resource": "file:///f", "resolved": False, "entries": [entry]}
    return {"type": "annotations/set", "annotation": annotation}


__all__ = ["begun", "open_session", "remark", "say", "state_of", "title"]
