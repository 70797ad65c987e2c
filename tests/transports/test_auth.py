from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from ahpkit.transports.auth import Admission, Authenticator, check_bind, fingerprint, is_loopback, load_or_create_token
from ahpkit.transports.errors import BindError

TOKEN = "s3cret-Token_1"

RIGHT: list[tuple[Mapping[str, str], str]] = [
    ({"authorization": f"Bearer {TOKEN}"}, ""),
    ({"authorization": f"bearer  {TOKEN}"}, ""),
    ({"sec-websocket-protocol": f"ahp, ahp.token.{TOKEN}"}, ""),
    ({"sec-websocket-protocol": f"ahp.token.{TOKEN},ahp"}, ""),
    ({}, f"token={TOKEN}"),
    ({}, f"a=b&token={TOKEN}"),
    ({}, f"tkn={TOKEN}"),
]


class TestAuthenticator:
    @pytest.mark.parametrize(("headers", "query"), RIGHT)
    def test_the_token_is_accepted_in_each_place(self, headers: Mapping[str, str], query: str) -> None:
        admission = Authenticator(TOKEN).admit(headers, query)
        assert admission.allowed
        assert admission.credential == fingerprint(TOKEN)

    @pytest.mark.parametrize(("headers", "query"), RIGHT)
    def test_another_token_is_refused_in_each_place(self, headers: Mapping[str, str], query: str) -> None:
        admission = Authenticator(TOKEN + "x").admit(headers, query)
        assert not admission.allowed
        assert admission.credential is None
        assert "wrong" in admission.reason

    def test_none_is_refused_with_what_to_do_and_without_the_token(self) -> None:
        admission = Authenticator(TOKEN).admit({}, "")
        assert not admission.allowed
        assert "`ahpkit serve`" in admission.reason
        assert TOKEN not in admission.reason

    @pytest.mark.parametrize("headers", [{"authorization": "Bearer"}, {"authorization": f"Basic {TOKEN}"}])
    def test_other_schemes_and_empty_values_are_refused(self, headers: Mapping[str, str]) -> None:
        assert not Authenticator(TOKEN).admit(headers, "token=").allowed

    def test_a_value_that_is_not_ascii_is_refused_like_any_other(self) -> None:
        assert not Authenticator(TOKEN).admit({"authorization": "Bearer \xe9"}, "").allowed

    def test_further_checks_are_asked_when_no_token_is_presented(self) -> None:
        def cookie(headers: Mapping[str, str], query: str) -> Admission | None:
            return Admission(True, "cookie", ambient=True) if headers.get("cookie") == "right" else None

        auth = Authenticator(TOKEN, checks=[lambda headers, query: None, cookie])
        assert auth.admit({"cookie": "right"}, "") == Admission(True, "cookie", ambient=True)
        assert not auth.admit({"cookie": "wrong"}, "").allowed
        assert not auth.admit({"cookie": "right"}, "token=wrong").allowed

    def test_without_a_token_everyone_is_let_in_as_nobody(self) -> None:
        admission = Authenticator(None).admit({"authorization": "Bearer x"}, "")
        assert admission.allowed
        assert admission.credential is None

    def test_its_text_does_not_hold_the_token(self) -> None:
        assert TOKEN not in repr(Authenticator(TOKEN))

    @pytest.mark.parametrize("token", ["", "a b", "a,b", "ä", "a\n"])
    def test_a_token_that_does_not_fit_into_a_header_is_refused_when_it_is_set(self, token: str) -> None:
        with pytest.raises(ValueError, match="consists of"):
            Authenticator(token)

    def test_fingerprints_are_stable_and_tell_tokens_apart(self) -> None:
        assert fingerprint("a") == fingerprint("a") != fingerprint("b")
        assert TOKEN not in fingerprint(TOKEN)


class TestCheckBind:
    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
    def test_loopback_needs_nothing(self, host: str) -> None:
        assert is_loopback(host)
        assert check_bind(host, token=False, tls=False) is None

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.5", "example.org", "localhost.example.org"])
    @pytest.mark.parametrize("tls", [False, True])
    def test_anywhere_else_a_token_is_required(self, host: str, tls: bool) -> None:
        with pytest.raises(BindError, match="token is required"):
            check_bind(host, token=False, tls=tls)

    def test_anywhere_else_a_token_without_tls_is_warned_about(self) -> None:
        assert "without TLS" in (check_bind("0.0.0.0", token=True, tls=False) or "")
        assert check_bind("0.0.0.0", token=True, tls=True) is None


class TestTokenFile:
    def test_it_is_made_once_and_private(self, tmp_path: Path) -> None:
        path = tmp_path / "token"
        token = load_or_create_token(path)
        assert len(token) >= 40
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert load_or_create_token(path) == token
        assert load_or_create_token(tmp_path / "other") != token
        assert sorted(file.name for file in tmp_path.iterdir()) == ["other", "token"]

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "missing" / "token"
        with pytest.raises(BindError, match=str(path)):
            load_or_create_token(path)

    def test_a_wider_mode_is_narrowed(self, tmp_path: Path) -> None:
        path = tmp_path / "token"
        path.write_text("abc\n")
        path.chmod(0o644)
        assert load_or_create_token(path) == "abc"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_a_file_without_a_token_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "token"
        path.write_text("\n")
        with pytest.raises(BindError, match=str(path)):
            load_or_create_token(path)

    @pytest.mark.parametrize("content", [b"\xff\xfe", "caf\u00e9".encode()])
    def test_a_file_with_other_bytes_is_named(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "token"
        path.write_bytes(content)
        with pytest.raises(BindError, match=str(path)):
            load_or_create_token(path)

    def test_a_folder_in_its_place_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(BindError, match=str(tmp_path)):
            load_or_create_token(tmp_path)
