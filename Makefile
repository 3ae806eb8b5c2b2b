# Everything starts here: `make help`. Builds are cached outside the clone, keyed by content.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export BALANCED_SOURCE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/balanced-source
# Tests and benchmarks start hundreds of Python processes: each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
PY := .venv/bin/python
RUN := $(PY) -m

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.venv/.ready: .ci/locks/dev-spark42.txt .ci/locks/uv.txt .ci/venv spark_app/src/balanced_source_spark/precompile.py pyproject.toml
	@.ci/venv .venv dev-spark42 --editable
	@touch $@

install: .venv/.ready ## Create .venv with everything pinned by hash (PySpark 4.2)

lock: ## Resolve the lock files anew
	@UV="$$(.ci/venv --uv)" .ci/locks/compile

prose: install ## Constructions that are not plain English, in pages, the CRD and messages
	@$(PY) .ci/prose.py

format: install ## Format the code
	@$(RUN) ruff format -q . && $(RUN) ruff check -q --fix .

lint: install ## ruff, mypy --strict, import contracts, hadolint, lengths, plain English
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) mypy
	@.venv/bin/lint-imports
	@.venv/bin/hadolint Dockerfile
	@$(PY) .ci/structure.py
	@$(PY) .ci/prose.py
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo "lint: these merges are not finished"; exit 1; }

test: lint testbed native ## What every change must pass: lint, unit tests, the quick ones on real parts
	@$(MAKE) --no-print-directory test-unit test-real

# JVMs of tests live for a minute: a second compiler and a parallel collector do not pay for themselves.
# Local Spark drivers also read their classes from an archive (testbed spark-options).
QUICK_JVM := JDK_JAVA_OPTIONS="$(strip $(JDK_JAVA_OPTIONS) -XX:TieredStopAtLevel=1 -XX:+UseSerialGC)"

IN := tests/contract tests/integration

# Two folders at a time compete for the processor. A test that fails there runs once more by itself: a failure that
# repeats is a failure, and one that does not stays in the log with its reason, as a defect to mend.
define real
	@# Not in a test: a cold build takes longer than some tests may on a busy machine.
	@PYTHONPATH=tests $(RUN) testbed build helm helm4 linearisable fake-gcs-server >&2
	@echo "integration tests ($(1)), two folders at a time …"
	@export $(QUICK_JVM) SPARK_SUBMIT_OPTS="$$(PYTHONPATH=tests $(RUN) testbed spark-options)"; \
	  $(RUN) pytest -q -n 2 --dist loadscope --no-loadscope-reorder --durations=15 -m "$(1)" $(IN) || { \
	    echo "NOT STABLE: the tests above failed beside others; they run once more, by themselves …"; \
	    $(RUN) pytest -q --last-failed --last-failed-no-failures=none -m "$(1)" $(IN); }
endef

test-real: testbed native ## Quick tests that need real parts: API server, brokers, Spark
	$(call real,integration and not (slow or thorough or e2e))

test-slow: testbed native ## Tests on real parts that take long
	$(call real,integration and (slow or thorough) and not e2e)

# All of them share one JVM, with its defaults: with one compiler and an archive of classes, Spark 4.3's tasks could
# not be read any more (java.io.OptionalDataException) from some test on, twice in about ten runs.
test-spark43: testbed ## The Spark side's tests on PySpark 4.3, but those that take minutes
	@echo "the Spark side on PySpark 4.3 …"
	@python="$$(PYTHONPATH=tests $(RUN) testbed venv 4.3.0)"/bin/python && native="$$(.ci/native)/site" && \
	  export PYTHONPATH="$(CURDIR)/operator/src:$(CURDIR)/spark_app/src:$$native" && \
	  run="$$python -m pytest -q -o cache_dir=.pytest_cache/spark43 -m 'not slow' tests/integration/spark" && \
	  { eval "$$run" || { echo "NOT STABLE: the tests above failed; they run once more, in a new JVM …"; \
	    eval "$$run --last-failed --last-failed-no-failures=none"; }; }

