# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: half a minute of each target of fuzz/run.sh.

# Half a minute of each; fuzz/run.sh for hours. Built by itself: for a sanitizer, with the coverage that libFuzzer needs.
fuzz_sections() {
    local target
    for target in library metadata buffers emulated studio markers; do
        if ! compgen -G "$(rustc --print target-libdir)/librustc*_rt.asan.a" >/dev/null; then
            skip "fuzz, $target" "this compiler comes without AddressSanitizer; rustup's stable one has it"
        elif ! command -v c++ >/dev/null; then
            skip "fuzz, $target" "libFuzzer needs a C++ compiler"
        else
            beside "fuzz, $target" fuzz/run.sh 30 "$target"
        fi
    done
}
