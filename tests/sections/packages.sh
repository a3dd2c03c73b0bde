# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: what is built for others, and with what.

use_meson() {
    local build=$scratch/meson dest=$scratch/dest plugin
    meson setup "$build" -Dprefix=/usr -Dcargo_target_dir="$target_dir"
    meson compile -C "$build"
    # Its other test is cargo's whole, which has run.
    meson test -C "$build" --print-errorlogs inspect
    DESTDIR=$dest meson install -C "$build" --no-rebuild
    plugin=$dest$(pkg-config --variable=pluginsdir gstreamer-1.0)
    GST_PLUGIN_PATH=$plugin GST_REGISTRY=$scratch/meson-registry.bin gst-inspect-1.0 superpixel >"$scratch/inspect.txt"
    grep -q "Filename *$plugin/libgstsuperpixel.so" "$scratch/inspect.txt"
}

# A cargo that puts a text where cargo puts the plugin, for TRIPLE or this machine, and says where: FOLDER
stand_in_for_cargo() {
    mkdir -p "$1"
    cat >"$1/cargo" <<'CARGO'
#!/usr/bin/env bash
# In a variable, or in a file of settings, may stand what to build for; a flag has the last word.
[ -z "${STAND_IN_FAILS:-}" ] || exit 101
folder=${CARGO_TARGET_DIR:-target} profile=debug
triple=${CARGO_BUILD_TARGET:-$(sed -n 's/^target = "\(.*\)"$/\1/p' "$CARGO_HOME/config.toml" 2>/dev/null)}
while [ $# -gt 0 ]; do
    case $1 in
        --target-dir) folder=$2 ;;
        --target) triple=$2 ;;
        --release) profile=release ;;
        --profile) profile=${2/#dev/debug} ;;
    esac
    shift
done
file=$folder/${triple:+$triple/}$profile/libgstsuperpixel.so
mkdir -p "${file%/*}"
echo "for ${triple:-this machine}" >"$file"
# Wrappers of cargo may be silent.
[ "${STAND_IN_IS_SILENT:-}" ] ||
    printf '{"reason":"compiler-artifact","target":{"name":"gstsuperpixel"},"filenames":["%s","%s"],"executable":null}\n' "${file%.so}.rlib" "$file"
CARGO
    chmod +x "$1/cargo"
}
# What is installed was built now, and for the machine that was asked for.
try_targets() {
    local folder=$scratch/targets other=aarch64-unknown-linux-gnu
    rm -rf "$folder"
    stand_in_for_cargo "$folder/bin"
    export PATH=$folder/bin:$PATH CARGO_HOME=$folder/cargo-home
    mkdir "$CARGO_HOME"
    unset CARGO_TARGET_DIR CARGO_BUILD_TARGET
    # Builds and looks at what would be installed: FOLDER TEXT
    makes() {
        meson compile -C "$folder/$1" >"$folder/log.txt" 2>&1 || { cat "$folder/log.txt"; return 1; }
        has "$1" "$2"
    }
    has() { [ "$(cat "$folder/$1/libgstsuperpixel.so")" = "$2" ] || { echo "$1: not $2"; return 1; }; }
    set_up() { expect 0 meson setup "$folder/$1" --prefix=/usr "${@:2}"; }
    set_up one
    makes one "for this machine"
    CARGO_BUILD_TARGET=$other makes one "for $other"
    makes one "for this machine"
    STAND_IN_IS_SILENT=yes CARGO_BUILD_TARGET=$other makes one "for $other"
    printf '[build]\ntarget = "%s"\n' $other >"$CARGO_HOME/config.toml"
    makes one "for $other"
    # It does not say where, and did not write where one would guess: nothing, rather than what an earlier build left there.
    touch -d '1 hour ago' "$folder/one/cargo/release/libgstsuperpixel.so"
    expect 1 env STAND_IN_IS_SILENT=yes meson compile -C "$folder/one"
    grep -q 'error: cargo built no libgstsuperpixel.so' "$scratch/out.txt"
    [ ! -e "$folder/one/libgstsuperpixel.so" ]
    makes one "for $other"
    expect 1 env STAND_IN_FAILS=yes meson compile -C "$folder/one"
    [ ! -e "$folder/one/libgstsuperpixel.so" ]
    rm "$CARGO_HOME/config.toml"
    CARGO_BUILD_TARGET=$other set_up two -Dbuildtype=debug
    CARGO_BUILD_TARGET=$other makes two "for $other"
    cat >"$folder/cross" <<'CROSS'
[binaries]
c = 'cc'
pkg-config = 'pkg-config'
pkgconfig = 'pkg-config'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
[properties]
needs_exe_wrapper = true
CROSS
    expect 1 meson setup "$folder/three" --cross-file "$folder/cross"
    grep -q 'name the host machine (linux, aarch64) as Rust does: -Dcargo_build_target=TRIPLE' "$scratch/out.txt"
    set_up four --cross-file "$folder/cross" -Dcargo_build_target=$other
    makes four "for $other"
    CARGO_BUILD_TARGET=$other set_up five --cross-file "$folder/cross"
    makes five "for $other"
    echo "cargo_build_target = '$other'" >>"$folder/cross"
    set_up six --cross-file "$folder/cross"
    makes six "for $other"
    # Where it is installed does not depend on where the other machine's system lies.
    echo "sys_root = '$folder/system'" >>"$folder/cross"
    set_up system --cross-file "$folder/cross"
    meson introspect "$folder/system" --installed | grep -q '": "/usr/lib/[^"]*/gstreamer-1.0/libgstsuperpixel.so"'
    # Programs that start what they build do not take the variable; where a file of settings says otherwise, they find what was built.
    (
        export CARGO_TARGET_DIR=$folder/seven CARGO_BUILD_TARGET=$other
        # shellcheck source=pipelines/setup.sh
        . "$root/pipelines/setup.sh"
        use_plugin() { :; }
        build_plugin
        has seven/superpixel-plugin "for this machine"
        printf '[build]\ntarget = "%s"\n' $other >"$CARGO_HOME/config.toml"
        build_plugin
        has seven/superpixel-plugin "for $other"
        [ "$built_in" = "$folder/seven/$other/release" ]
    )
    # The package is for this machine, whatever variables and settings say.
    if command -v dpkg-architecture >/dev/null; then
        mkdir "$folder/eight"
        ln -s "$root/tools" "$folder/eight/tools"
        (
            cd "$folder/eight" || exit
            export CARGO_TARGET_DIR=$folder/eight/target
            mkdir -p target/release
            echo "an old one" >target/release/libgstsuperpixel.so
            CARGO_BUILD_TARGET=$other make -f "$root/packaging/debian/rules" override_dh_auto_build override_dh_auto_install
            [ "$(cat debian/gstreamer1.0-superpixel/usr/lib/*/gstreamer-1.0/libgstsuperpixel.so)" = \
                "for $(rustc -vV | sed -n 's/^host: //p')" ]
            expect 2 env DEB_HOST_ARCH=s390x make -f "$root/packaging/debian/rules" override_dh_auto_build
            grep -q 'cannot be cross-built: build it on s390x' "$scratch/out.txt"
        )
    fi
}

