# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the library on ARM64, emulated.

# Settings of the frames that are compared, each for some frames of the clip.
arm64_jobs=(
    "6 superpixels=300 temporal=true" "3 superpixels=300 adaptive-compactness=true color-space=rgb" "2 superpixels=600 regions=40 refine=2"
    "6 algo=lsc superpixels=300 temporal=true" "2 algo=lsc superpixels=200 lsc-ratio=0.2 merge=2"
    "3 algo=snic superpixels=300 temporal=true" "1 algo=quickshift superpixels=300" "2 algo=quickshift superpixels=300 temporal=true regions=50"
)
# With the features of neither elements nor device.
arm64_build=(--locked --no-default-features --target "$arm64_triple" --target-dir "$target_dir/superpixel-arm64")
# Crates of the tests that wrap libraries in C take none of ARM64: no test that needs one is built.
leave_out_libraries() {
    local name
    for name in GLIB_2_0 GOBJECT_2_0 GIO_2_0 GSTREAMER_1_0 GSTREAMER_{BASE,VIDEO,APP,CHECK}_1_0; do
        export "SYSTEM_DEPS_${name}_NO_PKG_CONFIG=1" "SYSTEM_DEPS_${name}_LIB=c"
    done
}
try_arm64() {
    local folder=$target_dir/superpixel-arm64-frames job program
    rm -rf "$folder"
    mkdir -p "$folder"
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! videoconvert ! videoscale ! \
        video/x-raw,format=RGBA,width=320,height=180 ! identity eos-after=7 ! filesink location="$folder/frames.rgba"
    for job in "${arm64_jobs[@]}"; do echo "320 180 $folder/frames.rgba $job"; done >"$folder/jobs"
    # The last word of a line is a time.
    "$target_dir/debug/examples/expected" <"$folder/jobs" | sed 's/ [^ ]*$//' >"$folder/here"
    prepare_arm64
    program=$(tools/built.sh expected cargo build "${arm64_build[@]}" --package superpixels-web --example expected)
    qemu-aarch64 -L "$arm64_root" "$program" <"$folder/jobs" | sed 's/ [^ ]*$//' >"$folder/arm64"
    [ "$(wc -l <"$folder/here")" = 25 ]
    diff "$folder/here" "$folder/arm64"
}
# Tests with an oracle or with figures that were written down; drawn parameters are for machines that are fast.
try_arm64_library() {
    prepare_arm64
    leave_out_libraries
    cargo test "${arm64_build[@]}" --package gst-plugin-superpixel --test library -- hashes by_hand a_checker_of_two_colors \
        lsc_is_what_the_paper small_sizes_equal_the_specification identities_without_clusters
}
# The wheel for ARM64 in Debian's Python of it, compared with the package as the tests of this machine have it.
try_arm64_wheel() {
    local folder=$target_dir/superpixel-arm64-wheel
    rm -rf "$folder"
    mkdir -p "$folder/here/superpixels" "$folder/arm64"
    cp python/superpixels/* "$folder/here/superpixels/"
    cp "$target_dir/debug/lib_native.so" "$folder/here/superpixels/_native.abi3.so"
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! videorate ! video/x-raw,framerate=4/1 ! videoconvert ! \
        videoscale ! video/x-raw,format=RGBA,width=320,height=180 ! filesink location="$folder/frames.rgba"
    truncate -s $((10 * 4 * 320 * 180)) "$folder/frames.rgba"
    packaging/build.sh wheel --arch arm64 "$folder/packages"
    python3 -m zipfile -e "$folder"/packages/*_aarch64.whl "$folder/arm64"
    unpack_arm64 python-arm64 python3:arm64 python3-numpy:arm64
    PYTHONPATH=$folder/here /usr/bin/python3 tests/python/hashes.py "$folder/frames.rgba" 320 180 >"$folder/here.txt"
    arm64_python "$folder/arm64" tests/python/hashes.py "$folder/frames.rgba" 320 180 >"$folder/arm64.txt"
    [ "$(wc -l <"$folder/here.txt")" = 60 ]
    diff "$folder/here.txt" "$folder/arm64.txt"
}
# Runs the unpacked Python: FOLDER-OF-PACKAGES ARGUMENT...
arm64_python() {
    local lib=$unpacked/usr/lib/aarch64-linux-gnu
    # Links that an installation would make lead to the two libraries in folders of their own.
    env -u PYTHONPATH qemu-aarch64 -L "$unpacked" -E LD_LIBRARY_PATH="$lib/blas:$lib/lapack" -E PYTHONHOME="$unpacked/usr" \
        -E PYTHONPATH="$1:$unpacked/usr/lib/python3/dist-packages" "$unpacked"/usr/bin/python3 "${@:2}"
}
wheel_section_of_arm() {
    if ! fetch_zig || ! fetch_maturin; then
        skip "$1" "pip could not fetch zig and maturin"
    else
        beside "$1" try_arm64_wheel
    fi
}
find_arm64() {
    # In shells of their own: one may end, the other choose another compiler.
    (install_packages "${arm64_packages[@]}") && (prepare_arm64)
}
arm64_sections() {
    # All that runs here runs on it.
    [ "$(uname -m)" != aarch64 ] || return 0
    if find_arm64; then
        beside "ARM64" try_arm64
        long beside "ARM64, tests of the library" try_arm64_library
        long wheel_section_of_arm "ARM64 wheel"
    else
        skip "ARM64" "no compiler for $arm64_triple, or no cross linker and emulator of Debian could be installed"
    fi
}
