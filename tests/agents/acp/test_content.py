import base64
from pathlib import Path
from typing import Any, cast

from ahpkit.agents.acp.content import (
    MAX_DISPLAY,
    MAX_TRANSCRIPT,
    Contents,
    as_json,
    block_data,
    blocks,
    shown_as_text,
    transcript,
)
from ahpkit.protocol.chat.state import Message
from ahpkit.protocol.chat.state import Turn as TurnRecord
from ahpkit.testing.recording import user_message
from support import requirement


class Stored:
    """A store that counts."""

    def __init__(self) -> None:
        self.kept: list[tuple[bytes, str]] = []

    def __call__(self, data: bytes, *, content_type: str) -> str:
        self.kept.append((data, content_type))
        return f"store:/{len(self.kept)}"


def contents(store: Stored | None = None, terminals: dict[str, str] | None = None) -> Contents:
    return Contents(store or Stored(), root=Path("/project"), terminal_uri=(terminals or {}).get)


def block(**fields: Any) -> dict[str, Any]:
    return {"type": "content", "content": fields}


def test_text_is_text() -> None:
    assert contents().tool_content([block(type="text", text="hi")]) == [{"type": "text", "text": "hi"}]


def test_a_diff_refers_to_stored_texts_and_counts_lines() -> None:
    store = Stored()

    [edit] = contents(store).tool_content(
        [{"type": "diff", "path": "/project/a.py", "oldText": "x\ny", "newText": "x\nz\nw"}]
    )

    assert edit == {
        "type": "fileEdit",
        "before": {"uri": "file:///project/a.py", "content": {"uri": "store:/2/a.py"}},
        "after": {"uri": "file:///project/a.py", "content": {"uri": "store:/1/a.py"}},
        "diff": {"added": 2, "removed": 1},
    }
    assert store.kept == [(b"x\nz\nw", "text/plain"), (b"x\ny", "text/plain")]


def test_the_changed_lines_of_a_very_long_file_are_not_counted() -> None:
    long = "line\n" * 150_000
    [edit] = contents().tool_content([{"type": "diff", "path": "a", "oldText": long, "newText": long.upper()}])
    assert edit["type"] == "fileEdit"
    assert edit.keys() >= {"before", "after"}
    assert "diff" not in edit


def test_of_one_update_only_so_much_is_stored() -> None:
    diffs = [{"type": "diff", "path": f"/project/{name}", "newText": "x" * 1_500_000} for name in "abc"]
    long = {"type": "content", "content": {"type": "image", "mimeType": "image/png", "data": "A" * 4_000_000}}
    stored = Stored()
    shown = contents(stored).tool_content([*diffs, long])
    assert [one["type"] for one in shown] == ["fileEdit", "fileEdit", "fileEdit", "text"]
    assert shown[3] == {"type": "text", "text": "[too long to be shown]"}
    assert sorted(len(data) for data, _ in stored.kept) == [22, 1_500_000]


def test_a_change_that_is_too_long_to_be_shown_is_named_in_the_question() -> None:
    changes = [
        {"type": "diff", "path": f"/project/{name}", "oldText": "x", "newText": name * 2_500_000} for name in "ab"
    ]
    stored = Stored()
    (first, second), more = contents(stored).edits(changes)
    assert more == 0
    assert [edit.get("after", {}).get("uri") for edit in (first, second)] == ["file:///project/a", "file:///project/b"]
    assert (b"[too long to be shown]", "text/plain") in stored.kept
    assert "diff" not in second


def test_what_is_too_much_to_be_listed_is_counted() -> None:
    changes = [{"type": "diff", "path": f"/project/{number}", "newText": "x"} for number in range(1_003)]
    texts = [block(type="text", text="x")] * 1_000
    shown, more = contents().edits([*texts, *changes])
    assert (len(shown), more) == (1_000, 3)
    assert contents().tool_content(changes)[1_000:] == [{"type": "text", "text": "[3 more, not shown]"}]


