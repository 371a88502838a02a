# Two commands for a new machine: `make demo` and `make test`. They need Rust, Python 3.10+ with venv, a C compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The tests start thousands of processes that import the same packages: what Python compiles of them is kept, also where the
# environment says that it is not. Else each `import torch` takes more than twice as long.
export PYTHONDONTWRITEBYTECODE :=

# As maturin says it: the module is not linked with Python's own library, which may not be there.
export PYO3_BUILD_EXTENSION_MODULE := 1

.PHONY: demo test test-all test-features test-frameworks test-peers test-engines test-notebooks test-trainers check bench pictures notebooks site torture dist licences py module rust-test python-test fuzz-check clean

# The main job on the sample corpus: prepare, inspect, feed, stop, resume. Only what it uses is built.
demo:
	@echo "Building windrow with its tokenizers, 160 crates: two to four minutes the first time, nothing after that. Then the demo runs."
	cargo run --profile demo -p windrow-cli --no-default-features --features text -- demo

# All tests of the workspace and of python/tests.
test: rust-test python-test

# And those that .ci/run runs where what they test changed.
test-all: test test-features test-frameworks test-engines test-notebooks test-trainers fuzz-check

rust-test:
	cargo test --workspace --no-fail-fast

# Each feature alone: that it compiles, and what the light build says of data that needs one.
test-features:
	for feature in text parquet remote zarr audio bzip2 dac yaml llama3; do cargo check --quiet -p windrow --features $$feature || exit 1; done
	for feature in report remote; do cargo check --quiet -p windrow-cli --no-default-features --features $$feature || exit 1; done
	cargo test -p windrow --no-default-features --test it
	cargo test -p windrow-cli --no-default-features --test it

# Batches as tensors of candle and burn, and a GPT that trains on them.
test-frameworks:
	cargo test --manifest-path frameworks/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target}

python-test: module
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 python/tests

# Only the files of tests that run the packages of other loaders, whose folder is made from their list; `make test` runs them too.
test-peers: module
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 $$(grep -lE 'with_loaders|printed_by_loaders' python/tests/test_*.py)

# Only preparation by Ray, dask and Slurm, each a real one on this machine: Ray and dask in a folder of their own, Slurm from Debian's packages.
test-engines: module $(VENV)/engines/.installed
	PATH="$$PATH:/usr/sbin" PYTHONPATH=$(abspath $(VENV))/engines $(BIN)/python -m pytest -q python/tests/test_engines.py

$(VENV)/engines/.installed: python/requirements-engines.txt
	@PATH="$$PATH:/usr/sbin"; for program in slurmctld slurmd sbatch munged; do command -v $$program >/dev/null || missing="$$missing $$program"; done; \
	if [ -n "$$missing" ]; then \
		echo "missing:$$missing; installing slurm-wlm and munge"; \
		export DEBIAN_FRONTEND=noninteractive; \
		(apt-get install -y --no-install-recommends slurm-wlm munge || { apt-get update && apt-get install -y --no-install-recommends slurm-wlm munge; }) >/dev/null \
			|| { echo "test-engines needs$$missing: install the packages slurm-wlm and munge"; exit 1; }; \
	fi
	rm -rf $(VENV)/engines
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --target $(VENV)/engines -r python/requirements-engines.txt
	touch $@

# Only the notebooks of docs/notebooks, in a kernel as Jupyter has it, which is in a folder of its own.
test-notebooks: module $(VENV)/notebooks/.installed
	PYTHONPATH=$(abspath $(VENV))/notebooks $(BIN)/python -m pytest -q python/tests/test_notebooks.py

# The outputs that the notebooks keep, after an edit.
notebooks: py $(VENV)/notebooks/.installed
	PYTHONPATH=$(abspath $(VENV))/notebooks $(BIN)/python python/tests/test_notebooks.py

$(VENV)/notebooks/.installed: python/requirements-notebooks.txt
	rm -rf $(VENV)/notebooks
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --target $(VENV)/notebooks -r python/requirements-notebooks.txt
	touch $@

# Only examples/trainers, each in the trainer that it is for, whose packages are in a folder of their own.
test-trainers: module $(VENV)/trainers/.installed
	PYTHONPATH=$(abspath $(VENV))/trainers $(BIN)/python -m pytest -q -n auto --maxprocesses 2 --dist loadfile python/tests/test_trainer_*.py

$(VENV)/trainers/.installed: python/requirements-trainers.txt
	rm -rf $(VENV)/trainers
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --no-deps --target $(VENV)/trainers -r python/requirements-trainers.txt
	touch $@

# The package in .venv as the tests use it. It is built beside the Rust tests, of what they are built of: by itself it would ask
# libraries for other features, and half of them would be built twice.
module: $(STAMP)
	cargo build --quiet --workspace --lib --tests
	cp $${CARGO_TARGET_DIR:-target}/debug/libwindrow_py.so python/windrow/_native.abi3.so.new
	mv python/windrow/_native.abi3.so.new python/windrow/_native.abi3.so
	echo $(abspath python) >$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/windrow.pth

