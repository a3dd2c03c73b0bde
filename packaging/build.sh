#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Builds packages: packaging/build.sh [--force] PACKAGE [--arch ARCH] [--musl] [FOLDER]
#
# PACKAGE is one of
#   wheel   the Python package: a wheel for Linux with glibc 2.17 or newer, or with --musl musl 1.2 or newer (Alpine 3.13), and Python
#           3.9 or newer, and its source archive
#   deb     the plugin as a Debian package, with one of its debug symbols, for this release of Debian or Ubuntu and later ones
#   programs  superpixel-bench, superpixel-clip and superpixel-studio, in an archive, for systems with a C library and a GStreamer
#           no older than those here
#   crate   the library's source archive, as a registry takes it, and its bill of materials
#   web     the npm packages: WebAssembly for browsers and Node, the same with threads, and one for engines without SIMD
# ARCH is that of this machine, the default; for the wheel, the deb and the programs, which x86-64 builds for both, amd64 or arm64.
# They appear in FOLDER (default: packages in Cargo's target folder), in place of those that were built there before; --force replaces
# other files of the same names. All need Rust; the wheel python3 with pip and the package
# index, the web npm, the others the build packages of the README, the deb also debhelper.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
# shellcheck source=tools/pinned.sh
. "$root/tools/pinned.sh"
# shellcheck source=tools/wasm.sh
. "$root/tools/wasm.sh"
# shellcheck source=tools/arm64.sh
. "$root/tools/arm64.sh"
# shellcheck source=pipelines/output.sh
. "$root/pipelines/output.sh"

usage() { sed -n '3,16s|^# \{0,1\}||p' "${BASH_SOURCE[0]}"; }
say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

if [ "${1:-}" = --force ]; then
    force=yes
    shift
fi
case ${1:-} in
    wheel | deb | programs | crate | web) package=$1 arch= ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
esac
shift
musl=
if [ "${1:-}" = --arch ]; then
    case $package,${2:-} in
        wheel,amd64 | wheel,arm64 | deb,amd64 | deb,arm64 | programs,amd64 | programs,arm64) arch=$2 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift 2
fi
if [ "$package,${1:-}" = wheel,--musl ]; then
    musl=yes
    shift
