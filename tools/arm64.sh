# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: what stands here is used by those who do, and the other way around
# Makes a compiler and an emulator for ARM64 Linux ready; sourced by packaging/build.sh and tests/run.sh, which have set `target_dir`.

arm64_triple=aarch64-unknown-linux-gnu
# Linker, C library and emulator on a machine of another kind.
arm64_packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
# Folder of the C library that emulated programs see.
arm64_root=/usr/aarch64-linux-gnu

is_there() { [ -n "$(compgen -G "$(rustc --print target-libdir --target "$1" 2>/dev/null)/libstd-*.rlib")" ]; }
# Takes the target that is there, else rustup's: TRIPLE
has_target() { is_there "$1" || { command -v rustup >/dev/null && timeout 300 rustup target add "$1" && is_there "$1"; }; }
# The same, or a compiler of Debian with the libraries of both machines.
prepare_arm64_target() { has_target $arm64_triple || use_debian_arm64; }

# Prepares the target, and tells cargo the linker and the emulator, which have to be there.
prepare_arm64() {
    command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null && [ -d "$arm64_root" ] || return 1
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $arm64_root"
    prepare_arm64_target
}

# Fetches Debian's packages, those of the other machine as NAME:arm64, with all that they need, into FOLDER/archives. Installs nothing:
# lists and state are the folder's own. FOLDER PACKAGE...
fetch_both() {
    local folder=$1 apt
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    mkdir -p "$folder/lists/partial" "$folder/archives/partial"
    : >"$folder/status"
    apt=(apt-get -q -q -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o Acquire::Languages=none -o APT::Sandbox::User=
        -o Dir::State::lists="$folder/lists" -o Dir::State::status="$folder/status" -o Dir::Cache::archives="$folder/archives"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
    "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends --download-only "${@:2}"
}

# Puts the path of a folder into `unpacked`, which has the named packages of the other machine with all that they need; made once.
# NAME PACKAGE...
unpack_arm64() {
    local archive fetched
    unpacked=$target_dir/superpixel-tools/$1
    [ ! -d "$unpacked" ] || return 0
    mkdir -p "$target_dir/superpixel-tools"
    fetched=$(mktemp -d "$target_dir/superpixel-tools/fetch.XXXXXX")
    if fetch_both "$fetched" "${@:2}" && mkdir "$fetched/root"; then
        note_unpacked "$fetched/root" "$fetched"/archives/*_{arm64,all}.deb
        for archive in "$fetched"/archives/*_{arm64,all}.deb; do dpkg -x "$archive" "$fetched/root"; done
        # Links of Debian's to places outside of the folder lead into it.
        find "$fetched/root" -type l -lname '/*' -printf '%P\0%l\0' | while IFS= read -r -d '' link && IFS= read -r -d '' to; do
            ln -sfnr "$fetched/root$to" "$fetched/root/$link"
        done
        mv -T "$fetched/root" "$unpacked" || true
    fi
    rm -rf "$fetched"
    [ -d "$unpacked" ]
}

# Gives a root the database of packages that dpkg would have made, with which dpkg-shlibdeps finds a library's package: ROOT ARCHIVE...
note_unpacked() {
    local database=$1/var/lib/dpkg archive control name
    mkdir -p "$database/info" "$database/updates"
    printf '%s\n' amd64 arm64 >"$database/arch"
    echo 1 >"$database/info/format"
    control=$(mktemp -d "$1/control.XXXXXX")
    for archive in "${@:2}"; do
        dpkg -e "$archive" "$control"
        name=$(sed -n 's/^Package: //p' "$control/control")
        if grep -qx 'Multi-Arch: same' "$control/control"; then name=$name:arm64; fi
        # dpkg names a folder without the slash at its end.
        dpkg --fsys-tarfile "$archive" | tar -t | sed 's|^\.||; s|/$||; /^$/d' >"$database/info/$name.list"
        if [ -e "$control/symbols" ]; then mv "$control/symbols" "$database/info/$name.symbols"; fi
        if [ -e "$control/shlibs" ]; then mv "$control/shlibs" "$database/info/$name.shlibs"; fi
        sed '/^Package: /a Status: install ok installed' "$control/control" >>"$database/status"
        echo >>"$database/status"
        rm -r "$control"
    done
}

# Cross compiler, linker and GStreamer's libraries for packages of ARM64, which run nowhere here: sets cargo's variables and `unpacked`.
prepare_arm64_libraries() {
    local lib linker
    command -v aarch64-linux-gnu-gcc >/dev/null && prepare_arm64_target &&
        unpack_arm64 gstreamer-arm64 libgstreamer1.0-dev:arm64 libgstreamer-plugins-base1.0-dev:arm64 || return 1
    lib=$unpacked/usr/lib/aarch64-linux-gnu linker=$unpacked/superpixel-linker
    # The C library that is linked names files by their place in a system.
    printf '#!/bin/sh\nexec aarch64-linux-gnu-gcc "--sysroot=%s" "$@"\n' "$unpacked" >"$linker"
    chmod +x "$linker"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$linker PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_PATH=
    export PKG_CONFIG_SYSROOT_DIR=$unpacked PKG_CONFIG_LIBDIR=$lib/pkgconfig:$unpacked/usr/share/pkgconfig
}

# Unpacks Debian's compiler with the libraries of both machines, which are of one version.
use_debian_arm64() {
    local folder=$target_dir/superpixel-tools/rust-web-arm64 fetched archive
    if [ ! -d "$folder" ]; then
        mkdir -p "$target_dir/superpixel-tools"
        fetched=$(mktemp -d "$target_dir/superpixel-tools/fetch.XXXXXX")
        if fetch_both "$fetched" rustc-web libstd-rust-web-dev libstd-rust-web-dev:arm64 && mkdir "$fetched/root"; then
            for archive in "$fetched"/archives/{rustc,libllvm}*_amd64.deb "$fetched"/archives/libstd*.deb; do dpkg -x "$archive" "$fetched/root"; done
            mv -T "$fetched/root" "$folder" || true
        fi
        rm -rf "$fetched"
        [ -d "$folder" ] || return 1
    fi
    export RUSTC=$folder/usr/bin/rustc LD_LIBRARY_PATH=$folder/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    "$RUSTC" --version
}
