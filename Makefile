# Everything is built below .venv and build; nothing is installed elsewhere. `make` alone lists the targets.

VENV ?= .venv
# Processes at once of tests and linters: as many as there are cores.
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Tests wait for simulated tasks most of their time: four processes for each core. Each begins with
# files of its own, whose servers it starts once; one that has nothing left takes over from another.
WORKERS ?= $(shell expr 4 '*' $(JOBS))
# Handed to the program behind a target: make test ARGS="tests/unit -k size"
ARGS ?=

NEW_ENOUGH := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
# The first interpreter that is new enough. `make PYTHON=/path/to/python3 env` chooses another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo $$p && break; done)

PY := $(VENV)/bin/python
# The environment grows: first with what the demo needs, then with the tools of developers.
DEMO := $(VENV)/.demo
STAMP := $(VENV)/.built
DEMO_REQUIREMENTS := tests/requirements-demo.txt tests/integration/requirements.txt
# The collection that is measured beside this one, ansible-rulebook and the checks of Automation Hub have environments of their own, see tests/tools/environments.py.
OWN_ENVIRONMENTS := tests/requirements-bench% tests/requirements-rulebook% tests/requirements-certification%
REQUIREMENTS := requirements-dev.txt $(filter-out $(OWN_ENVIRONMENTS),$(wildcard tests/requirements-*.txt))
COPY := build/ansible_collections/pve/fleet
PLUGINS_LINK := build/types/ansible_collections/pve/fleet/plugins
# The longest ones begin. `make sanity` and `make matrix` run pylint and import too, which take longer than all others together:
# ruff and mypy find nearly all that pylint finds, and tests without the libraries nearly all that import does.
LINTERS := sanity-quick lint-ansible lint-types lint-ruff lint-licenses lint-nesting lint-words lint-yaml lint-changelog lint-docs

# Linters run side by side where this make can keep their outputs apart.
AT_ONCE := $(if $(filter output-sync,$(.FEATURES)),--jobs=$(JOBS) --output-sync=target)

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
# Ansible refuses to start in a locale that is not UTF-8.
export LC_ALL := C.UTF-8
export PYTHONUNBUFFERED := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env lint $(LINTERS) sanity format stage test test-slow unit integration test-long faults schema simulator fidelity demo bench mutants certification execution-environment sbom build docs clean options matrix release

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

env: $(STAMP) ## Build .venv with the pinned tools (also done by every target that needs it)

