# Everything a person types. `make demo` and `make test` need nothing done before.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The tests wait on containers, git and sockets for a third of their time.
WORKERS ?= 4
# Those of `make check` compute only, and each worker collects all tests first.
CORES ?= 2
# Not quiet: pip works for minutes, and says which package it downloads and builds.
PIP_OPTIONS := --disable-pip-version-check

# pytest keeps the tests with their assertions rewritten, which is most of the time of collecting
# them, as Python keeps bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo check test test-deep mutation lint format docs clean

help:
	@echo "make demo    resolve a bundled issue in a bundled repository"
	@echo "make check   linters, types, import rules, and the tests without real parts"
	@echo "make test    run the whole test suite"
	@echo "make test-deep  the tests that measure time, and property tests with many new examples"
	@echo "make mutation  how many defects put into the modules that matter most their tests find"
	@echo "make lint    ruff, mypy, import rules"
	@echo "make format  let ruff format the code"
	@echo "make docs    write docs/settings.md and docs/events.md from the code"
	@echo "make clean   remove the virtual environment and caches"

$(VENV)/.installed: pyproject.toml scripts/venv.sh
	@sh scripts/venv.sh $(PYTHON) $(VENV)
	@echo "installing resolver and its dependencies into $(VENV); the first time takes some minutes"
	@$(BIN)/pip install $(PIP_OPTIONS) -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "installing what the tests need"
	@$(BIN)/pip install $(PIP_OPTIONS) -e '.[test]'
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/resolver demo

test: $(VENV)/.installed-test
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup

test-deep: $(VENV)/.installed-test
	$(BIN)/pytest -m deep
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m hypothesis --hypothesis-profile deep

mutation: $(VENV)/.installed-test
	@$(BIN)/pip install $(PIP_OPTIONS) -e '.[mutation]'
	$(BIN)/python scripts/mutation.py

check: lint
	$(BIN)/pytest -n $(CORES) --dist loadgroup -q -r fE -m "not real_part and not deep" \
		--without-programs --hypothesis-profile quick --ignore tests/codebase/test_linters.py

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed
	$(BIN)/python scripts/settings_docs.py > docs/settings.md
	$(BIN)/python scripts/events_docs.py > docs/events.md

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