def test_a_diff_without_an_old_text_creates_the_file_and_a_relative_path_is_in_the_working_directory() -> None:
    [edit], _ = contents().edits(
        [{"type": "diff", "path": "new file", "oldText": None, "newText": "x"}, block(type="text")]
    )

    assert "before" not in edit
    assert edit.get("after", {}).get("uri") == "file:///project/new%20file"
    assert edit.get("diff") == {"added": 1, "removed": 0}


def test_the_same_content_is_stored_once() -> None:
    store = Stored()
    mapper = contents(store)
    for _ in range(3):
        mapper.tool_content([{"type": "diff", "path": "a", "newText": "same"}])

    assert len(store.kept) == 1


def test_images_and_embedded_resources_are_stored_and_linked() -> None:
    store = Stored()
    image = block(type="image", data=base64.b64encode(b"png").decode(), mimeType="image/png")
    embedded = block(type="resource", resource={"uri": "x:/", "text": "words", "mimeType": "text/markdown"})

    assert contents(store).tool_content([image, embedded]) == [
        {"type": "resource", "uri": "store:/1", "contentType": "image/png", "sizeHint": 3},
        {"type": "resource", "uri": "store:/2", "contentType": "text/markdown", "sizeHint": 5},
    ]


def test_links_stay_links() -> None:
    link = block(type="resource_link", uri="file:///a", name="a", mimeType="text/plain", size=7)

    assert contents().tool_content([link]) == [
        {"type": "resource", "uri": "file:///a", "contentType": "text/plain", "sizeHint": 7}
    ]


def test_a_terminal_the_host_runs_is_linked() -> None:
    shown = contents(terminals={"t1": "ahp-terminal:/1"}).tool_content([{"type": "terminal", "terminalId": "t1"}])

    assert shown == [{"type": "terminal", "resource": "ahp-terminal:/1", "title": "Terminal"}]


def test_a_terminal_the_agent_only_shows_becomes_its_text_bounded() -> None:
    mapper = contents()
    for _ in range(3):
        assert mapper.display({"terminal_output": {"terminal_id": "t", "data": "x" * MAX_DISPLAY}}) == "t"
    mapper.display({"terminal_output_delta": {"terminal_id": "t", "data": "end"}})

    [shown] = mapper.tool_content([{"type": "terminal", "terminalId": "t"}])

    assert shown["type"] == "text"
    assert len(shown["text"]) == MAX_DISPLAY
    assert shown["text"].endswith("xend")
    assert mapper.display({"terminal_output": {"data": 3}}) is None


def test_content_of_an_unknown_kind_is_shown_as_such() -> None:
    shown = contents().tool_content([{"type": "hologram"}, block(type="image", data="not base64!"), "x"])

    assert [item["type"] for item in shown] == ["text", "text"]
    assert "hologram" in str(shown[0])


def test_blocks_of_a_message_are_text_or_data() -> None:
    assert shown_as_text({"type": "text", "text": "a"}) == "a"
    assert shown_as_text({"type": "resource_link", "uri": "file:///a", "name": "A"}) == "[A](file:///a)"
    assert shown_as_text({"type": "image"}) is None
    assert block_data({"type": "resource", "resource": {"blob": "eA=="}}) == (b"x", "application/octet-stream")
    assert block_data({"type": "hologram"}) is None


def test_raw_values_are_shown_as_json_and_strings_as_themselves() -> None:
    assert as_json({"a": [1]}) == '{"a":[1]}'
    assert as_json("ls -l") == "ls -l"


def test_meta_of_content_and_of_the_block_in_it_is_kept_apart_and_without_secrets() -> None:
    item = {**block(type="text", text="hi", _meta={"a": 1, "api_key": "k"}), "_meta": {"a": 2}}
    diff = {"type": "diff", "path": "/project/a", "oldText": None, "newText": "x", "_meta": {"a": 3}}
    shown, edit = contents().tool_content([item, diff])
    assert shown == {"type": "text", "text": "hi", "_meta": {"ahpkit/acp": {"meta": {"a": 2}, "block": {"a": 1}}}}
    [previewed], _ = contents().edits([diff])
    assert edit.get("_meta") == previewed.get("_meta") == {"ahpkit/acp": {"meta": {"a": 3}}}


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
