# make demo   install and see what memshelf does (no key, no network after installation)
# make test   install and run every test
# make check  formatting, lint, types, the arrows between modules
# make docs   the tests that run the documentation's examples and check that it is complete
# make bench  measure, as ratios against named peers and raw costs; writes docs/benchmarks.md
# make test-mem0  the mem0 store against the real mem0 library, in an environment of its own
# make fmt    format the code
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-mem0 check docs bench fmt clean
.DEFAULT_GOAL := help

help:
	@grep -E '^# make' Makefile | cut -c3-

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memshelf needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.agent: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[agent]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.agent
	@$(BIN)/memshelf demo

test: $(VENV)/.dev
	$(BIN)/pytest

# mem0's server is not on PyPI: its library answers behind a thin adapter with the server's routes.
$(VENV)-mem0/.ready:
	$(PYTHON) -m venv $(VENV)-mem0
	$(VENV)-mem0/bin/pip install --quiet --disable-pip-version-check mem0ai==2.2.1
	@touch $@

test-mem0: $(VENV)/.dev $(VENV)-mem0/.ready
	MEM0_PYTHON=$(VENV)-mem0/bin/python $(BIN)/pytest -n 0 tests/mem0/real_mem0.py

check: $(VENV)/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check --no-cache
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	$(BIN)/pytest tests/docs

bench: $(VENV)/.dev
	$(BIN)/python -m bench

fmt: $(VENV)/.dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) $(VENV)-mem0 .pytest_cache .mypy_cache .ruff_cache .hypothesis
