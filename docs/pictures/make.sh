#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Makes the pictures of docs/tuning.md and docs/abstraction.md from the bundled clip with the plugin itself; see media/README.md. README.md has overlays.png.
#
# docs/pictures/make.sh [--force]: pictures with changes that git does not have are replaced only with --force.
#
# python.png of docs/python.md is written by SUPERPIXEL_WRITE=1 python -m pytest python/tests/test_documents.py.
# web-brush.jpg of docs/web.md is taken by web/tests/screenshots.mjs from what pipelines/playground.sh serves.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=pipelines/setup.sh
. "$here/../../pipelines/setup.sh"
case $#,${1:-} in
    0,) ;;
    1,--force) force=yes ;;
    *) sed -n '3,5s/^# *//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
unchanged_in_git "$root" docs/pictures
install_packages "${build_packages[@]}" "${play_packages[@]}"
install_rust
build_plugin
# gst-launch-1.0 parses its words: relative names keep the path of this folder out of them.
cd "$root"

# The last of the clip's first frames, segmented as they come: NAME PROPERTY=VALUE...
picture() {
    local name=$1
    shift
    # A file without a number in its name holds the last frame.
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! identity eos-after=60 ! \
        videoconvert ! videoscale method=lanczos ! video/x-raw,width=480,height=270,format=RGB ! \
        superpixel backend=cpu temporal=true "$@" ! videoconvert ! \
        pngenc compression-level=9 ! multifilesink location="docs/pictures/$name.png"
}

picture boundaries superpixels=600
picture labels superpixels=600 overlay=labels
picture mean-color superpixels=600 overlay=mean-color
picture mean-color-light superpixels=600 overlay=mean-color mean-in-linear-light=true
for count in 1000 200 50 10; do
    picture "regions-$count" temporal=false regions="$count" overlay=mean-color-boundaries
done
picture merged superpixels=1500 compactness=5 overlay=mean-color merge=2 merge-max-distance=10 merge-passes=4
picture merged-labels superpixels=1500 compactness=5 overlay=labels merge=2 merge-max-distance=10 merge-passes=4
picture abstraction-mean-color superpixels=1500 regions=400 overlay=mean-color
picture abstraction superpixels=1500 regions=400 overlay=abstraction
picture abstraction-poster superpixels=1500 regions=120 overlay=abstraction shading=false ink=0
picture abstraction-ink superpixels=1500 regions=400 overlay=abstraction outline-smoothness=3 ink=3

# The studio's page, by the script of its tests.
find_or_install() { command -v "$1" >/dev/null || install_packages "${@:2}"; }
find_or_install npm nodejs npm
find_or_install chromium chromium
built=$(tools/built.sh superpixel-studio cargo build --release --locked --package superpixel-studio --target-dir "$target_dir")
(cd studio/browser && npm ci --silent --no-audit --no-fund)
SUPERPIXEL_STUDIO=$built node studio/browser/screenshots.mjs docs/pictures
