# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: what stands here is used by those who do, and the other way around
# Makes a compiler for WebAssembly ready; sourced by packaging/build.sh and tests/sections/web.sh, which have set `target_dir`.

wasm_triple=wasm32-unknown-unknown
# What `cargo build` needs beside --target, once prepare_wasm has succeeded.
wasm_flags=()
build_std=("-Zbuild-std=std,panic_abort")

has_wasm() { [ -n "$(compgen -G "$(rustc --print target-libdir --target $wasm_triple 2>/dev/null)/libstd-*.rlib")" ]; }

# Takes the target that is there, else rustup's, else a compiler of Debian with the sources of its library.
prepare_wasm() {
    has_wasm && return
    if command -v rustup >/dev/null && timeout 300 rustup target add $wasm_triple && has_wasm; then return; fi
    use_debian_sources
}

# The same for a compiler that builds the library of Rust anew, as shared memory takes it.
prepare_wasm_sources() {
    local lock
    [ ${#wasm_flags[@]} = 0 ] || return 0
    lock=$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock
    if has_wasm; then
        [ -f "$lock" ] || { command -v rustup >/dev/null && timeout 300 rustup component add rust-src; } || true
        if [ -f "$lock" ]; then
            export RUSTC_BOOTSTRAP=1
            wasm_flags=("${build_std[@]}")
            return
        fi
    fi
    use_debian_sources
}

# Unpacks Debian's compiler and its library's sources, which have to be of one version, and installs nothing. The linker is that of
# the toolchain at hand.
use_debian_sources() {
    local folder=$target_dir/superpixel-tools/rust-web fetched linker
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    linker=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld
    [ -x "$linker" ] || return 1
    if [ ! -d "$folder" ]; then
        mkdir -p "$target_dir/superpixel-tools"
        fetched=$(mktemp -d "$target_dir/superpixel-tools/fetch.XXXXXX")
        if ! fetch_debian_sources "$fetched" || ! mv -T "$fetched/root" "$folder"; then
            rm -rf "$fetched"
            return 1
        fi
        rm -rf "$fetched"
    fi
    export RUSTC=$folder/usr/bin/rustc LD_LIBRARY_PATH=$folder/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
    wasm_flags=("${build_std[@]}")
    "$RUSTC" --version
}
fetch_debian_sources() {
    local archive packages=(rustc-web libstd-rust-web-dev rust-web-src) more
    mapfile -t more < <(apt-cache depends rustc-web libstd-rust-web-dev 2>/dev/null | sed -n 's/.*Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p' | sort -u)
    mapfile -t -O ${#more[@]} more < <(apt-cache depends "${more[@]}" 2>/dev/null | sed -n 's/.*Depends: \(libllvm[0-9]*\)$/\1/p' | sort -u)
    (cd "$1" && apt-get -q download "${packages[@]}" "${more[@]}") || return 1
    mkdir "$1/root"
    for archive in "$1"/*.deb; do dpkg -x "$archive" "$1/root" || return 1; done
}
