# The project in a few words; the work is done by cargo, the C compiler and scripts/.
#
#   make           builds the command, the library, the applications and the examples into build/
#   make demo      runs red-black SOR on four nodes of this machine, verified
#   make test      everything that must hold
#   make test-full the engine's random jobs, many more of them than in make test
#   make verify    format, lints, tidiness, documentation: reads only
#   make fix       writes what verify can have written for it
#   make protocols-table   every application under every protocol, counted
#   make bench     what each operation costs, beside floors and peers (installs these where it may)
#   make performance   the same, and how costs grow, into docs/performance/
#   make strings-figures   every application in the configurations of Strings' ablation
#   make locks-table       what locking costs, queue against migratory
#   make install   copies what was built to PREFIX (/usr/local), below DESTDIR if that is set
#   make uninstall removes what make install has put there, and nothing else
#   make clean     removes what was built
#   make help      this list

.DEFAULT_GOAL := build
.DELETE_ON_ERROR:

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# The number behind libfinespun.so.
ABI := $(firstword $(subst ., ,$(VERSION)))

include apps/apps.mk
include benches/benches.mk
include fspcc/fspcc.mk
include packaging/packaging.mk

.PHONY: help
help:
	@sed -n 's/^#   //p; /^$$/q' Makefile

# ---- build --------------------------------------------------------------------------------------------------------

.PHONY: build binaries
build: binaries fspcc pages apps examples bench-programs

# What the machine must have; looked at again when the script changes.
build/.prepared-%: scripts/prepare.sh
	@scripts/prepare.sh $*
	@mkdir -p $(@D) && touch $@

# Cargo knows best what is out of date. Copies are made only of what is new, so that nothing else is built again.
binaries: build/.prepared-build build/include $(PACKAGING) build/lib/libfinespun_tmk.a
	$(CARGO) build --release -p finespun-cli -p finespun-capi
	@scripts/copy-new target/release/finespun build/bin/finespun
	@scripts/copy-new target/release/libfinespun.so build/lib/libfinespun.so
	@ln -sfn libfinespun.so build/lib/libfinespun.so.$(ABI)
	@scripts/copy-new target/release/libfinespun.a build/lib/libfinespun.a

build/bin/finespun build/lib/libfinespun.so build/lib/libfinespun.a: binaries ;

build/include:
	@mkdir -p build && ln -sfn ../include $@

# TreadMarks' calls, C on the public headers; a program links it before libfinespun.
build/lib/libfinespun_tmk.a: compat/tmk.c $(wildcard include/finespun/*.h)
	@mkdir -p $(@D) build/objects
	$(CC) -O2 -g -std=c11 -fPIC -Wall -Wextra -Werror -Iinclude -c -o build/objects/tmk.o $<
	@rm -f $@
	ar rcs $@ build/objects/tmk.o

# ---- use ----------------------------------------------------------------------------------------------------------

.PHONY: demo clean
demo: build
	build/bin/finespun run -n 4 -p 1 build/apps/sor --size 2048 --iters 100 --verify

clean:
	rm -rf build
	$(CARGO) clean

# What docs/protocols/comparison.md reads; needs python3.
.PHONY: protocols-table
protocols-table: build
	@scripts/protocols-table.py

# Prints the tables and leaves them in build/bench.json and build/bench.svg; with peers, which scripts/prepare.sh installs where it may.
.PHONY: bench
bench: build
	-scripts/prepare.sh bench
	$(MAKE) bench-peers
	build/bin/finespun bench --json build/bench.json --svg build/bench.svg

# Measures everything that docs/performance.md reads, and writes it there; QUIET may put a priority in front, like `chrt -r 1`.
.PHONY: performance
performance: build
	-scripts/prepare.sh bench
	$(MAKE) bench-peers
	scripts/performance.sh $(QUIET)

# What docs/protocols/strings-ablation.md reads; need python3.
.PHONY: strings-figures locks-table
strings-figures: build
	@scripts/strings-figures.py --svg build/strings-figures.svg
locks-table: build
	@scripts/locks-table.py

# ---- prove --------------------------------------------------------------------------------------------------------

# Optimised, with the assertions left in.
CHECKED = --profile checked

.PHONY: test test-crates test-cluster test-full tidy verify fix
test: test-crates test-cluster tidy

test-crates: build/.prepared-test
	$(CARGO) test $(CHECKED) --workspace --exclude finespun-cluster-tests --no-fail-fast

# Real jobs of real processes: most wait for each other more than they compute, so two at a time. Some run with a command and
# a library that have their assertions in.
test-cluster: build build/.prepared-test
	$(CARGO) build $(CHECKED) -p finespun-cli -p finespun-capi
	@scripts/copy-new target/checked/finespun build/checked/bin/finespun
	@scripts/copy-new target/checked/libfinespun.so build/checked/lib/libfinespun.so
	@ln -sfn libfinespun.so build/checked/lib/libfinespun.so.$(ABI)
	$(CARGO) test $(CHECKED) -p finespun-cluster-tests -- --test-threads=2
	@cat build/tests/*.skipped 2>/dev/null || true # and why

# The engine in virtual time: so many random programs for each protocol.
RUNS ?= 20000
test-full: build/.prepared-test
	FINESPUN_RUNS=$(RUNS) $(CARGO) test $(CHECKED) -p finespun-engine --test world -- --nocapture

tidy:
	scripts/tidy

verify: build/.prepared-test tidy
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

fix: build/.prepared-test
	$(CARGO) clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	$(CARGO) fmt
