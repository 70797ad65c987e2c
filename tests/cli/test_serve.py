"""`ahpkit serve`: options, settings, signals, what it prints. Real processes; what a host does is tested elsewhere."""

import asyncio
import json
import os
import re
import signal
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from ahpkit.cli.serve import as_typed, plugin_problem, with_options
from ahpkit.cli.settings import Settings
from support import requirement
from support.flow import open_session, state_of
from support.process import finish_cli, host_process, run_cli, start_host
from support.terminal import terminal
from support.waiting import BOUND, until

NO_OPTIONS: dict[str, Any] = {
    "host": None,
    "port": None,
    "data_dir": None,
    "durability": None,
    "agents": (),
    "roots": (),
    "plugins": (),
    "extensions": (),
    "trust": (),
    "allow_hooks": False,
    "terminals": False,
}


# Options and settings.


def test_without_options_the_settings_stay_as_they_are() -> None:
    settings = Settings(port=1, durability="normal", terminals=True, plugins=[Path("/p")], agents={"a": {}})
    assert with_options(settings, NO_OPTIONS) == settings


def test_single_options_win_over_settings() -> None:
    options = {**NO_OPTIONS, "host": "::1", "port": 0, "data_dir": Path("/d"), "durability": "memory"}
    found = with_options(Settings(host="localhost", port=1, data_dir=Path("/s"), durability="full"), options)
    assert (found.host, found.port, found.data_dir, found.durability) == ("::1", 0, Path("/d"), "memory")


def test_repeatable_options_are_added_to_settings() -> None:
    settings = Settings(plugins=[Path("/a")], extensions=["x"], trusted=[Path("/t")])
    options = {**NO_OPTIONS, "plugins": (Path("/b"),), "extensions": ("y",), "trust": (Path("/u"),)}
    found = with_options(settings, options)
    assert found.plugins == [Path("/a"), Path("/b")]
    assert found.extensions == ["x", "y"]
    assert found.trusted == [Path("/t"), Path("/u")]


def test_roots_of_the_command_line_stand_instead_of_those_of_the_settings() -> None:
    settings = Settings(roots=[Path("/a")])
    assert with_options(settings, NO_OPTIONS).roots == [Path("/a")]
    assert with_options(settings, {**NO_OPTIONS, "roots": (Path("/b"),)}).roots == [Path("/b")]


def test_switches_can_be_turned_on_but_not_off() -> None:
    found = with_options(Settings(terminals=True), {**NO_OPTIONS, "allow_hooks": True})
    assert (found.terminals, found.allow_hooks) == (True, True)


def test_an_agent_by_name_uses_its_settings_and_a_command_replaces_them() -> None:
    settings = Settings(agents={"mine": {"command": "x"}})
    assert with_options(settings, {**NO_OPTIONS, "agents": ("mine",)}).agents == settings.agents
    assert with_options(settings, {**NO_OPTIONS, "agents": ("mine=y",)}).agents == {"mine": {"option": "mine=y"}}
    assert with_options(settings, {**NO_OPTIONS, "agents": ("gemini",)}).agents["gemini"] == {"option": "gemini"}


