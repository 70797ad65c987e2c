"""Documentation that cannot rot: commands, options, settings and extensions are described; links lead somewhere."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from ahpkit.agents.demo import DemoAgent
from ahpkit.cli import chat_commands
from ahpkit.cli.main import COMMANDS, cli
from ahpkit.cli.markdown import rendered
from ahpkit.cli.settings import Settings
from ahpkit.host.sessions import session_import
from ahpkit.testing.memory_host import memory_host
from support import for_each, requirement

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@for_each(sorted(COMMANDS))
def test_every_command_is_in_the_reference(name: str) -> None:
    assert f"## `ahpkit {name}`" in page("reference/cli.md")


@for_each(sorted(COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    found = command(name)
    commands: list[Any] = list(found.commands.values()) if isinstance(found, click.Group) else []
    for one in [found, *commands]:
        assert "Example" in (one.help or ""), f"{name}: {one.name}"


def test_every_option_of_serve_is_in_the_reference() -> None:
    options = {opt for param in command("serve").params for opt in param.opts if opt.startswith("--")}
    missing = [opt for opt in sorted(options - {"--help"}) if f"`{opt}`" not in page("reference/cli.md")]
    assert missing == []


def test_every_command_of_the_chat_is_in_the_reference() -> None:
    text = page("reference/cli.md")
    written = {name: f":{name} {one.argument}".strip() for name, one in chat_commands.COMMANDS.items()}
    assert [name for name, command in written.items() if f"`{command}`" not in text] == []


@for_each(sorted(p.name for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "decisions"))
def test_every_page_is_on_the_map(name: str) -> None:
    assert name == "index.md" or f"{name})" in page("index.md")


def test_every_decision_is_in_their_list() -> None:
    names = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")}
    assert {name for name in names if f"({name})" not in page("decisions/index.md")} == {"index.md"}


def test_the_site_loads_no_script_from_the_net() -> None:
    """The offline plugin adds one from the net, unless a script with this name is named."""
    found = re.search(
        r"^  polyfills: \[(.*iframe-worker.*)\]", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found is not None
    assert (ROOT / "docs" / found[1]).is_file()


def test_every_setting_is_in_the_reference() -> None:
    text = page("reference/configuration.md")
    names = [field.name for field in dataclasses.fields(Settings) if field.compare and field.name != "agents"]
    assert [name for name in names if f"`{name}`" not in text] == []


@requirement("extensibility:practice:documented")
def test_every_extension_of_ours_is_described_with_its_parameters() -> None:
    text = page("reference/extensions.md")
    assert f"`x-{session_import.EXTENSION}/import`" in text
    for parameter in ("document", *session_import.Export.__annotations__):
        assert f"`{parameter}`" in text
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    methods = {name for source in sources for name in re.findall(r'Command\("_(ahpkit/[^"]+)"', source)}
    assert len(methods) > 4
    assert [name for name in sorted(methods) if f"`x-{name}`" not in text] == []


def test_the_extension_of_the_reference_runs() -> None:
    program, tracing = re.findall(r"```python\n(.*?)```", page("reference/extensions.md"), re.S)
    run = [sys.executable, "-c", tracing + program]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert "{'version': '1.0', 'kinds': ['todo']}\n" in done.stdout
    assert "{'found': ['buy milk']}\n" in done.stdout
    assert '"name": "ahp _example.com/notes/search"' in done.stdout


def test_every_key_of_ours_in_meta_is_described_and_known_to_the_host() -> None:
    """The page reads keys that the host writes, and no others."""
    literal = re.compile(r"""["'](ahpkit/[\w-]+)["']""")
    sources = {
        folder: {key for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".ts", ".tsx")
                 for key in literal.findall(path.read_text(encoding="utf-8"))}
        for folder in ("src/ahpkit", "web/src")
    }  # fmt: skip
    described = page("reference/extensions.md") + page("reference/acp-mapping.md")
    assert [key for key in sources["src/ahpkit"] if f"`{key}`" not in described] == []
    assert sources["web/src"] - sources["src/ahpkit"] == set()


@for_each(PAGES)
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [target for target in targets if not (path.parent / target).exists()] == []


def _rendered(text: str) -> list[str]:
    """As a terminal shows it, without styles."""
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in rendered(text, 200)]


async def test_the_readme_shows_a_session_that_the_demo_agent_gives(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    said = re.search(r"\n> hello\n(Hello!.*?)\n> /tool", text, re.S)
    assert said is not None
    async with memory_host(DemoAgent(), directory=tmp_path) as host, host.client() as client:
        chat = await (await client.create_session()).chat()
        assert said[1].split() == "\n".join(_rendered((await chat.ask("hello")).strip())).split()


def test_the_readme_begins_with_the_ways_to_install() -> None:
    first = re.search(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert first is not None
    assert [line.split(" dist/")[0] for line in first[1].splitlines()] == [
        "$ uv tool install",
        "$ pipx install",
        "$ pip install",
    ]


def test_the_readme_uses_targets_and_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^\$ make (\w+)", text, re.M))
    assert {"run", "test"} <= targets <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    used = set(re.findall(r"^\$ (?:\.venv/bin/)?ahpkit ([a-z]+)", text, re.M))
    assert "chat" in used
    assert used <= set(COMMANDS)


def test_make_bench_runs_programs_that_have_a_short_form() -> None:
    """`make` stops at the first one that does not know its options."""
    programs = re.findall(r"bench/(\w+\.py) --quick$", (ROOT / "Makefile").read_text(), re.M)
    assert len(programs) > 5
    assert [name for name in programs if '"--quick"' not in (ROOT / "bench" / name).read_text()] == []


def test_what_make_test_leaves_out_is_run_by_ci_and_by_test_all() -> None:
    makefile, ci = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    runs = dict(re.findall(r"^(unit|slow): .*\n\t.*pytest .*-m (.+)$", makefile, re.M))
    assert runs == {"unit": '"not slow"', "slow": "slow"}
    assert re.findall(r"^make (test|slow) ", ci, re.M) == ["test", "slow"]
    assert re.search(r"^test-all: test slow test-pages$", makefile, re.M)
