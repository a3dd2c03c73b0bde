# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: one build of all packages, and its tests, on several machines.

# Always all of them, whichever is tested: features of shared dependencies follow from what is named, and others would build the
# library again.
packages=(--package gst-plugin-superpixel --package superpixel-clip --package superpixel-output --package superpixel-studio --package superpixels
    --package superpixels-web)
test_packages() { SUPERPIXEL_EXAMPLES_BUILT=1 cargo test --locked --no-fail-fast "${packages[@]}" "$@"; }
quick_tests() {
    test_packages --lib
    test_packages --test texts --test element --test library -- comments documents layers lists records superpixel meta bad_buffers by_hand \
        drawing hashes merge temporal::
}
# Programs and libraries, with examples: only with these, or tests, do features of what tests need count, and the library is the one
# that tests have.
build_packages() {
    cargo build --locked "${packages[@]}" --lib --bins --examples
    test_packages --no-run
}
# With the plugin where GStreamer finds it: the build of the tests, with debug assertions.
build_all() {
    local start=$SECONDS used before
    say "building all packages"
    cpu_seconds
    before=$used
    # Not in a condition, where bash ignores `set -e`.
    (set -e; build_packages) &
    wait $! || die "the build failed"
    cpu_seconds
    count "build" 0 $((SECONDS - start)) $((used - before))
    mkdir -p "$plugin_dir"
    cp "$target_dir/debug/libgstsuperpixel.so" "$plugin_dir/"
    use_plugin
}

# What differs in a smaller set: a library alone; what the element says of itself without a backend, and the documents.
test_features() {
    local set=$1
    shift
    # In a folder of their own: Cargo names the library's files alike whatever its features, and takes those of another set for fresh.
    export CARGO_TARGET_DIR=$target_dir/superpixel-features/${set:-none}
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --no-fail-fast $(features "$set") "$@"
}
# Again as users get it; with debug assertions it has run before. The features are the plugin's: for others much would be built again.
try_levels() {
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --release $(features gst,cuda) --test levels -- --nocapture
}

# Makes the emulator's library the one that is found: [FOLDER OPTION]
use_emulator() {
    local folder=${1:-$target_dir/superpixel-emulator}
    tests/emulator/build.py "${@:2}" "$folder"
    # A registry of its own: GStreamer's CUDA elements are there only with a device.
    rm -f "$folder/registry.bin"
    export GST_REGISTRY=$folder/registry.bin LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export SUPERPIXEL_EMULATED=1 SUPERPIXEL_REQUIRE_CUDA=1 SUPERPIXEL_SHORT=1
}
# The CUDA backend, kernels and all, on a device of the emulator's making; a real one may be there as well. A device that finds most: its
# work is put off until somebody waits for it, blocks run backwards and some before the grid before has begun. Tests run beside each
# other, so that one thread for the blocks of a grid is enough. Faults are
# counted in calls, which such a device does not make in order.
run_emulated() {
    use_emulator
    # shellcheck disable=SC2046  # words on purpose
    EMULATOR_THREADS=1 EMULATOR_CAPABILITY=90 EMULATOR_LAZY=1 EMULATOR_EARLY=1 EMULATOR_BACKWARDS=1 test_packages $(cat tests/emulator/suite) -- \
        --skip faults:: --skip every_format_overlay_and --skip numbers_that_come_and_go --skip lists_of_refined_maps
    test_packages --test cuda -- faults:: --skip a_device_that_breaks
    (
        use_analytics
        test_packages --test element -- values_of_a_segmentation_are_areas
    )
    # Its other cases take a minute.
    python_with_gi tests/python/processes.py --cuda an_error_after_a_fork
}
# All on an old device, on which grids do not overlap, with its work done at once; one with as many multiprocessors as large devices have, whose
# grids are larger than small frames; one without memory of its own; and one that looks at what branches of graphs, and streams, touch at the same time.
run_emulated_more() {
    use_emulator
    # shellcheck disable=SC2046  # words on purpose
    test_packages $(cat tests/emulator/suite)
    EMULATOR_CAPABILITY=90 EMULATOR_EARLY=1 EMULATOR_MULTIPROCESSORS=132 EMULATOR_BACKWARDS=1 test_packages --test cuda -- \
        many_rounds merged_regions drawn_parameters quickshift_matches resets_match drawn_clips masked numbers_of_regions islands_match clips_match lists come_and_go
    EMULATOR_INTEGRATED=1 EMULATOR_CAPABILITY=87 EMULATOR_LAZY=1 test_packages --test cuda -- ownership:: drawn_clips formats priors:: masked staging batches::
    use_emulator "$target_dir/superpixel-emulator-races" --races
    test_packages --test cuda -- temporal::drawn_clips lists_of_clips temporal::refined_regions another_library ownership:: arrays::
}

emulator_sections() { beside "CUDA on an emulated device" run_emulated; }
library_sections() {
    section "tests in Rust" test_packages
    long section "CUDA on further emulated devices" run_emulated_more
    long section "tests, features: none" test_features "" --lib --test allocations --test library temporal
    long section "tests, features: gst" test_features gst --lib --test element --test texts
    long section "tests, features: cuda" test_features cuda --lib
    long section "instruction sets, release" try_levels
}
