"""The configuration file: every key, and errors that name the one that is wrong."""

import dataclasses
from pathlib import Path
from typing import Any, get_args

import pytest

from ahpkit.cli.settings import Settings, SettingsError, default_data_dir, layered_settings
from ahpkit.log.datadir import Durability
from ahpkit.tools.rules import Rule

DURABILITIES = ", ".join(get_args(Durability))

EVERYTHING = """
[host]
host = "0.0.0.0"
port = 0
data_dir = "~/data"
durability = "normal"
default_agent = "mine"
default_directory = "/srv"
roots = ["/srv", "~/projects"]
client_grace = 5
child_memory = 2048
child_processes = 500
allowed_hosts = ["host.example"]
allowed_origins = ["https://app.example"]
tls_certificate = "/tls/cert.pem"
tls_key = "/tls/key.pem"
tls_authority = true
terminals = true

[customizations]
plugins = ["~/plugins/reviews"]
off = ["reviews"]
remember_toggles = false
allow_hooks = true
trusted = ["/work"]

[canvas]
extensions = ["python -m board"]
page_url = "https://host.example/ahp"

[notify]
webhook = "https://hooks.example/1"
command = ["notify-phone", "--quietly"]

[session]
agent = "mine"
model = "large"

[client]
auto_start = false

[mcp]
agents_by = "http"

[[mcp.servers]]
name = "time"
command = ["uvx", "mcp-server-time"]
env = { TZ = "${TZ}" }

[[mcp.servers]]
name = "tickets"
url = "https://tickets.example/mcp"
shared = true

[[rules]]
decision = "allow"
owner = "mcp:time"

[[rules]]
decision = "deny"
owner = "agent:mine"
tool = "shell"
command = "git push"
workspace = "/srv/app"

[agents.mine]
command = "my-agent"
args = ["--acp"]
"""


def load(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "host.toml"
    path.write_text(text, encoding="utf-8")
    return read(path)


def read(path: Path) -> Settings:
    return layered_settings(path, path.parent, trusts=lambda project, settings: False)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text)
    prefix = f"{tmp_path / 'host.toml'}: "
    assert str(caught.value).startswith(prefix)
    return str(caught.value).removeprefix(prefix)


def test_without_a_file_there_are_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AHPKIT_CONFIG", str(tmp_path / "there is none"))
    assert layered_settings(None, tmp_path, trusts=lambda project, settings: False) == Settings()


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Settings()


def test_every_key_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert load(tmp_path, EVERYTHING) == Settings(
        host="0.0.0.0",
        port=0,
        data_dir=Path("/home/ada/data"),
        durability="normal",
        default_agent="mine",
        default_directory=Path("/srv"),
        roots=[Path("/srv"), Path("/home/ada/projects")],
        client_grace=5.0,
        child_memory=2048,
        child_processes=500,
        allowed_hosts=["host.example"],
        allowed_origins=["https://app.example"],
        tls_certificate=Path("/tls/cert.pem"),
        tls_key=Path("/tls/key.pem"),
        tls_authority=True,
        terminals=True,
        plugins=[Path("/home/ada/plugins/reviews")],
        off=["reviews"],
        remember_toggles=False,
        allow_hooks=True,
        trusted=[Path("/work")],
        extensions=["python -m board"],
        page_url="https://host.example/ahp",
        webhook="https://hooks.example/1",
        command=["notify-phone", "--quietly"],
        agents_by="http",
        servers=[
            {"name": "time", "command": ["uvx", "mcp-server-time"], "env": {"TZ": "${TZ}"}},
            {"name": "tickets", "url": "https://tickets.example/mcp", "shared": True},
        ],
        rules=[
            Rule(id="configured-1", decision="allow", kind="server", owner="mcp:time", scope="everywhere"),
            Rule(
                id="configured-2",
                decision="deny",
                kind="command",
                owner="agent:mine",
                tool="shell",
                pattern="git push",
                scope="workspace",
                place="file:///srv/app",
            ),
        ],
        agent="mine",
        model="large",
        auto_start=False,
        agents={"mine": {"command": "my-agent", "args": ["--acp"]}},
    )