test-examples: testbed native ## The examples of the how-to pages on real pods (about 15 minutes)
	@$(QUICK_JVM) $(RUN) pytest -q tests/integration/examples/test_on_pods.py

test-unit: install ## Unit tests, and contract suites on fakes (no I/O, under a minute)
	@$(RUN) pytest -q -n 2 tests/unit tests/contract -m "not integration"
	@PYTHONPATH=tests $(RUN) mutants --quick

proof: install ## Explore the protocol on the real code, and find all seeded bugs (PROOF="--parts lives --lives 1000")
	@PYTHONPATH=tests $(RUN) proof $(PROOF)

walks: install ## Random walks over a source with several hosts, in virtual time on fakes (WALKS="--world roll --seeds 0-200")
	@PYTHONPATH=tests:operator/src:spark_app/src $(RUN) walks $(WALKS)

.PHONY: walks

CHAOS ?= 16
FULL ?= 4
FILES ?= 4
STREAMS ?= 2
HYBRIDS ?= 2
chaos: testbed native ## Random fault schedules on real parts, checked independently (CHAOS=N FULL=N FILES=N STREAMS=N HYBRIDS=N; ARGS="--seed 7")
	@$(QUICK_JVM) PYTHONPATH=tests $(RUN) chaos --light $(CHAOS) --full $(FULL) --files $(FILES) --streams $(STREAMS) --hybrids $(HYBRIDS) $(ARGS)

.PHONY: chaos

fuzz: install ## 10,000 hostile manifests, documents, broker answers and option sets (FUZZ="--seed 7 --inputs 2000")
	@PYTHONPATH=tests $(RUN) fuzz $(FUZZ)

testbed: install ## Build the real parts for demo and tests (once, about 9 minutes)
	@PYTHONPATH=tests $(RUN) testbed build >&2

test-testbed: testbed ## The testbed's own tests, with all parts real
	@$(RUN) pytest -q tests/unit/testbed tests/integration/testbed

demo: install ## The product at work on real parts, with a proof at the end (KEEP=1 leaves it running)
	@PYTHONPATH=tests $(RUN) demo $(if $(KEEP),--keep,)

demo-multicluster: install ## Four brokers, clusters that come and go: owners in global and in per-cluster mode, step by step
	@PYTHONPATH=tests $(RUN) demo.multicluster

demo-connector: install ## The sample connector from its wheel under the operator: rescales, kills, and a proof at the end
	@PYTHONPATH=tests $(RUN) demo.connector

demo-files: install ## Files under the operator, on disk and on an S3 server: 2, 5 and 3 readers, kills, and a proof at the end
	@PYTHONPATH=tests $(RUN) demo.files

demo-kinesis: install ## A Kinesis stream under the operator: splits, merges, 2, 4 and 1 readers, kills, and a proof of order at the end
	@PYTHONPATH=tests $(RUN) demo.kinesis

demo-hybrid: install ## Five million records of history from Parquet, then live Kafka, in one query under the operator, and a proof of order at the end
	@PYTHONPATH=tests $(RUN) demo.hybrid

demo-hosts: install ## One source on two and three applications: 6, 9 and 4 readers, lost hosts, new and broken images, a proof (ACTS=scale,image)
	@PYTHONPATH=tests $(RUN) demo.hosts $(if $(ACTS),--acts $(ACTS),)

demo-upgrade: install ## The chart upgraded from release 0.1.0, rolled back, uninstalled, installed under running queries, and a proof (HELM=4)
	@PYTHONPATH=tests $(RUN) demo.upgrade --helm $(or $(HELM),3)

demo-autoscale: install ## A load goes up and down: the real HPA controller follows the lag, then spec.autoscaling; curves in build/demo-autoscale.svg
	@PYTHONPATH=tests $(RUN) demo.autoscale

