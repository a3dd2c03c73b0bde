#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Superpixels live in the browser: installs what is missing, builds the studio, starts it and prints its address.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: pipelines/studio.sh [OPTION ...] [FILE | URI | camera] [PROPERTY=VALUE ...]

  FILE, URI      what to play, in a loop where it can seek; without it the clip in media/
  camera         the first camera (/dev/video0)
  PROPERTY       any property of the element superpixel to begin with, for instance superpixel-size=24

  --port PORT    port to listen at (8470; 0 = any)
  --listen IP    for browsers on other machines, which need the token of the printed address
  --host NAME    another name of this machine that they may use
  --no-browser   does not open the address, even where there is a desktop

Ctrl-C stops it. Installs what is missing with apt-get and rustup.
TEXT
}
bad() { printf 'error: %s\n\n' "$*" >&2; usage >&2; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source='' options=() properties=() browser=yes
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --no-browser) browser= ;;
        --port | --listen | --host)
            [ $# -gt 1 ] || bad "$1 needs a value"
            options+=("$1" "$2")
            shift
            ;;
        --*=*) options+=("$1") ;;
        '') bad "an empty argument" ;;
        -*) bad "unknown option $1" ;;
        *)
            if [ ! -e "$1" ] && [[ $1 =~ ^[a-z][a-z0-9-]*= ]]; then
                properties+=("$1")
            elif [ -n "$source" ]; then
                bad "more than one source: $source and $1"
            else
                source=$1
            fi
            ;;
    esac
    shift
done
if [ -n "$source" ] && [ "$source" != camera ] && [[ ! $source =~ ^[A-Za-z][A-Za-z0-9+.-]*:// ]]; then
    [ -f "$source" ] && [ -r "$source" ] || bad "no such file: $source"
    [[ $source = /* ]] || source=$PWD/$source
fi
[ -n "$source" ] || source=$(realpath "$here/../media/bigbuckbunny.mp4")

# shellcheck source=pipelines/setup.sh
. "$here/setup.sh"
install_packages "${build_packages[@]}" "${play_packages[@]}"
install_rust
say "building the studio (cargo build --release; some minutes the first time)"
built=$(cd "$root" && tools/built.sh superpixel-studio cargo build --release --locked --package superpixel-studio \
    --target-dir "$target_dir") || die "the build failed"

# The element is part of the program; a plugin that is installed has other things to do.
unset GST_PLUGIN_PATH
command=("$built" "${options[@]}" -- "$source" "${properties[@]}")
say "the studio; Ctrl-C stops it"
if [ "$browser" ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then
    # Its one line of output is the address.
    exec "${command[@]}" > >(read -r address && echo "$address" && xdg-open "$address" >/dev/null 2>&1)
fi
exec "${command[@]}"
