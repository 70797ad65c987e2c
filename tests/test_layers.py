"""Imports go one way: platform, wire → protocol → log, dialects → host | client → everything else → cli."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

from support.syntax import dotted, full_name, tree_of, walk

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ahpkit"

PACKAGES = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}

CORE = {"platform", "wire", "protocol", "log", "dialects", "host", "client", "cli", "testing"}

EDGE = PACKAGES - CORE
"""Features, agents and fronts: what `cli` puts together."""

FEATURE = {"platform", "protocol", "wire", "host", "tools", "http"}
"""What a package at the edge may import that has no row of its own below: a new feature, for example."""

ALLOWED: dict[str, set[str]] = {
    "platform": {"platform"},
    "wire": {"wire"},
    "protocol": {"protocol", "wire"},
    "log": {"platform", "protocol", "wire", "log"},
    "authoring": {"protocol", "wire", "authoring"},
    "dialects": {"protocol", "wire", "dialects"},
    "host": {"platform", "protocol", "wire", "log", "dialects", "tools", "host"},
    "client": {"authoring", "platform", "protocol", "wire", "dialects", "client"},
    "transports": {"platform", "protocol", "wire", "transports"},
    "agents": {"authoring", "platform", "protocol", "wire", "host", "tools", "agents", "transports"},
    "customizations": {"platform", "protocol", "wire", "host", "tools", "customizations"},
    "http": {"protocol", "wire", "http", "transports"},
    "canvas": {
        "authoring",
        "platform",
        "protocol",
        "wire",
        "host",
        "tools",
        "canvas",
        "http",
        "transports",
    },
    "cli": {"platform", "protocol", "wire", "log", "dialects", "host", "client", "cli", "testing"} | EDGE,
    "testing": {"platform", "protocol", "wire", "log", "dialects", "host", "client", "testing"} | EDGE,
    "changes": {"platform", "protocol", "wire", "host", "tools", "changes"},
    "web": {"platform", "protocol", "wire", "client", "http", "transports", "web"},
    "telemetry": {"protocol", "host", "telemetry"},
    "tools": {"protocol", "wire", "tools"},
    "mcp": {"platform", "protocol", "wire", "host", "tools", "agents", "mcp", "transports"},
}
"""What each package may import of the others. The version, `ahpkit` itself, anyone may."""

EXCEPTIONS = {
    ("client/connect.py", "transports"),  # the one door of the client to real transports
}


def module_name(path: Path) -> str:
    """The dotted name of a module of ours."""
    parts = ("ahpkit", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported(path: Path) -> list[str]:
    """The modules that a module imports, at any depth: relative, dynamic and for type checking only, too."""
    return list(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]
    for node in walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            source = ".".join(filter(None, (base, node.module))) if node.level else node.module or ""
            names = (f"{source}.{alias.name}" for alias in node.names)
            yield from (name if is_module(name) else source for name in names)
        elif isinstance(node, ast.Call) and is_dynamic_import(node, tree_of(path)) and (name := literal(node)):
            yield name


@cache
def is_module(name: str) -> bool:
    place = SOURCE.parent.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def reaches_unseen(node: ast.AST, tree: ast.Module) -> bool:
    """Whether a module may be reached here without an import: in the table of loaded modules, or by code in a text."""
    match node:
        case ast.Attribute():
            return full_name(node, tree) == "sys.modules"
        case ast.Call(func=func):
            return full_name(func, tree).removeprefix("builtins.") in ("exec", "eval")
        case _:
            return False


@pytest.mark.parametrize(
    ("line", "is_unseen"),
    [
        ('sys.modules["ahpkit.host"]', True),
        ('loaded.modules["ahpkit.host"]', True),
        ('exec("import ahpkit.host")', True),
        ("sys.path", False),
        ("connection.exec(1)", False),
    ],
)
def test_a_module_that_is_reached_without_an_import_is_seen(line: str, is_unseen: bool) -> None:
    tree = ast.parse(f"import sys\nimport sys as loaded\n{line}")
    assert any(reaches_unseen(node, tree) for node in walk(tree)) is is_unseen


def is_dynamic_import(call: ast.Call, tree: ast.Module) -> bool:
    return full_name(call.func, tree).rpartition(".")[2] in ("import_module", "__import__", "resolve_name")


def literal(call: ast.Call) -> str | None:
    """The module that a dynamic import names, if the code says it: as an absolute name, in the first argument."""
    match call.args:
        case [ast.Constant(value=str(name)), *_] if not name.startswith("."):
            return name.partition(":")[0]
        case _:
            return None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('load("ahpkit.host")', "ahpkit.host"),
        ('resolve_name("ahpkit.host.host:Host")', "ahpkit.host.host"),
        ('load(".host", "ahpkit")', None),
        ('load(name="ahpkit.host")', None),
        ("load(name)", None),
    ],
)
def test_a_dynamic_import_is_seen_under_any_name(line: str, name: str | None) -> None:
    tree = ast.parse(f"from importlib import import_module as load\nfrom pkgutil import resolve_name\n{line}")
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and is_dynamic_import(node, tree)]
    assert [literal(call) for call in calls] == [name]


def imports(path: Path) -> Iterator[str]:
    """The packages of ahpkit that a module imports."""
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "ahpkit" and len(parts) > 1 and (SOURCE / parts[1]).is_dir():
            yield parts[1]


ROOMS = (
    ("agent", "limits", "tracing", "owner_file", "states", "trust", "workers"),
    ("policy",),
    ("config", "feature", "registration"),
    ("spine",),
    ("clients",),
    ("agents",),
    ("turns",),
    ("services", "sessions"),
    ("resources", "terminals"),
    ("composition",),
    ("host",),
)
"""The rooms of the host. One may import its own row and the rows above it."""


def host_imports(path: Path) -> Iterator[str]:
    """The rooms of the host that a module imports."""
    for name in imported(path):
        parts = name.split(".")
        if parts[:2] == ["ahpkit", "host"] and len(parts) > 2:
            yield parts[2]


def test_the_rooms_of_the_host_are_built_on_each_other_in_one_direction() -> None:
    rank = {room: number for number, row in enumerate(ROOMS) for room in row}
    rooms = {
        path.stem for path in (SOURCE / "host").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - {"__init__", "__pycache__"} == rank.keys()
    wrong: set[tuple[str, str]] = set()
    for path in (SOURCE / "host").rglob("*.py"):
        name = path.relative_to(SOURCE / "host")
        own = rank.get(name.parts[0].removesuffix(".py"), len(ROOMS))
        wrong |= {(name.as_posix(), room) for room in host_imports(path) if rank[room] > own}
    assert sorted(wrong) == []


UNTYPED = re.compile(r"\b(dict|Mapping)\[str, (Any|object)\]|\b(JsonObject|Params|Any)\b")
"""How code says that something may have any shape. Imports count, too."""

MOST_UNTYPED = 15
"""How often the host may say so in a thousand lines. Actions, states, commands and results have a type in `protocol`;
`_meta`, settings, what agents remember and the params of extensions really are free-form. So are tables of functions
with different parameters."""


def test_the_host_says_of_most_objects_what_they_are() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "host").rglob("*.py"))
    assert len(UNTYPED.findall(text)) * 1000 / text.count("\n") < MOST_UNTYPED


def test_modules_of_the_host_do_not_import_each_other_in_a_circle() -> None:
    modules = {path: module_name(path) for path in (SOURCE / "host").rglob("*.py")}
    graph = {
        name: {one for one in imported(path) if one in modules.values()} - {name} for path, name in modules.items()
    }
    while leaves := {name for name, needed in graph.items() if not needed & graph.keys()}:
        for leaf in leaves:
            del graph[leaf]
    assert sorted(graph) == []


def wired_late(tree: ast.Module) -> Iterator[str]:
    """Where a constructor lets a function use a part that is made later, and where somebody else's attribute is set."""
    for function in [node for node in walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]:
        made = {dotted(name): name.lineno for node in walk(function) for name in _targets(node)}
        yield from (f"{line}: {name}" for name, line in made.items() if name.count(".") > name.startswith("self."))
        yield from (f"{node.lineno}: __dict__" for node in walk(function) if _is_dict_of(node))
        yield from (f"{call.lineno}: setattr" for call in walk(function) if isinstance(call, ast.Call) and _sets(call))
        for node in walk(function) if function.name == "__init__" else ():
            if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef) and node is not function:
                used = {dotted(name) for name in walk(node)}
                yield from (f"{node.lineno}: {name}" for name in used if made.get(name, 0) > node.lineno)


