# make demo    set up and anonymize the demo table
# make test    set up and run every check: lint, types, layers, tests
# make lint    the checks without the tests
# make setup   the environment alone
# make clean   remove what builds and tests leave; make distclean: the environments too
#
# Needs Python 3.11 or newer and nothing else. PYTHON=... chooses one, ARGS=... goes to pytest, which
# runs three files at a time: two cores idle while clusters and sessions start.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
ORACLE := .venv-oracle
PIP_INSTALL := -m pip --disable-pip-version-check install -q

# The first of these that runs: a name on PATH may be a stub of a version manager.
runs = for p in $(1); do "$$p" -c 'import sys; sys.exit(sys.version_info < (3, $(2)))' \
	2>/dev/null && { echo "$$p"; break; }; done
PYTHON ?= $(shell $(call runs,python3.13 python3.12 python3.11 python3,11))
# pycanon asks for a NumPy that has no wheels for Python 3.13 and later.
ORACLE_PYTHON ?= $(shell $(call runs,python3.12 python3.11 python3.10 $(PYTHON),10))

.PHONY: help setup setup-dev demo test lint clean distclean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(VENV)/.installed

setup-dev: $(VENV)/.installed-dev $(ORACLE)/.installed

demo: setup
	@$(VENV)/bin/anon-spark demo

# Kernels are compiled first, by two processes: else all that start at once would compile the same.
test: setup-dev lint
	@echo "compiling kernels"
	@$(VENV)/bin/python -m pytest -q -n 2 --dist load -k "fifty_equal_rows or runs_in_the_job" \
		tests/contracts/test_algorithms.py tests/test_worker.py
	@ANON_SPARK_ORACLE="$(CURDIR)/$(ORACLE)/bin/python" $(VENV)/bin/python -m pytest -n 3 --dist loadfile $(ARGS)

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# Debian and Ubuntu ship Python without ensurepip; then the pip of that Python serves.
define make_venv
	@test -n "$(2)" && "$(2)" -c 'import sys; sys.exit(sys.version_info < (3, $(3)))' 2>/dev/null || { \
		echo "Python 3.$(3) or newer is needed: put one on PATH, or run" \
		"'make PYTHON=/path/to/python3.11'." >&2; exit 1; }
	@echo "making $(1) with $(2)"
	@rm -rf $(1)
	@"$(2)" -m venv $(1) >/dev/null 2>&1 || { rm -rf $(1); \
		"$(2)" -m venv --without-pip $(1) && \
		"$(2)" -m pip --disable-pip-version-check --python $(1)/bin/python install -q pip; \
	} >/dev/null 2>&1 || { rm -rf $(1); \
		echo "$(2) cannot make a virtual environment: install its venv module (Debian and" \
		"Ubuntu: apt install python3-venv), or run 'make PYTHON=/path/to/another/python'." >&2; \
		exit 1; }
endef

$(VENV)/bin/python:
	$(call make_venv,$(VENV),$(PYTHON),11)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing anon-spark into $(VENV)"
	@$(VENV)/bin/python $(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	@echo "installing anon-spark and its tools into $(VENV)"
	@$(VENV)/bin/python $(PIP_INSTALL) -e '.[dev]'
	@touch $(VENV)/.installed $@

$(ORACLE)/bin/python:
	$(call make_venv,$(ORACLE),$(ORACLE_PYTHON),10)

# An independent implementation that tests compare with, apart since it pins NumPy and pandas.
$(ORACLE)/.installed: Makefile | $(ORACLE)/bin/python
	@echo "installing pycanon into $(ORACLE)"
	@if $(ORACLE)/bin/python -c 'import sys; sys.exit(sys.version_info >= (3, 13))'; then \
		$(ORACLE)/bin/python $(PIP_INSTALL) 'pycanon==1.3.*'; \
	else \
		$(ORACLE)/bin/python $(PIP_INSTALL) 'pandas<3' scipy tabulate typer pyreadstat reportlab \
			docutils 'beartype==0.22.*' && \
		$(ORACLE)/bin/python $(PIP_INSTALL) --no-deps 'pycanon==1.3.*'; \
	fi
	@touch $@

clean:
	rm -rf build dist artifacts spark-warehouse metastore_db derby.log .hypothesis \
		.mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find anon_spark jobs tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(ORACLE)