# The packages that need no other system; packaging/try-deb.sh tries fresh ones. Built in a folder of their own, since other sections
# run beside.
try_packages() {
    local folder=$scratch/packages installed=$scratch/installed plugin
    export CARGO_TARGET_DIR=$target_dir/superpixel-packages
    packaging/build.sh crate "$folder"
    packaging/build.sh deb "$folder"
    dpkg -x "$folder"/gstreamer1.0-superpixel_*.deb "$installed"
    export GST_PLUGIN_PATH=$installed/usr/lib GST_REGISTRY=$scratch/packages-registry.bin
    gst-inspect-1.0 superpixel >"$scratch/packages.txt"
    plugin=$(sed -n 's/^  Filename *//p' "$scratch/packages.txt")
    [[ $plugin == "$installed"/usr/lib/*/gstreamer-1.0/libgstsuperpixel.so ]]
    gst-launch-1.0 -q videotestsrc num-buffers=10 ! superpixel algo=quickshift overlay=mean-color ! videoconvert ! fakesink
    grep -q '"name": "cudarc"' "$folder"/gst-plugin-superpixel-*.cdx.json
    grep -q 'cudarc' "$installed/usr/share/doc/gstreamer1.0-superpixel/copyright"
    rm -rf "$CARGO_TARGET_DIR"
}

# Runs install_rust in a home with a rustup that notes what it is asked: FOLDER DEFAULT'S-VERSION [TOOLCHAIN=VERSION ...]
choose_rust() {
    local folder=$1 default=$2 have
    shift 2
    rm -rf "$folder"
    mkdir -p "$folder/bin" "$folder/toolchains" "$folder/cargo-home"
    add_toolchain() {
        mkdir -p "$folder/toolchains/$1/bin"
        printf '#!/bin/sh\necho "cargo %s (fake)"\n' "$2" >"$folder/toolchains/$1/bin/cargo"
        chmod +x "$folder/toolchains/$1/bin/cargo"
    }
    for have in "$@"; do add_toolchain "${have%%=*}" "${have#*=}"; done
    printf '#!/bin/sh\necho "cargo %s (fake)"\n' "$default" >"$folder/bin/cargo"
    # What it installs is the version that is wanted.
    cat >"$folder/bin/rustup" <<RUSTUP
#!/usr/bin/env bash
echo "\$*" >>"$folder/asked"
case \$1-\$2 in
    which-cargo) [ -x "$folder/toolchains/\$4/bin/cargo" ] && echo "$folder/toolchains/\$4/bin/cargo" ;;
    toolchain-install)
        mkdir -p "$folder/toolchains/\$3/bin"
        printf '#!/bin/sh\necho "cargo $rust_wanted.0 (fake)"\n' >"$folder/toolchains/\$3/bin/cargo"
        chmod +x "$folder/toolchains/\$3/bin/cargo"
        ;;
    *) exit 3 ;;
esac
RUSTUP
    chmod +x "$folder/bin/"*
    touch "$folder/asked"
    (
        export HOME=$folder CARGO_HOME=$folder/cargo-home PATH=$folder/bin:$PATH
        unset RUSTUP_TOOLCHAIN
        install_rust
        echo "${RUSTUP_TOOLCHAIN:-default} $(cargo --version)" >"$folder/chosen"
    )
    cat "$folder/asked"
}
# A build takes a toolchain of its own; what the user has stays as it is.
try_toolchains() {
    local folder=$scratch/toolchains
    choose_rust "$folder/new" 1.99.0 stable=1.60.0
    [ "$(cat "$folder/new/chosen")" = "default cargo 1.99.0 (fake)" ]
    [ ! -s "$folder/new/asked" ]
    choose_rust "$folder/stable" 1.60.0 stable=1.99.0
    [ "$(cat "$folder/stable/chosen")" = "stable cargo 1.99.0 (fake)" ]
    choose_rust "$folder/wanted" 1.60.0 stable=1.61.0 "$rust_wanted=$rust_wanted.1"
    [ "$(cat "$folder/wanted/chosen")" = "$rust_wanted cargo $rust_wanted.1 (fake)" ]
    choose_rust "$folder/old" 1.60.0 stable=1.61.0
    [ "$(cat "$folder/old/chosen")" = "$rust_wanted cargo $rust_wanted.0 (fake)" ]
    choose_rust "$folder/none" 1.60.0
    [ "$(cat "$folder/none/chosen")" = "stable cargo $rust_wanted.0 (fake)" ]
    # An install where there is nothing to replace, in two cases of the five, and no other change.
    [ "$(cat "$folder"/*/asked | grep -v '^which ')" = "$(printf 'toolchain install %s --no-self-update --profile minimal --component rustfmt,clippy\n' \
        stable "$rust_wanted")" ]
    grep -q "cargo 1.61.0" "$folder/old/toolchains/stable/bin/cargo"
}

package_section() {
    if command -v dpkg-deb >/dev/null; then
        install_packages debhelper
        beside "$1" try_packages
    else
        skip "$1" "not a Debian or Ubuntu system"
    fi
}
package_sections() { long package_section "packages"; }
install_sections() {
    long section "meson" use_meson
    section "cross builds" try_targets
    section "choice of a toolchain" try_toolchains
}
