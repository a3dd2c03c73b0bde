#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Shows superpixels on a real clip: installs what is missing, builds the plugin, writes a video and a contact sheet.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: pipelines/demo.sh [FILE | URI | camera] [PROPERTY=VALUE ...] [--force]

  FILE, URI   the video to segment; without it the clip in media/
  camera      the first camera (/dev/video0), for 15 seconds
  PROPERTY    any property of the element superpixel, for instance
              superpixels=400 overlay=mean-color compactness=20

Writes superpixel-demo.mp4 (.mkv where no H.264 encoder is there) and the contact sheet superpixel-demo.png into the
current folder, where they replace those of an earlier demo; others of these names only with --force. Opens a window where DISPLAY or WAYLAND_DISPLAY is set. Installs what is missing with apt-get and rustup.
TEXT
}
bad() { printf 'error: %s\n\n' "$*" >&2; usage >&2; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=
properties=()
for argument in "$@"; do
    if [ "$argument" = -h ] || [ "$argument" = --help ]; then
        usage
        exit 0
    elif [ -z "$argument" ]; then
        bad "an empty argument"
    elif [ "$argument" = --force ]; then
        properties+=("$argument")
    elif [[ $argument = -* ]]; then
        bad "unknown option $argument"
    elif [ ! -e "$argument" ] && [[ $argument =~ ^[a-z][a-z0-9-]*= ]]; then
        properties+=("$argument")
    elif [ -n "$source" ]; then
        bad "more than one source: $source and $argument"
    elif [ "$argument" = camera ] || [[ $argument =~ ^[A-Za-z][A-Za-z0-9+.-]*:// ]]; then
        source=$argument
    elif [ -f "$argument" ] && [ -r "$argument" ]; then
        # Not $(realpath), which would lose a newline at the end of a name.
        source=$argument
        [[ $source = /* ]] || source=$PWD/$source
    else
        bad "no such file: $argument"
    fi
done
[ -n "$source" ] || source=$(realpath "$here/../media/bigbuckbunny.mp4")
[ -w . ] || bad "the current folder is not writable; the demo writes its results there"

# shellcheck source=pipelines/setup.sh
. "$here/setup.sh"
install_packages "${build_packages[@]}" "${play_packages[@]}"
install_rust
# In one call: apart, each would build the library again, for other features of its dependencies.
build_plugin --example demo
exec "$target_dir/release/examples/demo" "$source" "${properties[@]}"
