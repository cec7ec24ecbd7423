# The only command surface; `make help` lists it. CI calls the same targets (.ci/run).

UV_VERSION := 0.11.0
# Networks that open TLS have put their certificate into the system's store; uv looks there if told.
export UV_SYSTEM_CERTS := $(if $(wildcard /etc/ssl/certs/*),true,false)
UV_INSTALL := .venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes
# The environment (paths, Java, Spark) is set in tools/run and nowhere else.
RUN := tools/run
# The engines of `make bench-peers` need other versions than ours.
PEERS := benchmarks/peers/.venv
HUDI_PEERS := benchmarks/hudi_peers/.venv
FLINK_PEERS := benchmarks/flink_peers/.venv
# Files of tests stay whole, so that the servers of one are started once.
TWO := --numprocesses 2 --dist loadfile
IN_STORE = $(shell grep -lE "small_lake|lake_target" tests/behaviour/*.py)
UNIT := not spark and not airflow and not postgres and not slow and not e2e

.DEFAULT_GOAL := help
.PHONY: help setup setup-s3 demo ui format check test-unit test test-s3 test-all coverage dag-docs bench bench-peers bench-hudi bench-flink mutate shape clean lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.runtime ## Make .venv, find Java, install the locked packages (again: no cost)
	@.venv/bin/python tools/java.py find
	@.venv/bin/python tools/java.py archive

setup-s3: .venv/go/versitygw ## Build a real S3 server for the tests, if Go is there

demo: setup ## Publish a week of real flights through Airflow and Spark
	@$(RUN) tidegate demo

ui: setup ## Start Airflow on the demo's home and keep it up
	@$(RUN) tidegate ui

format: .venv/.dev ## Lay out the code and mend what can be mended
	$(RUN) ruff format
	$(RUN) ruff check --fix

check: .venv/.dev ## Lint, layout, types, imports, fresh locks
	tools/lock.sh --check
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) mypy
	$(RUN) lint-imports
	$(RUN) codespell

test-unit: .venv/.dev ## Unit tests only, few examples each: while you write
	@HYPOTHESIS_PROFILE=quick $(RUN) pytest tests/unit -m "$(UNIT)"

test: .venv/.dev setup ## All tests but the slow ones, with fewer examples; what CI runs
	@HYPOTHESIS_PROFILE=usual $(RUN) pytest $(TWO) -m "not slow"

test-all: .venv/.dev setup test-s3 ## All tests with all examples, the slow ones too
	$(RUN) pytest

# Whole lives of pipelines, as on a disk; what lets a disk fail, or looks at its paths, is left out.
test-s3: .venv/.dev setup setup-s3 ## Tests of behaviour with their targets in a real S3 server
	@TIDEGATE_TEST_STORE=versitygw HYPOTHESIS_PROFILE=usual $(RUN) pytest $(TWO) \
	    -m "not slow and not on_disk" $(IN_STORE)

coverage: .venv/.dev setup ## Tests with branch coverage; a report in .coverage/html
	@rm -rf .coverage && mkdir .coverage
	$(RUN) coverage run -m pytest -m "not slow"
	$(RUN) coverage combine --quiet
	$(RUN) coverage html --quiet -d .coverage/html
	$(RUN) coverage report

dag-docs: .venv/.dev setup ## Write docs/DAGs.md from the DAGs
	$(RUN) python tools/dag_docs.py

bench: .venv/.dev setup ## Measure against Spark, DuckDB and polars; prints Markdown
	$(RUN) python -m benchmarks --case orders
	$(RUN) python -m benchmarks --case days --million-rows 20 --large 0
	$(RUN) python -m benchmarks --case lineitem --large 0
	for partitions in 1 100 2000; do \
	    $(RUN) python -m benchmarks --case partitioned --million-rows 20 --large 0 --partitions $$partitions || exit; \
	done
	$(RUN) python -m benchmarks.pruning
	$(RUN) python -m benchmarks.evaluating

bench-peers: .venv/.dev setup $(PEERS)/.ready ## Measure Iceberg tables against Spark with Iceberg, pyiceberg, DuckDB and polars
	$(RUN) python -m benchmarks.peers

bench-hudi: .venv/.dev setup $(HUDI_PEERS)/.ready ## Measure Hudi tables against Spark with Hudi and hudi-rs
	$(RUN) python -m benchmarks.hudi_peers

bench-flink: .venv/.dev setup $(FLINK_PEERS)/.ready ## Measure Flink's batch sink, to set beside partitioned writes
	$(RUN) python -m benchmarks.flink_peers

mutate: .venv/.dev ## Break the code in small ways, list what no test notices (hours; MODULE=commit/propose.py SAMPLE=50)
	@nice -n 19 $(RUN) python tools/mutate.py $(MODULE) $(if $(SAMPLE),--sample $(SAMPLE))

shape: .venv/.dev ## Print sizes of modules and functions, and modules without a unit test
	@$(RUN) python tools/shape.py

%/.venv/.ready: %/requirements.txt | .venv/bin/uv
	@echo "Installing the peers …"
	@.venv/bin/python -m venv --clear $(@D)
	@.venv/bin/uv pip install --quiet --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

clean: ## Remove .venv and every cache; .tidegate, your data, stays
	rm -rf .venv $(PEERS) $(HUDI_PEERS) $(FLINK_PEERS) benchmarks/*peers/.jars .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find include plugins dags jobs tests tools benchmarks -name __pycache__ -prune -exec rm -rf {} +

lock: .venv/bin/uv ## Make the hash locks from requirements*.in
	tools/lock.sh

.venv/bin/uv: ; @tools/make_venv.sh $(UV_VERSION)

.venv/.runtime: requirements.txt | .venv/bin/uv
	@echo "Installing the locked packages …"
	@$(UV_INSTALL) -r requirements.txt
	@ln -sf ../../tools/tidegate .venv/bin/tidegate
	@touch $@

.venv/.dev: requirements-dev.txt | .venv/.runtime
	@echo "Installing the developers' tools …"
	@$(UV_INSTALL) -r requirements-dev.txt
	@touch $@

# Without Go the tests use moto alone; with it, no server is skipped.
.venv/go/versitygw: tools/versitygw.version | .venv/bin/uv
	@if command -v go > /dev/null; then \
	    echo "Building versitygw (once, about two minutes) …"; \
	    GOBIN=$(CURDIR)/.venv/go GOFLAGS=-modcacherw go install github.com/versity/versitygw/cmd/versitygw@$$(cat $<); \
	else echo "Go is not installed: the tests use moto's S3 server only." >&2; fi

.venv/.java: requirements-java.txt | .venv/.runtime
	@$(UV_INSTALL) -r requirements-java.txt
	@touch $@
