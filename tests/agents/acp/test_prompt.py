import base64
from typing import Any, cast

from ahpkit.agents.acp.prompt import MAX_TRANSCRIPT, blocks, transcript
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.testing.recording import user_message
from support import requirement

ALL = {"image": True, "audio": True, "embeddedContext": True}


def with_attachment(capabilities: dict[str, Any], **attachment: Any) -> dict[str, Any]:
    message = cast("Message", {**user_message("hi"), "attachments": [{"label": "thing", **attachment}]})
    first, second = blocks("hi", message, capabilities)
    assert first == {"type": "text", "text": "hi"}
    return second


def embedded(content_type: str, data: bytes) -> dict[str, Any]:
    return {"type": "embeddedResource", "contentType": content_type, "data": base64.b64encode(data).decode()}


def test_images_go_as_images_when_the_agent_takes_them() -> None:
    assert with_attachment(ALL, **embedded("image/png", b"x")) == {
        "type": "image",
        "data": "eA==",
        "mimeType": "image/png",
    }


def test_other_data_goes_as_an_embedded_resource_as_text_where_it_is_text() -> None:
    text = with_attachment(ALL, **embedded("text/plain", b"words"))["resource"]
    data = with_attachment(ALL, **embedded("application/pdf", b"%"))["resource"]

    assert text == {"uri": "attachment:///thing", "mimeType": "text/plain", "text": "words"}
    assert data == {"uri": "attachment:///thing", "mimeType": "application/pdf", "blob": "JQ=="}


def test_an_agent_that_takes_only_text_gets_text_or_is_told_what_it_misses() -> None:
    assert with_attachment({}, **embedded("text/plain", b"words"))["text"] == "thing:\nwords"
    assert "image/png" in with_attachment({}, **embedded("image/png", b"x"))["text"]


@requirement("extensibility:meta:preserved-when-forwarding")
def test_a_resource_is_the_link_that_every_agent_takes_and_keeps_meta_and_selection() -> None:
    selection = {"range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}}

    link = with_attachment(
        {}, type="resource", uri="file:///a", contentType="text/x", sizeHint=3, selection=selection, _meta={"x/y": 1}
    )

    assert link == {
        "type": "resource_link",
        "uri": "file:///a",
        "name": "thing",
        "mimeType": "text/x",
        "size": 3,
        "_meta": {"x/y": 1, "ahpkit/selection": selection},
    }


def test_a_simple_attachment_is_what_its_producer_says_the_model_should_see() -> None:
    assert with_attachment({}, type="simple", modelRepresentation="@thing")["text"] == "@thing"
    assert with_attachment({}, type="simple")["text"] == "thing"


def turn(asked: str, answered: str) -> TurnRecord:
    parts = [
        {"kind": "markdown", "id": "p", "content": answered},
        {"kind": "reasoning", "id": "r", "content": "hidden"},
    ]
    return cast("TurnRecord", {"id": "t", "message": user_message(asked), "responseParts": parts, "state": "complete"})


def test_a_transcript_tells_who_said_what_without_thoughts_and_is_bounded() -> None:
    told = transcript([turn("one?", "1"), turn("two?", "2")])

    assert "User: one?\n\nAssistant: 1\n\nUser: two?\n\nAssistant: 2" in told
    assert "hidden" not in told
    assert len(transcript([turn("x", "y" * 200_000)])) < MAX_TRANSCRIPT + 100
    assert transcript([]) == ""