def test_the_example_above_sets_all_there_is(tmp_path: Path) -> None:
    loaded, defaults = load(tmp_path, EVERYTHING), Settings()
    settings = [f.name for f in dataclasses.fields(Settings) if f.compare]
    assert [name for name in settings if getattr(loaded, name) == getattr(defaults, name)] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('port = "7110"', "port must be a whole number from 0 to 65535, not '7110'"),
        ("port = true", "port must be a whole number from 0 to 65535, not True"),
        ("port = 65536", "port must be a whole number from 0 to 65535, not 65536"),
        ("port = 1.5", "port must be a whole number from 0 to 65535, not 1.5"),
        ("host = 1", "host must be a string that is not empty, not 1"),
        ('host = ""', "host must be a string that is not empty, not ''"),
        ("data_dir = []", "data_dir must be a string that is not empty, not []"),
        ('durability = "total"', f"durability must be one of {DURABILITIES}, not 'total'"),
        ("durability = 1", f"durability must be one of {DURABILITIES}, not 1"),
        ("child_memory = -1", "child_memory must be a whole number, 0 or more; 0 means no limit, not -1"),
        ("client_grace = -1", "client_grace must be a number of seconds, 0 or more, not -1"),
        ("client_grace = true", "client_grace must be a number of seconds, 0 or more, not True"),
        ("client_grace = nan", "client_grace must be a number of seconds, 0 or more, not nan"),
        ("client_grace = inf", "client_grace must be a number of seconds, 0 or more, not inf"),
        ('allowed_hosts = "one"', "allowed_hosts must be a list of strings, not 'one'"),
        (
            'allowed_hosts = ["https://a.example"]',
            "allowed_hosts must be a list of names such as host.example, without scheme, port and path, "
            "not ['https://a.example']",
        ),
        (
            'allowed_hosts = ["a.example:80"]',
            "allowed_hosts must be a list of names such as host.example, without scheme, port and path, "
            "not ['a.example:80']",
        ),
        (
            'allowed_origins = ["https://a.example/"]',
            "allowed_origins must be a list of origins such as https://host.example, without a slash at the end, "
            "not ['https://a.example/']",
        ),
        ("allowed_origins = [1]", "allowed_origins must be a list of strings, not [1]"),
        ('terminals = "yes"', "terminals must be true or false, not 'yes'"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_key(tmp_path: Path, line: str, expected: str) -> None:
    assert refused(tmp_path, f"[host]\n{line}") == f"host.{expected}"


def test_a_wrong_value_in_another_table_is_named_with_its_table(tmp_path: Path) -> None:
    assert refused(tmp_path, "[customizations]\nplugins = [1]").startswith("customizations.plugins must be a list")
    assert refused(tmp_path, "[canvas]\nextensions = 'x'").startswith("canvas.extensions must be a list")
    for wrong in ("'host.example'", "'ws://host.example'", "'https://'", "'https://h/?a'", "1"):
        assert refused(tmp_path, f"[canvas]\npage_url = {wrong}").startswith("canvas.page_url must be ")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('name = "a b"\ncommand = "x"', "a name of letters"),
        ('command = "x"', "a name of letters"),
        ('name = "a"', "either a command or a url"),
        ('name = "a"\ncommand = "x"\nurl = "https://x.example"', "either a command or a url"),
        ('name = "a"\ncommand = "x"\nargs = "y"', "args as a list of strings"),
        ('name = "a"\ncommand = []', "command as a string"),
        ('name = "a"\ncommand = "x"\nenv = { A = 1 }', "env as a table of strings"),
        ('name = "a"\ncommand = "x"\nshard = true', "these keys and no others"),
        ('name = "a"\ncommand = "x"\n[[mcp.servers]]\nname = "a"\ncommand = "y"', "names of their own"),
    ],
)
def test_a_server_that_makes_no_sense_is_refused(tmp_path: Path, table: str, expected: str) -> None:
    assert expected in refused(tmp_path, f"[[mcp.servers]]\n{table}")