generate: install ## Write what is generated from the code: the CRD, the chart's copy of it, the index of scenarios, references
	@.venv/bin/balanced-source crd > crds/balancedsource.io_balancedsources.yaml
	@cp crds/balancedsource.io_balancedsources.yaml charts/balanced-source/files/
	@PYTHONPATH=tests $(RUN) support.scenario_index > docs/scenarios.md
	@PYTHONPATH=tests $(RUN) support.kafka_reference > docs/kafka.md
	@PYTHONPATH=tests $(RUN) support.conditions_reference > docs/reference/conditions.md
	@PYTHONPATH=tests $(RUN) support.dashboards
	@PYTHONPATH=tests $(RUN) support.reference
	@PYTHONPATH=tests $(RUN) support.golden
	@PYTHONPATH=tests $(RUN) proof.page
	@$(PY) .ci/addresses.py

bench-rescale: testbed ## Seconds from a patch to the first micro-batch with it, beside the native source (HOSTS=3: between hosts)
	@PYTHONPATH=tests:. $(PY) $(if $(HOSTS),benchmarks/bench_hand_over.py --hosts $(HOSTS),benchmarks/bench_rescale.py) $(BENCH)

.PHONY: fuzz proof demo demo-multicluster demo-connector demo-files demo-kinesis demo-hybrid demo-hosts demo-upgrade demo-autoscale generate bench-rescale test test-real test-spark43
.PHONY: help install lock format lint prose test-unit testbed test-testbed

e2e: install ## The story on real pods (CLUSTER=node: root on Linux; kind: an engine; process: neither)
	@PYTHONPATH=tests $(RUN) e2e.node.story --cluster $(or $(CLUSTER),node)

test-chart: install ## The chart: templates, and an install with exactly its rights
	@$(RUN) pytest -q tests/integration/chart

test-doctor: testbed ## Seeded faults on a real cluster and broker: `balanced-source doctor` names each (about 2 minutes)
	@$(RUN) pytest -q tests/doctor

test-keda: testbed ## KEDA scales sources on a real API server (about 5 minutes; builds KEDA with few triggers first, once, about 7 minutes)
	@PYTHONPATH=tests $(RUN) testbed build keda keda-adapter keda-webhooks keda-files >&2
	@$(RUN) pytest -q tests/keda

PAGE := $(BALANCED_SOURCE_CACHE)/page-venv
CHROMIUM ?= $(firstword $(foreach name,chromium chromium-browser google-chrome-stable google-chrome,$(shell command -v $(name) 2>/dev/null)))

test-page: install ## The status page in headless Chromium (CHROMIUM=PATH); screenshots in build/page
	@if [ -z "$(CHROMIUM)" ]; then \
	  echo "SKIPPED: no Chromium found. Install it (Debian: apt-get install chromium), or set CHROMIUM=PATH"; \
	else \
	  .ci/venv $(PAGE) page && CHROMIUM="$(CHROMIUM)" $(PAGE)/bin/python -m pytest -q -c tests/page/pytest.ini \
	    --rootdir tests/page --confcutdir tests/page -p no:cacheprovider tests/page; \
	fi

# The wheels first: the test has a time limit, and a first build of the native reader can take longer.
demo-notebook: testbed native wheels ## Build the wheels, install them into a bare environment, run examples/quickstart.ipynb on a real broker
	@$(RUN) pytest -q tests/integration/packaging

wheels: install ## All that is published to a package index, into build/wheels (a manylinux wheel of the native reader)
	@.ci/wheels build/wheels

DOCS := $(BALANCED_SOURCE_CACHE)/docs-venv

docs: install ## Build the documentation site into build/site, and check its links
	@.ci/venv $(DOCS) docs
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict --site-dir build/site
	@$(PY) .ci/site.py build/site
	@$(PY) .ci/prose.py
	@$(RUN) pytest -q tests/unit/reference tests/unit/docs

