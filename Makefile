# Needs python3 (3.11 to 3.13), pip and make; everything else is installed into .venv from setup.cfg.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: venv demo test bench lint clean

venv: .venv/installed

.venv/installed: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else \
	  "pairzoo needs Python 3.11 to 3.13. Received: " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

DEMO_TEST := demo/runs/samples/ctrn_yahoo/test.txt

demo: venv
	rm -rf demo
	$(BIN)/python -m recipes.ctrn_yahoo --runs demo/runs
	$(BIN)/python -m export demo/runs/ctrn_yahoo/latest demo/served
	@$(BIN)/python -m export.server demo/served --port 0 > demo/server.log & server=$$!; \
	trap 'kill $$server' EXIT; \
	until grep -q Serving demo/server.log; do kill -0 $$server || exit 1; sleep 1; done; \
	cat demo/server.log; \
	question=$$(head -1 $(DEMO_TEST) | cut -d'#' -f1); \
	echo "Question: $$question"; \
	head -5 $(DEMO_TEST) | cut -d'#' -f2 | tr '\n' '\0' | xargs -0 $(BIN)/python -m export.client \
	  --url "$$(grep -o 'http[^ ]*/v1/models/[^: ]*' demo/server.log)" --query "$$question" --candidate

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

test: venv lint
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

DATA ?= ../shared/data

# Torch is a peer that is measured; any build of it will do.
bench: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m tests.benchmarks --data $(DATA) --json bench.json

clean:
	rm -rf .venv build demo *.egg-info
