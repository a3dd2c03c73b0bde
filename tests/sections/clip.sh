# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the program superpixel-clip, and the rule by which programs in Rust write.

# The program has the features of the whole. It is built beside the plugin, from the same library.
try_clip() { cargo test --locked --package superpixel-clip; }
try_output() { cargo test --locked --package superpixel-output; }

clip_sections() {
    section "tests, superpixel-output" try_output
    section "tests, superpixel-clip" try_clip
}
