# make study     nine objectives on the digits, three seeds, and their results; in a fresh .venv if there is none
# make test      the whole suite, in a fresh .venv if there is none
# make check     ruff, mypy, import-linter
# make format    what ruff can mend by itself
# make sanitize  the native kernel's fuzz tests under AddressSanitizer
# make arm       the native kernel on an emulated ARM processor (needs gcc-aarch64-linux-gnu and qemu-user)
# make bench     the numbers in the README
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
NATIVE := $(wildcard src/focalcal/_native/*.c src/focalcal/_native/*.h)

.PHONY: install study test check format bench sanitize arm clean
install: $(READY)

# Made again when what is installed changes; the constraints keep torch on its CPU build.
$(READY): pyproject.toml setup.py constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

study: $(READY)
	$(BIN)/focalcal study digits $(STUDY_ARGS)

test: $(READY)
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/loss_cost.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/temperature.py
	$(BIN)/python benchmarks/theory.py
	$(BIN)/python benchmarks/input.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/grid.py

sanitize: $(READY)
	PYTHON=$(BIN)/python sh tests/native/sanitize.sh

arm:
	mkdir -p build
	for check in check check_scores check_minimiser; do \
	    aarch64-linux-gnu-gcc -std=gnu11 -O3 -static -Itests/native/portable -Isrc/focalcal/_native \
	        tests/native/portable/$$check.c -lm -o build/$$check-arm && qemu-aarch64 build/$$check-arm || exit 1; \
	done

clean:
	rm -rf $(VENV) build src/*.egg-info src/focalcal/_native/*.so
