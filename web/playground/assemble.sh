#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Puts the playground together: web/playground/assemble.sh PACKAGE.tgz FOLDER
#
# FOLDER is made anew. It gets the page, what it has of the studio's page, and the npm package with threads, its WebAssembly compressed; any
# server of files serves it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=pipelines/output.sh
. "$root/pipelines/output.sh"
[ $# = 2 ] || { sed -n '3,6s|^# \{0,1\}||p' "${BASH_SOURCE[0]}" >&2; exit 2; }
archive=$(realpath "$1") folder=$2
# Most bytes of all files together.
most=1500000
# Of the studio: its looks, and what draws, asks and saves.
shared=(controls.js exports.js icon.svg messages.js painter.js png.js scale.js segments.js studio.css zoom.js)
# Of the package.
taken=(api.js brush.js brush-level.js brush-mask.js brush-picture.js client.js engine.js frame.js native.js start.js thread.js worker.js LICENSE LICENSE-THIRD-PARTY)

fresh_folder "$folder"
mkdir "$folder/unpacked"
tar -xzf "$archive" -C "$folder/unpacked"
for file in "${taken[@]}"; do cp "$folder/unpacked/package/$file" "$folder/"; done
for file in "${shared[@]}"; do cp "$root/studio/page/$file" "$folder/"; done
cp "$root"/web/playground/*.{html,css,js,jpg} "$folder/"
python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read(), 9))' \
    <"$folder/unpacked/package/superpixels.wasm" >"$folder/superpixels.wasm.deflated"
rm -rf "$folder/unpacked"
size=$(find "$folder" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
[ "$size" -lt $most ] || { echo "error: the playground has $size bytes, more than $most" >&2; exit 1; }
echo "$folder: $size bytes"
