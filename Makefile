# Two commands on a fresh machine with Python and make:  make run,  make test.
# PYTHON chooses another interpreter:  make test PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python -m
# Compiled once, also where PYTHONDONTWRITEBYTECODE is set: without it every test run compiles all tests and Tarmac anew.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/bytecode
unexport PYTHONDONTWRITEBYTECODE
BUILT := src/tarmac/web/static/index.html
# The page is built where there are npm and a Node.js that is new enough.
PAGE := $(shell command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' && echo $(BUILT))
AGAIN ?=  # .ci/run: --reruns 2
# Two tests at a time for each core: most of the time they wait for shells.
TOGETHER := -n $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 2)))) --dist loadfile

.PHONY: help run test check web faults fleet ray programs peers allpeers browser editors integrations lint bench clean
.DEFAULT_GOAL := help

help:  ## Show this list
	@echo "Tarmac: real terminals for AI agents."
	@echo
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1 \2/p' Makefile | awk '{ n = $$2; $$1 = $$2 = ""; printf "  make %-8s%s\n", n, $$0 }'

run: .venv/.run  ## Set up what is needed and show Tarmac at work
	@$(if $(PAGE),$(MAKE) --no-print-directory $(PAGE) || echo "make: the page was not built; all else works" >&2)
	@if [ -t 0 ] && [ -t 1 ]; then $(RUN) tarmac demo; else $(RUN) tarmac demo --yes; fi
	@printf '\nOpen a session in a project of yours:  "%s"\n' "$$PWD/.venv/bin/tarmac"

test: lint $(PAGE)  ## Everything CI runs: checks and all the tests, on real shells
	$(RUN) pytest $(AGAIN) $(TOGETHER)

check: lint  ## The quick part, about a minute: checks and unit tests
	TARMAC_QUICK=1 $(RUN) pytest $(AGAIN) $(TOGETHER) -m "not shell and not slow and not peers and not faults and not browser"

faults: .venv/.dev  ## Real faults: full disks, no processes, killed programs; a few minutes, best as root
	$(RUN) pytest $(AGAIN) -m faults $(TOGETHER) tests/faults

fleet: .venv/.dev  ## Terminals on other machines: a real sshd, containers; needs openssh-server
	$(RUN) pytest $(AGAIN) -m fleet tests/fleet

ray: .venv/.ray  ## Terminals on a real Ray cluster of three nodes on this machine, one of them killed; installs Ray, 300 MB
	$(RUN) pytest $(AGAIN) -m ray tests/fleet

integrations: .venv/.dev  ## Harbor and inspect_ai with our terminals: real packages, a scripted model; Python 3.12, a network, minutes
	integrations/test

programs: .venv/.dev  ## Every program that the policy knows, run with hostile words and odd options: half an hour
	$(RUN) pytest $(AGAIN) -m programs $(TOGETHER) tests/policy

peers: .venv/.dev  ## Against programs nobody here wrote, from the registries: minutes, and a network
	$(RUN) pytest $(AGAIN) -m "peers and not allpeers"

allpeers: .venv/.dev  ## The same with more agents: half a gigabyte of Codex and Gemini CLI
	$(RUN) pytest $(AGAIN) -m peers

browser: .venv/.dev web  ## The page in a real browser: needs Chromium and Node.js
	$(RUN) pytest $(AGAIN) -m browser tests/web/browser tests/tools/test_browser_action.py

editors: .venv/.dev  ## Neovim and Emacs drive Tarmac, and are recorded; by hand, with NVIM=, EMACS= and PLUGINS= (docs/acp.md)
	$(RUN) pytest $(AGAIN) -m editors tests/acp/test_editors.py

web: $(BUILT)  ## Build the page; needs Node.js and npm

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(RUN) mypy
	$(BIN)/lint-imports

bench: .venv/.dev  ## Print the benchmark table
	$(RUN) benchmarks

clean:  ## Remove what was set up and cached
	rm -rf web/node_modules src/tarmac/web/static
	rm -rf .venv .peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

# The virtual environment. Its stamps are older than pyproject.toml when it has to be brought up to date.

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "make: Tarmac needs Python 3.11 or newer, and \`$(PYTHON)\` is `$(PYTHON) -V 2>/dev/null || echo not there`" >&2; \
	  echo "  hint: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "make: making .venv …"
	@$(PYTHON) -m venv .venv || { \
	  echo "make: \`$(PYTHON) -m venv\` failed; on Debian and Ubuntu: apt install python3-venv" >&2; rm -rf .venv; exit 1; }

.venv/.run: pyproject.toml | .venv/bin/python
	@test -e .venv/.dev || { echo "make: installing Tarmac and what it needs into .venv, once; about a minute …"; \
	  $(RUN) pip install --quiet --progress-bar on --disable-pip-version-check --editable .; }
	@touch $@

.venv/.dev: pyproject.toml | .venv/bin/python
	$(RUN) pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ .venv/.run

.venv/.ray: .venv/.dev
	$(RUN) pip install --quiet --disable-pip-version-check --editable '.[dev,ray]'
	@touch $@

# The page. node_modules/.installed is older than package-lock.json when it has to be brought up to date.

$(BUILT): web/node_modules/.installed $(shell find web -path web/node_modules -prune -o -type f -print 2>/dev/null)
	@cd web && npm run --silent build
	@touch $@

web/node_modules/.installed: web/package.json web/package-lock.json
	@command -v npm >/dev/null || { \
	  echo "make: the page is built with Node.js and npm; on Debian and Ubuntu: apt install nodejs npm" >&2; exit 1; }
	cd web && npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@
