# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the npm package, in Node and in a browser.

# Frames for both: FILE
web_frames() {
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! videoconvert ! videoscale ! \
        video/x-raw,format=RGBA,width=320,height=180 ! identity eos-after=61 ! filesink location="$1"
}
try_web() {
    local folder=$target_dir/superpixel-npm-test
    rm -rf "$folder"
    mkdir -p "$folder/unpacked"
    packaging/build.sh web "$folder"
    tar -xzf "$folder"/superpixels-*.tgz -C "$folder/unpacked"
    web_frames "$folder/frames.rgba"
    SUPERPIXEL_WEB=$folder/unpacked/package SUPERPIXEL_FRAMES=$folder/frames.rgba \
        SUPERPIXEL_EXPECTED=$target_dir/debug/examples/expected \
        node --test web/tests/package.test.mjs web/tests/mask.test.mjs
}
# What the script serves is tried, and the package that it built.
try_web_pages() {
    local folder=$target_dir/superpixel-pages-test log server address status=0
    # Other lanes have their own.
    local scratch=$folder
    rm -rf "$folder"
    mkdir -p "$folder/unpacked"
    expect 0 pipelines/playground.sh --help
    expect 2 pipelines/playground.sh --port
    expect 2 pipelines/playground.sh --port 65536
    expect 2 pipelines/playground.sh picture.png
    log=$folder/playground.log
    pipelines/playground.sh --port 0 >"$log" &
    server=$!
    while ! address=$(grep -m 1 '^http://localhost:[0-9]*/$' "$log"); do
        kill -0 $server 2>/dev/null || { cat "$log"; return 1; }
        sleep 0.2
    done
    tar -xzf "$target_dir"/superpixel-playground-package/superpixels-*.tgz -C "$folder/unpacked"
    web_frames "$folder/frames.rgba"
    SUPERPIXEL_WEB=$folder/unpacked/package SUPERPIXEL_FRAMES=$folder/frames.rgba SUPERPIXEL_PLAYGROUND=$address \
        node --test web/tests/page.test.mjs || status=1
    kill $server
    return $status
}
find_web() {
    { command -v node && command -v npm; } >/dev/null || (install_packages nodejs npm) || return 1
    # In a shell of its own: it may choose another compiler.
    (prepare_wasm)
}
web_sections() {
    if ! find_web; then
        skip "npm package" "no node and npm could be installed, or there is no compiler for WebAssembly"
        return
    fi
    beside "npm package" try_web
    if find_browser; then
        beside "npm package, pages" try_web_pages
    else
        skip "npm package, pages" "no Chromium, node and npm could be installed, or no playwright-core fetched"
    fi
}
