"""A host's own authority: certificates that verify, names it may vouch for, renewal."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ahpkit.web.authority import AUTHORITY, certificate_for, own_addresses

NAMES = ["desk.local", "192.168.1.7", "localhost", "127.0.0.1"]


def made(directory: Path, names: list[str] = NAMES, *, days: int = 0) -> tuple[bytes, bytes]:
    certificate, _ = certificate_for(names, directory, now=datetime.now(UTC) + timedelta(days=days))
    return (directory / AUTHORITY).read_bytes(), certificate.read_bytes()


async def test_a_device_that_installed_the_authority_trusts_the_host(tmp_path: Path) -> None:
    certificate, key = certificate_for(NAMES, tmp_path, now=datetime.now(UTC))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    device = ssl.create_default_context(cafile=tmp_path / AUTHORITY)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=serving)
    async with server:
        port = server.sockets[0].getsockname()[1]
        for name in ("desk.local", "192.168.1.7", "localhost"):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=device, server_hostname=name)
            writer.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", port, ssl=device, server_hostname="bank.example")


def test_keys_are_for_their_owner_only_and_everything_is_kept_while_it_is_good(tmp_path: Path) -> None:
    first = made(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert made(tmp_path) == first


def test_a_new_private_address_needs_a_new_certificate_but_no_new_authority(tmp_path: Path) -> None:
    authority, certificate = made(tmp_path)
    again, other = made(tmp_path, [*NAMES, "10.0.0.9"])
    assert again == authority
    assert other != certificate


def test_a_name_that_the_authority_may_not_vouch_for_needs_a_new_one(tmp_path: Path) -> None:
    authority, _ = made(tmp_path)
    assert made(tmp_path, [*NAMES, "desk.example"])[0] != authority


def test_a_certificate_is_renewed_before_it_runs_out(tmp_path: Path) -> None:
    authority, certificate = made(tmp_path)
    again, renewed = made(tmp_path, days=380)
    assert again == authority
    assert renewed != certificate


def test_an_address_that_was_given_is_the_one_that_is_used() -> None:
    assert own_addresses("192.168.1.7") == ["192.168.1.7"]
    assert all(address.count(".") == 3 for address in own_addresses("0.0.0.0"))
