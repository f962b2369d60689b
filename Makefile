# First commands. Needs Python 3.11, Java 17 and Maven; everything else is fetched once and kept in .venv and .cache.
#
#   make demo     a worker on the embedded log, learning in front of you: half a minute; the first time two to five
#                 minutes, because it installs what is needed and compiles the kernel
#   make quick    while you work: lint without types, and the tests that need no broker and no time: about a minute,
#                 two the first time, when the kernel is compiled
#   make test     every check: lint, format, types, import contracts, tests on a real Kafka broker
#   make lint     the same without the tests
#   make kafka    a Kafka broker on port 9092, in the foreground (PORT=9093 for another port)
#   make deploy-check  all checks of deploy/: chart, image, rules; needs Go, takes minutes the first time
#   make simulate  a Kafka cluster in memory and thousands of schedules of faults (SCHEDULES=10000, SEED=)
#   make arm64    the golden digests on an emulated arm64: minutes; the first time as root, with two packages of Debian
#   make soak     ten minutes with rebalances: do memory and open files grow? (MINUTES=10)
#   make audit-deps  published vulnerabilities of the pinned requirements, where the package index responds
#   make dist     a wheel and a source archive, in dist/; make dist-check installs both into an empty environment
#   make starts   seconds to the first decision: cold, cached, baked, killed (BEFORE=REVISION to compare with)
#   make docs     write the generated parts of README.md and the other pages again
#   make lock     resolve the requirements again (UPGRADE=1 takes the newest versions)
#   make clean    remove everything that was fetched or built

PYTHON ?= python3
PYTEST_ARGS ?=
BIN := .venv/bin
# The brokers' version, for whatever runs on them.
ifdef KAFKA
export NPSTREAM_TEST_KAFKA_VERSION = $(KAFKA)
endif
LOCK := deploy/requirements-dev.txt
STAMP := .venv/.installed

.PHONY: demo quick test lint kafka failover simulate mutants arm64 jars registry compiled soak starts dist dist-check audit-deps docs deploy-check lock clean
.DELETE_ON_ERROR:

demo: $(STAMP)
	$(BIN)/npstream demo

quick: compiled
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -n 2 --dist loadfile --quick -q $(PYTEST_ARGS)

# Three processes for two cores: tests with a broker wait more than half of their time.
test: lint jars registry compiled
	$(BIN)/pytest -n 3 --dist loadfile $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports --no-logo

kafka: jars
	$(BIN)/python -m tests.broker --port $(or $(PORT),9092)

# Kills and stops workers and brokers at every named point; SEED=, MINUTES=. BROKERS=3: on three that replicate.
# STORY=outage: all brokers away for a minute; STORY=rolling: each broker restarted in turn. KAFKA=3.9.1: that version.
failover: jars
	$(BIN)/python -m tests.system $(STORY) --brokers $(or $(BROKERS),1) --seed $(or $(SEED),1) \
	  --minutes $(or $(MINUTES),5)

# Each schedule must end with the decisions of an undisturbed run; one that does not is cut down and printed.
simulate: compiled
	$(BIN)/python -m tests.simulation --schedules $(or $(SCHEDULES),1000) --seed $(or $(SEED),1)

# Plants the deliberate bugs of tests/system/mutants.py one by one; each must be caught. SIMULATION=1: by the simulation.
# RANDOM=200 draws bugs of one token instead (SEED=), and goes on where it was interrupted.
mutants: $(if $(SIMULATION)$(RANDOM),compiled,jars)
ifdef RANDOM
	$(BIN)/python -m tests.system.random_mutants --count $(RANDOM) --seed $(or $(SEED),1)
else
	$(BIN)/python -m $(if $(SIMULATION),tests.simulation --mutants --schedules $(or $(SCHEDULES),2000),tests.system.mutate)
endif

# CPU=neoverse-n1: compiled for that processor alone, as LLVM names it.
arm64: $(STAMP)
	$(BIN)/python -m tests.arm64 $(if $(CPU),--processors $(CPU))

soak: jars
	$(BIN)/python -m tests.operations.soak --minutes $(or $(MINUTES),10)

# Of this checkout and of an earlier revision, in one sitting; processor time is what can be compared.
starts: $(STAMP)
	$(BIN)/python -m tests.operations.starts $(if $(BEFORE),--before $(BEFORE))

# A wheel and a source archive, in dist/.
dist: $(STAMP)
	$(BIN)/python -m hatchling build -t sdist -t wheel -d dist

# Outside of the checkout, with what deploy/requirements.txt allows and nothing else; then `npstream demo`.
dist-check: $(STAMP)
	NPSTREAM_DEPLOY_CHECK=1 $(BIN)/pytest tests/deploy/test_empty_environment.py $(PYTEST_ARGS)

audit-deps: $(STAMP)
	$(BIN)/python deploy/dependencies.py audit

docs: $(STAMP)
	$(BIN)/python -m tests.docs.generated

# Does nothing when the jars are there already.
jars: $(STAMP)
	$(BIN)/python -m tests.broker --fetch-only

# Compiles the tests' schema registry; does nothing when it is there already.
registry: $(STAMP)
	$(BIN)/python -m tests.registry

# Once for all processes of a test run, which would each compile it at the same time; a second when it is done already.
compiled: $(STAMP)
	$(BIN)/python deploy/warm.py

# The build backend is in the lock too, hence no build isolation: nothing unhashed is ever installed.
$(STAMP): $(LOCK) pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# What `make test` does for deploy/, and what takes minutes: the image's build steps in a folder, kubectl-validate.
deploy-check: $(STAMP) .cache/bin/kubectl-validate
	NPSTREAM_DEPLOY_CHECK=1 $(BIN)/pytest tests/deploy $(PYTEST_ARGS)

# By commit: its last release knows Kubernetes only up to 1.30.
.cache/bin/kubectl-validate:
	GOBIN=$(abspath .cache/bin) go install sigs.k8s.io/kubectl-validate@v0.0.5-0.20260105161640-a97ccfaca20b

lock: $(STAMP)
	$(call compile,deploy/requirements.txt,pyproject.toml --extra registry)
	$(call compile,$(LOCK),pyproject.toml --extra dev)
	$(call compile,deploy/requirements-build.txt,--group build --constraint $(LOCK))

# Universal: one file for every Python and platform. No address of an index may reach the file.
define compile
	$(BIN)/uv pip compile $(2) --universal --generate-hashes --quiet $(if $(UPGRADE),--upgrade) \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file $(1)
endef

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find npstream tests -name __pycache__ -type d -prune -exec rm -rf {} +
