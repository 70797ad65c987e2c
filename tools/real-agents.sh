#!/bin/sh
# Installs agents of other people into a scratch directory and runs the tests that need them. Takes npm and Python 3.13.
#   AHPKIT_REAL_AGENTS  where to install; kept between runs   (default: build/agents)
set -eu
cd "$(dirname "$0")/.."
where="${AHPKIT_REAL_AGENTS:-$PWD/build/agents}"
mkdir -p "$where"
where="$(cd "$where" && pwd)"

packages() {  # The lists are in the test, beside the code that uses them.
    .venv/bin/python - "$1" <<'PYTHON'
import ast, pathlib, sys
tree = ast.parse(pathlib.Path("tests/agents/acp/test_real_agents.py").read_text())
for node in tree.body:
    if isinstance(node, ast.Assign) and node.targets[0].id == sys.argv[1]:
        print(" ".join(ast.literal_eval(node.value)))
PYTHON
}

if command -v npm >/dev/null; then
    # shellcheck disable=SC2046
    npm install --prefix "$where" --no-fund --no-audit --loglevel=error $(packages NPM)
else
    echo "npm is not there: the agents that need it are skipped" >&2
fi
if [ ! -x "$where/venv/bin/python" ]; then
    for python in python3.14 python3.13; do
        if command -v "$python" >/dev/null && "$python" -m venv "$where/venv"; then break; fi
    done
fi
if [ -x "$where/venv/bin/python" ]; then
    # shellcheck disable=SC2046
    "$where/venv/bin/python" -m pip install --quiet $(packages PYPI)
fi
AHPKIT_REAL_AGENTS="$where" .venv/bin/pytest -q -ra tests/agents/acp/test_real_agents.py "$@"
