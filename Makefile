# Everything a checkout needs: each command makes its own virtual environments, with pip alone
# where npm is not named.
#
#   make demo     the main job on data made from the Python that runs it
#   make test     format, lint, types, import contracts, tests with docstring examples
#   make test-services   what needs npm besides: the tokenizers of six models, against transformers
#   make soak     two hundred kills, as many of readers of one cache, and starts of resized jobs; an
#                 hour of made-up programs, and an hour of damaged files
#   make bench    build a corpus, time Zephon against its roofline and the public package

PYTHON ?= python3
BIN := .venv/bin
CORES ?= 2
# the public package has our name, so it lives in an environment of its own
PEER := bench-data/peer-venv
# what renders chats independently of Zephon is no part of its own environment
TRANSFORMERS := .venv-transformers
# of `make soak`: processes that are killed in all, starts of a job on other numbers of ranks, and
# seconds for each of six kinds of programs, and for damaged files of each of two formats
KILLS ?= 200
RESIZES ?= 200
PROGRAMS ?= 1200
FUZZ ?= 3600
# of tests; the many processes that they begin are to find their modules compiled
SETTINGS := PYTHONHASHSEED=random OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

.PHONY: demo test test-services soak bench clean

demo: .venv/installed
	$(BIN)/zephon demo --data demo-data

# cheap first: a wrong format fails before a long test starts; the cache of lint-imports goes stale
# when files move; neighbouring tests share what a module has made, so they stay on one core
test: .venv/installed $(TRANSFORMERS)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	$(SETTINGS) $(BIN)/pytest --doctest-modules -n $(CORES) --dist worksteal tests zephon

test-services: .venv/installed $(TRANSFORMERS)/installed
	$(SETTINGS) $(BIN)/pytest -n $(CORES) --dist worksteal tests/services

soak: .venv/installed
	$(SETTINGS) $(BIN)/pytest -n $(CORES) --dist worksteal \
		--kills $(KILLS) --resizes $(RESIZES) --programs $(PROGRAMS) --fuzz $(FUZZ) \
		tests/cases/test_kills.py tests/cases/test_cache_kills.py tests/cases/test_resizes.py \
		tests/properties/test_programs.py \
		tests/properties/test_damaged_lines.py tests/properties/test_damaged_parquet.py

bench: .venv/installed-bench $(PEER)/installed
	$(BIN)/python -m benchmarks.corpus bench-data
	$(BIN)/python -m benchmarks --corpus bench-data

clean:
	rm -rf .venv .venv-transformers build *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# torch stands in the same command as everything else, so that the constraint decides its build
.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch,dev]'
	touch $@

.venv/installed-bench: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch,dev,bench]'
	touch $@

$(PEER)/installed: benchmarks/peers/zephon_public.txt
	test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install --quiet -r $<
	touch $@

$(TRANSFORMERS)/installed: $(addprefix tests/transformers_chats/, environment.txt data.txt)
	test -x $(TRANSFORMERS)/bin/python || $(PYTHON) -m venv $(TRANSFORMERS)
	$(TRANSFORMERS)/bin/python -m pip install --quiet -r tests/transformers_chats/environment.txt
	$(TRANSFORMERS)/bin/python -m pip install --quiet --no-deps -r tests/transformers_chats/data.txt
	touch $@
