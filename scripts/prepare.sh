#!/bin/sh
# scripts/prepare.sh [build|test|bench]: sees to it that this machine has what the build (or the tests, or the peers that
# the benchmark stands beside) needs.
#
# It looks first and does nothing when all is there. What is missing is installed through apt when that may be done
# (as root, or by sudo without a password); else the exact line to run is printed. Rust is never installed here.
set -eu
cd "$(dirname "$0")/.."

what=${1:-build}
rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

say() { echo "prepare: $*" >&2; }

# older A B: is version A older than version B?
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

check_rust() {
    if ! command -v "${CARGO:-cargo}" >/dev/null 2>&1; then
        if [ -x "$HOME/.cargo/bin/cargo" ]; then
            say "cargo is in $HOME/.cargo/bin, which is not in PATH. Run this, then make again:"
            say '    . "$HOME/.cargo/env"'
        else
            say "cargo is missing: Finespun is built with Rust $rust_needed or newer. Run this, then make again:"
            say "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
        fi
        exit 1
    fi
    rust_here=$("${CARGO:-cargo}" --version | sed 's/^cargo \([0-9.]*\).*/\1/')
    if older "$rust_here" "$rust_needed"; then
        say "this is Rust $rust_here; Finespun is built with Rust $rust_needed or newer. Run this, then make again:"
        say "    rustup update stable"
        say "(Debian's own package of Rust is too old; https://rustup.rs has the current one.)"
        exit 1
    fi
}

# compiles LANGUAGE COMPILER HEADER: a compiler without its library's headers does not help.
compiles() {
    command -v "$2" >/dev/null 2>&1 && echo "#include <$3>" | "$2" -x "$1" -fsyntax-only - >/dev/null 2>&1
}

missing_packages() {
    compiles c "${CC:-cc}" stdio.h || echo gcc libc6-dev
    if [ "$what" = test ]; then
        command -v cmake >/dev/null 2>&1 || echo cmake
        command -v pkg-config >/dev/null 2>&1 || echo pkg-config
        compiles c++ "${CXX:-g++}" cstdio || echo g++
        command -v m4 >/dev/null 2>&1 || echo m4 # for the programs with PARMACS macros
        command -v patch >/dev/null 2>&1 || echo patch # for the worked ports
        command -v script >/dev/null 2>&1 || echo bsdutils # a terminal for the tests of Ctrl-C
    fi
    if [ "$what" = bench ]; then
        command -v oshcc >/dev/null 2>&1 || echo openmpi-bin libopenmpi-dev
        ls /usr/lib/*/libga-openmpi.a >/dev/null 2>&1 || echo libglobalarrays-dev
        ls /usr/lib/*/libarmci-openmpi.* >/dev/null 2>&1 || echo libarmci-mpi-dev libscalapack-openmpi-dev liblapack-dev gfortran
    fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

check_rust
packages=$(missing_packages | tr '\n' ' ' | sed 's/ *$//')
[ -z "$packages" ] && exit 0

may_install=no
if command -v apt-get >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] || sudo -n true >/dev/null 2>&1; then may_install=yes; fi
fi
if [ "$may_install" = no ]; then
    say "these packages are missing: $packages. Run this, then make again:"
    say "    sudo apt-get update && sudo apt-get install -y $packages"
    exit 1
fi

say "installing $packages"
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >&2; }
# shellcheck disable=SC2086 # a list of names
apt update && apt install -y --no-install-recommends $packages
still=$(missing_packages | tr '\n' ' ')
if [ -n "$still" ]; then
    say "apt-get has run, but this is still missing: $still"
    exit 1
fi
