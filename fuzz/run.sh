#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Fuzzes the library and the elements: fuzz/run.sh [SECONDS] [TARGET...]
#
# Runs each target for SECONDS (default 60), one after the other, on what it found before and on the seeds. Targets: library,
# metadata, buffers; emulated, the CUDA backend on the emulated device; studio, messages of viewers; markers, what programs read
# of their own files (default: all).
# Ends with a status other than 0 if a target finds something; the input is then in target/fuzz/finds, and
# fuzz/run.sh --repeat FILE TARGET runs it again. fuzz/run.sh --seeds TARGET... puts a small set of what was found into fuzz/seeds,
# in place of what stands there, which git has to have.
# Needs no nightly compiler and no cargo-fuzz: the compiler's own AddressSanitizer, and a C++ compiler for libFuzzer.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
out=${CARGO_TARGET_DIR:-$root/target}/fuzz
emulator=${CARGO_TARGET_DIR:-$root/target}/superpixel-emulator
triple=$(rustc -vV | sed -n 's/^host: //p')

usage() { sed -n '3,11s/^# *//p' "${BASH_SOURCE[0]}"; exit "$1"; }

# The program of a target, built with what it needs.
build() {
    # Stable compilers have sanitizers, too, but offer them only so.
    RUSTC_BOOTSTRAP=1 RUSTC_WRAPPER=$here/rustc.sh RUSTFLAGS="--cfg fuzzing -Zsanitizer=address" CARGO_TARGET_DIR=$out/asan \
        cargo build -q --locked --manifest-path "$here/Cargo.toml" --target "$triple" --bin "$1"
    program=$out/asan/$triple/debug/$1
}

# Settings under which a target runs.
surround() {
    # GLib leaks on purpose: the targets count what they gave themselves.
    export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 RUST_BACKTRACE=1
    # What GLib and GStreamer take for a programming error is one.
    export G_DEBUG=fatal-criticals GST_REGISTRY=$out/registry-$1.bin
    if [ "$1" = emulated ]; then
        # Frames are small: threads would only wait for each other.
        export EMULATOR_THREADS=1 LD_LIBRARY_PATH=$emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        "$root/tests/emulator/build.py" "$emulator" >/dev/null
    fi
}

case ${1:-} in
    -h | --help) usage 0 ;;
    --build)
        shift
        for target in "$@"; do build "$target"; done
        exit
        ;;
    --repeat)
        [ $# = 3 ] || usage 2
        build "$3"
        surround "$3"
        exec "$program" "$2"
        ;;
    --seeds)
        shift
        # shellcheck source=pipelines/output.sh
        . "$root/pipelines/output.sh"
        for target in "$@"; do
            [ -f "$here/targets/$target.rs" ] || usage 2
            unchanged_in_git "$root" "fuzz/seeds/$target"
        done
        for target in "$@"; do
            build "$target"
            (
                surround "$target"
                mkdir -p "$out/less-$target"
                rm -f "$out/less-$target"/*
                # The smallest inputs first; of those that reach something new, as many as are small together.
                "$program" -merge=1 -max_len=200 "$out/less-$target" "$here/seeds/$target" "$out/corpus/$target"
                rm -rf "${here:?}/seeds/$target"
                mkdir -p "$here/seeds/$target"
                find "$out/less-$target" -type f -printf '%s %f\n' | sort -n | awk 'NR % 12 == 1' | head -n 48 |
                    while read -r _ name; do cp "$out/less-$target/$name" "$here/seeds/$target/$name"; done
            )
        done
        exit
        ;;
esac

seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
fi
[ $# -gt 0 ] || set -- library metadata buffers emulated studio markers

status=0
for target in "$@"; do
    [ -f "$here/targets/$target.rs" ] || usage 2
    build "$target"
    mkdir -p "$out/corpus/$target" "$out/finds" "$here/seeds/$target"
    echo "== fuzz $target: $seconds s"
    (
        surround "$target"
        "$program" -max_total_time="$seconds" -max_len=500 -len_control=0 -timeout=60 -rss_limit_mb=3000 -print_final_stats=1 \
            -artifact_prefix="$out/finds/$target-" "$out/corpus/$target" "$here/seeds/$target"
    ) 2>"$out/$target.log" || status=1
    grep -E '^(stat::|SUMMARY|thread .* panicked)|DONE +cov|ERROR:|Test unit written' "$out/$target.log" || tail -n 20 "$out/$target.log"
done
exit $status
