#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# The compiler as cargo calls it; adds the coverage that steers libFuzzer to the library and to the files of the studio
# that a target takes, and to nothing else. Comparisons are not traced: inputs are drawn values, and in pixel loops the
# trace took most of the time.
set -euo pipefail

case " $* " in
    *" --crate-name gstsuperpixel "* | *" --crate-name studio "*)
        llvm=(-sanitizer-coverage-level=3 -sanitizer-coverage-inline-8bit-counters -sanitizer-coverage-pc-table)
        exec "$@" -Cpasses=sancov-module "${llvm[@]/#/-Cllvm-args=}"
        ;;
esac
exec "$@"
