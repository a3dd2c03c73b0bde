# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the npm package.

try_web() {
    local folder=$target_dir/superpixel-npm-test
    rm -rf "$folder"
    mkdir -p "$folder/unpacked"
    packaging/build.sh web "$folder"
    tar -xzf "$folder"/superpixels-*.tgz -C "$folder/unpacked"
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! videoconvert ! videoscale ! \
        video/x-raw,format=RGBA,width=320,height=180 ! identity eos-after=61 ! filesink location="$folder/frames.rgba"
    SUPERPIXEL_WEB=$folder/unpacked/package SUPERPIXEL_FRAMES=$folder/frames.rgba \
        SUPERPIXEL_EXPECTED=$target_dir/debug/examples/expected \
        node --test web/tests/package.test.mjs
}
find_web() {
    { command -v node && command -v npm; } >/dev/null || (install_packages nodejs npm) || return 1
    # In a shell of its own: it may choose another compiler.
    (prepare_wasm)
}
web_sections() {
    if find_web; then
        beside "npm package" try_web
    else
        skip "npm package" "no node and npm could be installed, or there is no compiler for WebAssembly"
    fi
}
