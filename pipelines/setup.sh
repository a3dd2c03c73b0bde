# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034  # sourced: those who do use what stands here
# Installs what is missing and builds the plugin; sourced by pipelines/demo.sh, pipelines/play.sh and tests/run.sh.
#
# Never asks. Installs Debian and Ubuntu packages with apt-get (through sudo if not root) and Rust with rustup, and only
# what is not there. Says every such step before it takes it. Updates no toolchain that is there, and leaves the default one as it is.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
# What is built here runs here.
unset CARGO_BUILD_TARGET
# shellcheck source=pipelines/output.sh
declare -F check_target >/dev/null || . "$root/pipelines/output.sh"
check_target "$target_dir"
# GStreamer searches the folders of GST_PLUGIN_PATH with everything below them, so the plugin gets one of its own.
plugin_dir=$target_dir/superpixel-plugin

rust_wanted=1.92
# Cargo, pip and npm ask their registries by TLS.
build_packages=(ca-certificates gcc libc6-dev pkg-config libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev)
play_packages=(gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
    gstreamer1.0-plugins-ugly gstreamer1.0-libav)
python_packages=(python3-gi python3-numpy gir1.2-gstreamer-1.0 gir1.2-gst-plugins-base-1.0)
test_packages=("${python_packages[@]}" g++ python3 python3-pip python3-venv valgrind libc6-dbg libglib2.0-dev meson
    git iproute2)

say() { printf '== %s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() { warn "error: $*"; exit 1; }

# Runs a command as root. Asks nothing itself; sudo may want a password, but only where there is a terminal to type it.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        die "this needs root, and sudo is not available without a password. Run as root: $*"
    fi
}

# Installs those of the named Debian packages that are not installed.
install_packages() {
    local package missing=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "not a Debian or Ubuntu system: taking it that what these packages hold is installed: $*"
        return
    fi
    for package in "$@"; do
        # shellcheck disable=SC2016  # the format string is dpkg's
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing packages with apt-get: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get -q update || warn "apt-get update failed; trying with the package lists at hand"
    as_root apt-get -q install -y --no-install-recommends "${missing[@]}" ||
        die "apt-get could not install: ${missing[*]}"
}

# Succeeds if version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

cargo_version() { cargo --version 2>/dev/null | cut -d' ' -f2; }

cargo_is_new_enough() {
    local version
    version=$(cargo_version || true)
    [ -n "$version" ] && at_least "$version" "$rust_wanted"
}

# Puts a toolchain of rustup's first, for this script and what it starts. The user's default stays as it is. Apart from rustup's
# own cargo another may come first in PATH, which does not know the variable.
use_toolchain() {
    local cargo
    cargo=$(RUSTUP_AUTO_INSTALL=0 rustup which cargo --toolchain "$1" 2>/dev/null) || return 1
    export RUSTUP_TOOLCHAIN=$1 PATH=${cargo%/*}:$PATH
    hash -r
}

# Makes sure that `cargo` is there and new enough.
install_rust() {
    local found toolchain
    cargo_is_new_enough && return
    if [ -f "${CARGO_HOME:-$HOME/.cargo}/env" ]; then
        # shellcheck disable=SC1091  # written by rustup
        . "${CARGO_HOME:-$HOME/.cargo}/env"
        cargo_is_new_enough && return
    fi
    found=$(cargo_version || true)
    if ! command -v rustup >/dev/null; then
        say "no cargo $rust_wanted or newer (found: ${found:-none}): installing rustup"
        if apt-cache policy rustup 2>/dev/null | grep 'Candidate: [0-9]' >/dev/null; then
            install_packages rustup
        else
            install_packages curl ca-certificates
            say "running the installer from https://sh.rustup.rs, into ${CARGO_HOME:-$HOME/.cargo}"
            curl --proto '=https' --tlsv1.2 -fsSL https://sh.rustup.rs |
                sh -s -- -y --no-modify-path --profile minimal --default-toolchain none ||
                die "the Rust installer failed; install Rust $rust_wanted or newer by hand: https://rustup.rs"
            # shellcheck disable=SC1091  # written by rustup
            . "${CARGO_HOME:-$HOME/.cargo}/env"
        fi
    fi
    # The user's stable, else the oldest version that will do: a stable that is too old is neither updated nor replaced.
    for toolchain in stable "$rust_wanted"; do
        if (use_toolchain "$toolchain" && cargo_is_new_enough); then
            use_toolchain "$toolchain"
            say "using the toolchain $toolchain for this build (found: cargo ${found:-none})"
            return
        fi
    done
    toolchain=stable
    if (use_toolchain stable); then toolchain=$rust_wanted; fi
    say "no cargo $rust_wanted or newer (found: ${found:-none}): installing the toolchain $toolchain with rustup, for this build"
    rustup toolchain install "$toolchain" --no-self-update --profile minimal --component rustfmt,clippy ||
        die "rustup could not install the toolchain $toolchain"
    { use_toolchain "$toolchain" && cargo_is_new_enough; } || die "rustup's toolchain $toolchain has no cargo $rust_wanted or newer"
}

# Makes sure that rustfmt and clippy are there.
install_rust_tools() {
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || die "rustfmt and clippy are missing, and so is rustup, which could install them"
    say "installing rustfmt and clippy with rustup"
    rustup component add rustfmt clippy
}

# Builds the plugin in release, with what further arguments to `cargo build` name, and points GStreamer at it. All that
# was built is in the folder `built_in`.
build_plugin() {
    local built
    say "building the plugin (cargo build --release; some minutes the first time)"
    built=$(cd "$root" && tools/built.sh libgstsuperpixel.so cargo build --release --locked --lib --no-default-features \
        --features gst,cuda --target-dir "$target_dir" "$@") || die "the build failed"
    built_in=${built%/*}
    mkdir -p "$plugin_dir"
    # A program that runs keeps the file that it has mapped.
    cp "$built" "$target_dir/libgstsuperpixel.so.new"
    mv "$target_dir/libgstsuperpixel.so.new" "$plugin_dir/libgstsuperpixel.so"
    use_plugin
}

use_plugin() {
    export GST_PLUGIN_PATH=$plugin_dir GST_REGISTRY=$target_dir/superpixel-registry.bin
    gst-inspect-1.0 superpixel >/dev/null 2>&1 && return
    # A plugin that once failed to load, for want of a library say, is on the registry's list of the refused.
    rm -f "$GST_REGISTRY"
    gst-inspect-1.0 superpixel >/dev/null || die "GStreamer does not load $plugin_dir/libgstsuperpixel.so"
}
