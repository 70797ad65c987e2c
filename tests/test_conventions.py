"""Promises about the code that no type checker proves: exceptions have reasons, and tests can fail."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from support import for_each, requirement
from support.syntax import dotted, forget, full_name, tree_of, walk

TOP = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "tools", "bench", "examples")

IGNORE = re.compile(r"# (?:type|pyright): ignore(?!\[[\w, -]+\]  # \S)|# noqa(?!: [A-Z0-9, ]+  # \S)")
"""A place where something is not checked, without the rule that is broken and the reason."""

PATCHING = {"stuck_host.py"}
"""Programs that put a fault into a real one before they run it."""


@pytest.fixture(autouse=True, scope="module")
def _trees() -> Iterator[None]:
    """All trees are millions of objects, and none can go before the end: looking for garbage takes half of the time."""
    gc.disable()
    yield
    forget()
    gc.enable()
    called.cache_clear()
    looks.cache_clear()


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (TOP / folder).rglob("*.py")


def with_words(words: str, *folders: str) -> Iterator[Path]:
    """Sources in which something like this stands: the others need not be parsed."""
    pattern = re.compile(words)
    return (path for path in sources(*folders) if pattern.search(path.read_text(encoding="utf-8")))


def test_every_unchecked_place_names_the_rule_and_the_reason() -> None:
    found: list[str] = []
    for path in sources(*FOLDERS):
        lines = path.read_text(encoding="utf-8").splitlines() if path != Path(__file__).resolve() else []
        found += [f"{path.relative_to(TOP)}:{n}" for n, line in enumerate(lines, 1) if IGNORE.search(line)]
    assert found == []


def is_ours_to_give(name: str) -> bool:
    """Whether a name is private or a constant: such a thing is given where it is used, for example to a constructor."""
    return name.startswith("_") or name.isupper()


PATCHES = r"\b(?:setattr|patch|object|delattr|multiple|setitem|dict)\(|(?<!self)\.(?:_\w*|[A-Z][A-Z0-9_]*) = "
"""What stands wherever a private name or a constant is replaced."""


def patched(path: Path) -> Iterator[str]:
    """The private names and constants of ahpkit that a test replaces."""
    tree = tree_of(path)
    modules = {name for node in walk(tree) for name in _imported_modules(node)}
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called in ("setattr", "patch", "object", "delattr", "multiple", "setitem", "dict"):
                yield from _patched_by_call(node, modules)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and _is_of(target.value, modules):
                    yield target.attr


def _imported_modules(node: ast.AST) -> Iterator[str]:
    """Names of modules and classes of ahpkit in this file."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ahpkit"):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.asname or alias.name for alias in node.names if alias.name.startswith("ahpkit"))


def _patched_by_call(call: ast.Call, modules: set[str]) -> Iterator[str]:
    match call.args:
        case [ast.JoinedStr(), *_]:
            yield "_made_up"  # A name that is put together cannot be looked at.
        case [ast.Constant(value=str(target)), *_] if target.startswith("ahpkit."):
            yield from [target.rpartition(".")[2], *(one.arg for one in call.keywords if one.arg)]
        case [target, ast.Constant(value=str(name)), *_] if _is_of(target, modules):
            yield name
        case [target, *_] if _is_of(target, modules):
            yield from (one.arg for one in call.keywords if one.arg)
        case _:
            pass


def _is_of(target: ast.expr, names: set[str]) -> bool:
    """Whether it is one of these, or an attribute of one."""
    return any(dotted(target) == name or dotted(target).startswith(f"{name}.") for name in names)


@pytest.mark.parametrize(
    "line",
    [
        'monkeypatch.setattr("ahpkit.a._B", 1)',
        'patch.setattr(a, "LIMIT", 1)',
        "a.LIMIT = 1",
        "limits.LIMIT = 1",
        'patch.setattr(Store, "_LIMIT", 1)',
        'patch.setattr(a.b, "LIMIT", 1)',
        "patch.multiple(a, LIMIT=1)",
        'patch.multiple("ahpkit.a", LIMIT=1)',
        "patch.dict(a.__dict__, LIMIT=1)",
        'monkeypatch.setitem(a.__dict__, "LIMIT", 1)',
    ],
)
def test_a_patched_limit_is_seen(line: str, tmp_path: Path) -> None:
    test = tmp_path / "test_a.py"
    test.write_text(f"import ahpkit.limits as limits\nfrom ahpkit import Store, a\n{line}\n")
    assert re.search(PATCHES, line)
    assert any(map(is_ours_to_give, patched(test)))


