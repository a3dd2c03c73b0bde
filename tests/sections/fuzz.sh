# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: half a minute of each target of fuzz/run.sh.

# Half a minute of each; fuzz/run.sh for hours. Built by itself: for a sanitizer, with the coverage that libFuzzer needs.
fuzz_section() {
    if ! compgen -G "$(rustc --print target-libdir)/librustc*_rt.asan.a" >/dev/null; then
        skip "$1" "this compiler comes without AddressSanitizer; rustup's stable one has it"
    elif ! command -v c++ >/dev/null; then
        skip "$1" "libFuzzer needs a C++ compiler"
    else
        beside "$1" fuzz/run.sh 30 "$2"
    fi
}
fuzz_sections() {
    local target
    for target in library metadata buffers emulated studio markers; do
        long fuzz_section "fuzz, $target" "$target"
    done
}
