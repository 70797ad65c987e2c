"""The package as a whole: its public names, and what importing it loads."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import ahpkit.protocol

FORBIDDEN = {
    "asyncio",
    "concurrent",
    "multiprocessing",
    "threading",
    "queue",
    "selectors",
    "signal",
    "socket",
    "socketserver",
    "ssl",
    "subprocess",
    "http",
    "urllib",
    "pathlib",
    "shutil",
    "tempfile",
    "glob",
    "fileinput",
    "mmap",
    "sqlite3",
    "logging",
    "jsonschema_rs",
    "yaml",
    "websockets",
}
"""Modules of tasks, threads, sockets, processes and files. msgspec brings the C part `_socket` (through
typing_extensions) and `platform`, but none of these."""

PROGRAM = """
import sys
before = set(sys.modules)
import importlib, {modules}
for name in importlib.import_module("ahpkit.protocol").__all__:
    getattr(sys.modules["ahpkit.protocol"], name)
print(*sorted(name.partition(".")[0] for name in set(sys.modules) - before))
"""


def modules() -> list[str]:
    return [info.name for info in pkgutil.walk_packages(ahpkit.protocol.__path__, "ahpkit.protocol.")]


def loaded_by(*names: str) -> set[str]:
    program = PROGRAM.format(modules=", ".join(names))
    run = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(run.stdout.split())


def test_importing_the_protocol_loads_no_tasks_threads_sockets_or_files() -> None:
    assert not loaded_by("ahpkit.protocol", *modules()) & FORBIDDEN


def test_the_check_would_notice() -> None:
    assert {"asyncio", "socket", "selectors"} <= loaded_by("ahpkit.protocol", "asyncio") & FORBIDDEN


def test_importing_the_package_alone_loads_none_of_its_parts() -> None:
    program = (
        "import sys, ahpkit.protocol.errors; print(*[m for m in sys.modules if 'msgspec' in m or 'registry' in m])"
    )
    run = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == []


def test_the_public_names_are_sorted_and_all_there() -> None:
    names = ahpkit.protocol.__all__
    assert len(names) == len(set(names))
    assert all(getattr(ahpkit.protocol, name) is not None for name in names)


def test_the_public_names_are_those_of_the_parts() -> None:
    parts = ["errors", "version", "registry", "channels", "validation"]
    expected = {name for part in parts for name in importlib.import_module(f"ahpkit.protocol.{part}").__all__}
    assert set(ahpkit.protocol.__all__) == expected | {"Rope", "EffectiveEnablement", "effective"}


def test_another_name_is_an_attribute_error() -> None:
    assert not hasattr(ahpkit.protocol, "Hologram")


def test_every_module_says_what_is_public() -> None:
    for name in modules():
        module = importlib.import_module(name)
        if not hasattr(module, "__path__"):
            assert all(hasattr(module, public) for public in module.__all__), name
            assert module.__doc__, name
