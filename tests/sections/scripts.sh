# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: what people start from a shell.

# Expects an exit status from a command.
expect() {
    local wanted=$1 status=0
    shift
    "$@" >"$scratch/out.txt" 2>&1 || status=$?
    [ "$status" = "$wanted" ] || { cat "$scratch/out.txt"; echo "status $status, not $wanted: $*"; return 1; }
}
try_demo() {
    local folder=$scratch/demo
    mkdir -p "$folder"
    cd "$folder" || return
    expect 0 "$root/pipelines/demo.sh" --help
    expect 2 "$root/pipelines/demo.sh" no-such-file.mp4
    expect 2 "$root/pipelines/demo.sh" camera camera
    expect 2 "$root/pipelines/demo.sh" --fast
    expect 2 "$root/pipelines/demo.sh" ""
    expect 2 "$root/pipelines/play.sh" no-such-pipeline
    expect 1 "$root/pipelines/demo.sh" no-such-property=1
    expect 1 "$root/pipelines/demo.sh" superpixel-size=3
    expect 1 "$root/pipelines/demo.sh" overlay=plaid
    expect 1 "$root/pipelines/demo.sh" "$root/README.md"
    if [ ! -e /dev/video0 ]; then expect 1 "$root/pipelines/demo.sh" camera; fi
    rm -f superpixel-demo*
    expect 0 env -u DISPLAY -u WAYLAND_DISPLAY "$root/pipelines/demo.sh" superpixels=500
    grep -E '^(backend: cpu|132 frames in)' "$scratch/out.txt"
    [ "$(head -c 8 superpixel-demo.png | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
    gst-launch-1.0 -q filesrc location=superpixel-demo.mp4 ! decodebin ! fakesink
    # Its own files are replaced; its input and what somebody else has called so are not.
    gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,width=96,height=64 ! x264enc ! mp4mux ! filesink location=short.mp4
    expect 0 env -u DISPLAY -u WAYLAND_DISPLAY "$root/pipelines/demo.sh" short.mp4
    cp short.mp4 superpixel-demo.mp4
    expect 1 env -u DISPLAY -u WAYLAND_DISPLAY "$root/pipelines/demo.sh" superpixel-demo.mp4 --force
    expect 1 env -u DISPLAY -u WAYLAND_DISPLAY "$root/pipelines/demo.sh" short.mp4
    cmp short.mp4 superpixel-demo.mp4
    expect 0 env -u DISPLAY -u WAYLAND_DISPLAY "$root/pipelines/demo.sh" short.mp4 --force
}

# Whatever a file is called, it plays, and no other file appears.
try_names() {
    local folder=$scratch/names bin=$scratch/names-bin name names
    # shellcheck disable=SC1003  # a name that ends like that
    names=(
        $'tab\t!\tfilesink\tlocation=stolen.mp4'
        'quote" ! filesink location="stolen.mp4'
        "quote' ! filesink location='stolen.mp4"
        $'all \\ \t"\'!\n$(touch stolen) `touch stolen` ; * %05d ! filesink location=stolen.mp4\n'
        'location=stolen.mp4'
        'backslash\'
        $'bytes \xff\xfe'
    )
    rm -rf "$folder" "$bin"
    mkdir -p "$folder" "$bin"
    # The plugin and the demo are there; this cargo leaves them alone.
    # shellcheck disable=SC2016  # expanded by the script
    printf '#!/bin/sh\n[ "$1" != --version ] || echo cargo 99.0.0\n' >"$bin/cargo"
    chmod +x "$bin/cargo"
    export PATH=$bin:$PATH
    unset DISPLAY WAYLAND_DISPLAY
    cd "$folder" || return
    gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,width=96,height=64 ! x264enc ! mp4mux ! filesink location=../names.mp4
    for name in "${names[@]}"; do cp ../names.mp4 "$name"; done
    for name in "${names[@]}"; do
        expect 0 timeout 60 "$root/pipelines/play.sh" boundaries "$name"
        gst-launch-1.0 -q filesrc location=boundaries.mp4 ! decodebin ! fakesink
        expect 0 timeout 60 "$root/pipelines/play.sh" read_labels.py "$name"
        [ "$(grep -c '^frame [0-2]: 96x64, ' "$scratch/out.txt")" = 3 ]
        rm boundaries.mp4
    done
    expect 0 timeout 60 "$root/pipelines/demo.sh" "./${names[3]}"
    expect 0 timeout 60 "$root/pipelines/demo.sh" "${names[6]}"
    rm superpixel-demo.*
    find . -mindepth 1
    [ "$(find . -mindepth 1 -printf x)" = "$(printf '%0*d' ${#names[@]} 0 | tr 0 x)" ]
}

script_sections() {
    section "demo" try_demo
    section "file names" try_names
}