def test_a_refused_server_is_named_and_its_secrets_are_not(tmp_path: Path) -> None:
    good = '[[mcp.servers]]\nname = "a"\ncommand = "x"\nenv = { KEY = "sesame" }\n'
    error = refused(tmp_path, f'{good}[[mcp.servers]]\nname = "b"\nheaders = {{ KEY = "sesame" }}')
    assert error == "mcp.servers must be servers with either a command or a url; look at server 2, 'b'"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('decision = "maybe"\nowner = "mcp:a"', "decision"),
        ('decision = "allow"', "the owner is"),
        ('decision = "allow"\nowner = "agent:a"', "name a tool"),
        ('decision = "allow"\nowner = "agent:a"\ntool = "t"\ncommand = "a | b"', "without shell operators"),
        ('decision = "allow"\nowner = "agent:a"\ntool = "t"\ncommand = "a"\npath = "/b"', "not both"),
        ('decision = "allow"\nowner = "agent:a"\ntool = 1', "a text that is not empty"),
        ('decision = "allow"\nowner = "agent:a"\ntoll = "t"', "no key 'toll'"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(tmp_path: Path, table: str, expected: str) -> None:
    error = refused(tmp_path, f"[[rules]]\n{table}")
    assert error.startswith("rule 1 of [[rules]]: ")
    assert expected in error


def test_an_unknown_key_is_refused_and_the_known_ones_are_listed(tmp_path: Path) -> None:
    error = refused(tmp_path, "[host]\ncolour = 7110")
    assert error.startswith("unknown key host.colour; known: host, port, data_dir")


def test_a_misspelt_key_or_table_gets_the_right_spelling(tmp_path: Path) -> None:
    assert refused(tmp_path, "[host]\nprot = 7110") == "unknown key host.prot; did you mean port?"
    assert refused(tmp_path, "[hots]") == "unknown table [hots]; did you mean host?"


def test_an_unknown_table_is_refused_and_the_known_ones_are_listed(tmp_path: Path) -> None:
    assert (
        refused(tmp_path, "[zzz]")
        == "unknown table [zzz]; known: host, customizations, canvas, mcp, notify, session, client, agents, rules"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port = 7110", "port must be a table: [port]"),
        ("host = 1", "host must be a table: [host]"),
        ("agents = 1", "agents must be a table: [agents]"),
        ('[agents]\nmine = "my-agent"', "agents.mine must be a table: [agents.mine]"),
    ],
)
def test_what_must_be_a_table_is(tmp_path: Path, text: str, expected: str) -> None:
    assert refused(tmp_path, text) == expected


def test_a_key_without_a_certificate_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, "[host]\ntls_key = '/k'") == "host.tls_key needs host.tls_certificate beside it"


def test_bad_toml_says_where(tmp_path: Path) -> None:
    assert refused(tmp_path, "[host\nport = 1").startswith("not valid TOML: Expected ']'")
    assert "line 1" in refused(tmp_path, "[host\nport = 1")


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "x = " + "{a=" * 100_000])
def test_deeply_nested_toml_is_refused(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text).startswith("not valid TOML")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="not UTF-8 text"):
        read(path)


@pytest.mark.parametrize(("make", "expected"), [(None, "No such file"), (Path.mkdir, "Is a directory")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, make: Any, expected: str) -> None:
    path = tmp_path / "host.toml"
    if make is not None:
        make(path)
    with pytest.raises(SettingsError, match=expected):
        read(path)


def test_sessions_are_kept_in_the_users_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / "ahpkit"
