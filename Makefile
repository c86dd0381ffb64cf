# The front door. `make` alone lists what there is.

PYTHON ?= python3
PORT ?= 8787
STATE ?= .edge-agent/state
ARGS ?=

VENV := .venv/bin
# Node 22 and wrangler from node_modules first: the machine's Node may be older than wrangler takes.
TOOLS := PATH="$(CURDIR)/node_modules/.bin:$(CURDIR)/.venv/bin:$$PATH"

.DEFAULT_GOAL := help
.PHONY: help setup dev test test-faults bench check format lock deploy

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## fetch and build what the other targets need (from PyPI and npm alone)
	@$(PYTHON) -m scripts.setup

dev: setup ## serve the agent in workerd [PORT=8787 STATE=.edge-agent/state]
	@$(VENV)/python -m scripts.dev --port $(PORT) --state $(STATE)

test: setup ## run the whole test suite [ARGS="-k name"]
	@$(TOOLS) $(VENV)/python -m scripts.run_tests $(ARGS)

test-faults: setup ## the long draw of crashes and kills [ARGS="--seed 7"]
	@$(TOOLS) $(VENV)/python -m pytest tests/faults --long-draw $(ARGS)

bench: setup ## what a round costs beside one with nothing around it [ARGS="--runs 30"]
	@$(TOOLS) PYTHONPATH=src $(VENV)/python -m bench.rounds $(ARGS)

check: setup ## lint, format, types, layers, size of the bundle
	@$(VENV)/ruff check
	@$(VENV)/ruff format --check
	@$(TOOLS) node_modules/.bin/pyright -p .
	@$(VENV)/python -m pytest -q tests/test_architecture.py
	@$(VENV)/python -m scripts.bundle_size

format: setup ## put the code into the one form `make check` asks for
	@$(VENV)/ruff format
	@$(VENV)/ruff check --fix

lock: setup ## resolve pyproject.toml and package.json anew into the lock files
	@$(VENV)/python -m scripts.lock

deploy: setup ## deploy to Cloudflare (needs an account and internet)
	@$(TOOLS) $(VENV)/pywrangler deploy
