# Every target sets up what it needs in $(VENV), from locks with hashes; stamp files make the second time quick.

PYTHON ?= python3
VENV ?= .venv
PEERS ?= .venv-peers
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
LONG_TIMEOUT ?= 3600

URL ?=
DIR ?= crawls/$(firstword $(subst /, ,$(subst ?,/,$(subst :,/,$(patsubst http://%,%,$(patsubst https://%,%,$(URL)))))))
CONTACT ?=
ARGS ?=
export URL DIR CONTACT

# Where no input or output happens, every branch is tested.
PURE := */crawlspace/urls/*,*/crawlspace/content/*,*/crawlspace/pages/*,*/crawlspace/policy/*
VOCABULARY := */crawlspace/types/*,*/crawlspace/states.py,*/crawlspace/errors.py,*/crawlspace/exchange.py
COMPILED := src/crawlspace/content/_words.c src/crawlspace/pages/_scan.c
NODE_PEERS := bench/peers/package.json $(wildcard bench/peers/*.mjs)
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --python-version 3.11
LOCKED := pyproject.toml requirements/build.in

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo crawl test long bench check format docs lock clean

help: ## print this list
	@echo "usage: make TARGET [PYTHON=python3.12] [VENV=.venv]"
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | \
	  while IFS="$$(printf '\t')" read -r name text; do printf '  make %-7s %s\n' "$$name" "$$text"; done

demo: $(VENV)/base.stamp ## crawl a small web made up on this machine; ends within a minute
	@$(BIN)/crawlspace demo $(ARGS)

crawl: $(VENV)/base.stamp ## crawl URL=https://... [DIR=crawls/NAME] [CONTACT=you@example.com] [ARGS="..."]
	@test -n "$$URL" || { echo 'make crawl needs a URL: make crawl URL=https://example.com/' >&2; exit 2; }
	@mkdir -p "$$(dirname "$$DIR")"
	@$(BIN)/crawlspace crawl "$$URL" --dir "$$DIR" $(if $(CONTACT),-s "contact=$$CONTACT") $(ARGS)

test: $(VENV)/dev.stamp ## run the tests and hold them to their coverage; at most 12 minutes on 2 cores
	@rm -f .coverage .coverage.*
# Hundreds of processes are started: each would compile all of the package again where no bytecode may be written.
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses=auto --dist=worksteal --cov --cov-report=
	@echo 'coverage over all: 90 % at least'
	@$(BIN)/coverage report --fail-under=90
	@echo 'coverage of the pure packages and the vocabulary: every branch'
	@$(BIN)/coverage report --fail-under=100 --include='$(PURE),$(VOCABULARY)'

long: $(VENV)/dev.stamp ## run the tests that are too big for every day
	$(BIN)/pytest -m long --hypothesis-profile=thorough --timeout=$(LONG_TIMEOUT) $(ARGS)

bench: $(VENV)/dev.stamp $(PEERS)/node.stamp ## measure what a page costs, and what it costs others
	$(BIN)/python -m bench --peers-python $(PEERS)/bin/python --peers-node $(PEERS)/node $(ARGS)

check: $(VENV)/dev.stamp ## format, lint, types, layers and sizes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/code_sizes.py

format: $(VENV)/dev.stamp ## put the code into form and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/base.stamp ## write the pages that are made from the code
	$(BIN)/python scripts/reference_pages.py

lock: $(VENV)/lock.stamp ## choose the newest versions that pyproject.toml allows and write them down with hashes
	$(COMPILE) --upgrade $(LOCKED) --extra testing -o requirements/base.txt
	$(COMPILE) --upgrade $(LOCKED) --extra dev -c requirements/base.txt -o requirements/dev.txt
	$(COMPILE) --upgrade requirements/peers.in -o requirements/peers.txt
	$(COMPILE) --upgrade requirements/lock.in -o requirements/lock.txt

clean: ## remove what the other targets made, crawls excepted
	rm -rf $(VENV) $(PEERS) build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(VENV)/venv.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'crawlspace needs Python 3.11 or newer; name one with make PYTHON=/path/to/python3.11' >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'this Python cannot make virtual environments; on Debian: apt-get install python3-venv' >&2; exit 2; }
	@echo 'setting up $(VENV), once'
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# The package itself is installed last and editable: it names no version of its own that a hash could hold.
$(VENV)/base.stamp: requirements/base.txt pyproject.toml setup.py $(COMPILED) $(VENV)/venv.stamp
	@$(PIP) install --require-hashes -r $<
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/base.stamp
	@$(PIP) install --require-hashes -r $<
	@touch $@

# The peers live apart: what they need must not decide which versions we run with.
$(PEERS)/peers.stamp: requirements/peers.txt $(VENV)/venv.stamp
	@echo 'setting up $(PEERS), once'
	@$(PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip --disable-pip-version-check --no-input -qq install --require-hashes -r $<
	@touch $@

# Node finds a program's libraries beside it, so the programs go where npm puts them.
$(PEERS)/node.stamp: $(NODE_PEERS) $(PEERS)/peers.stamp
	@mkdir -p $(PEERS)/node
	@cp $(NODE_PEERS) $(PEERS)/node
	@if command -v npm >/dev/null; then \
	  echo 'setting up $(PEERS)/node, once' && \
	  npm install --prefix $(PEERS)/node --no-package-lock --no-audit --no-fund --loglevel=error; \
	else echo 'npm is not installed: what Node runs is left out'; fi
	@touch $@

$(VENV)/lock.stamp: requirements/lock.txt $(VENV)/venv.stamp
	@$(PIP) install --require-hashes -r $<
	@touch $@