# The Python package alone, with its program, built into .venv.
py: $(STAMP)
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --quiet $(MATURIN_FLAGS)

$(STAMP): python/requirements-test.txt python/requirements-zarr2.txt python/requirements-dac.txt python/requirements-loaders.txt
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade uv
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet -r python/requirements-test.txt
	rm -rf $(VENV)/zarr2
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --target $(VENV)/zarr2 -r python/requirements-zarr2.txt
	rm -rf $(VENV)/dac
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --no-deps --target $(VENV)/dac -r python/requirements-dac.txt
	rm -rf $(VENV)/loaders
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet --no-deps --target $(VENV)/loaders -r python/requirements-loaders.txt
	touch $@

# What continuous integration asks besides the tests: all features, none, and what the demo has.
check:
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path frameworks/Cargo.toml --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p windrow --all-targets -- -D warnings
	cargo clippy -p windrow -p windrow-cli --no-default-features --features windrow-cli/text -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# The fuzz targets compile with the installed toolchain; running them needs cargo-fuzz and a nightly one.
fuzz-check:
	cargo check --quiet --manifest-path fuzz/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target}

# Everything that can happen to data, tried for BUDGET seconds on all cores, counted, and added to reliability/runs. Builds that check
# their own arithmetic; the fuzz targets are built as fuzz/README.md says.
BUDGET ?= 600
torture: module
	RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares" \
		cargo build --release --quiet --manifest-path fuzz/Cargo.toml --target $$(rustc -vV | sed -n 's/^host: //p') --bins
	$(BIN)/python reliability/torture.py --budget $(BUDGET)

# Side by side with other loaders, in one run; the numbers go to benches/runs/.
bench: MATURIN_FLAGS := --profile dist
bench: py
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/uv pip install --quiet -r benches/requirements.txt
	cargo build --release --quiet -p windrow-bench
	$(BIN)/python benches/run.py

# The pictures of README.md and docs/time-series.md, and the pages of docs/gallery, from testdata.
pictures: py
	$(BIN)/python docs/pictures.py
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python docs/gallery.py

# The pages of docs/ and those of the crates as a site in target/site, every link checked. The package is not needed.
site: $(VENV)/site/.installed
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/python -m mkdocs build --strict
	$(VENV)/site/bin/python docs/site/links.py target/site

$(VENV)/site/.installed: python/requirements-site.txt
	rm -rf $(VENV)/site
	$(PYTHON) -m venv $(VENV)/site
	$(VENV)/site/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements-site.txt
	touch $@

# A source archive, and from it a wheel for Linux with glibc 2.28 or later, in target/wheels; each Python here tries it in a new environment.
dist: py licences $(VENV)/dist/.installed
	$(BIN)/python packaging/pages.py
	rm -rf target/wheels
	CARGO_TARGET_DIR=$(abspath target) PATH="$(abspath $(VENV))/dist/bin:$$PATH" maturin build --profile dist --sdist --zig --compatibility manylinux_2_28 --compression-level 9 --out target/wheels
	$(VENV)/dist/bin/python packaging/check.py target/wheels/*.whl
	$(VENV)/dist/bin/python -m twine check --strict target/wheels/*
	cargo publish --workspace --dry-run --no-verify --quiet --allow-dirty
	# As if the crates that those of frameworks/ depend on were published.
	cp frameworks/Cargo.lock target/frameworks.lock
	cargo publish --manifest-path frameworks/Cargo.toml --workspace --dry-run --no-verify --quiet --allow-dirty --target-dir target/frameworks \
		--config 'patch.crates-io.windrow.path="$(abspath crates/windrow)"' --config 'patch.crates-io.windrow-core.path="$(abspath crates/windrow-core)"'; \
		code=$$?; mv target/frameworks.lock frameworks/Cargo.lock; exit $$code

$(VENV)/dist/.installed: python/requirements-dist.txt
	rm -rf $(VENV)/dist
	$(PYTHON) -m venv $(VENV)/dist
	$(VENV)/dist/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements-dist.txt
	touch $@

# Licences, sources and advisories about what windrow is built with, and the texts that go into the wheel. Where no database of
# advisories is reachable, it says so.
licences: target/tools/bin/cargo-about
	PATH="$(abspath target/tools/bin):$$PATH" cargo deny check licenses bans sources
	export PATH="$(abspath target/tools/bin):$$PATH"; if cargo deny fetch db 2>/dev/null; then cargo deny check advisories; \
		else echo "advisories: no database of them is reachable here, nothing was checked"; fi
	PATH="$(abspath target/tools/bin):$$PATH" cargo about generate --offline -m crates/windrow-py/Cargo.toml -c packaging/about.toml -o THIRD-PARTY.md packaging/about.hbs

target/tools/bin/cargo-about:
	cargo install --quiet --locked --root target/tools cargo-deny
	cargo install --quiet --locked --root target/tools --features cli cargo-about

clean:
	cargo clean
	rm -rf $(VENV) fuzz/target windrow-demo THIRD-PARTY.md
