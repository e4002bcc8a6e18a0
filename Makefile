# Everything a person types. `make demo` and `make test` need nothing done before.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The tests wait on containers, git and sockets for a third of their time.
WORKERS ?= 4
# Those of `make check` compute only, and each worker collects all tests first.
CORES ?= 2
# Not quiet: pip works for minutes, and says which package it downloads. Everything has to be in the
# lock files: with the hashes of its files, and as a wheel, because pip would download what builds a
# source distribution without asking them.
PIP_INSTALL = $(BIN)/pip install --disable-pip-version-check --require-hashes --only-binary :all:
LOCKS := requirements
# `make lock UPGRADE=--upgrade` takes the newest versions; `make lock` keeps those that still fit.
UPGRADE ?=
LOCK = $(BIN)/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url
# What `make chaos` takes; see `python -m scripts.chaos --help`.
CHAOS ?= --minutes 3 --kills 20
# Benchmarks of `make bench`, all if empty.
ONLY ?=
QUICK ?=

# pytest keeps the tests with their assertions rewritten, which is most of the time of collecting
# them, as Python keeps bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo check test test-deep parts chaos lint format docs bench \
	lock audit sbom clean

help:
	@echo "make demo    resolve a bundled issue in a bundled repository"
	@echo "make check   linters, types, import rules, and the tests without real parts"
	@echo "make test    run the whole test suite"
	@echo "make parts   install what some tests need: Docker, PostgreSQL, Chromium; as root on Debian 12"
	@echo "make test-deep  the tests that measure time, more whole runs, and property tests with many new examples"
	@echo "make chaos   kill a server's processes for minutes, and check that nothing is lost or doubled"
	@echo "make lint    ruff, mypy, import rules"
	@echo "make format  let ruff format the code"
	@echo "make docs    write what is made from the code: references, inputs, parts of workflows"
	@echo "make bench   all benchmarks, into bench/RESULTS.md: ONLY=sandbox,steps for some, QUICK=1 for small ones"
	@echo "make lock    write the locked versions and hashes in requirements/ from pyproject.toml"
	@echo "make audit   look the locked versions up among known vulnerabilities; check the workflows"
	@echo "make sbom    print the bill of materials of what is installed, in CycloneDX's format"
	@echo "make clean   remove the virtual environment and caches"

$(VENV)/.installed: pyproject.toml scripts/venv.sh $(LOCKS)/build.txt $(LOCKS)/run.txt
	@sh scripts/venv.sh $(PYTHON) $(VENV)
	@echo "installing resolver and its dependencies into $(VENV); the first time takes some minutes"
	@$(PIP_INSTALL) -r $(LOCKS)/build.txt -r $(LOCKS)/run.txt
	@$(BIN)/pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed $(LOCKS)/test.txt
	@echo "installing what the tests need"
	@$(PIP_INSTALL) -r $(LOCKS)/test.txt
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/resolver demo

test: $(VENV)/.installed-test
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup

test-deep: $(VENV)/.installed-test
	$(BIN)/pytest -m deep
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m nightly
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m hypothesis --hypothesis-profile deep

# As root on Debian 12. What tests need one of these for is skipped without it, and `make test` counts it.
parts:
	sh scripts/install_packages.sh
	sh scripts/start_engine.sh
	DOCKER_BUILDKIT=0 bash tests/parts/images.sh

chaos: $(VENV)/.installed-test
	$(BIN)/python -m scripts.chaos $(CHAOS)

check: lint
	$(BIN)/pytest -n $(CORES) --dist loadgroup -q -r fE -m "not real_part and not deep and not nightly" \
		--without-programs --hypothesis-profile quick

# All of them report before make gives up.
lint: $(VENV)/.installed-test
	@faults=0; for linter in "ruff check ." "ruff format --check ." mypy lint-imports; do \
		echo "$(BIN)/$$linter"; $(BIN)/$$linter || faults=1; \
	done; exit $$faults

# What can't be mended is what lint reports.
format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix --quiet --exit-zero .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-test
	$(BIN)/python scripts/settings_docs.py > docs/reference/settings.md
	$(BIN)/python scripts/events_docs.py > docs/reference/events.md
	$(BIN)/python -m scripts.generated_parts
	$(BIN)/python -m scripts.reference_docs
	$(BIN)/python -m scripts.attacks_docs > docs/reference/attacks.md

bench: $(VENV)/.installed-test
	$(BIN)/python bench/run_all.py $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

# Each file keeps to the versions of those before it, so that they can share an environment.
lock: $(VENV)/.installed
	@$(PIP_INSTALL) -r $(LOCKS)/lock.txt
	$(LOCK) --only-binary :all: pyproject.toml -o $(LOCKS)/run.txt
	$(LOCK) --only-binary :all: --group build -c $(LOCKS)/run.txt -o $(LOCKS)/build.txt
	$(LOCK) --only-binary :all: --extra test -c $(LOCKS)/run.txt -c $(LOCKS)/build.txt \
		pyproject.toml -o $(LOCKS)/test.txt
	$(LOCK) --only-binary :all: --group lock -c $(LOCKS)/test.txt -o $(LOCKS)/lock.txt
	$(LOCK) --only-binary :all: --group audit -c $(LOCKS)/test.txt -o $(LOCKS)/audit.txt

audit: $(VENV)/.installed-test
	@$(PIP_INSTALL) -r $(LOCKS)/audit.txt
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
		-r $(LOCKS)/run.txt -r $(LOCKS)/build.txt -r $(LOCKS)/test.txt \
		-r $(LOCKS)/lock.txt -r $(LOCKS)/audit.txt
	$(BIN)/zizmor --no-progress .

sbom: $(VENV)/.installed
	@$(PIP_INSTALL) --quiet -r $(LOCKS)/audit.txt
	@PYTHONWARNINGS=ignore $(BIN)/cyclonedx-py requirements $(LOCKS)/run.txt --pyproject pyproject.toml

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
