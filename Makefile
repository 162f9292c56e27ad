# make study                  nine objectives on the digits, five seeds, and their results; in a fresh .venv if there is none
# make test                   the suite but for what is marked slow, in a fresh .venv if there is none
# make check                  ruff, mypy, import-linter, codespell, wording
# make docs                   the site, into site/; fails on broken links and undocumented public names
# make everything             all that is below, before a release: an hour on two cores
#
# make test-slow              the tests marked slow; SLOW="slow and not release" is the quick half, which CI runs
# make test-without-kernel    the numerical tests again, on NumPy and torch alone
# make test-without-torch     the wheel and its dependencies in an environment of their own, without torch
# make test-other-processors  the numerical tests again, as processors without AVX and without AVX-512 would run them
# make test-triton            the losses' tests again, with the GPU kernels run by Triton's interpreter on the CPU
# make test-object-store      files in an object store, of a server that moto starts in an environment outside of this folder
# make test-torch-versions    with the oldest and the newest torch, in environments outside of this folder (gigabytes)
# make sanitize               the native kernel's fuzz tests under AddressSanitizer
# make dist                   source archive and wheels, with and without the native module, into dist/, and tries them
# make coverage               the suite with the lines and branches of src that it reaches; fails below 92 % of lines
#
# make format                 what ruff can fix by itself
# make arm                    the native kernel on an emulated ARM processor (needs gcc-aarch64-linux-gnu and qemu-user)
# make bench                  the numbers in the README
# make paper                  docs/results again, from the records of the runs in paper/records
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LAB    := $(VENV)/.lab
NATIVE := $(wildcard src/focalcal/_native/*.c src/focalcal/_native/*.h)

# Each of the hundreds of programs that tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n 2
BY_FILE := --dist loadfile --no-loadscope-reorder  # what a file shares, a cluster or a browser, is started once
# What another engine or processor could change; `once` marks what neither can.
AGAIN  := $(PYTEST) $(BY_FILE) -q -m "not slow and not once" tests/losses tests/metrics tests/contracts/test_every_loss.py \
          tests/contracts/test_every_metric.py tests/contracts/test_every_calibrator.py $(wildcard tests/contracts/test_refusals*)

.PHONY: install study test test-slow test-other-processors test-without-kernel test-without-torch test-triton \
        test-torch-versions test-object-store everything check coverage docs dist format bench paper sanitize arm clean
install: $(READY)

# Made again when what is installed changes.
$(READY): pyproject.toml setup.py constraints.txt $(NATIVE)
	$(PYTHON) .ci/install.py $(VENV) $(READY) dev

$(LAB): pyproject.toml setup.py constraints.txt $(NATIVE)
	$(PYTHON) .ci/install.py $(VENV) $(LAB) lab

# What trains needs less than what develops; where that is installed, it serves.
study: $(if $(wildcard $(READY)),$(READY),$(LAB))
	$(BIN)/focalcal study digits $(STUDY_ARGS)

test: $(READY)
	$(PYTEST) $(BY_FILE) -m "not slow" $(PYTEST_ARGS)

SLOW ?= slow
test-slow: $(READY)
	$(PYTEST) -m "$(SLOW)" $(PYTEST_ARGS)

# torch, MKL, oneDNN, OpenBLAS, NumPy and the kernel, each held to an instruction set by the name it has for it.
test-other-processors: $(READY)
	ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41 OPENBLAS_CORETYPE=Prescott \
	    NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL AVX512_SPR" FOCALCAL_INSTRUCTION_SET=baseline \
	    $(AGAIN) tests/core tests/posthoc tests/theory
	if grep -q avx512f /proc/cpuinfo; then \
	    ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell \
	        NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" FOCALCAL_INSTRUCTION_SET=avx2 \
	        $(AGAIN) tests/core tests/posthoc tests/theory; \
	fi  # without AVX-512 that is what `make test` did

test-without-kernel: $(READY)
	FOCALCAL_NATIVE=0 $(AGAIN) tests/theory/test_minimiser.py

test-without-torch: $(READY)
	$(BIN)/python .ci/without_torch.py

# What is left out never reaches a kernel.
test-triton: $(READY)
	TRITON_INTERPRET=1 FOCALCAL_NATIVE=0 $(PYTEST) -q -m "not slow and not once" tests/losses tests/contracts/test_every_loss.py \
	    tests/contracts/test_refusals_of_losses.py \
	    -k "not multilabel and not functorch and not forward_mode and not class_probabilities and not second_derivatives"

# The environments are in TORCH_VERSIONS, outside of the tree; PYTEST_ARGS="--only oldest tests/losses" for a part of it.
TORCH_VERSIONS ?= $(or $(TMPDIR),/tmp)/focalcal-torch-versions
test-torch-versions: $(READY)
	$(BIN)/python .ci/torch_versions.py $(TORCH_VERSIONS) $(PYTEST_ARGS)

# moto pins packages that other tests have newer versions of.
MOTO ?= $(or $(TMPDIR),/tmp)/focalcal-moto
test-object-store: $(READY)
	test -x $(MOTO)/bin/moto_server || { $(PYTHON) -m venv $(MOTO) && $(MOTO)/bin/pip install -q 'moto[server]>=5'; }
	FOCALCAL_MOTO=$(MOTO)/bin/moto_server $(PYTEST) -n 0 tests/predictions/test_object_store.py

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python .ci/wording.py

coverage: $(READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -p no:xdist -q -m "not slow" $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	mkdir -p build && $(BIN)/coverage json --quiet -o build/coverage.json
	$(BIN)/python -c "import json; total = json.load(open('build/coverage.json'))['totals']; \
	    share = 100 * total['covered_lines'] / total['num_statements']; print(f'{share:.1f} % of lines'); exit(share < 92)"

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html is the site; for its search: $(BIN)/mkdocs serve"

dist: $(READY)
	rm -rf build dist
	$(BIN)/python -m build --no-isolation
	FOCALCAL_BUILD_NATIVE=0 $(BIN)/python -m build --no-isolation --wheel
	$(BIN)/python .ci/distribution.py dist

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

paper: $(READY)
	$(BIN)/python -m paper.publish

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
	for check in check check_scores check_minimiser check_softmax; do \
	    aarch64-linux-gnu-gcc -std=gnu11 -O3 -static -Itests/native/portable -Isrc/focalcal/_native \
	        tests/native/portable/$$check.c -lm -o build/$$check-arm && qemu-aarch64 build/$$check-arm || exit 1; \
	done

everything: check docs test test-slow test-without-kernel test-without-torch test-other-processors test-triton \
            sanitize dist test-object-store test-torch-versions

clean:
	rm -rf $(VENV) build dist site src/*.egg-info src/focalcal/_native/*.so
