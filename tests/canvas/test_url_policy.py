"""What a renderer loads: an allow-list that does not repair, against everything that tries to slip through."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpkit.canvas.url_policy import (
    FRAME_ATTRIBUTES,
    KNOWN_SCHEMES,
    MAX_LENGTH,
    NAVIGATION,
    SANDBOX,
    UrlPolicy,
    check_url,
    csp_for,
)
from support import for_each, requirement
from support.hostile_urls import FINE, HOSTILE

OPEN = UrlPolicy(extension_schemes={"vscode-webview", "tauri-app"}, local_files=True)


@requirement("canvas:url:scheme-allow-list")
@pytest.mark.parametrize("url", FINE)
def test_proper_urls_are_loaded_as_they_are(url: str) -> None:
    assert check_url(url) == (check_url(url).__class__)(True, "", url)


@requirement("canvas:url:scheme-allow-list", "canvas:url:http-loopback-only")
@for_each(HOSTILE)
def test_hostile_urls_are_refused_with_a_reason(url: str) -> None:
    for policy in (UrlPolicy(), OPEN):
        verdict = check_url(url, policy)
        assert not verdict.allowed
        assert verdict.reason
        assert all(" " <= letter <= "~" or letter in "\ufffd…" for letter in verdict.url)


@pytest.mark.parametrize("nothing", [None, 7, b"https://example.com", ["https://example.com"], {}, ""])
def test_what_is_no_text_is_no_url(nothing: Any) -> None:
    assert check_url(nothing).reason == "there is no URL"


@requirement("canvas:url:default-schemes")
def test_the_known_schemes_are_the_baseline_and_files_need_a_local_renderer_that_wants_them() -> None:
    assert {"https", "file", "data"} <= KNOWN_SCHEMES
    assert UrlPolicy().schemes == {"https", "data", "http"}
    assert UrlPolicy(local_files=True, loopback_http=False).schemes == {"https", "data", "file"}
    assert OPEN.schemes == {*KNOWN_SCHEMES, "vscode-webview", "tauri-app"}
    assert "on the host's machine" in check_url("file:///tmp/page.html").reason
    assert check_url("file:///tmp/page.html", OPEN).allowed
    assert check_url("vscode-webview://0a1b/index.html?x=1", OPEN).allowed
    assert not check_url("vscode-webview://0a1b/index.html").allowed


@pytest.mark.parametrize("scheme", ["javascript", "file", "http", "data", "blob", "UPPER", "with space", "", "chrome"])
def test_dangerous_schemes_cannot_be_extensions(scheme: str) -> None:
    with pytest.raises(ValueError, match="cannot be an extension scheme"):
        UrlPolicy(extension_schemes={scheme})


@requirement("canvas:url:http-loopback-only")
def test_plain_http_is_for_two_hosts() -> None:
    assert check_url("http://localhost:7110/canvas/x/").allowed
    assert check_url("http://127.0.0.1/").allowed
    assert check_url("HTTP://LOCALHOST:80").url == "http://localhost:80"
    for host in ("[::1]", "127.0.0.2", "app.localhost", "localhost.", "localhost.evil.example", "0.0.0.0"):
        assert not check_url(f"http://{host}/").allowed
    assert not check_url("http://localhost/", UrlPolicy(loopback_http=False)).allowed


def test_scheme_and_host_are_given_back_in_lower_case() -> None:
    assert check_url("HtTpS://Board.EXAMPLE:8443/Path?Q#F").url == "https://board.example:8443/Path?Q#F"


def test_length_is_limited() -> None:
    assert check_url("https://example.com/" + "x" * (MAX_LENGTH - 20)).allowed
    assert "longer" in check_url("https://example.com/" + "x" * MAX_LENGTH).reason
    assert "longer" in check_url("https://example.com/", UrlPolicy(max_length=10)).reason


@pytest.mark.parametrize("url", ["file:///etc", "file:///C:/x"])
def test_local_files_name_no_server(url: str) -> None:
    assert check_url(url, OPEN).allowed


@requirement("canvas:url:sandbox")
def test_the_sandbox_gives_the_content_an_origin_of_its_own() -> None:
    assert FRAME_ATTRIBUTES["sandbox"] == SANDBOX
    assert not {"allow-same-origin", "allow-top-navigation", "allow-popups", "allow-modals"} & set(SANDBOX.split())


@requirement("canvas:url:credentials-stripped")
def test_navigation_carries_no_credentials() -> None:
    assert NAVIGATION["credentials"] == "omit"
    assert {"authorization", "cookie"} <= set(NAVIGATION["strippedHeaders"])
    assert FRAME_ATTRIBUTES["referrerpolicy"] == "no-referrer"
    assert "credentialless" in FRAME_ATTRIBUTES


def test_the_policy_of_the_page_admits_just_the_frames_it_shows() -> None:
    policy = csp_for("https://b.example:8443/x?y", "https://b.example:8443/z", "data:text/html,x", script_src="'self'")
    assert policy.split("; ") == [
        "default-src 'none'",
        "frame-src data: https://b.example:8443",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "script-src 'self'",
    ]
    assert "frame-src 'none'" in csp_for()
    assert "frame-src file:" in csp_for("file:///x")
    assert "frame-src tauri-app:" in csp_for("tauri-app://localhost/x")


# -- properties ---------------------------------------------------------------------------------------------------

ANYTHING = st.one_of(st.text(), st.builds("".join, st.lists(st.sampled_from([*HOSTILE, *FINE, "\t", "\\", "@", "%"]))))
UGLY = st.sampled_from(
    ["\t", "\n", "\r", "\x00", " ", "\\", '"', "<", ">", "`", "\u2044", "\uff0f", "ａ", "а", "\u202e"]
)


@given(ANYTHING)
def test_no_text_is_too_strange_to_be_judged(url: str) -> None:
    verdict = check_url(url, OPEN)
    if verdict.allowed:
        assert verdict.url.lower() == url.lower()
        assert verdict.url.isascii()
        assert not set(verdict.url) & set('\\\t\n\r "<>`{}|^')
        parts = urlsplit(verdict.url)
        assert parts.scheme in OPEN.schemes
        assert parts.username is None
        assert parts.scheme != "http" or parts.hostname in ("localhost", "127.0.0.1")


@given(st.sampled_from(FINE), UGLY, st.data())
def test_one_ugly_character_anywhere_is_enough_to_be_refused(url: str, ugly: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(url)))
    assert not check_url(url[:place] + ugly + url[place:], OPEN).allowed


@given(st.sampled_from(FINE))
def test_judging_twice_changes_nothing(url: str) -> None:
    assert check_url(check_url(url).url) == check_url(url)