def test_no_test_replaces_a_private_name_or_a_constant_of_ahpkit() -> None:
    found = {
        f"{path.relative_to(TOP)}: {name}"
        for path in with_words(PATCHES, "tests", "bench")
        if path.name not in PATCHING
        for name in patched(path)
        if is_ours_to_give(name)
    }
    assert sorted(found) == []


CUTS_FILE_URIS = re.compile(r"""\b(?:removeprefix|replace|partition|split|sub|len|lstrip|find|index)\(r?["']\^?file:""")
FILE_URIS = re.compile(r"""["']file:|scheme\b[^\n]*["']file["']|["']file["'][^\n]*\bscheme""")
TAKES_URIS_APART = re.compile(r"\b(?:unquote|unquote_to_bytes|url2pathname|urlsplit|urlparse)\(")
FILE_URI_READERS = {
    "files.py": "the reader",
    "subject.py": "approval rules look at every path that a text may mean",
    "resources.py": "a client asks its editor for a file by the whole URI; it takes only its own URIs apart",
}


def reads_file_uris(source: str) -> bool:
    return bool(CUTS_FILE_URIS.search(source) or (FILE_URIS.search(source) and TAKES_URIS_APART.search(source)))


def test_no_module_cuts_a_path_out_of_a_file_uri_by_itself() -> None:
    """`ahpkit.platform.files` does it: percent signs, hosts and other systems are easy to forget."""
    found = {path.name for path in sources("src") if reads_file_uris(path.read_text(encoding="utf-8"))}
    assert found == FILE_URI_READERS.keys()


@pytest.mark.parametrize(
    "source",
    [
        'path = uri.removeprefix("file://")',
        'if uri.startswith("file:"):\n    return unquote(urlsplit(uri).path)',
        'parts = urlsplit(uri)\nif parts.scheme == "file":\n    return parts.path',
        'if text[:5].lower() == "file:":\n    return url2pathname(text[5:])',
    ],
)
def test_every_way_to_read_a_file_uri_is_noticed(source: str) -> None:
    assert reads_file_uris(source)


TOO_BROAD = {"Exception", "BaseException"}
"""Expecting one of these holds for every mistake in the test itself."""


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


@cache
def called(node: ast.AST) -> set[str]:
    """The last part of the name of everything that is called in a function."""
    calls = [each.func for each in walk(node) if isinstance(each, ast.Call)]
    methods = {each.attr for each in calls if isinstance(each, ast.Attribute)}
    return methods | {each.id for each in calls if isinstance(each, ast.Name)}


@cache
def looks(node: ast.AST) -> bool:
    """Whether a function itself decides that something is wrong."""
    return "raises" in called(node) or any(isinstance(each, (ast.Assert, ast.Raise)) for each in walk(node))


def checks() -> Iterator[str]:
    """Checks of ahpkit that return nothing: they can only raise."""
    for path in with_words("def check_", "src"):
        for node in walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_") and node.returns is not None:
                yield from {node.name} if ast.unparse(node.returns) == "None" else ()


def helpers() -> set[str]:
    """Functions that decide that something is wrong, or call one that does."""
    calls: dict[str, set[str]] = {}
    found = set(checks())
    for path in sources("tests"):
        for node in walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                calls.setdefault(node.name, set()).update(called(node))
                found |= {node.name} if looks(node) else set()
    while more := {name for name, names in calls.items() if names & found} - found:
        found |= more
    return found


