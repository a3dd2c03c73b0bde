#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Tries the Debian package in fresh systems: packaging/try-deb.sh DEB [RELEASE ...]
#
# For each release of Debian (default: bookworm trixie sid) a root is made and removed again. In it the package is installed by
# apt-get, inspected, run in a pipeline of the README, its standard metadata read by Python, and purged, after which nothing of it
# may be left. Needs root, mmdebstrap and a mirror. SUPERPIXEL_ROOTS keeps the roots in a folder and uses those that are there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

case ${1:-} in
    -h | --help) sed -n '3,7s|^# \{0,1\}||p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *.deb) deb=$(realpath "$1"); shift ;;
    *) sed -n '3,7s|^# \{0,1\}||p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
[ -e "$deb" ] || die "there is no $deb; packaging/build.sh deb makes one"
[ "$(id -u)" = 0 ] || die "this needs root, to make roots and to enter them"
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt-get install mmdebstrap"
releases=("$@")
[ ${#releases[@]} -gt 0 ] || releases=(bookworm trixie sid)

roots=${SUPERPIXEL_ROOTS:-}
if [ -z "$roots" ]; then
    roots=$(mktemp -d)
    trap 'rm -rf "$roots"' EXIT
fi
mkdir -p "$roots"

# Every file of a root but caches, logs and what dpkg and ldconfig keep of any package.
files_of() {
    (cd "$1" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/cache -o -path ./var/log \
        -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./etc/ld.so.cache -o -path ./root/.cache \) -prune -o -print | sort)
}

failed=()
for release in "${releases[@]}"; do
    root=$roots/$release
    say "$release"
    if [ ! -e "$root/etc/debian_version" ]; then
        # A mirror may lag behind; signatures are checked all the same.
        mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' "$release" "$root"
    fi
    cp "$deb" "$root/tmp/superpixel.deb"
    cp "$here/try-deb-inside.sh" "$here/../tests/readers/analytics.py" "$root/tmp/"
    # The pipeline's own packages stay; what is compared is the root with and without ours.
    enter() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive HOME=/root /bin/sh "/tmp/try-deb-inside.sh" "$@"; }
    if enter prepare && files_of "$root" >"$roots/$release.before" &&
        enter install && enter use && enter purge && files_of "$root" >"$roots/$release.after" &&
        diff -u "$roots/$release.before" "$roots/$release.after"; then
        say "$release: passed"
    else
        say "$release: FAILED"
        failed+=("$release")
    fi
    [ -n "${SUPERPIXEL_ROOTS:-}" ] || rm -rf "$root"
done
[ ${#failed[@]} = 0 ] || die "failed in: ${failed[*]}"
