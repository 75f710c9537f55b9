# Needs GNU make and Python >= 3.11; everything else is installed into .venv.
#   make demo        install, load demo data, start everything on http://localhost:$(PORT)/
#   make test        the suite on SQLite, then on a PostgreSQL and a broker that it starts itself
#   make test-long   big corpora, laws at full size, fault campaigns; ONLY="-k NAME" for a part
#   make focus-validator   the FOCUS export before its official validator, in a Python 3.12
#   make check       format, lint, types, walls, migrations, templates

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
PORT ?= 8000
FOCUS_PYTHON ?= python3.12
VENV := .venv
RUN := $(VENV)/bin/python
# The tests' own services, and a data folder that is thrown away.
SERVICES := $(RUN) -m tests.services
PYTEST := pytest -n 2 --dist loadgroup
# Settings of somebody's pip that would place packages outside the virtual environment.
PIP := env -u PIP_USER -u PIP_TARGET -u PIP_PREFIX -u PIP_ROOT -u PIP_CONSTRAINT -u PIP_REQUIREMENT \
	-u PIP_REQUIRE_VIRTUALENV -u PIP_EDITABLE -u PIP_NO_DEPS -u PIP_DRY_RUN -u PYTHONHOME -u PYTHONPATH \
	PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 $(RUN) -m pip install --quiet --require-hashes

.DEFAULT_GOAL := help
.PHONY: help demo install develop test test-long test-sqlite test-postgresql check format lock \
	focus-validator screenshots docs golden messages release-fixture clean

help:
	@sed -n 's/^#   //p' Makefile

# ---- the virtual environment; a stamp file per lock makes the second run instant --------------
$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Python >= 3.11 is needed: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than Python 3.11: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
		echo "No virtual environment could be made (Debian, Ubuntu: apt install python3-venv)." >&2; \
		rm -rf $(VENV); exit 1; }
	@touch $@

$(VENV)/.runtime: requirements.lock | $(VENV)/.made
	@echo "Installing requirements.lock into $(VENV) ..."
	@$(PIP) -r requirements.lock
	@touch $@

$(VENV)/.development: requirements-dev.lock | $(VENV)/.made
	@echo "Installing requirements-dev.lock into $(VENV) ..."
	@$(PIP) -r requirements-dev.lock
	@touch $@ $(VENV)/.runtime

# The product runs from its checkout and is no installed package; its client is called by name.
$(VENV)/bin/gpuctl: | $(VENV)/.made
	@printf '#!/bin/sh\n# Made by make: the client of this checkout, from wherever it is called.\n' > $@
	@printf 'PYTHONPATH="%s" exec "%s" -P -m gpuplatform.client "$$@"\n' \
		"$(CURDIR)" "$(abspath $(VENV)/bin/python)" >> $@
	@chmod +x $@

install: $(VENV)/.runtime $(VENV)/bin/gpuctl
develop: $(VENV)/.development $(VENV)/bin/gpuctl

# ---- the product ------------------------------------------------------------------------------
demo: $(VENV)/.runtime $(VENV)/bin/gpuctl
	@exec $(RUN) manage.py up --demo --port $(PORT)

# ---- tests ------------------------------------------------------------------------------------
test: $(VENV)/.development
	$(SERVICES) --both -- $(PYTEST) -m "not long"

test-sqlite: $(VENV)/.development
	$(SERVICES) --sqlite -- $(PYTEST) -m "not long"

test-postgresql: $(VENV)/.development
	$(SERVICES) --postgresql -- $(PYTEST) -m "not long"

test-long: $(VENV)/.development
	$(SERVICES) --sqlite -- $(PYTEST) -m long $(ONLY)
	$(if $(ONLY),,$(SERVICES) --postgresql -- $(PYTEST) -m long tests/matrix/test_contract.py)

check: $(VENV)/.development
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(RUN) manage.py check --fail-level WARNING
	$(RUN) manage.py makemigrations --check --dry-run
	$(VENV)/bin/djlint --quiet --lint templates

format: $(VENV)/.development
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# ---- rarely -----------------------------------------------------------------------------------
# The development lock first: the runtime lock may only choose what it chose.
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-header --quiet pyproject.toml
lock:
	@command -v uv >/dev/null || { echo "make lock needs uv." >&2; exit 1; }
	$(LOCK) --extra dev --output-file requirements-dev.lock
	$(LOCK) --constraint requirements-dev.lock --output-file requirements.lock

# The official validator of FOCUS needs a Python of its own, 3.12 or later.
focus-validator: $(VENV)/.development
	$(FOCUS_PYTHON) -m venv build/focus-validator
	build/focus-validator/bin/pip install --quiet "focus-validator==2.2.1" "pyarrow<23"
	FOCUS_VALIDATOR=$(CURDIR)/build/focus-validator/bin/focus-validator \
		$(RUN) -m pytest -q -m long tests/finops/files/test_official_validator.py

screenshots: $(VENV)/.development
	$(RUN) -m tests.screenshots docs/screenshots

docs: $(VENV)/.development
	$(RUN) manage.py list_reasons > docs/reasons.md
	$(RUN) manage.py spectacular --format openapi-json --file docs/openapi.json

# The filled database of this version, for the upgrade test of the next: committed with a release.
release-fixture: $(VENV)/.development
	RELEASE=write $(SERVICES) --both -- pytest -q tests/finops/closing/test_upgrade.py

# What the pages say, brought into the catalogues of the languages: docs/translating.md.
messages: $(VENV)/.development
	$(RUN) manage.py messages

golden: $(VENV)/.development
	GOLDEN=write $(SERVICES) --sqlite -- $(PYTEST) -m "not long and not services and not browser"

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
