#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Superpixels in a page without a server behind it: builds the playground, serves its files and prints their address.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: pipelines/playground.sh [--port PORT]

  --port PORT    port to listen at, on this machine alone (8471; 0 = any)

Ctrl-C stops it. The files stand in Cargo's target folder, in superpixel-playground, and any server of files serves them.
Installs what is missing with apt-get and rustup.
TEXT
}
bad() { printf 'error: %s\n\n' "$*" >&2; usage >&2; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
port=8471
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --port)
            [ $# -gt 1 ] || bad "--port needs a value"
            port=$2
            shift
            ;;
        --port=*) port=${1#*=} ;;
        *) bad "unknown argument $1" ;;
    esac
    shift
done
[[ $port =~ ^[0-9]{1,5}$ ]] && [ "$((10#$port))" -le 65535 ] || bad "--port takes a number from 0 to 65535, got $port"

# shellcheck source=pipelines/setup.sh
. "$here/setup.sh"
install_packages ca-certificates gcc libc6-dev python3
command -v npm >/dev/null || install_packages nodejs npm
install_rust
cd "$root"
# The builder asks Cargo for its folder by this name.
export CARGO_TARGET_DIR=$target_dir
say "building the playground (some minutes the first time)"
packaging/build.sh web "$target_dir/superpixel-playground-package" || die "the build failed"
web/playground/assemble.sh "$target_dir"/superpixel-playground-package/superpixels-threads-[0-9]*.tgz "$target_dir/superpixel-playground"
say "the playground; Ctrl-C stops it"
exec python3 web/playground/serve.py "$target_dir/superpixel-playground" "$((10#$port))"
