# One place for every command. `make help` lists them; CI runs the same targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up

.PHONY: help setup demo test test-all check unit integration acceptance clients faults simulate least fuzz audit sbom bench screenshots generate verify lock format clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## create .venv with everything that is needed, from the lock

$(STAMP): requirements-dev.lock pyproject.toml devtools/pyproject.toml clients/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Baton needs Python 3.11 or newer as '$(PYTHON)'; on Debian: apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e devtools -e clients/python
	@touch $@

demo: setup ## three replicas, one leader, ticks and a failover, on this machine
	@$(BIN)/baton demo

# Two workers for each core: most of these tests wait for most of their time.
WORKERS ?= $(shell echo $$((2 * $$(nproc))))
PARALLEL := -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

test: setup ## the tests of every guarantee
	$(BIN)/python -m pytest -m "not slow and not languages and not deep" $(PARALLEL)

test-all: setup ## what CI runs: make test, and more of the same (more seeds, faults and pods, the image)
	$(BIN)/python -m pytest -m "not slow and not languages" $(PARALLEL)

clients: setup ## the clients of other languages, where their tool chains are
	$(BIN)/python -m pytest -m languages

faults: setup ## break a running cluster in every way we know, and report: make faults ONLY=disk-full
	$(BIN)/python -m tests.acceptance.faults $(ONLY)
	$(if $(ONLY),,$(BIN)/python -m pytest -m slow)

unit: setup ## pure tests: no network, no real sleep
	$(BIN)/python -m pytest tests/unit

integration: setup ## adapters on a real Postgres and Redis
	$(BIN)/python -m pytest tests/contract tests/integration tests/migration

acceptance: setup ## real processes, killed, frozen and cut off
	$(BIN)/python -m pytest -m "not slow and not languages" tests/acceptance

simulate: setup ## the election and the runs in virtual time: make simulate SEEDS=5000
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),2000)

bench: setup ## measure against peers, write docs/benchmarks.md: make bench ONLY="takeover ticks"
	$(BIN)/python -m tests.bench $(ONLY)

least: setup ## the suites as a role that has only the rights which docs/security.md grants
	BATON_TEST_ROLE=least $(BIN)/python -m pytest -m "not slow and not languages" \
	  tests/contract tests/integration tests/acceptance tests/security

fuzz: setup ## random input for every parser and every method: make fuzz SECONDS=600 SEED=1
	BATON_FUZZ_SECONDS=$(or $(SECONDS),300) BATON_FUZZ_SEED=$(or $(SEED),$$RANDOM$$RANDOM) \
	  $(BIN)/python -m pytest -s --timeout=0 tests/security/test_fuzz_api.py tests/security/test_fuzz_parsers.py

# Tools of their own, apart from .venv: nobody needs them to work on Baton.
AUDIT := .cache/audit/bin
$(AUDIT)/pip-audit:
	$(PYTHON) -m venv .cache/audit
	$(AUDIT)/pip install --quiet --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0

audit: setup $(AUDIT)/pip-audit ## known vulnerabilities of what is pinned; ends with 3 if nobody could be asked
	$(BIN)/python -m tests.security.audit $(AUDIT)/pip-audit requirements.lock requirements-dev.lock

sbom: $(AUDIT)/pip-audit ## dist/baton.cdx.json: what the image holds, as CycloneDX
	$(PYTHON) -m venv --clear --without-pip .cache/runtime
	$(AUDIT)/pip --python .cache/runtime/bin/python install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@mkdir -p dist
	$(AUDIT)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	  --of JSON -o dist/baton.cdx.json .cache/runtime/bin/python

check: setup verify ## format, lint, types, layers, contract, generated code, unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint proto
	$(BIN)/hadolint Dockerfile
	helm/test || [ $$? -eq 77 ]   # 77: no Go to build helm with, as it says
	$(BIN)/python -m pytest -q tests/unit

format: setup ## rewrite the code as ruff wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

screenshots: setup ## pictures of the dashboard in light, dark and phone width, into dist/screenshots
	$(BIN)/python -m tests.browser.screenshots dist/screenshots

# The dashboard is built where there is node; elsewhere the committed build is used.
DASHBOARD := if command -v npm >/dev/null; then cd dashboard && npm ci --silent && npm run --silent

generate: setup ## the committed protobuf code, the dashboard's build, the configuration reference
	PATH="$(CURDIR)/$(BIN):$$PATH" proto/generate
	clients/go/generate || [ $$? -eq 77 ]   # 77: no Go, as it says
	$(DASHBOARD) build; else echo "no npm: the dashboard is not built"; fi
	$(BIN)/python -c 'from sidecar.config.reference import markdown; print(markdown(), end="")' > docs/configuration.md

verify: setup ## committed generated code is what its source says; the .proto files break no release
	PATH="$(CURDIR)/$(BIN):$$PATH" proto/generate --check
	clients/go/generate --check || [ $$? -eq 77 ]   # 77: no Go, as it says
	$(DASHBOARD) check; else echo "no npm: the dashboard's build is not checked"; fi

# No host and no local path may get into a lock: uv writes neither in this format.
UV_COMPILE := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: ## resolve the pinned versions anew
	$(PYTHON) -m venv .cache/uv && .cache/uv/bin/pip install --quiet uv
	.cache/uv/bin/uv $(UV_COMPILE) --extra dev pyproject.toml devtools/pyproject.toml -o requirements-dev.lock >/dev/null
	grep -oE '^[A-Za-z0-9._-]+==[^ ]+' requirements-dev.lock > .cache/constraints.txt
	.cache/uv/bin/uv $(UV_COMPILE) --extra tracing -c .cache/constraints.txt pyproject.toml -o requirements.lock >/dev/null

clean: ## remove what the commands made
	rm -rf $(VENV) .cache build dist {.,devtools}/*.egg-info .pytest_cache .mypy_cache .ruff_cache
