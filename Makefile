# Two commands do everything on a machine that has only Python 3.11+:
#   make run    create the environment, install what running needs, start the host with the demo agent
#   make test   the same environment and the tools, then lint, types and the test suite
# make dist builds the wheel and the sdist.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PIP := $(VENV)/.pip
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready

.PHONY: run dist page test test-all checks lint types unit slow web test-agents test-vscode test-pages soak bench docs clean

# The host listens at once; the page follows when it had to be built.
run: $(INSTALLED)
	@($(BIN)/python tools/page.py --soft || true) & exec $(BIN)/ahpkit serve $(ARGS)

dist: $(PIP)
	@$(INSTALL) "build>=1.2"
	$(BIN)/python -m build --outdir dist

page: $(INSTALLED)
	$(BIN)/python tools/page.py

# Types are checked by one core; beside them the page's tests run, then the test suite. When one of them fails, the other
# one still runs to its end.
test: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 checks unit

checks: lint types web

test-all: test slow test-pages

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

# Tests are compiled once, also where somebody switched that off: eleven thousand of them take a while.
unit: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -q -n auto --dist worksteal -m "not slow"

# The rest of the suite: what is long because it shows something again and again, with a great deal, or with a whole wheel.
slow: $(READY)
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -q -n auto --dist worksteal -m slow

# The page's own tests, where there is npm.
web: $(READY)
	$(BIN)/python tools/page_tests.py

# The page in a browser, where there is one.
test-pages: $(READY)
	$(BIN)/python tools/page_tests.py --browser

# VS Code itself in Chromium against our host (npm and Chromium).
test-vscode: $(READY)
	tools/vscode.sh $(ARGS)

# Real agents of other people, installed into a scratch directory (npm and PyPI).
test-agents: $(READY)
	tools/real-agents.sh

# Breaks real hosts for ten minutes, or ARGS="--minutes 60", looks for new examples of the properties, kills one often,
# reads a directory of 100,000 files.
soak: $(READY)
	PYTHONPATH=tests $(BIN)/python -m soak $(ARGS)
	AHPKIT_KILL_ROUNDS=50 $(BIN)/pytest -q -o timeout=900 tests/e2e/test_kill.py
	AHPKIT_MANY_FILES=100000 $(BIN)/pytest -q -o timeout=900 tests/customizations/test_discovery.py -k anybody_has

bench: $(READY)
	$(BIN)/python bench/protocol.py --quick
	$(BIN)/python bench/log.py --quick
	$(BIN)/python bench/host.py --quick
	$(BIN)/python bench/agents.py --quick
	$(BIN)/python bench/mcp.py --quick
	$(BIN)/python bench/customizations.py --quick
	$(BIN)/python bench/changesets.py --quick
	$(BIN)/python bench/growth.py --quick
	$(BIN)/python bench/migration.py --quick
	$(BIN)/python bench/generations.py --quick

# The documentation as a site that can be read offline: site/index.html.
docs: $(READY)
	$(BIN)/python tools/requirements.py
	$(INSTALL) --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The documentation is in site/index.html"

# An environment without pip is what Ctrl-C left of an earlier attempt. One of an old Python is not even made: it would stay.
$(PIP):
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 11) and sys.exit("ahpkit needs Python 3.11 or newer; $(PYTHON) is older. Name another one, such as: make run PYTHON=python3.13")'
	@echo "Making the environment in $(VENV) and installing ahpkit into it; this takes a minute, once …"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@touch $(PIP)

# Compiling all that the libraries bring would take a quarter of the time; Python compiles what is used, once.
$(INSTALLED): pyproject.toml | $(PIP)
	@$(INSTALL) --no-compile --editable .
	@touch $(INSTALLED)

# In one go with what running needs: pip need not find that out twice.
$(READY): pyproject.toml | $(PIP)
	@echo "Installing the tools for tests …"
	@$(INSTALL) --upgrade "pip>=25.1"
	@$(INSTALL) --editable . --group dev
	@touch $(INSTALLED) $(READY)

clean:
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis
