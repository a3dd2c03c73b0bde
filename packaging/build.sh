#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Builds packages: packaging/build.sh PACKAGE [FOLDER]
#
# PACKAGE is one of
#   wheel   the Python package: a wheel for x86-64 Linux with glibc 2.17 or newer and Python 3.9 or newer, and its source archive
# They appear in FOLDER (default: packages in Cargo's target folder). Needs Rust, python3 with pip, and the package index.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
# shellcheck source=tools/pinned.sh
. "$root/tools/pinned.sh"

usage() { sed -n '3,7s|^# \{0,1\}||p' "${BASH_SOURCE[0]}"; }
say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

case ${1:-} in
    wheel) [ $# -le 2 ] || { usage >&2; exit 2; } ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
esac
folder=$(realpath -m "${2:-$target_dir/packages}")
mkdir -p "$folder"
cd "$root"

# The wheel is built from the source archive, which shows that the archive is whole.
build_wheel() {
    local maturin stage=$target_dir/superpixel-wheel triple=x86_64-unknown-linux-gnu built source
    [ "$(uname -m)" = x86_64 ] || die "the pinned maturin and zig are programs for x86-64"
    fetch_maturin || die "pip could not fetch maturin"
    maturin=$tool
    fetch_zig || die "pip could not fetch ziglang"
    PATH=${tool%/*}:$PATH
    rm -rf "$stage"
    mkdir -p "$stage"
    "$maturin" sdist --manifest-path python/Cargo.toml --out "$stage"
    source=$(echo "$stage"/superpixels-*.tar.gz)
    tar -xzf "$source" -C "$stage"
    cd "${source%.tar.gz}"
    "$root/packaging/bill.py" python/Cargo.toml $triple superpixels.cdx.json LICENSE-THIRD-PARTY
    # Messages of panics name files; not where they were here.
    RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$PWD=superpixels" \
        CARGO_TARGET_DIR=$target_dir "$maturin" build --release --locked --strip --zig --compatibility manylinux2014 --target $triple \
        --sbom-include superpixels.cdx.json --out "$stage/wheel"
    built=$(echo "$stage"/wheel/*.whl)
    mv "$built" "$source" "$folder/"
    cd "$root"
    rm -rf "$stage"
    (cd "$folder" && ls -l "${built##*/}" "${source##*/}")
}

say "building the $1"
"build_$1"
say "built the $1 in $folder"
