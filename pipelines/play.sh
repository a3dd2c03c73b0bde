#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Plays one of the pipelines of this folder: pipelines/play.sh [--force] NAME [FILE]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=pipelines/output.sh
. "$here/output.sh"
clip=media/bigbuckbunny.mp4
usage() {
    echo "usage: pipelines/play.sh [--force] NAME [FILE]"
    echo "FILE replaces the clip $clip; --force replaces files that it did not write before; NAME is one of:"
    cd "$here" && for name in *.launch *.py; do
        printf '  %-16s %s\n' "${name%.launch}" "$(grep -m 1 -A 1 SPDX "$name" | sed -n '2s/^# *//p')"
    done
}
if [ "${1:-}" = --force ]; then
    force=yes
    shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ]; then usage >&2; exit 2; fi
case $1 in -h | --help) usage; exit 0 ;; esac

pipeline=$here/${1%.launch}
if [ -f "$pipeline.launch" ]; then
    pipeline=$pipeline.launch
elif [ ! -f "$pipeline" ] || [[ $pipeline != *.py ]]; then
    echo "error: no pipeline $1" >&2
    usage >&2
    exit 2
fi
file=$here/../$clip
if [ $# = 2 ]; then
    [ -r "$2" ] || { echo "error: no such file: $2" >&2; exit 2; }
    # A newline at the end of a name would be lost in $(...).
    file=$2
    [[ $file = /* ]] || file=$PWD/$file
fi

# The files that the pipeline writes; of numbered ones, those that are there.
writes=() existing=()
if [[ $pipeline = *.launch ]]; then mapfile -t writes < <(sed -n '/^#/d; s/.*filesink location=\([^ ]*\).*/\1/p' "$pipeline"); fi
for name in "${writes[@]}"; do
    if [[ $name = *%* ]]; then
        mapfile -t -O ${#existing[@]} existing < <(compgen -G "${name/\%0?d/[0-9]*}" || true)
    else
        existing+=("$name")
    fi
done
for name in "${existing[@]}"; do keep_apart "$name" "$file"; done
may_write . "${existing[@]}"

# shellcheck source=pipelines/setup.sh
. "$here/setup.sh"
install_packages "${build_packages[@]}" "${play_packages[@]}"
install_rust
build_plugin
if [[ $pipeline = *.py ]]; then
    install_packages "${python_packages[@]}"
    # The packages are the system's Python's, and another may come first in PATH.
    python=python3
    python3 -c 'import gi, numpy' 2>/dev/null || python=/usr/bin/python3
    exec "$python" "$pipeline" "$file"
fi
# gst-launch-1.0 joins its words and parses them again, so a file's name must not be one of them. The file is opened here, and
# the description names the descriptor: no name adds elements.
exec 3<"$file"
# The description is words without quotes, so the shell's own splitting takes it apart.
set -f
words=()
# shellcheck disable=SC2013  # words on purpose
for word in $(grep -v '^#' "$pipeline"); do
    [ "$word" = "location=$clip" ] && word=location=/dev/fd/3
    words+=("$word")
done
set +f
[ ${#writes[@]} -gt 0 ] || exec gst-launch-1.0 -e "${words[@]}"
# What is written stands in a folder of its own until it is whole. An interrupt ends the stream, and what came until then is kept.
open_own "$PWD" .superpixel-play
trap 'remove_own "$own"' EXIT
trap : INT
trap 'exit 143' TERM HUP
(cd "$own" && exec gst-launch-1.0 -e "${words[@]}")
publish . "$own"/*
