PYTHON ?= python3
VENV := .venv
UV := $(VENV)/bin/uv
RUN := $(VENV)/bin
SEED ?= 1
MINUTES ?= 2

.PHONY: install demo up test check fmt bench mutate chaos e2e clean

install: $(VENV)/.installed

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Muster needs Python 3.11 or newer: make PYTHON=python3.13 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m venv --without-pip $(VENV)
	@if [ -x $(RUN)/pip ]; then $(RUN)/pip install --quiet --disable-pip-version-check 'uv>=0.9'; \
	else $(PYTHON) -m pip --python $(RUN)/python install --quiet --disable-pip-version-check 'uv>=0.9'; fi

$(VENV)/.installed: uv.lock pyproject.toml $(wildcard libs/*/pyproject.toml services/*/pyproject.toml cli/pyproject.toml) | $(UV)
	@echo "installing into $(VENV) …"
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --locked --quiet --inexact
	@touch $@

demo: install
	@$(RUN)/muster demo $(ARGS)

up: install
	@$(RUN)/muster up $(ARGS)

test: install
	@$(RUN)/pytest --ignore=tests/e2e -n 4 --maxschedchunk 1 $(ARGS)

check: install
	@$(RUN)/ruff check
	@$(RUN)/ruff format --check
	@$(RUN)/pyright --warnings
	@$(RUN)/lint-imports --no-logo

fmt: install
	@$(RUN)/ruff check --fix
	@$(RUN)/ruff format

bench: install
	@$(RUN)/python -m bench $(ARGS)

mutate: install
	@$(RUN)/python scripts/mutate.py $(ARGS)

chaos: install
	@$(RUN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES)

e2e: install
	@$(RUN)/pytest tests/e2e $(ARGS)

clean:
	rm -rf $(VENV) .muster .pytest_cache .ruff_cache .hypothesis
