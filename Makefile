# What people and CI run here. All that it makes is in .cache/, and what is built in place for the package. `make` alone lists the targets.
#
# PYTHON names another Python for the environment, LINEAGE_HOME another place for the local stack and its data.

PYTHON ?= python3
VENV ?= .cache/venv
BIN := $(VENV)/bin
# What is made here stays here, and not in the user's own home of `lineage`.
export LINEAGE_HOME ?= $(CURDIR)/.cache/lineage
MINUTES ?= 10
STAMP := $(VENV)/made

.DEFAULT_GOAL := help
.PHONY: help wheel demo story test test-all page jar lock tested-page brief-jvm soak test-spark-suite test-pyspark-versions check format perf-capture perf-ingest perf-api perf-page pictures screenshots up status down clean distclean java python

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: java $(STAMP) ## run a job on real data and show where its wrong row came from (DEMO_ONCE=1: then end)
	@$(BIN)/python -m scripts.page build
	@$(BIN)/python -m scripts.jvm build
	@$(BIN)/python -m examples.demo

STORY ?= customers
story: java $(STAMP) ## run a job with a loop and show why two customers are one (STORY=tweets, movies: other stories)
	@$(BIN)/python -m scripts.page build
	@$(BIN)/python -m scripts.jvm build
	@$(BIN)/python -m examples.$(STORY)_story --start

wheel: python ## make dist/lineage_master-*.whl, with the agent's jar and the page: needs a JDK and Node.js
	@$(PYTHON) -m scripts.wheel

page: $(STAMP) ## build the web page, where Node.js is there and its sources have changed
	@$(BIN)/python -m scripts.page build

jar: $(STAMP) ## build the agent's jar, where a JDK is there and its sources have changed
	@$(BIN)/python -m scripts.jvm build

# Each worker has a Kafka and a Neo4j of its own, and waits more than it computes.
WORKERS ?= 3

test: LANE := -m "not thorough"
test test-all: java $(STAMP)
	@$(BIN)/python -m scripts.server_jars 2>/dev/null & # what fails here is tried again, and said, by the first test that needs a server
	@$(MAKE) --no-print-directory -j 2 tested-page brief-jvm
	$(BIN)/python -m pytest -q --require-services -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(LANE) $(RECORD)
	$(OTHER_PYSPARK)

test-all: OTHER_PYSPARK = $(PYTHON) -m scripts.pyspark_versions --all --workers $(WORKERS)
test: ## run the tests of every change, with a Kafka and a Neo4j of their own (WORKERS=1: one after the other)
test-all: ## run all tests: those that take long, too

# Side by side: one is Node.js, the other Java.
tested-page:
	$(BIN)/python -m scripts.page test
	$(BIN)/python -m scripts.page build

brief-jvm:
	$(BIN)/python -m scripts.jvm build
	$(BIN)/python -m scripts.brief_jvm

soak: java $(STAMP) ## kill consumers, Kafka and Neo4j at random for MINUTES (10) and compare what is stored
	@$(BIN)/python -m tests.soak "$(MINUTES)"

test-spark-suite: java jar ## run Spark's own tests without and with lineage (SPARK_SRC=a checkout of Spark; SUITE=rdd, sql)
	@code=0; for suite in $(or $(SUITE),rdd sql); do \
		$(BIN)/python -m scripts.spark_suite "$(SPARK_SRC)" --suite $$suite --report || code=1; \
	done; exit $$code

test-pyspark-versions: java jar ## run the core of the tests on each PySpark (VERSIONS="3.5.9 4.0.5": on these)
	@$(PYTHON) -m scripts.pyspark_versions $(VERSIONS)

check: $(STAMP) ## format, lint, types, direction of imports, the documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/unit/docs
	$(BIN)/python -m scripts.page check
	$(BIN)/python -m scripts.jvm check

lock: $(STAMP) ## write requirements.lock anew, with the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.10 --generate-hashes --upgrade \
		--quiet --custom-compile-command "make lock" --output-file requirements.lock

format: $(STAMP) ## put the code into its format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m scripts.page format

perf-capture: java $(STAMP) ## measure what capture costs, into perf/results (ARGS="--pairs 3 --sizes 10": see --help)
	@$(BIN)/python -m perf.capture $(ARGS)

perf-ingest: java $(STAMP) ## measure how fast lineage gets into the stores, into perf/results (ARGS="--quick": see --help)
	@$(BIN)/python -m perf.ingest $(ARGS)

perf-api: java $(STAMP) ## measure what sixteen clients get from the API, into perf/results (ARGS="--quick": see --help)
	@$(BIN)/python -m perf.api $(ARGS)

perf-page: $(STAMP) ## measure what the page does to a browser, into perf/results
	@$(BIN)/python -m scripts.page build
	@$(BIN)/python -m perf.page $(ARGS)

pictures: $(STAMP) ## draw docs/pictures/*.dot again: needs Graphviz
	@$(BIN)/python -m scripts.pictures

screenshots: java $(STAMP) ## make the pictures of the documentation (ARGS="--only trace": see --help)
	@$(BIN)/python -m scripts.page build
	@$(BIN)/python -m scripts.screenshots $(ARGS)

up: java $(STAMP) ## start the local stack: Kafka and Neo4j
	@$(BIN)/lineage up

status: $(STAMP) ## what of the local stack runs, where, and how far it is behind
	@$(BIN)/lineage status

down: $(STAMP) ## stop the local stack; its data stays
	@$(BIN)/lineage down

clean: ## stop the local stack and remove its data and the demo's; environment and downloaded jars stay
	@if [ -x $(BIN)/lineage ]; then $(BIN)/lineage down; fi
	@home="$$LINEAGE_HOME"; \
	rm -rf "$$home/kafka" "$$home/neo4j" "$$home/logs" "$$home/flows" "$$home/stack.json" .cache/demo

distclean: clean ## remove everything that was ever made here
	rm -rf .cache dist ui/node_modules ui/node_modules.lock ui/lineage_page/dist spark_agent/jvm/lineage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Before minutes of downloads; `lineage up` asks more closely.
java:
	@command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" >/dev/null || { \
	echo "make: there is no Java on this machine: install Java 17 or 21 and put it on the PATH or into JAVA_HOME" >&2; \
	exit 1; }

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	echo "make: $(PYTHON) is not there or older than Python 3.10: install one, or name it with PYTHON=python3.11" >&2; \
	exit 1; }

$(STAMP): pyproject.toml requirements.lock | python
	@$(PYTHON) -m scripts.environment $(VENV)
	@touch $@
