#!/bin/sh
# Installs agents and MCP servers of other people into a scratch directory and runs the tests that need them.
#   tools/real-agents.sh [all]   every agent there is a test for: takes npm, Python 3.13 and some minutes
#   tools/real-agents.sh few     those that npm installs in half a minute; without npm or its registry there are none
#   AHPKIT_REAL_AGENTS           where to install; kept between runs   (default: build/agents)
set -eu
cd "$(dirname "$0")/.."
which="${1:-all}"
where="${AHPKIT_REAL_AGENTS:-$PWD/build/agents}"
mkdir -p "$where"
where="$(cd "$where" && pwd)"

packages() {  # The lists are in the tests, beside the code that uses them.
    .venv/bin/python - "$@" <<'PYTHON'
import ast, pathlib, sys
tree = ast.parse(pathlib.Path("tests/support/real_agents.py").read_text())
for node in tree.body:
    if isinstance(node, ast.Assign) and node.targets[0].id in sys.argv[1:]:
        print(" ".join(ast.literal_eval(node.value)))
PYTHON
}

from_npm() {
    # shellcheck disable=SC2046
    timeout 600 npm install --prefix "$where" --no-fund --no-audit --loglevel=error $(packages "$@")
}

from_pypi() {
    for python in python3.14 python3.13 .venv/bin/python; do
        if "$python" -c "" 2>/dev/null; then break; fi
    done
    for package in $(packages "$@"); do
        [ ! -e "$where/venv-$package/installed" ] || continue
        "$python" -m venv "$where/venv-$package" && "$where/venv-$package/bin/python" -m pip install --quiet "$package" &&
            touch "$where/venv-$package/installed" ||
            echo "$package cannot be installed here: its tests are skipped" >&2
    done
}

tests() {
    AHPKIT_REAL_AGENTS="$where" .venv/bin/pytest -q -n 2 "$@" \
        tests/agents/acp/test_real_agents.py tests/agents/acp/test_real_agents_tools.py tests/mcp_servers/test_real_servers.py
}

if [ "$which" = few ]; then
    if ! command -v npm >/dev/null || ! from_npm FEW SERVERS; then
        echo "agents of other people cannot be installed here: their tests are skipped" >&2
        exit 0
    fi
    from_pypi PYPI_SERVERS
else
    from_npm FEW NPM SERVERS
    from_pypi PYPI PYPI_SERVERS
fi
# What fails is tried once more, alone: these programs hang now and then by themselves.
tests || tests --last-failed --last-failed-no-failures none