def _is_dict_of(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def _sets(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] in ("setattr", "__setattr__")


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            return [one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            return [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.optional_vars for item in items if item.optional_vars is not None]
        case _:
            return []


@pytest.mark.parametrize("name", ["host/agents.py", "host/composition.py", "host/host.py", "cli/assembly.py"])
def test_nothing_is_given_to_a_part_after_it_was_made(name: str) -> None:
    assert list(wired_late(tree_of(SOURCE / name))) == []


@pytest.mark.parametrize(
    ("body", "is_late"),
    [
        ("a = A(lambda: b.go())\n b = B()", True),
        ("self.a = A(lambda: self.b.go())\n self.b = B()", True),
        ("a.b = B()", True),
        ("self.a.b = B()", True),
        ("setattr(self.a, 'b', B())", True),
        ("self.a.__dict__.update(b=B())", True),
        ("for self.a.b in (B(),): pass", True),
        ("with B() as self.a.b: pass", True),
        ("b = B()\n a = A(lambda: b.go())", False),
        ("self.a = A(self.b)", False),
    ],
)
def test_a_part_that_is_wired_late_is_seen(body: str, is_late: bool) -> None:
    assert (list(wired_late(ast.parse(f"def __init__(self):\n {body}"))) != []) is is_late


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_package_imports_only_what_is_to_its_left(package: str) -> None:
    allowed = ALLOWED.get(package, FEATURE | {package})
    wrong: set[tuple[str, str]] = set()
    for path in (SOURCE / package).rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        wrong |= {(name, target) for target in imports(path) if target not in allowed}
    assert sorted(wrong - EXCEPTIONS) == []


UNKNOWABLE = {
    "agents/__init__.py",  # imports its own modules when their names are used
    "agents/python.py",  # imports the function that a user names
    "canvas/__init__.py",  # imports its own modules when their names are used
    "cli/main.py",  # imports the module of the command that runs
    "protocol/__init__.py",  # imports its own modules when their names are used
}


def test_only_known_places_import_what_nobody_can_know_before() -> None:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in walk(tree_of(path)):
            is_unknown = isinstance(node, ast.Call) and is_dynamic_import(node, tree_of(path)) and literal(node) is None
            if is_unknown or reaches_unseen(node, tree_of(path)):
                found.add(path.relative_to(SOURCE).as_posix())
    assert found == UNKNOWABLE


def test_every_module_says_what_it_is_in_its_first_line() -> None:
    trees = {path.relative_to(SOURCE).as_posix(): tree_of(path) for path in SOURCE.rglob("*.py")}
    assert [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def test_a_module_of_more_than_500_lines_says_why() -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    long = [name for name, text in texts.items() if text.count("\n") > 500]
    assert [name for name in long if "long because" not in (ast.get_docstring(ast.parse(texts[name])) or "")] == []


WRITING = re.compile(r"transport\.(write|part|frame|drain)\b")

PAST_OUTLET = re.compile(r"(?<!outlet)(?<!receiver)\.write\(")
"""How code that knows clients would write to a transport of another name. A receiver of the fan-out is an outlet."""


def test_everything_that_a_client_gets_leaves_through_its_outlet() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (SOURCE / "host").rglob("*.py")}
    knows_clients = {path for path in texts if path.parent.name in ("clients", "spine")}
    writing = {
        path.relative_to(SOURCE).as_posix()
        for path, text in texts.items()
        if WRITING.search(text) or (path in knows_clients and PAST_OUTLET.search(text))
    }
    assert writing == {"host/clients/outlet.py"}


UNGATED = {
    "canvas/pages.py": "a page has a secret address, and a change needs a key that only the page contains",
    "http/front.py": "the health check says nothing but that the host answers",
    "web/page.py": "the login page and the files of the page have nothing private; the rest needs a device",
}
"""Modules with routes that need no token, and what protects them instead."""


def test_routes_without_the_token_are_known() -> None:
    access = re.compile(r"""\.(PUBLIC|DEVICE)\b|Access[\[(]["'](PUBLIC|DEVICE|public|device)""")
    modules = [path for path in SOURCE.rglob("*.py") if access.search(path.read_text(encoding="utf-8"))]
    assert {path.relative_to(SOURCE).as_posix() for path in modules} - {"http/router.py"} == UNGATED.keys()