def always_true(test: ast.expr) -> bool:
    """Whether an assertion holds whatever the program does."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(map(always_true, values))
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return ast.dump(left) == ast.dump(right) and not isinstance(left, ast.Call)
        case ast.Compare(left=ast.Call(func=ast.Name(id="len")), ops=[ast.GtE()], comparators=[ast.Constant(value=0)]):
            return True
        case ast.Tuple(elts=[_, *_]) | ast.JoinedStr() | ast.Lambda() | ast.GeneratorExp():
            return True
        case _:
            return False


def _kinds(kind: ast.expr) -> set[str]:
    """The exceptions that a handler takes."""
    return {dotted(one) for one in (kind.elts if isinstance(kind, ast.Tuple) else [kind])}


def never_reached(node: ast.AST) -> Iterator[str]:
    """The statements behind one that leaves the block."""
    block: object = getattr(node, "body", None)  # That of a lambda is an expression.
    for leaving, following in pairwise(cast("list[ast.stmt]", block)) if isinstance(block, list) else ():
        if isinstance(leaving, ast.Return | ast.Raise | ast.Break | ast.Continue):
            yield f"{following.lineno}: this is never reached"


def cannot_fail(function: ast.AST) -> Iterator[str]:
    for node in walk(function):
        yield from never_reached(node)
        if not isinstance(node, (ast.For, ast.If, ast.Assert, ast.Call, ast.ExceptHandler)):
            continue
        match node:
            case ast.For(iter=ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[])):
                yield f"{node.lineno}: nothing is looked at in this loop"
            case ast.If(test=ast.Constant(value=value)) if not value:
                yield f"{node.lineno}: this is never looked at"
            case ast.Assert(test=test) if always_true(test):
                yield f"{node.lineno}: `{ast.unparse(test)}` is always true"
            case ast.Call(func=func, args=[kind, *_]) if dotted(func) == "pytest.raises" and dotted(kind) in TOO_BROAD:
                yield f"{node.lineno}: every mistake raises {dotted(kind)}"
            case ast.Call(func=func, args=kinds) if dotted(func).rpartition(".")[2] == "suppress" and {
                dotted(kind) for kind in kinds
            } & {*TOO_BROAD, "AssertionError"}:
                yield f"{node.lineno}: what fails here is not noticed"
            case ast.ExceptHandler(type=kind) if (kind is None or _kinds(kind) & {*TOO_BROAD, "AssertionError"}) and (
                not looks(node)
            ):
                yield f"{node.lineno}: what fails in this `try` is not noticed"
            case _:
                pass


@pytest.mark.parametrize(
    "line",
    [
        "assert True",
        "assert x == 1 or True",
        "assert (x, 'message')",
        "assert (y for y in x)",
        "assert x == x",
        "assert len(x) >= 0",
        "for y in x:\n  continue\n  assert y",
        "for y in []: assert y",
        "if False: assert x",
        "pytest.raises(Exception)",
        "suppress(AssertionError)",
        "try: assert x\nexcept Exception: pass",
        "try: assert x\nexcept: pass",
    ],
)
def test_a_line_that_cannot_fail_is_seen(line: str) -> None:
    assert list(cannot_fail(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "assert x or y",
        "assert x, True",
        "assert x() == x()",
        "pytest.raises(ValueError)",
        "assert not True",
        "try: x()\nexcept Exception as error: assert error",
    ],
)
def test_a_line_that_can_fail_is_left_alone(line: str) -> None:
    assert not list(cannot_fail(ast.parse(line)))


def test_a_test_of_a_table_names_each_row_that_is_wrong_and_needs_rows() -> None:
    @for_each(["a", "b", "c"])
    def checked(row: str) -> None:
        assert row == "b", f"no {row}"

    with pytest.raises(AssertionError, match=r"(?s)^2 of 3 rows are wrong\n\na: .*no a.*\n\nc: .*no c"):
        checked()
    with pytest.raises(AssertionError, match=r"^0 of 0 rows"):
        for_each(list[str]())(lambda row: None)()


def test_every_test_can_fail() -> None:
    deciding = helpers()
    found: list[str] = []
    for path in sources("tests"):
        if not path.name.startswith("test_"):
            continue
        for test in functions_of(path):
            found += [f"{path.relative_to(TOP)}:{line}" for line in cannot_fail(test)]
            if not looks(test) and not called(test) & deciding:
                found.append(f"{path.relative_to(TOP)}:{test.lineno}: {test.name} decides nothing")
    assert found == []


def test_the_name_of_a_test_is_a_sentence() -> None:
    """A sentence needs three words, such as `nobody_listens_there`; a topic mostly has fewer."""
    found = [
        f"{path.relative_to(TOP)}: {test.name}"
        for path in sources("tests")
        if path.name.startswith("test_")
        for test in functions_of(path)
        if test.name.count("_") < 3
    ]
    assert found == []


CLOCKS_AND_IDS = {
    *("time.time", "time.time_ns", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today"),
    *("datetime.datetime.today", "time.ctime", "time.localtime", "time.gmtime", "time.strftime"),
    *("uuid.uuid1", "uuid.uuid4", "random.random", "random.choice", "random.randint", "random.uniform"),
    *("random.getrandbits", "random.randbytes", "random.randrange", "random.sample", "random.shuffle"),
}
"""Calls whose result nobody can foresee."""

EDGES = ("cli", "client", "testing", "web")
"""Packages at the edge: they make ids and read the clock for a person or a program."""

GIVEN_HERE = {"host/host.py", "log/sqlite.py", "platform/processes.py"}
"""Where the host's clock and ids come from, the name of a damaged file, and the mark of a process."""


