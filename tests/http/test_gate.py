from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from ahpkit.http.gate import Gate, Head, Refusal
from ahpkit.transports.auth import Admission, Authenticator, fingerprint


def cookie(headers: Mapping[str, str], query: str) -> Admission | None:
    """What the page of the host will do: a session that the browser names by itself."""
    return Admission(True, "cookie", ambient=True) if headers.get("cookie") == "session=right" else None


def gate(host: str | None = "127.0.0.1", hosts: Collection[str] = (), origins: Collection[str] = ()) -> Gate:
    return Gate(auth=Authenticator("secret", checks=[cookie]), host=host, hosts=hosts, origins=origins)


def decide(gate: Gate, headers: Mapping[str, str], *, method: str = "GET", upgrade: bool) -> Admission | Refusal:
    return gate.refuse_host(headers) or gate.admit(Head(method, "", headers, upgrade=upgrade))


def websocket(gate: Gate, headers: Mapping[str, str]) -> Admission | Refusal:
    default = {"host": "127.0.0.1:8080", "authorization": "Bearer secret"}
    return decide(gate, default | dict(headers), upgrade=True)


def status(gate: Gate, **headers: str) -> int:
    decision = websocket(gate, headers)
    return 101 if isinstance(decision, Admission) else decision.status


class TestHost:
    @pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1:8080", "127.1.2.3", "[::1]:8080", "[::1]"])
    def test_loopback_names_are_ours(self, host: str) -> None:
        assert status(gate(), host=host) == 101

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "192.168.0.1",
            "",
            "localhost:x",
            "a@localhost",
            "localhost, evil.example",
            "localhost/x",
            "localhost?x",
            "[::1",
        ],
    )
    def test_others_are_refused_with_a_reason(self, host: str) -> None:
        decision = websocket(gate(), {"host": host})
        assert isinstance(decision, Refusal)
        assert decision.status == 403
        assert decision.reason

    def test_the_bound_name_and_configured_ones_are_ours(self) -> None:
        there = gate("Host.example", hosts=["Alias.example"])
        assert status(there, host="host.example:8080") == 101
        assert status(there, host="alias.example") == 101
        assert status(there, host="other.example") == 403

    @pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "::"])
    def test_bound_to_every_interface_any_address_is_ours_but_no_name(self, wildcard: str) -> None:
        assert status(gate(wildcard), host="192.168.0.7:8080") == 101
        assert status(gate(wildcard), host="[fe80::1]:8080") == 101
        assert status(gate(wildcard), host="evil.example:8080") == 403

    def test_a_unix_socket_has_no_name_to_check(self) -> None:
        assert status(gate(None), host="anything") == 101


class TestOrigin:
    def test_programs_send_none(self) -> None:
        assert status(gate()) == 101

    @pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "http://localhost:8080", "https://[::1]:8080"])
    def test_our_own_page_may_connect_under_any_loopback_name(self, origin: str) -> None:
        assert status(gate(), origin=origin) == 101

    @pytest.mark.parametrize(
        "origin",
        [
            "http://evil.example",
            "http://evil.example:8080",
            "http://localhost:3000",
            "http://localhost",
            "http://6.6.6.6:8080",
            "http://localhost.evil.example:8080",
            "null",
            "",
            "file://",
            "http://localhost:8080@evil.example",
            "vscode-webview://localhost:8080",
            "http://localhost:8080, http://localhost:8080",
        ],
    )
    def test_other_pages_may_not(self, origin: str) -> None:
        decision = websocket(gate(), {"origin": origin})
        assert isinstance(decision, Refusal)
        assert decision.status == 403
        assert origin in decision.reason

    def test_a_tunnel_to_us_is_our_own_page(self) -> None:
        assert status(gate(), host="localhost:9000", origin="http://localhost:9000") == 101

    def test_ports_that_are_not_written_are_the_schemes(self) -> None:
        there = gate("0.0.0.0", hosts=["host.example"])
        assert status(there, host="host.example", origin="https://host.example") == 101
        assert status(there, host="host.example", origin="https://host.example:443") == 101
        assert status(there, host="host.example", origin="https://host.example:444") == 403

    def test_configured_origins_and_schemes_may_connect(self) -> None:
        there = gate(origins=["https://App.example", "vscode-webview://*"])
        assert status(there, origin="https://app.example") == 101
        assert status(there, origin="https://app.example.evil.example") == 403
        assert status(there, origin="http://app.example") == 403
        assert status(there, origin="vscode-webview://0a1b2c") == 101


class TestToken:
    def test_the_admission_carries_the_fingerprint(self) -> None:
        assert websocket(gate(), {}) == Admission(True, fingerprint("secret"))

    def test_a_wrong_token_is_told_what_to_do(self) -> None:
        decision = websocket(gate(), {"authorization": "Bearer guess"})
        assert isinstance(decision, Refusal)
        assert (decision.status, decision.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "ahpkit serve" in decision.reason
        assert "secret" not in decision.reason

    def test_a_foreign_page_does_not_learn_whether_its_token_is_right(self) -> None:
        for token in ("secret", "guess"):
            assert status(gate(), origin="http://evil.example", authorization=f"Bearer {token}") == 403


OWN_PAGE = {"host": "localhost:8080", "cookie": "session=right", "origin": "http://localhost:8080"}


class TestCookie:
    """A browser sends it with every request, whoever caused it: so it counts only together with the origin."""

    def test_our_own_page_is_let_in(self) -> None:
        assert decide(gate(), OWN_PAGE, upgrade=True) == Admission(True, "cookie", ambient=True)
        assert decide(gate(), OWN_PAGE, method="POST", upgrade=False) == Admission(True, "cookie", ambient=True)

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "vscode-webview://a"])
    @pytest.mark.parametrize("upgrade", [True, False])
    def test_another_page_is_not_even_an_allowed_one(self, origin: str, upgrade: bool) -> None:
        there = gate(origins=["vscode-webview://*"])
        decision = decide(there, OWN_PAGE | {"origin": origin}, upgrade=upgrade)
        assert isinstance(decision, Refusal)
        assert decision.status == 403

    @pytest.mark.parametrize(("method", "upgrade"), [("GET", True), ("POST", False), ("DELETE", False)])
    def test_what_changes_something_must_say_where_it_comes_from(self, method: str, upgrade: bool) -> None:
        headers = {"host": "localhost:8080", "cookie": "session=right"}
        decision = decide(gate(), headers, method=method, upgrade=upgrade)
        assert isinstance(decision, Refusal)
        assert "Origin" in decision.reason

    def test_a_page_can_be_opened_from_the_address_bar(self) -> None:
        headers = {"host": "localhost:8080", "cookie": "session=right"}
        assert isinstance(decide(gate(), headers, upgrade=False), Admission)

    def test_a_wrong_one_is_nothing(self) -> None:
        decision = decide(gate(), OWN_PAGE | {"cookie": "session=wrong"}, upgrade=True)
        assert isinstance(decision, Refusal)
        assert decision.status == 401