fi
[ $# -le 1 ] || { usage >&2; exit 2; }
folder=$(realpath -m "${1:-$target_dir/packages}")
cd "$root"
check_target "$target_dir"
# What packages are made from: all that git has, or without git, all that is here.
mapfile -t -d '' sources < <(if [ -e .git ]; then git ls-files -z; else find . -mindepth 1 -maxdepth 1 ! -name target ! -name packages -printf '%P\0'; fi |
    sed -z 's|/.*||' | sort -zu)
keep_apart "$folder" "${sources[@]}"
may_write "$folder"

# The wheel is built from the source archive, which shows that the archive is whole.
build_wheel() {
    local maturin stage=$target_dir/superpixel-wheel triple=x86_64-unknown-linux-gnu libraries=manylinux2014 built source
    [ "$(uname -m)" = x86_64 ] || die "the pinned maturin and zig are programs for x86-64"
    fetch_maturin || die "pip could not fetch maturin"
    maturin=$tool
    fetch_zig || die "pip could not fetch ziglang"
    PATH=${tool%/*}:$PATH
    [ "$arch" != arm64 ] || triple=$arm64_triple
    if [ "$musl" ]; then
        triple=${triple/%gnu/musl} libraries=musllinux_1_2
        has_target "$triple" || die "there is no compiler for $triple: rustup target add $triple"
    elif [ "$arch" = arm64 ]; then
        prepare_arm64_target || die "there is no compiler for $triple: rustup target add $triple"
    fi
    fresh_folder "$stage"
    "$maturin" sdist --manifest-path python/Cargo.toml --out "$stage"
    source=$(echo "$stage"/superpixels-*.tar.gz)
    # The lock file is that of the whole workspace, of which the archive has two members.
    packaging/relock.py "$source"
    # Times of their own: those of the archive are old, and Cargo would take what an earlier build has left for newer.
    tar -xzmf "$source" -C "$stage"
    cd "${source%.tar.gz}"
    "$root/packaging/bill.py" python/Cargo.toml "$triple" superpixels.cdx.json LICENSE-THIRD-PARTY
    # Messages of panics name files; not where they were here.
    RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$PWD=superpixels" \
        CARGO_TARGET_DIR=$target_dir "$maturin" build --release --locked --strip --zig --compatibility $libraries --target "$triple" \
        --sbom-include superpixels.cdx.json --out "$stage/wheel"
    built=$(echo "$stage"/wheel/*.whl)
    cd "$root"
    publish "$folder" "$built" "$source"
    rm -rf "$stage"
    (cd "$folder" && ls -l "${built##*/}" "${source##*/}")
}

# What all packages say of themselves, from the one place where it stands: fact FIELD, a Python expression of the package's `p`.
fact() {
    cargo metadata --locked --no-deps --format-version=1 | python3 -c "
import json, sys
p = next(p for p in json.load(sys.stdin)['packages'] if p['name'] == 'gst-plugin-superpixel')
print($1 or '')"
}
triple_here() { rustc -vV | sed -n 's/^host: //p'; }

# Sets `triple` to the machine that `arch` names, with compiler, linker and libraries, `unpacked`, where it is not this one.
choose_machine() {
    triple=$(triple_here)
    [ "$arch" ] && [ "$arch" != "$(dpkg --print-architecture)" ] || return 0
    [ "$(dpkg --print-architecture),$arch" = amd64,arm64 ] || die "the $package for $arch is built on $arch"
    command -v aarch64-linux-gnu-gcc >/dev/null || die "the cross compiler is missing: apt-get install ${arm64_packages[*]:0:2}"
    prepare_arm64_libraries || die "no compiler for $arm64_triple, or Debian's packages for ARM64 could not be fetched"
    triple=$arm64_triple
}
# Sets `released`, the date of a release or nothing, and `epoch`, the time of the release or of the last commit.
choose_time() {
    released=$(fact "(p['metadata'] or {}).get('gstreamer', {}).get('release_date')")
    if [ "$released" ]; then epoch=$(date -u -d "$released" +%s); else epoch=$(git log -1 --format=%ct); fi
}

# Makes a database of packages whose files are where they were unpacked, as dpkg-shlibdeps asks for them: FOLDER
cross_database() {
    cp -r "$unpacked/var/lib/dpkg" "$1"
    sed -i "s|^/|$unpacked/|" "$1"/info/*.list
}

# Builds what cargo's arguments say, without symbols, and prints the path of the program NAME: NAME ARGUMENT...
compile() {
    # Messages of panics name files; not where they were here.
    CARGO_PROFILE_RELEASE_STRIP=symbols RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$root=superpixel" \
        tools/built.sh "$1" cargo build --locked --release --target "$triple" --target-dir "$target_dir" "${@:2}"
}
build_programs() {
    local stage=$target_dir/superpixel-programs triple name archive program built released epoch bench=cli,cuda
    git rev-parse --verify -q HEAD >/dev/null || die "this needs a git checkout, which says when its files are from"
    choose_machine
    choose_time
    fresh_folder "$stage"
    name=superpixel-programs-$(fact "p['version']")-$triple
    mkdir "$stage/$name"
    # The library alone, which needs no GStreamer.
    built=$(compile superpixel-bench --no-default-features --features $bench --bin superpixel-bench)
    cp "$built" "$stage/$name/"
    packaging/bill.py Cargo.toml "$triple" "$stage/$name/superpixel-bench.cdx.json" "$stage/$name/superpixel-bench.licenses" --features $bench
    for program in clip studio; do
        # Both at once, with one build of the library.
        built=$(compile superpixel-$program --package superpixel-clip --package superpixel-studio --bins)
        cp "$built" "$stage/$name/"
        packaging/bill.py $program/Cargo.toml "$triple" "$stage/$name"/superpixel-$program.{cdx.json,licenses}
    done
    cp LICENSE "$stage/$name/"
    archive=$stage/$name.tar.gz
    tar -C "$stage" -c --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$epoch" "$name" | gzip -n9 >"$archive"
    publish "$folder" "$archive"
    rm -rf "$stage"
    (cd "$folder" && ls -l "${archive##*/}")
}

# Built from a copy of what git has, with Debian's own tools, so that debug symbols, dependencies and dates are as Debian wants them.
build_deb() {
    local stage=$target_dir/superpixel-deb name=gstreamer1.0-superpixel triple tree version released maintainer epoch cross=()
    command -v dh >/dev/null || die "debhelper is missing: apt-get install debhelper"
    git rev-parse --verify -q HEAD >/dev/null || die "this needs a git checkout, which says what belongs to the package"
    choose_machine
    fresh_folder "$stage"
    if [ "$triple" != "$(triple_here)" ]; then
        cross_database "$stage/database"
        export SUPERPIXEL_CROSS_TRIPLE=$triple
        export SUPERPIXEL_CROSS_SHLIBDEPS="--admindir=$stage/database -l$unpacked/usr/lib/aarch64-linux-gnu -l$unpacked/lib/aarch64-linux-gnu"
        cross=(--host-arch="$arch")
    fi
    tree=$stage/tree
    mkdir -p "$tree"
    git ls-files -z | tar -c --null --files-from=- | tar -x -m -C "$tree"
    version=$(fact "p['version']")
    choose_time
    # Sorts before the release.
    [ "$released" ] || version=$version~git$(date -u -d "@$epoch" +%Y%m%d%H%M%S).$(git rev-parse --short=7 HEAD)
    # dpkg wants an address; an empty one is at least none.
    maintainer=$(fact "p['authors'][0]")
    case $maintainer in *"<"*) ;; *) maintainer="$maintainer <>" ;; esac
    # The plugin shows the date of this file as its release date.
    touch -d "@$epoch" "$tree/Cargo.toml"
    cp -r packaging/debian "$tree/debian"
    cd "$tree"
    sed -i "s|@MAINTAINER@|$maintainer|" debian/control
    printf '%s (%s-1) unstable; urgency=medium\n\n  * Changes: changelog.gz beside this file.\n\n -- %s  %s\n' \
        $name "$version" "$maintainer" "$(date -u -R -d "@$epoch")" >debian/changelog
    "$root/packaging/bill.py" Cargo.toml "$triple" debian/gst-plugin-superpixel.cdx.json debian/licenses
    "$root/packaging/copyright.py" debian/licenses >debian/copyright
    # Messages of panics and debug symbols name files; not where they were here.
    SOURCE_DATE_EPOCH=$epoch CARGO_TARGET_DIR=$target_dir \
        RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$tree=superpixel" \
        dpkg-buildpackage "${cross[@]}" --build=binary --no-sign --no-check-builddeps
    cd "$root"
    publish "$folder" "$stage"/*.deb
    rm -rf "$stage"
    (cd "$folder" && ls -l "$name"*_"$version"-1_"${arch:-$(dpkg --print-architecture)}".deb)
}

build_crate() {
    local archive
    # A registry wants what is committed; to try, anything will do.
    cargo package --locked --allow-dirty --package gst-plugin-superpixel --target-dir "$target_dir"
    archive=$target_dir/package/gst-plugin-superpixel-$(fact "p['version']").crate
    [ "$(stat -c %s "$archive")" -lt 10000000 ] || die "the archive has more than the 10 MB that a registry takes"
    packaging/bill.py Cargo.toml "$(triple_here)" "${archive%.crate}.cdx.json" /dev/null
    publish "$folder" "$archive" "${archive%.crate}.cdx.json"
    (cd "$folder" && ls -l gst-plugin-superpixel-*)
}

# What the compiler and the linker are told for memory that threads share: at most 2 GiB, of which the page may take less.
threads_flags="-C target-feature=+simd128,+atomics,+bulk-memory -C link-arg=--shared-memory -C link-arg=--import-memory \
-C link-arg=--max-memory=2147483648 -C link-arg=--export=__wasm_init_tls -C link-arg=--export=__tls_size \
-C link-arg=--export=__tls_align -C link-arg=--export=__tls_base"
# Writes which crates are in the WebAssembly of a package, and their licenses: FOLDER
bill_wasm() {
    packaging/bill.py web/Cargo.toml "$wasm_triple" "$1/superpixels.cdx.json" "$1/LICENSE-THIRD-PARTY"
}
# Builds the WebAssembly, in a target folder of its own for each compiler, and writes where it lies: FILE PROFILE TARGET-FOLDER [FLAGS]
compile_wasm() {
    # Messages of panics name files; not where they were here.
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="${4:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$root=superpixel" \
        tools/built.sh superpixels_web.wasm cargo build --locked --profile "$2" --package superpixels-web --lib "${wasm_flags[@]}" \
        --target "$wasm_triple" --target-dir "$target_dir/$3" >"$1"
}
# Puts what was compiled into a package, whose JavaScript says itself where the WebAssembly is: FROM TO
place_wasm() {
    cp "$1/superpixels_web_bg.wasm" "$2/superpixels.wasm"
    sed "s|superpixels_web_bg.wasm|superpixels.wasm|" "$1/superpixels_web.js" >"$2/native.js"
}
# Packs a folder: FOLDER NAME
pack_npm() {
    sed -i "s|@VERSION@|$(fact "p['version']")|" "$stage/$1/package.json"
    (cd "$stage" && npm pack --silent --pack-destination . "./$1")
    archives+=("$(echo "$stage/$2"-[0-9]*.tgz)")
    [ "$(stat -c %s "${archives[-1]}")" -lt 600000 ] || die "the archive ${archives[-1]##*/} has more than 600 kB"
}
# Three packages: that with SIMD; the same with threads; and the WebAssembly without SIMD for old engines.
build_web() {
    local stage=$target_dir/superpixel-npm archives=() jobs=() job failed=
    command -v npm >/dev/null || die "npm is missing: apt-get install npm"
    fresh_folder "$stage"
    cp -r web/package "$stage/package"
    cp LICENSE web/README.md studio/page/png.js "$stage/package/"
    cp -r "$stage/package" "$stage/threads"
    cp web/threads/* "$stage/threads/"
    cp -r web/scalar "$stage/scalar"
    cp LICENSE "$stage/scalar/"
    bill_wasm "$stage/package"
    cp "$stage/package/"{superpixels.cdx.json,LICENSE-THIRD-PARTY} "$stage/scalar/"
    prepare_wasm || die "there is no compiler for $wasm_triple: rustup target add $wasm_triple"
    # Fetches the sources before anything is compiled, in a subshell: the first two builds take the compiler without them.
    (prepare_wasm_sources) || die "threads need the sources of Rust's library: rustup component add rust-src"
    # Beside each other, as the last and longest step of each has one thread. Interrupts do not reach them, and each has a group by
    # which all of its processes end.
    trap 'kill -- "${jobs[@]/#/-}" 2>/dev/null; exit 130' INT TERM
    set -m
    compile_wasm "$stage/built" web superpixel-web "-C target-feature=+simd128" & jobs+=($!)
    compile_wasm "$stage/built-scalar" web-small superpixel-web & jobs+=($!)
    tools/built.sh superpixels-web-bindgen cargo build --locked --release --manifest-path web/bindgen/Cargo.toml \
        --target-dir "$target_dir/superpixel-bindgen" >"$stage/bindgen" & jobs+=($!)
    prepare_wasm_sources
    compile_wasm "$stage/built-threads" web superpixel-web-threads "$threads_flags" & jobs+=($!)
    set +m
    for job in "${jobs[@]}"; do wait "$job" || failed=yes; done
    trap - INT TERM
    [ ! "$failed" ] || die "the WebAssembly could not be built"
    for job in "" -scalar -threads; do "$(<"$stage/bindgen")" "$(<"$stage/built$job")" "$stage/native$job"; done
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS=$threads_flags bill_wasm "$stage/threads"
    # One JavaScript serves both.
    cmp "$stage"/native{,-scalar}/superpixels_web.js || die "the JavaScript of the build without SIMD is another one"
    place_wasm "$stage/native" "$stage/package"
    place_wasm "$stage/native-threads" "$stage/threads"
    cp "$stage/native-scalar/superpixels_web_bg.wasm" "$stage/scalar/superpixels.wasm"
    pack_npm package superpixels
    pack_npm scalar superpixels-scalar
    pack_npm threads superpixels-threads
    publish "$folder" "${archives[@]}"
    rm -rf "$stage"
    (cd "$folder" && ls -l "${archives[@]##*/}")
}

say "building the $package${arch:+ for $arch}"
"build_$package"
say "built the $package in $folder"
