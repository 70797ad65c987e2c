"""The wheel: built, installed into an empty environment, and used for a first session as a new user would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from support.process import environment

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, without the page: that takes npm, and has tests of its own."""
    place = tmp_path_factory.mktemp("dist")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(place)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return place / done.stdout.strip().splitlines()[-1]


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"ahpkit"}
    assert "ahpkit/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]


def test_an_image_is_built_from_what_git_knows_alone() -> None:
    """`COPY . .` would bring programs of another system along: an environment, or the page's node_modules."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    left_out = {line.removeprefix("**/") for line in lines if not line.startswith("#")}
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()}
    assert {".git", *ignored} - left_out == set()


@pytest.mark.slow
def test_a_first_session_from_the_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """The libraries are those of this environment: nothing is downloaded. The package is the wheel's."""
    place = tmp_path / "env"
    venv.create(place, symlinks=True)
    [packages] = place.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    known = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (packages / "libraries.pth").write_text(f"{known}\n")
    ours = {**environment(tmp_path), "AHPKIT_AUTO_START": "1", "AHPKIT_CONFIG": str(_config(tmp_path))}
    ahpkit = [str(place / "bin/python"), "-m", "ahpkit"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ahpkit, *arguments], cwd=tmp_path, env=ours, capture_output=True, text=True, timeout=120
        )

    where = subprocess.run(
        [ahpkit[0], "-c", "import ahpkit; print(ahpkit.__file__)"], env=ours, capture_output=True, text=True
    )
    assert where.stdout.startswith(str(packages))
    try:
        answer = run("prompt", "hello")
        assert (answer.returncode, "You said" in answer.stdout) == (0, True), answer.stderr
        [host] = json.loads(run("status", "--json").stdout)
        assert host["agents"] == ["demo"]
    finally:
        assert run("down", "--all").returncode == 0


def test_make_goes_on_where_ctrl_c_left_half_an_environment(tmp_path: Path) -> None:
    """The environments are stand-ins: a real one takes ten seconds."""
    programs = {"old": "exit 1", "new": "exit 0", "python": 'test "$1" != -m || cp new "$4/bin/python"'}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    shutil.copy(tmp_path / "old", tmp_path / ".venv/bin/python")
    command = ["make", "-f", str(ROOT / "Makefile"), ".venv/.pip", "PYTHON=./python"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, (tmp_path / ".venv/.pip").exists()) == (0, True), done.stderr


def test_make_leaves_no_environment_of_a_python_that_is_too_old(tmp_path: Path) -> None:
    """It would be used for ever, also when the next attempt names a newer Python."""
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\n" + f"""exec {sys.executable} -c "import sys; sys.version_info = (3, 10, 0)\n$2"\n""")
    old.chmod(0o755)
    command = ["make", "-f", str(ROOT / "Makefile"), ".venv/.pip", "PYTHON=./python"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "ahpkit needs Python 3.11 or newer; ./python is older" in done.stderr
    assert not (tmp_path / ".venv").exists()


def _config(home: Path) -> Path:
    file = home / "config.toml"
    file.write_text("[host]\nport = 0\n")
    return file


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("AHPKIT_INSTALL"), reason="AHPKIT_INSTALL is not set: installs from the index")
def test_pip_installs_the_wheel_with_all_that_it_needs(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env/bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True, timeout=300)
    done = subprocess.run([str(tmp_path / "env/bin/ahpkit"), "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("ahpkit ")
