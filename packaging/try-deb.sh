#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Tries the Debian package in fresh systems: packaging/try-deb.sh DEB [RELEASE ...]
#
# For each release of Debian (default: bookworm trixie sid) a root is made and removed again. In it the package is installed by
# apt-get, inspected, run in pipelines of the README, its standard metadata read by Python, and purged, after which nothing of it
# may be left. Needs root, debootstrap and a mirror. SUPERPIXEL_ROOTS keeps the roots in a folder and uses those that are there.
# The root is of the package's architecture. Another one than the host's is emulated, where the packages qemu-user-static and
# binfmt-support are installed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/roots.sh
. "$here/../tools/roots.sh"

case ${1:-} in
    -h | --help) sed -n '3,9s|^# \{0,1\}||p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *.deb) deb=$(realpath "$1"); shift ;;
    *) sed -n '3,9s|^# \{0,1\}||p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
[ -e "$deb" ] || root_die "there is no $deb; packaging/build.sh deb makes one"
releases=("$@")
[ ${#releases[@]} -gt 0 ] || releases=(bookworm trixie sid)

keep_apart "${SUPERPIXEL_ROOTS:-}" "$deb"
root_arch=$(dpkg-deb --field "$deb" Architecture)
if [ "$root_arch" = "$(dpkg --print-architecture)" ]; then root_arch=; fi
check_root_tools
trap_ends
open_roots "${CARGO_TARGET_DIR:-$here/../target}/superpixel-roots"

# Every file of a root but caches, logs and what dpkg and ldconfig keep of any package.
files_of() {
    (cd "$1" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/cache -o -path ./var/log \
        -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./etc/ld.so.cache -o -path ./root/.cache \) -prune -o -print | sort)
}

failed=()
for release in "${releases[@]}"; do
    open_holder "$release" "deb${root_arch:+-$root_arch}"
    make_root "$release"
    root_say "$release${root_arch:+, $root_arch}"
    root=$holder/root
    cp "$deb" "$root/tmp/superpixel.deb"
    cp "$here/try-deb-inside.sh" "$here/../tests/readers/analytics.py" "$here/../media/bigbuckbunny.mp4" "$root/tmp/"
    # The pipeline's own packages stay; what is compared is the root with and without ours.
    step() { in_root env DEBIAN_FRONTEND=noninteractive /bin/sh /tmp/try-deb-inside.sh "$@"; }
    if step prepare && files_of "$root" >"$holder/before" && step install && step use && step purge && files_of "$root" >"$holder/after" &&
        diff -u "$holder/before" "$holder/after"; then
        root_say "$release: passed"
    else
        root_say "$release: FAILED"
        failed+=("$release")
    fi
    close_holder
done
[ ${#failed[@]} = 0 ] || root_die "failed in: ${failed[*]}"
