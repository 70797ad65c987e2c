"""Canvases that are all in their address: kept, decoded, bounded, and served without an origin."""

from __future__ import annotations

import pytest

from ahpkit.web.data_canvases import HEADERS, MAX_LENGTH, DataCanvases, decoded


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("data:text/html,<b>hi</b>%20there", ("text/html", b"<b>hi</b> there")),
        ("data:text/html;charset=utf-8;base64,PGI+", ("text/html;charset=utf-8", b"<b>")),
        ("data:,plain", ("text/plain;charset=US-ASCII", b"plain")),
        ("data:text/html;base64,%%%", ("text/html", b"")),
        ("data:text/html\r\nSet-Cookie: a=b,x", ("text/plain;charset=US-ASCII", b"x")),
        ("data:tëxt/html,x", ("text/plain;charset=US-ASCII", b"x")),
        ("data:", ("text/plain;charset=US-ASCII", b"")),
    ],
)
def test_an_address_is_decoded_and_a_strange_kind_is_plain_text(data: str, expected: tuple[str, bytes]) -> None:
    assert decoded(data) == expected


def test_only_the_last_ones_are_kept_and_nothing_else_is_taken() -> None:
    frames = DataCanvases(kept=2)
    first, second = frames.keep("data:,1"), frames.keep("data:,2")
    assert frames.keep("data:,1") == first
    frames.keep("data:,3")
    assert frames.get(second) is None
    assert frames.get(first) == ("text/plain;charset=US-ASCII", b"1")
    for bad in ("https://example.com/", "javascript:1", "", "data:," + "x" * MAX_LENGTH):
        with pytest.raises(ValueError, match="data: URL"):
            frames.keep(bad)


def test_its_policy_gives_it_no_origin_and_no_network() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
