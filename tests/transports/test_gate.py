from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import pytest

from ahpkit.transports.auth import Admission, Authenticator, fingerprint
from ahpkit.transports.gate import Gate, HttpRequest, HttpResponse


async def page(request: HttpRequest) -> HttpResponse | None:
    if request.path != "/page":
        return None
    text = f"{request.query} {request.headers['host']} {request.admission.allowed}"
    return HttpResponse(200, text.encode(), "text/html")


def gate(host: str | None = "127.0.0.1", hosts: Collection[str] = (), origins: Collection[str] = ()) -> Gate:
    return Gate(auth=Authenticator("secret"), host=host, hosts=hosts, origins=origins, http=page)


async def websocket(gate: Gate, headers: Mapping[str, str]) -> Admission | HttpResponse:
    default = {"host": "127.0.0.1:8080", "upgrade": "websocket", "authorization": "Bearer secret"}
    return await gate.decide("GET", "/", default | dict(headers))


async def status(gate: Gate, **headers: str) -> int:
    decision = await websocket(gate, headers)
    return 101 if isinstance(decision, Admission) else decision.status


async def get(gate: Gate, target: str, *, method: str = "GET", host: str = "localhost:8080") -> HttpResponse:
    response = await gate.decide(method, target, {"host": host})
    assert isinstance(response, HttpResponse)
    return response


class TestHost:
    @pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1:8080", "127.1.2.3", "[::1]:8080", "[::1]"])
    async def test_loopback_names_are_ours(self, host: str) -> None:
        assert await status(gate(), host=host) == 101

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
    async def test_others_are_refused_with_a_reason(self, host: str) -> None:
        decision = await websocket(gate(), {"host": host})
        assert isinstance(decision, HttpResponse)
        assert decision.status == 403
        assert decision.body

    async def test_the_bound_name_and_configured_ones_are_ours(self) -> None:
        there = gate("Host.example", hosts=["Alias.example"])
        assert await status(there, host="host.example:8080") == 101
        assert await status(there, host="alias.example") == 101
        assert await status(there, host="other.example") == 403

    @pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "::"])
    async def test_bound_to_every_interface_any_address_is_ours_but_no_name(self, wildcard: str) -> None:
        assert await status(gate(wildcard), host="192.168.0.7:8080") == 101
        assert await status(gate(wildcard), host="[fe80::1]:8080") == 101
        assert await status(gate(wildcard), host="evil.example:8080") == 403

    async def test_a_unix_socket_has_no_name_to_check(self) -> None:
        assert await status(gate(None), host="anything") == 101

    async def test_plain_http_is_checked_too(self) -> None:
        assert (await get(gate(), "/page", host="evil.example")).status == 403
        assert (await get(gate(), "/healthz", host="evil.example")).status == 403


class TestOrigin:
    async def test_programs_send_none(self) -> None:
        assert await status(gate()) == 101

    @pytest.mark.parametrize("origin", ["http://127.0.0.1:8080", "http://localhost:8080", "https://[::1]:8080"])
    async def test_our_own_page_may_connect_under_any_loopback_name(self, origin: str) -> None:
        assert await status(gate(), origin=origin) == 101

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
    async def test_other_pages_may_not(self, origin: str) -> None:
        decision = await websocket(gate(), {"origin": origin})
        assert isinstance(decision, HttpResponse)
        assert decision.status == 403
        assert origin.encode() in decision.body

    async def test_a_tunnel_to_us_is_our_own_page(self) -> None:
        assert await status(gate(), host="localhost:9000", origin="http://localhost:9000") == 101

    async def test_ports_that_are_not_written_are_the_schemes(self) -> None:
        there = gate("0.0.0.0", hosts=["host.example"])
        assert await status(there, host="host.example", origin="https://host.example") == 101
        assert await status(there, host="host.example", origin="https://host.example:443") == 101
        assert await status(there, host="host.example", origin="https://host.example:444") == 403

    async def test_configured_origins_and_schemes_may_connect(self) -> None:
        there = gate(origins=["https://App.example", "vscode-webview://*"])
        assert await status(there, origin="https://app.example") == 101
        assert await status(there, origin="https://app.example.evil.example") == 403
        assert await status(there, origin="http://app.example") == 403
        assert await status(there, origin="vscode-webview://0a1b2c") == 101


class TestToken:
    async def test_the_admission_carries_the_fingerprint(self) -> None:
        assert await websocket(gate(), {}) == Admission(True, fingerprint("secret"))

    async def test_a_wrong_token_is_told_where_the_right_one_is(self) -> None:
        decision = await websocket(gate(), {"authorization": "Bearer guess"})
        assert isinstance(decision, HttpResponse)
        assert (decision.status, decision.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert b"ahpkit serve" in decision.body
        assert b"secret" not in decision.body

    async def test_a_foreign_page_does_not_learn_whether_its_token_is_right(self) -> None:
        for token in ("secret", "guess"):
            assert await status(gate(), origin="http://evil.example", authorization=f"Bearer {token}") == 403


class TestPages:
    @pytest.mark.parametrize("target", ["/healthz", "/healthz?x=1"])
    async def test_health_needs_no_token(self, target: str) -> None:
        response = await get(gate(), target)
        assert (response.status, response.content_type) == (200, "application/json")
        assert json.loads(response.body) == {"status": "ok", "name": "ahpkit"}

    async def test_the_handler_sees_the_request_and_what_its_token_is_worth(self) -> None:
        assert (await get(gate(), "/page?a=b")).body == b"a=b localhost:8080 False"
        assert (await get(gate(), "/page?token=secret")).body == b"token=secret localhost:8080 True"

    async def test_what_the_handler_does_not_know_is_not_found(self) -> None:
        assert (await get(gate(), "/other")).status == 404

    async def test_without_a_handler_there_is_only_health(self) -> None:
        bare = Gate(auth=Authenticator(None), host="127.0.0.1")
        assert (await get(bare, "/page")).status == 404
        assert (await get(bare, "/healthz")).status == 200

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT"])
    async def test_only_get_and_head_are_served(self, method: str) -> None:
        response = await get(gate(), "/page", method=method)
        assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
