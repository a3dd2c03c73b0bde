# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the tests of the crate, with several sets of features and on several machines.

quick_tests() {
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --no-fail-fast $(features gst,cuda) --lib --test layers --test documents --test element --test label_element \
        --test meta --test bad_buffers --test drawing --test merge --test temporal --test by_hand --test hashes
}
run_tests() {
    local set=$1
    shift
    # Cargo names the library's files alike whatever its features, and takes those of another set for fresh.
    cargo clean -q -p gst-plugin-superpixel --profile dev
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --no-fail-fast $(features "$set") "$@"
}
# Again as users get it; with debug assertions it has run before. The features are the plugin's: for others much would be built again.
try_levels() {
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --release $(features gst,cuda) --test levels -- --nocapture
}

# The CUDA backend, kernels and all, on a device of the emulator's making; a real one may be there as well.
run_emulated() {
    local folder=$target_dir/superpixel-emulator
    tests/emulator/build.py "$folder"
    # A registry of its own: GStreamer's CUDA elements are there only with a device.
    rm -f "$folder/registry.bin"
    export GST_REGISTRY=$folder/registry.bin LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export SUPERPIXEL_EMULATED=1 SUPERPIXEL_REQUIRE_CUDA=1 SUPERPIXEL_SHORT=1
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --no-fail-fast $(features gst,cuda) $(cat tests/emulator/suite)
    # Once more as a device whose grids overlap, with all work put off until somebody waits for it.
    # shellcheck disable=SC2046  # words on purpose
    EMULATOR_CAPABILITY=90 EMULATOR_LAZY=1 cargo test --locked --no-fail-fast $(features gst,cuda) --test cuda_memory --test cuda_ownership --test cuda_arrays --test kept --test cuda_context \
        --test cuda_zero_copy --test cuda_bad_buffers --test cuda_async --test cuda_decoder
    # And as one with as many multiprocessors as large devices have, whose grids are larger than small frames, which puts branches of
    # graphs off, and sets some blocks up before the grid before has begun.
    # shellcheck disable=SC2046  # words on purpose
    EMULATOR_CAPABILITY=90 EMULATOR_EARLY=1 EMULATOR_MULTIPROCESSORS=132 EMULATOR_BACKWARDS=1 cargo test --locked --no-fail-fast $(features gst,cuda) --test parity --test cuda_temporal --test cuda_masks --test cuda_hierarchy -- \
        many_rounds merged_regions drawn_parameters quickshift_matches resets_match drawn_clips masked numbers_of_regions islands_match clips_match lists come_and_go
    # And on one that looks at what branches of graphs, and streams, touch at the same time.
    tests/emulator/build.py --races "$folder-races"
    # shellcheck disable=SC2046  # words on purpose
    LD_LIBRARY_PATH=$folder-races:$LD_LIBRARY_PATH cargo test --locked --no-fail-fast $(features gst,cuda) --test cuda_temporal --test cuda_hierarchy --test cuda_ownership --test cuda_arrays -- \
        drawn_clips lists_of_clips refined_regions another_library stream
    # Its other cases take a minute.
    python_with_gi tests/python/processes.py --cuda an_error_after_a_fork
}

library_sections() {
    # Of the smaller sets, what differs from the whole: a library alone; what the element says of itself without a backend, and the documents.
    section "tests, features: none" run_tests "" --lib --test allocations --test temporal
    section "tests, features: gst" run_tests gst --lib --test element --test documents
    section "tests, features: cuda" run_tests cuda --lib
    section "tests, features: gst,cuda" run_tests gst,cuda
    section "instruction sets, release" try_levels
    section "CUDA on an emulated device" run_emulated
}
