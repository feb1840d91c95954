# setup · demo · check · test · bench · lock: the only commands
.PHONY: setup demo check test bench lock
.DEFAULT_GOAL := help

help:
	@echo "make demo    set up, then the page at http://127.0.0.1:8300 (ctrl-c ends it)"
	@echo "make test    set up, then every check and test"
	@echo "make setup   only .venv, with .venv/bin/echoic in it"
	@echo "make bench   measure; writes benchmarks/results/"

.venv/.run: requirements/build.txt requirements/run.txt requirements/weights.txt pyproject.toml scripts/venv
	@test -e .venv/.dev || scripts/venv run
	@touch .venv/.run

.venv/.dev: requirements/build.txt requirements/dev.txt requirements/weights.txt pyproject.toml scripts/venv
	@scripts/venv dev
	@touch .venv/.dev .venv/.run

setup: .venv/.run

demo: setup
	@.venv/bin/echoic --store sqlite:///demo.db --global-writes auto serve --port 8300

check: .venv/.dev
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports

test: .venv/.dev
	@scripts/system-packages
	@$(MAKE) --no-print-directory check
	.venv/bin/pytest
	cd packages/echoic-corpus && ../../.venv/bin/pytest

bench: .venv/.dev
	.venv/bin/python -m benchmarks

lock:
	scripts/lock