@requirement("gen:turn:no-clock")
def test_time_and_ids_are_passed_in() -> None:
    found: set[str] = set()
    for path in with_words(r"(?:import|from).*\b(?:time|datetime|uuid|random)\b", "src"):
        name = path.relative_to(TOP / "src" / "ahpkit").as_posix()
        for node in walk(tree_of(path)):
            if isinstance(node, ast.Call) and full_name(node.func, tree_of(path)) in CLOCKS_AND_IDS:
                found |= {name} if name.partition("/")[0] not in EDGES else set()
    assert found == GIVEN_HERE


# -- tasks -------------------------------------------------------------------------------------------------------------

MAKES_TASK = {
    *("asyncio.create_task", "asyncio.ensure_future", "loop.create_task"),
    *("asyncio.Task", "asyncio.run_coroutine_threadsafe"),
}
"""Calls that make a task without an owner. `Tasks.spawn` and task groups own what they run."""

OF_TASKS = r"create_task|ensure_future|\bTask\(|run_coroutine_threadsafe"
"""One of these words is in every file that makes a task."""

LOOPS = {"asyncio.get_running_loop", "asyncio.get_event_loop"}

PROGRAMS = {"acp_agent.py"}
"""Programs whose tasks run as long as they do: `asyncio.run` ends them."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def unowned(tree: ast.Module) -> Iterator[str]:
    """Tasks that neither the function nor the class that makes them ends: nobody awaits or cancels them there."""
    for function, owner in _functions(tree) if _makes_task(tree, tree) else ():
        for statement in walk(function):
            if isinstance(statement, ast.Assign | ast.Expr | ast.Return) and _makes_task(statement, tree):
                names = _keepers(function, statement)
                if not any(_ends(function, name) or (owner is not None and _ends(owner, name)) for name in names):
                    yield f"{statement.lineno}: nobody ends `{ast.unparse(statement)[:80]}`"


def _functions(tree: ast.Module) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """All functions, each with the class that it is a method of."""
    methods = {
        function: owner
        for owner in walk(tree)
        if isinstance(owner, ast.ClassDef)
        for function in owner.body
        if isinstance(function, Function)
    }
    for node in walk(tree):
        if isinstance(node, Function):
            yield node, methods.get(node)


def _makes_task(statement: ast.AST, tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Call) and _called(node, tree) in MAKES_TASK for node in walk(statement))


def _called(call: ast.Call, tree: ast.Module) -> str:
    """The name of what is called; `loop.…` for methods of the event loop."""
    match call.func:
        case ast.Attribute(attr=method, value=ast.Call(func=func)) if full_name(func, tree) in LOOPS:
            return f"loop.{method}"
        case ast.Attribute(attr=method, value=ast.Attribute(attr="loop" | "_loop")):
            return f"loop.{method}"
        case func:
            return full_name(func, tree)


def _keepers(function: Function, statement: ast.stmt) -> set[str]:
    """Where a task is kept: variables, and the sets and mappings into which these are put."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {_base(target) for target in targets}
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr="add" | "append", value=kept), args=[one]):
                if one in walk(statement) or _base(one) in names:
                    names.add(_base(kept))
            case ast.Assign(targets=[ast.Subscript(value=kept)], value=one) if _base(one) in names:
                names.add(_base(kept))
            case _:
                pass
    return names - {""}