$(DEMO): $(DEMO_REQUIREMENTS)
	@{ test -n "$(PYTHON)" && $(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null; } || { echo \
	"Python 3.11 or newer with its venv module (Debian: python3-venv) is needed, and '$(or $(PYTHON),python3)' is not that. Name one: make PYTHON=/path/to/python3 env" >&2; exit 1; }
	@$(PY) -c '$(NEW_ENOUGH)' 2>/dev/null || { echo "Creating $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing ansible-core, the libraries of the collection and the simulator into $(VENV)"
	@$(PY) -m tests.tools.environments -r tests/requirements-demo.txt
	@touch $@

$(STAMP): $(DEMO) $(REQUIREMENTS)
	@echo "Installing the tools of developers into $(VENV)"
	@$(PY) -m tests.tools.environments -r requirements-dev.txt
	@$(PY) -m tests.tools.environments --no-deps -r tests/requirements-data.txt
	@touch $@

lint: $(STAMP) ## Run every linter, to the end also when one fails
	@$(MAKE) --keep-going $(AT_ONCE) $(LINTERS)

lint-ruff: $(STAMP) ## Python: errors, imports, format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(STAMP) ## Let ruff rewrite the Python files
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .

lint-licenses: $(STAMP) ## Copyright and license of every file, by https://reuse.software
	$(PY) -m reuse lint --quiet || $(PY) -m reuse lint

# mypy sees the plugins under the name they are imported by.
lint-types: $(STAMP) ## Python: types
	@mkdir -p $(dir $(PLUGINS_LINK)) && ln -sfn ../../../../../plugins $(PLUGINS_LINK)
	$(PY) -m mypy -p ansible_collections.pve.fleet.plugins -p tests

lint-nesting: $(STAMP) ## Python: conditional expressions within others
	@$(PY) -m tests.tools.lint.nesting

lint-words: $(STAMP) ## Idioms and sentence structures that hinder a reader; ARGS="docs roles" lists those of some directories
	@$(PY) -m tests.tools.lint.idioms $(ARGS)

lint-yaml: $(STAMP) ## YAML: syntax and form
	$(PY) -m yamllint --strict .

# The tools below want the collection in a directory named after it, see tests/tools/stage.py.
IN_COPY := env PATH="$(abspath $(VENV))/bin:$$PATH" ANSIBLE_COLLECTIONS_PATH="$(CURDIR)/build"

stage: $(DEMO) ## Copy the collection to build/, where Ansible finds it with ANSIBLE_COLLECTIONS_PATH=$PWD/build
	@$(PY) -m tests.tools.stage

lint-changelog: $(STAMP) stage ## Changelog fragments
	cd $(COPY) && $(IN_COPY) antsibull-changelog lint

lint-docs: $(STAMP) ## Documentation of plugins and roles, and the guides as docs.ansible.com shows them
	@$(PY) -m tests.tools.docs_site.guides

lint-ansible: $(STAMP) stage ## Roles and playbooks: ansible-lint, profile production
	cd $(COPY) && $(IN_COPY) ansible-lint --offline --nocolor

sanity: $(STAMP) stage ## ansible-test sanity, without an ignore file
	$(PY) -m tests.tools.ansible_test sanity $(ARGS)

sanity-quick: $(STAMP) stage ## ansible-test sanity without its two slowest tests
	$(PY) -m tests.tools.ansible_test sanity --skip-test pylint --skip-test import $(ARGS)

integration: $(STAMP) stage ## ansible-test integration on the simulated Proxmox VE; ARGS="container" chooses a target
	$(PY) -m tests.tools.ansible_test integration $(ARGS)

test: $(STAMP) ## Every test that is marked neither slow nor long
	$(PY) -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not long" $(ARGS)

test-slow: $(STAMP) ## The tests marked slow: as AWX runs it, the artifact alone, each way of execution, examples
	$(PY) -m pytest -n $(WORKERS) --dist worksteal -m "slow and not long" $(ARGS)

unit: $(STAMP) ## The unit tests alone, which start no simulator: less than a minute
	$(PY) -m pytest -n $(JOBS) -m "not slow and not long" tests/unit $(ARGS)

test-long: $(STAMP) ## All tests, the long ones too, then those on other ansible-core and Python versions, also after a failure
	@status=0; \
	PVE_FLEET_CASES=$${PVE_FLEET_CASES:-10000} $(PY) -m pytest -n $(WORKERS) --dist worksteal $(ARGS) || status=1; \
	JOBS=$(WORKERS) $(PY) -m tests.tools.matrix || status=1; \
	exit $$status

matrix: $(DEMO) ## The tests on other ansible-core and Python versions; ARGS="2.16 tests/unit sanity" chooses some
	JOBS=$(WORKERS) $(PY) -m tests.tools.matrix $(ARGS)

faults: $(STAMP) ## Meet every write with every fault, the whole table: about 10 minutes; ARGS="snapshot" for a part
	@$(PY) -m tests.faults --jobs $(JOBS) $(ARGS)

simulator: $(DEMO) ## Start the simulated Proxmox VE, for example ARGS="--port 8006"
	@$(PY) -m tests.simulator $(ARGS)

fidelity: $(DEMO) ## Compare the simulator with what Proxmox VE was recorded to answer
	$(PY) -m tests.simulator.fidelity $(ARGS)

demo: $(DEMO) ## Provision two tenants on the simulated Proxmox VE, twice, and a third with its own token; then report
	@$(PY) -m tests.demo $(ARGS)

bench: $(STAMP) ## Measure beside community.proxmox, about 30 minutes; ARGS="--only noop_loop" for a part
	$(PY) -m tests.bench $(ARGS)

mutants: $(STAMP) ## Whether tests detect small faults: ARGS="--sample 200 --seed 1"; about 15 minutes
	$(PY) -m tests.mutants $(ARGS)

schema: $(STAMP) ## Write the facts about VM options anew from the official API schema
	$(PY) -m tests.tools.facts.pack_schema
	$(PY) -m tests.tools.facts.make_schema
	$(PY) -m tests.tools.facts.make_answers

options: $(STAMP) ## Write modules, specifications and documentation from the declarations, tests/tools/options
	$(PY) -m tests.tools.make_options
	$(PY) -m tests.tools.tables

certification: $(STAMP) stage ## The checks that Automation Hub makes of an artifact before it accepts it, with its versions of the tools
	@$(PY) -m tests.tools.publish.certification

execution-environment: $(STAMP) ## The image for AWX with the collection of this clone; needs podman or docker
	@$(PY) -m tests.tools.publish.execution_environment

sbom: $(STAMP) ## The artifact with its checksum and its bill of materials, in build/
	@$(PY) -m tests.tools.publish.artifact build

build: $(DEMO) ## The collection artifact, in build/
	@mkdir -p build
	$(VENV)/bin/ansible-galaxy collection build --force --output-path build .

release: $(STAMP) ## Commit, tag and build a release, without publishing it: make release VERSION=1.0.0
	@$(PY) -m tests.tools.release $(VERSION)

docs: $(STAMP) ## The documentation site, in build/docs/html, looked at in a browser where there is one
	@$(PY) -m tests.tools.docs_site
	@$(PY) -m pytest -q tests/tools/docs_site $(ARGS)

clean: ## Remove what was built, except .venv
	rm -rf build .mypy_cache .pytest_cache .ruff_cache .hypothesis .ansible tests/output
