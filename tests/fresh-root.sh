#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Tries what the README says of a bare Debian: tests/fresh-root.sh [bookworm | trixie | sid] [WHAT ...]
#
# Makes a root of that release (default: trixie) with nothing in it but apt, clones this checkout's last commit there and runs it.
# No Python, Node, Rust, library or setting of this host is seen there; package indices are reached as this host reaches them.
# WHAT (default: all three):
#   demo            pipelines/demo.sh, in an empty folder
#   studio          pipelines/studio.sh: starts, gives its page to who has the token and to nobody else, and ends
#   tests[:PART]    tests/run.sh [PART], for instance tests:scripts
# SUPERPIXEL_RUST   a toolchain of Rust on this host, which the root sees read-only: for hosts that do not reach rustup's downloads
# SUPERPIXEL_ROOTS  keeps the root and fetched packages in this folder, where the next run goes on with them
# Needs root, debootstrap and a mirror of Debian. At its end, however it ends, the root is removed with all that is in it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkout=$(dirname "$here")
# shellcheck source=tools/roots.sh
. "$checkout/tools/roots.sh"

usage() { sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
release=trixie
what=() parts=()
for argument in "$@"; do
    case $argument in
        -h | --help) usage; exit 0 ;;
        bookworm | trixie | sid) release=$argument ;;
        demo | studio | tests) what+=("$argument") ;;
        tests:?*) parts+=("${argument#tests:}") ;;
        *) usage >&2; exit 2 ;;
    esac
done
if [ ${#parts[@]} -gt 0 ]; then what+=(parts); elif [ ${#what[@]} = 0 ]; then what=(demo studio tests); fi
check_root_tools
if [ -n "${SUPERPIXEL_RUST:-}" ]; then
    [ -x "$SUPERPIXEL_RUST/bin/cargo" ] || root_die "SUPERPIXEL_RUST names no toolchain: there is no $SUPERPIXEL_RUST/bin/cargo"
    SUPERPIXEL_RUST=$(cd "$SUPERPIXEL_RUST" && pwd -P)
fi
[ -z "$(git -C "$checkout" status --porcelain)" ] || root_say "changes that are not committed are not tried"

trap_ends
open_roots "$checkout/target/superpixel-roots"
open_holder "$release" tests
make_root "$release"
clone=$holder/root/root/superpixel
if [ -e "$clone" ]; then
    git -C "$clone" fetch -q "$checkout" HEAD
    git -C "$clone" checkout -q --detach --force FETCH_HEAD
else
    git clone -q --no-hardlinks "$checkout" "$clone"
fi

try_demo() {
    in_root bash -euc 'folder=$(mktemp -d)
        cd "$folder"
        ~/superpixel/pipelines/demo.sh
        for file in superpixel-demo.mp4 superpixel-demo.png; do
            [ -s $file ] || { echo "no $file was written"; exit 1; }
        done'
}
# The root has no program that fetches a page, so the shell does. Listening for other machines gives a token.
try_studio() {
    in_root bash -euc 'cd "$(mktemp -d)"
        : >said
        ~/superpixel/pipelines/studio.sh --port 0 --listen 0.0.0.0 --no-browser >said 2>&1 &
        studio=$!
        # A line of its own.
        until address=$(grep -m 1 "^http://" said); do
            kill -0 $studio 2>/dev/null || { cat said; exit 1; }
            sleep 0.5
        done
        cat said
        [[ $address =~ ^http://[^/]*:([0-9]+)(/.*token=.*)$ ]]
        port=${BASH_REMATCH[1]} path=${BASH_REMATCH[2]}
        page() {
            exec 3<>"/dev/tcp/127.0.0.1/$port"
            printf "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n" "$1" "$port" >&3
            timeout 20 cat <&3
        }
        page "$path" >page
        page / >refused
        head -n 1 page refused
        grep -q "^HTTP/1.1 200 " page
        grep -q "<title>" page
        grep -q "^HTTP/1.1 4" refused
        kill -INT $studio
        for ((i = 0; i < 300; i++)); do
            kill -0 $studio 2>/dev/null || exit 0
            sleep 0.1
        done
        echo "the studio does not end"
        exit 1'
}
# shellcheck disable=SC2016  # expanded within
try_tests() { in_root env SUPERPIXEL_NO_SKIPS="${SUPERPIXEL_NO_SKIPS:-}" bash -euc 'cd ~/superpixel && exec tests/run.sh "$@"' bash "$@"; }

failed=()
for name in "${what[@]}"; do
    root_say "$release, $name"
    case $name in
        demo) try_demo ;;
        studio) try_studio ;;
        tests) try_tests ;;
        parts) try_tests "${parts[@]}" ;;
    esac && root_say "$release, $name: passed" || failed+=("$name")
done
[ ${#failed[@]} = 0 ] || root_die "failed in a fresh $release: ${failed[*]}"
