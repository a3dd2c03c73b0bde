#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Builds with cargo and prints the path of what it built: tools/built.sh NAME COMMAND [ARGUMENT ...]
#
# COMMAND is `cargo build` or another that makes the file NAME. Cargo's folder depends on --target, --target-dir,
# --profile, on variables (CARGO_BUILD_TARGET, CARGO_TARGET_DIR) and on the [build] table of several files, so it is
# asked. In the folder that one would guess may lie what an earlier build made for another machine.
set -eu

name=$1
shift
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$@" --message-format=json-render-diagnostics >"$said"
path=$(sed -n 's/^{"reason":"compiler-artifact".*"filenames":\[//p' "$said" | grep -o '"[^"]*/'"$name"'"' |
    tail -n 1 | tr -d '"')
if [ -z "$path" ] && [ ! -s "$said" ]; then
    # A wrapper of cargo may keep what it says to itself; then only what it wrote just now counts.
    folder=${CARGO_TARGET_DIR:-target} triple=${CARGO_BUILD_TARGET:-} profile=debug
    while [ $# -gt 0 ]; do
        case $1 in
            --target-dir) folder=$2 ;;
            --target) triple=$2 ;;
            --release) profile=release ;;
            --profile) profile=$(echo "$2" | sed 's/^dev$/debug/') ;;
        esac
        shift
    done
    path=$folder/${triple:+$triple/}$profile/$name
    [ ! "$path" -ot "$said" ] || path=
fi
if [ ! -f "$path" ]; then
    echo "error: cargo built no $name, or does not say where" >&2
    exit 1
fi
printf '%s\n' "$path"
