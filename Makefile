# make demo   install and see what memshelf does (no key, no network after installation)
# make test   install and run every test
# make check  formatting, lint, types, the arrows between modules
# make docs   the tests that run the documentation's examples and check that it is complete
# make bench  measure, as ratios against named peers and raw costs; writes docs/benchmarks.md
# make fmt    format the code
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check docs bench fmt clean
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
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
