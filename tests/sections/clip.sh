# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the program superpixel-clip.

# The program has the features of the whole. It is built beside the plugin, from the same library.
lint_clip() { cargo clippy --locked --package superpixel-clip --all-targets -- -D warnings; }
try_clip() { cargo test --locked --package superpixel-clip; }

clip_sections() {
    section "clippy, superpixel-clip" lint_clip
    section "tests, superpixel-clip" try_clip
}