.PHONY: e2e test-examples test-chart test-doctor test-keda test-page docs demo-notebook wheels

native: install ## Build the native reader and let .venv find it (Rust; about 5 minutes once, then cached)
	@.ci/native .venv > /dev/null

test-native: native ## The native reader's own tests and lints
	@cd spark_app/native && touch src/*.rs && cargo fmt --check \
	  && CARGO_TARGET_DIR=$(BALANCED_SOURCE_CACHE)/cargo-native cargo clippy --quiet --release --all-targets --locked -- -D warnings \
	  && CARGO_TARGET_DIR=$(BALANCED_SOURCE_CACHE)/cargo-native cargo test --quiet --release --locked

bench-enumerator: install ## Time, memory and bytes of 1 000 … 1 000 000 splits (ARGS="--splits 1000 --repeats 1")
	@PYTHONPATH=. $(RUN) benchmarks.bench_enumerator $(ARGS)

bench-planner: install ## What planning a micro-batch of 16, 1 000 and 10 000 splits costs (ARGS="--splits 1000 --batches 10")
	@PYTHONPATH=tests:. $(RUN) benchmarks.bench_planner $(ARGS)

bench-autoscale: install ## spec.autoscaling beside a horizontal pod autoscaler on lag, simulated (ARGS="--seed 1 --recorded FILE")
	@PYTHONPATH=. $(RUN) benchmarks.autoscaling $(ARGS)

bench-operator: testbed ## What the operator costs: the curve of 1 to 1,000 sources, an hour (ARGS="--sources 1,20": 25 minutes)
	@PYTHONPATH=tests:. $(RUN) benchmarks.operator_scale $(ARGS)

.PHONY: bench-enumerator bench-planner bench-autoscale bench-operator

bench-read: native ## Reading beside Spark's own Kafka source, default and tuned (QUICK=1: a subset; FLINK=1: Flink too)
	@PYTHONPATH=tests:. $(RUN) benchmarks.bench_read $(if $(QUICK),--quick,) $(if $(FLINK),--flink,) $(ARGS)

bench-read-all: native ## All cases and Flink; resumable: cases kept in KEEP (bench-read.kept) are not measured again
	@PYTHONPATH=tests:. $(RUN) benchmarks.bench_read --all --flink --keep $(or $(KEEP),bench-read.kept) $(ARGS)

bench-before: native ## Our reader beside that of another checkout with its .venv, interleaved (BEFORE=FOLDER)
	@PYTHONPATH=tests:. $(RUN) benchmarks.bench_before $(BEFORE) $(ARGS)

bench-files: install ## Reading files beside Spark's own file stream source (QUICK=1: small folders, five minutes)
	@PYTHONPATH=tests:. $(RUN) benchmarks.bench_files $(if $(QUICK),--quick,) $(ARGS)

bench-tune: native ## Search the best settings of Spark's own source and of Flink, one knob after the other
	@PYTHONPATH=tests:. $(RUN) benchmarks.bench_tune --flink $(ARGS)

test-alerts: install ## The alerts of the chart, played by promtool, the queries of its dashboards, and all metrics (fetched from Debian if missing)
	@PYTHONPATH=tests $(RUN) alerts

.PHONY: test-alerts native test-native bench-before bench-read bench-read-all bench-files bench-tune

soak: testbed native ## 50 sources with rescales for HOURS (2 by default; SMOKE=1: three minutes): does anything grow?
	@PYTHONPATH=tests:operator/src:spark_app/src $(RUN) soak --hours $(or $(HOURS),$(if $(SMOKE),0.05,2)) $(SOAK)

.PHONY: soak

mutants: install ## Break the code at random places and see whether a unit test notices (ARGS="--count 400 --seed 1")
	@PYTHONPATH=tests $(RUN) mutants $(ARGS)

.PHONY: mutants
