# First commands. Needs Python 3.11, Java 17 and Maven; everything else is fetched once and kept in .venv and .cache.
#
#   make demo     a worker on the embedded log, learning in front of you
#   make test     every check: lint, format, types, import contracts, tests on a real Kafka broker
#   make lint     the same without the tests
#   make kafka    a Kafka broker on port 9092, in the foreground
#   make lock     resolve the requirements anew (UPGRADE=1 takes the newest versions)
#   make clean    remove everything that was fetched or built

PYTHON ?= python3
PYTEST_ARGS ?=
BIN := .venv/bin
LOCK := deploy/requirements-dev.txt
STAMP := .venv/.installed

.PHONY: demo test lint kafka jars lock clean
.DELETE_ON_ERROR:

demo: $(STAMP)
	$(BIN)/npstream demo

test: lint jars
	$(BIN)/pytest $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports --no-logo

kafka: jars
	$(BIN)/python -m tests.broker

# Does nothing when the jars are there already.
jars: $(STAMP)
	$(BIN)/python -m tests.broker --fetch-only

# The build backend is in the lock too, hence no build isolation: nothing unhashed is ever installed.
$(STAMP): $(LOCK) pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

lock: $(STAMP)
	$(call compile,deploy/requirements.txt,)
	$(call compile,$(LOCK),--extra dev)

# Universal: one file for every Python and platform. No address of an index may reach the file.
define compile
	$(BIN)/uv pip compile pyproject.toml $(2) --universal --generate-hashes --quiet $(if $(UPGRADE),--upgrade) \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file $(1)
endef

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find npstream tests -name __pycache__ -type d -prune -exec rm -rf {} +
