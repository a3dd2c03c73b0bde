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
    if [ "${1:-}" = kept ]; then leave_builds "$scratch/demo-bin"; fi
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
}

# The plugin and the demo are there; puts a cargo first that leaves them alone and says so: FOLDER
leave_builds() {
    mkdir -p "$1"
    cat >"$1/cargo" <<CARGO
#!/bin/sh
if [ "\$1" = --version ]; then echo cargo 99.0.0; exit; fi
echo '{"reason":"compiler-artifact","filenames":["$target_dir/debug/libgstsuperpixel.so"]}'
CARGO
    chmod +x "$1/cargo"
    export PATH=$1:$PATH
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
    leave_builds "$bin"
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
    rm superpixel-demo.* .superpixel-made
    find . -mindepth 1
    [ "$(find . -mindepth 1 -printf x)" = "$(printf '%0*d' ${#names[@]} 0 | tr 0 x)" ]
}

# Expects that a command ends with status 2 and these words, and that no file in the current folder is other than before: WORDS COMMAND...
refused() {
    local words=$1
    shift
    state_of . >"$scratch/before"
    expect 2 "$@"
    grep -qF -- "$words" "$scratch/out.txt" || { cat "$scratch/out.txt"; echo "without the words '$words': $*"; return 1; }
    state_of . | diff - "$scratch/before"
}
# Every file of a folder: kind, links, content.
state_of() { (cd "$1" && find . -printf '%y %p %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 -r sha256sum); }

# Nothing of the user's is lost, whatever stands where a script writes.
try_outputs() {
    local folder=$scratch/outputs bin=$scratch/outputs-bin pipelines=$root/pipelines name words
    mkdir -p "$folder" "$bin"
    leave_builds "$bin"
    unset DISPLAY WAYLAND_DISPLAY
    cd "$folder" || return
    gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,width=96,height=64 ! x264enc ! mp4mux ! filesink location=clip.mp4
    mkdir "hard disk"

    # The input by any of its names, with and without --force.
    cp clip.mp4 superpixel-demo.mp4
    cp clip.mp4 boundaries.mp4
    ln -s superpixel-demo.mp4 link.mp4
    ln superpixel-demo.mp4 "hard disk/hard.mp4"
    for name in superpixel-demo.mp4 link.mp4 "hard disk/hard.mp4" "file://$PWD/superpixel%2ddemo.mp4" "hard disk/../superpixel-demo.mp4"; do
        refused 'is the input' "$pipelines/demo.sh" "$name"
        refused 'is the input' "$pipelines/demo.sh" --force "$name"
    done
    refused 'is the input' "$pipelines/play.sh" boundaries boundaries.mp4
    refused 'is the input' "$pipelines/play.sh" --force boundaries boundaries.mp4

    # A file of the user's, a link, a folder.
    refused 'superpixel-demo.mp4 is there and is not what this script wrote' "$pipelines/demo.sh" clip.mp4
    refused 'boundaries.mp4 is there and is not what this script wrote' "$pipelines/play.sh" boundaries clip.mp4
    touch labels-00007.png labels-of-mine.png
    refused 'labels-00007.png is there and is not what this script wrote' "$pipelines/play.sh" labels-png clip.mp4
    rm superpixel-demo.mp4 boundaries.mp4 labels-00007.png
    echo notes >notes
    for name in notes nowhere; do
        ln -s "$name" superpixel-demo.png
        ln -s "$name" boundaries.mp4
        refused 'superpixel-demo.png is a link' "$pipelines/demo.sh" --force clip.mp4
        refused 'boundaries.mp4 is a link' "$pipelines/play.sh" --force boundaries clip.mp4
        rm superpixel-demo.png boundaries.mp4
    done
    mkdir superpixel-demo.png boundaries.mp4
    refused 'superpixel-demo.png is there and is no file' "$pipelines/demo.sh" --force clip.mp4
    refused 'boundaries.mp4 is there and is no file' "$pipelines/play.sh" --force boundaries clip.mp4
    rmdir superpixel-demo.png boundaries.mp4

    # What a script made is replaced, until somebody changes it; --force replaces that, too.
    for name in first again; do
        # As runs that were killed leave them.
        fresh_folder .superpixel-demo.abcdef
        fresh_folder .superpixel-play.abcdef
        expect 0 "$pipelines/demo.sh" clip.mp4 superpixels=40
        expect 0 "$pipelines/play.sh" boundaries clip.mp4
        expect 0 "$pipelines/play.sh" labels-png clip.mp4
    done
    if compgen -G '.superpixel-*.abcdef'; then return 1; fi
    [ -s labels-00002.png ]
    [ -e labels-of-mine.png ]
    echo >>superpixel-demo.mp4
    echo >>boundaries.mp4
    refused 'is not what this script wrote' "$pipelines/demo.sh" clip.mp4
    refused 'is not what this script wrote' "$pipelines/play.sh" boundaries clip.mp4
    expect 0 "$pipelines/demo.sh" --force clip.mp4 superpixels=40
    expect 0 "$pipelines/play.sh" --force boundaries clip.mp4
    gst-launch-1.0 -q filesrc location=boundaries.mp4 ! decodebin ! fakesink
    # A run that fails leaves what was there.
    state_of . >"$scratch/kept"
    expect 1 "$pipelines/demo.sh" clip.mp4 superpixel-size=3
    state_of . | diff - "$scratch/kept"

    # Packers and builders: folders of the user's, with one file of a name that they write, and the checkout itself.
    mkdir films
    cp clip.mp4 films/measure.sh
    cp clip.mp4 films/gpu-suite.sh
    cp clip.mp4 films/clip.mp4
    refused 'measure.sh is there and is not what this script wrote' "$root/tools/clip-pack.sh" films
    refused 'gpu-suite.sh is there and is not what this script wrote' "$root/tools/gpu-pack.sh" films
    refused 'gpu-suite.sh is the input' "$root/tools/gpu-pack.sh" --force "$root/tools"
    ln -s films linked
    refused 'measure.sh is there and is not what this script wrote' "$root/tools/clip-pack.sh" linked
    for name in "$root" "$root/src" "$root/src/below" "$(dirname "$root")" /; do
        refused 'input' "$root/packaging/build.sh" --force crate "$name"
    done
    refused 'is not a folder' "$root/packaging/build.sh" crate clip.mp4
    refused 'no target folder of Cargo' env CARGO_TARGET_DIR="$PWD/films" "$root/packaging/build.sh" crate packages
    refused 'no target folder of Cargo' env CARGO_TARGET_DIR="$PWD/films" "$pipelines/demo.sh" --force clip.mp4
    : >films/own.deb
    refused 'is the input' env SUPERPIXEL_ROOTS="$PWD/films/own.deb" "$root/packaging/try-deb.sh" films/own.deb
    refused 'stands in' env SUPERPIXEL_ROOTS="$PWD/films" "$root/packaging/try-deb.sh" films/own.deb

    # The suite, in a folder as the pack opens it.
    mkdir -p suite/{bin,tests,media}
    cp "$root/tools/gpu-suite.sh" "$pipelines/output.sh" suite/
    : >suite/env.sh
    : >films/host.txt
    refused 'host.txt is there and is not what this script wrote' env OUT=films suite/gpu-suite.sh toolkit
    refused 'stands in' env OUT=films/out SUPERPIXEL_CLIPS=films suite/gpu-suite.sh toolkit

    # Pictures and seeds that git does not have.
    git clone -q --shared "$root" clone
    echo >>clone/docs/pictures/overlays.png
    echo >>"$(find clone/fuzz/seeds/library -type f | head -n 1)"
    refused 'changes that are not committed' clone/docs/pictures/make.sh
    refused 'changes that are not committed' clone/fuzz/run.sh --seeds library
    expect 2 clone/fuzz/run.sh --seeds ../../src

    # shellcheck disable=SC2034  # read where it is sourced
    (
        . "$root/tools/roots.sh"
        # A root is not made where something else stands, nor removed where something is mounted.
        mkdir roots roots/trixie-tests
        cp clip.mp4 roots/trixie-tests/
        SUPERPIXEL_ROOTS=$PWD/roots
        if (open_roots x && open_holder trixie tests) 2>"$scratch/out.txt"; then exit 1; fi
        grep -q 'was not made for a root' "$scratch/out.txt"
        cmp clip.mp4 roots/trixie-tests/clip.mp4
        mounted_below /proc/
        if mounted_below "$PWD/films"; then exit 1; fi
        # What a killed run left goes at the next start; what a living one has stays, as does what only looks like it.
        mkdir .superpixel-demo.abcdef
        open_own . .superpixel-demo
        living=$own
        dead=$(open_own . .superpixel-demo && touch "$own/part" && echo "$own")
        (open_own . .superpixel-demo)
        [ -e "$living" ]
        [ -n "$dead" ]
        [ ! -e "$dead" ]
        remove_own .superpixel-demo.abcdef
        [ -d .superpixel-demo.abcdef ]
    )
}

script_sections() {
    section "demo" try_demo kept
    long section "demo, built as users build it" try_demo
    section "file names" try_names
    section "outputs" try_outputs
}