async def test_a_configuration_file_is_read_and_options_win(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text('[host]\nport = 1\ndata_dir = "elsewhere"\ndurability = "memory"\n')
    async with host_process(tmp_path, "--config", "host.toml") as host:
        assert host.announced["dataDir"] == str(tmp_path / "data")
        assert not (tmp_path / "data" / "log.db").exists()


@pytest.mark.parametrize(
    ("toml", "options", "problem"),
    [
        ("[host]\nprot = 1", [], "host.toml: unknown key host.prot; did you mean port?"),
        ("[host]\nport = 'x'", [], "host.toml: host.port must be a whole number from 0 to 65535, not 'x'"),
        ("[host", [], "host.toml: not valid TOML: "),
        ("[host]\ndefault_agent = 'x'", [], "host.default_agent: there is no agent 'x'; known: demo"),
        ("[agents.x]\npython = 'nothing.py:x'", [], "cannot load the agent nothing.py:x"),
        ("[agents.x]", [], "agents.x: give a command, or use one of"),
        ("", ["--agent", "nobody"], "there is no known agent 'nobody'"),
        ("", ["--host", "0.0.0.0", "--no-token"], "--no-token works on loopback only, not on 0.0.0.0"),
        ("", ["--host", "no.such.host.invalid"], "no.such.host.invalid"),
        ("[host]\ntls_certificate = 'x.pem'", [], "TLS: cannot use x.pem: No such file or directory"),
        ("[host]\ntls_certificate = 'host.toml'", [], "TLS: cannot use host.toml"),
    ],
)
async def test_what_cannot_work_is_said_in_a_line(tmp_path: Path, toml: str, options: list[str], problem: str) -> None:
    (tmp_path / "host.toml").write_text(toml)
    command = ["serve", "--port", "0", "--data-dir", "data", "--config", "host.toml", *options]
    code, output, errors = await finish_cli(command, tmp_path)
    assert (code, output) == (1, "")
    assert errors.splitlines()[-1].startswith("Error: ")
    assert problem in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("options", [["--port", "65536"], ["--durability", "total"], ["--data-dir", "host.toml"]])
async def test_wrong_options_are_usage_errors(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "host.toml").touch()
    code, _, errors = await finish_cli(["serve", *options], tmp_path)
    assert code == 2
    assert f"Invalid value for '{options[0]}'" in errors


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, errors = await finish_cli(["serve", "--port", str(port), "--data-dir", "data"], tmp_path)
    assert (code, f"port {port}: the port is in use" in errors, errors.count("\n")) == (1, True, 1)


async def test_a_second_host_on_the_same_data_is_refused(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        code, _, errors = await finish_cli(["serve", "--port", "0", "--data-dir", "data"], tmp_path)
        assert code == 1
        assert f"in use by process {host.process.pid}: stop that host or choose another --data-dir" in errors


# What it prints.


async def test_people_are_told_where_it_listens_and_what_to_try(tmp_path: Path) -> None:
    async with terminal(["serve", "--port", "0"], tmp_path) as person:
        await person.see("ahpkit is listening on ws://127.0.0.1:")
        await person.see("Sessions are kept in ~/.local/share/ahpkit; the token is in the file 'token' there")
        await person.see("Try it in another terminal:  ")
        await person.until(lambda screen: screen.line == "" and screen.text.rstrip().endswith("-m ahpkit chat"))
        person.interrupt()
        assert await person.exited() == 0


async def test_json_is_one_line_and_nothing_else(tmp_path: Path) -> None:
    host = await start_host(tmp_path)
    assert set(host.announced) == {"url", "token", "pid", "dataDir", "agents", "page"}
    assert host.announced["pid"] == host.process.pid
    assert await host.stop() == 0
    assert host.process.stdout is not None
    assert (await host.process.stdout.read(), host.errors) == (b"", "")


async def test_the_token_is_for_its_owner_only_and_stays_the_same(tmp_path: Path) -> None:
    async with host_process(tmp_path) as first:
        pass
    assert stat.S_IMODE((tmp_path / "data" / "token").stat().st_mode) == 0o600
    async with host_process(tmp_path) as second:
        assert second.token == first.token == (tmp_path / "data" / "token").read_text().strip()


async def test_without_a_token_everyone_on_this_machine_is_let_in(tmp_path: Path) -> None:
    async with host_process(tmp_path, "--no-token") as host:
        assert host.token is None
        code, _, _ = await finish_cli(["sessions", "list", "--url", host.url], tmp_path)
        assert code == 0


async def test_what_was_wrong_with_the_log_is_said_at_the_start(tmp_path: Path) -> None:
    async with host_process(tmp_path) as host:
        client = await host.client()
        await client.ask("createSession", "ahp-session:/s")
        await client.aclose()
        await host.stop()
    (tmp_path / "data" / "log.db").write_bytes(b"not a database at all" * 500)
    process = await run_cli(["serve", "--port", "0", "--json", "--data-dir", "data"], tmp_path)
    assert process.stdout is not None
    async with asyncio.timeout(BOUND):
        assert json.loads(await process.stdout.readline())["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert errors.startswith(b"WARNING ")
    assert b"log.db" in errors
    assert list((tmp_path / "data").glob("log.db.corrupt-*")) != []


# Signals.


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
async def test_it_stops_cleanly_when_asked_to(tmp_path: Path, signum: int) -> None:
    host = await start_host(tmp_path)
    hosts = tmp_path / "runtime" / "ahpkit" / "hosts"
    assert len(os.listdir(hosts)) == 1
    client = await host.client()
    assert await host.stop(signum) == 0
    assert os.listdir(hosts) == []
    await client.aclose()


SLOW_TO_CLOSE = """
import asyncio
from ahpkit.agents.python import agent


@agent(name="slow")
async def slow(turn):
    pass


slow.aclose = lambda: asyncio.sleep(60)
"""


async def test_a_second_ctrl_c_does_not_wait_for_what_is_slow_to_close(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_TO_CLOSE)
    (tmp_path / "host.toml").write_text('[agents.slow]\npython = "slow.py:slow"')
    async with host_process(tmp_path, "--config", "host.toml") as host:
        host.process.send_signal(signal.SIGINT)
        await until(lambda: host.errors == "stopping; Ctrl-C again ends it at once\n")
        assert await host.stop(signal.SIGINT) == 130
        assert "Traceback" not in host.errors


# TLS.


def certificate(directory: Path) -> None:
    """A certificate for localhost that signs itself: cert.pem and key.pem."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    (directory / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (directory / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, pem, plain))


async def test_it_serves_tls(tmp_path: Path) -> None:
    certificate(tmp_path)
    (tmp_path / "host.toml").write_text("[host]\ntls_certificate = 'cert.pem'\ntls_key = 'key.pem'")
    async with host_process(tmp_path, "--config", "host.toml") as host:
        assert host.url.startswith("wss://127.0.0.1:")
        code, _, errors = await finish_cli(["sessions", "list"], tmp_path)
        assert (code, errors) == (0, "")
        (elsewhere := tmp_path / "elsewhere").mkdir()
        reached = {"AHPKIT_URL": host.url, "AHPKIT_TOKEN": host.token or ""}
        code, _, errors = await finish_cli(["sessions", "list"], elsewhere, **reached)
        assert (code, "its certificate is not trusted" in errors) == (1, True)
        reached["SSL_CERT_FILE"] = str(tmp_path / "cert.pem")
        code, _, errors = await finish_cli(["sessions", "list"], elsewhere, **reached)
        assert (code, errors) == (0, "")


async def test_a_phone_is_paired_as_the_page_about_it_says(tmp_path: Path) -> None:
    (tmp_path / "host.toml").write_text(
        "[host]\ntls_authority = true\nallowed_hosts = ['desk.example']\n[canvas]\npage_url = 'https://desk.example'"
    )
    async with host_process(tmp_path, "--config", "host.toml") as host:
        code, output, errors = await finish_cli(["pair"], tmp_path)
        assert (code, errors) == (0, "")
        assert "open https://desk.example there" in output
        assert re.search(r"It works once, until \d\d:\d\d\.", output)
        code, output, errors = await finish_cli(["prompt", "hello"], tmp_path)
        assert (code, "You said" in output) == (0, True), errors
        code, output, _ = await finish_cli(["doctor"], tmp_path)
        assert (code, f"host: {host.url}" in output) == (0, True)


async def test_a_key_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    certificate(tmp_path)
    os.replace(tmp_path / "key.pem", tmp_path / "old.pem")
    certificate(tmp_path)
    (tmp_path / "host.toml").write_text("[host]\ntls_certificate = 'cert.pem'\ntls_key = 'old.pem'")
    code, _, errors = await finish_cli(["serve", "--port", "0", "--data-dir", "d", "--config", "host.toml"], tmp_path)
    assert (code, errors.startswith("Error: TLS: cannot use cert.pem and old.pem: ")) == (1, True)


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        ("/nope", "there is no such folder"),
        ("~nobody9/p", "there is no such folder"),
        ("npm:some-plugin", "packages and marketplaces by URI are not supported"),
        ("https://plugins.example/x", "packages and marketplaces by URI are not supported"),
        ("file:///plugins/x", "packages and marketplaces by URI are not supported"),
        ("reviews@a-marketplace", "packages and marketplaces by URI are not supported"),
        ("git@code.example:a/b", "packages and marketplaces by URI are not supported"),
    ],
)
@requirement("customizations:plugin:said-at-start")
def test_a_plugin_that_cannot_be_read_is_named_at_the_start(plugin: str, problem: str) -> None:
    assert problem in (plugin_problem(Path(plugin)) or "")
    assert as_typed(Path(plugin)) == plugin


@requirement("customizations:plugin:said-at-start")
async def test_serve_says_at_once_that_a_plugin_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "kit" / "skills" / "tidy").mkdir(parents=True)
    (tmp_path / "kit" / "skills" / "tidy" / "SKILL.md").write_text("Tidy up.")
    async with host_process(tmp_path, "--plugin", "/nope", "--plugin", "npm:tidy", "--plugin=~/kit") as host:
        await until(lambda: "the plugin /nope is not read" in host.errors and "npm:tidy is not read" in host.errors)
        assert "kit" not in host.errors
        client = await host.client()
        session, _ = await open_session(client)
        listed = {entry["name"]: entry for entry in (await state_of(client, session))["customizations"]}
        assert listed["nope"]["load"] == {"kind": "error", "message": "there is no such folder"}
        assert "by URI are not supported" in listed["npm-tidy"]["load"]["message"]
        assert [child["name"] for child in listed["kit"]["children"]] == ["kit:tidy"]
