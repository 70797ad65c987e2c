"""The programs in `examples/`, as modules."""

from __future__ import annotations

import ast
import importlib.util
import itertools
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shows(block: str, source: str) -> bool:
    """Whether a block of a page is code of an example, with imports that the example has, too."""
    lines = block.splitlines(keepends=True)
    imports = list(itertools.takewhile(lambda line: line.startswith(("import ", "from ")) or not line.strip(), lines))
    code = "".join(lines[len(imports) :])
    return code in source and _imported("".join(imports)) <= _imported(source)


def _imported(code: str) -> set[str]:
    """What a text imports, by whole names."""
    found = ast.parse(code).body
    modules = {one.name for node in found if isinstance(node, ast.Import) for one in node.names}
    names = {f"{node.module}.{one.name}" for node in found if isinstance(node, ast.ImportFrom) for one in node.names}
    return modules | names


__all__ = ["EXAMPLES", "load_example", "shows"]
