PYTHON ?= python3
VENV := .venv
UV := $(VENV)/bin/uv
RUN := $(VENV)/bin
SEED ?= 1
MINUTES ?= 2
SOURCES := libs services cli examples tests bench scripts
PYTEST := $(RUN)/pytest --ignore=tests/e2e -n 4 --maxschedchunk 1
QUICK := -m 'not sweep'

.PHONY: install demo up test sweep check ci fmt bench mutate survivors chaos e2e clean

# Byte code of our own packages, which uv leaves alone: it compiles what changed and looks at the rest. Errors are for
# whoever imports the file to report.
install: $(VENV)/.installed
	@$(RUN)/python -m compileall -qq --invalidation-mode timestamp $(SOURCES) || true

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Muster needs Python 3.11 or newer: make PYTHON=python3.13 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m venv --without-pip $(VENV)
	@if [ -x $(RUN)/pip ]; then $(RUN)/pip install --quiet --disable-pip-version-check 'uv>=0.9'; \
	else $(PYTHON) -m pip --python $(RUN)/python install --quiet --disable-pip-version-check 'uv>=0.9'; fi

$(VENV)/.installed: uv.lock pyproject.toml $(wildcard libs/*/pyproject.toml services/*/pyproject.toml cli/pyproject.toml) | $(UV)
	@echo "installing into $(VENV) …"
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --locked --quiet --inexact --compile-bytecode
	@touch $@

demo: install
	@$(RUN)/muster demo $(ARGS)

up: install
	@$(RUN)/muster up $(ARGS)

test: install
	@$(PYTEST) $(QUICK) $(ARGS)

# Every test, also the long ones: all steps of a kill, all cases of a flood.
sweep: install
	@$(PYTEST) $(ARGS)

check: install
	@$(RUN)/ruff check
	@$(RUN)/ruff format --check
	@$(RUN)/pyright --warnings
	@$(RUN)/lint-imports --no-logo

# As `make check test`, but a test that fails has a second try, alone, and is named if it passes then.
ci: check
	@$(RUN)/python scripts/rerun.py $(PYTEST) $(QUICK)

fmt: install
	@$(RUN)/ruff check --fix
	@$(RUN)/ruff format

bench: install
	@$(RUN)/python -m bench $(ARGS)

mutate: install
	@$(RUN)/python -m scripts.mutate $(ARGS)

# Every condition in turn, chosen by a program: hours for all of it, so name files, or draw some with --sample.
survivors: install
	@$(RUN)/python -m scripts.survivors $(if $(ARGS),$(ARGS),libs/protocol libs/bus services)

chaos: install
	@$(RUN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES) $(if $(CLUSTER),--cluster)

e2e: install
	@$(RUN)/pytest tests/e2e $(ARGS)

clean:
	rm -rf $(VENV) .muster .pytest_cache .ruff_cache .hypothesis
