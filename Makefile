# Needs python3 (3.11 to 3.13), pip and make; everything else is installed into .venv from setup.cfg.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: venv demo test lint clean

venv: .venv/installed

.venv/installed: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else \
	  "pairzoo needs Python 3.11 to 3.13. Received: " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

demo: venv
	$(BIN)/python -m recipes.ctrn_yahoo --runs demo/runs
	$(BIN)/python -m export demo/runs/ctrn_yahoo/latest demo/served
	$(BIN)/python -m export.demo demo/served demo/runs/ctrn_yahoo/latest

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

test: venv lint
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile

clean:
	rm -rf .venv build demo *.egg-info
