# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: Miri, on what every pixel goes through.

# Only nightly compilers have Miri. This one is pinned, and installed beside what the user has.
miri_toolchain=nightly-2026-05-20
has_miri() { rustup run "$miri_toolchain" cargo miri --version >/dev/null 2>&1; }
# Colors, planes and rows, which every pixel goes through, arrays in pages of their own, and components that threads unite. In a folder whose
# manifest leaves out what only other tests need: Miri would compile all of it.
try_miri() {
    local folder=$target_dir/superpixel-miri part newer
    mkdir -p "$folder"
    for part in src benches examples build.rs; do ln -sfn "$root/$part" "$folder/$part"; done
    # Nor other members of the workspace.
    sed '/^\[dev-dependencies\]$/,/^$/{/^\[\|^image /!d}; /^members = /d; /^default-members = /d; /^exclude = /d' Cargo.toml \
        >"$folder/Cargo.toml"
    cp Cargo.lock "$folder/"
    run_miri() { (cd "$folder" && rustup run "$miri_toolchain" cargo miri test --no-default-features --lib -- "$@"); }
    run_miri color:: cpu::memory::
    # The queues of rayon's threads are sound by the newer rules only; its threads outlive the tests.
    newer="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks"
    MIRIFLAGS=$newer run_miri image::
    # Threads that stop anywhere: often enough to get in between, seldom enough that another has time.
    MIRIFLAGS="$newer -Zmiri-preemption-rate=0.03" run_miri post::connectivity::shared::
}

miri_section() {
    if ! command -v rustup >/dev/null; then
        skip "$1" "it comes with $miri_toolchain, which rustup installs; there is no rustup"
    elif ! has_miri && ! timeout 300 rustup toolchain install "$miri_toolchain" --no-self-update --profile minimal --component miri,rust-src; then
        skip "$1" "rustup could not install $miri_toolchain with miri"
    else
        beside "$1" try_miri
    fi
}
miri_sections() { long miri_section "Miri"; }
