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

package_sections() {
    if command -v dpkg-deb >/dev/null; then
        install_packages debhelper
        beside "packages" try_packages
    else
        skip "packages" "not a Debian or Ubuntu system"
    fi
}
install_sections() {
    section "meson" use_meson
    section "choice of a toolchain" try_toolchains
}