def _base(node: ast.expr) -> str:
    """The name of a variable, or of the attribute that holds something."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _base(value)
        case _:
            return ""


def _ends(scope: ast.AST, name: str, *, renamed: bool = False) -> bool:
    """Whether something with this name is awaited or cancelled, also under another name that it gets here."""
    for node in walk(scope):
        match node:
            case ast.Await(value=work) if _names(work, name):
                return True
            case ast.Call(func=ast.Attribute(attr="cancel", value=task)) if _names(task, name):
                return True
            case ast.Call(func=ast.Attribute(attr="push_async_callback"), args=[_, *given]):
                if any(_names(one, name) for one in given):
                    return True
            case ast.Assign(targets=[ast.Name(id=other)], value=value) if not renamed and _names(value, name):
                if _ends(scope, other, renamed=True):
                    return True
            case ast.For(iter=tasks, body=body) if _names(tasks, name):
                if any(".cancel()" in ast.unparse(line) for line in body):
                    return True
            case _:
                pass
    return False


def _names(node: ast.AST, name: str) -> bool:
    return any(name in (getattr(each, "id", None), getattr(each, "attr", None)) for each in walk(node))


@pytest.mark.parametrize(
    ("body", "owned"),
    [
        ("asyncio.create_task(work())", False),
        ("make(work())", False),
        ("asyncio.Task(work())", False),
        ("asyncio.run_coroutine_threadsafe(work(), self._loop)", False),
        ("asyncio.get_running_loop().create_task(work())", False),
        ("self._loop.create_task(work())", False),
        ("self.task = asyncio.create_task(work())", False),
        ("task = asyncio.create_task(work())\n  self.tasks.add(task)", False),
        ("self.task = asyncio.create_task(work())\n def end(self):\n  self.task.cancel()", True),
        ("task = asyncio.ensure_future(work())\n  await asyncio.wait({task})", True),
        ("self.tasks.add(asyncio.create_task(work()))\n def end(self):\n  for one in self.tasks: one.cancel()", True),
    ],
)
def test_a_task_without_an_owner_is_seen(body: str, owned: bool) -> None:
    tree = ast.parse(f"from asyncio import create_task as make\nclass A:\n async def make(self):\n  {body}")
    assert (list(unowned(tree)) == []) is owned


ENDED_BY_HAND = {
    "agents/acp/chat.py": "the watch of an idle agent is ended and begun again with every turn; `aclose` ends the last",
    "agents/acp/session.py": "a cancelled prompt goes on until the agent has answered the cancellation",
    "agents/python.py": "a step in a thread cannot be cancelled; the generator is closed after it",
    "host/turns/runner.py": "a chat that is closed cancels the start of its agent; `aclose` waits for it",
    "mcp/server.py": "the SDK may take a cancellation for its own, so it is repeated",
    "mcp/tokens.py": "a renewal goes on when the caller gives up: its answer may replace the refresh token",
    "platform/pty.py": "a process is watched until it has ended, and its terminal closes it",
    "testing/memory_host.py": "the host ends the connections that it serves",
    "wire/tasks.py": "the owners themselves",
}
"""Modules that make tasks outside a class with an `async with`, and why no owner of `ahpkit.wire.tasks` fits."""


def made_by_hand(tree: ast.Module) -> bool:
    """Whether a task is made directly, and not by a class whose `async with` ends it."""
    made = {node for node in walk(tree) if isinstance(node, ast.Call) and _called(node, tree) in MAKES_TASK}
    for node in walk(tree) if made else ():
        if isinstance(node, ast.ClassDef) and any(getattr(one, "name", "") == "__aexit__" for one in node.body):
            made.difference_update(walk(node))
    return bool(made)


def test_tasks_are_owned_by_an_async_with_unless_there_is_a_reason() -> None:
    """A new module that makes tasks uses an owner of `ahpkit.wire.tasks`, or says here why it cannot."""
    found = {
        path.relative_to(TOP / "src" / "ahpkit").as_posix()
        for path in with_words(OF_TASKS, "src")
        if path.name not in PROGRAMS and made_by_hand(tree_of(path))
    }
    assert found == ENDED_BY_HAND.keys()


@pytest.mark.parametrize(
    ("code", "by_hand"),
    [
        ("async def f():\n task = asyncio.create_task(work())", True),
        ("class A:\n async def f(self):\n  self.task = asyncio.create_task(work())", True),
        ("class A:\n async def __aexit__(self, *exc): ...\n def f(self):\n  asyncio.create_task(work())", False),
        ("async def f():\n async with running(work()): ...", False),
    ],
)
def test_a_task_made_by_hand_is_seen(code: str, by_hand: bool) -> None:
    assert made_by_hand(ast.parse(code)) is by_hand


def test_every_task_has_an_owner_that_ends_it() -> None:
    paths = [path for path in with_words(OF_TASKS, "src") if path.name not in PROGRAMS]
    found = [f"{path.relative_to(TOP)}:{line}" for path in paths for line in unowned(tree_of(path))]
    assert found == []
