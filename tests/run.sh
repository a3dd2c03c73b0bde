#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Installs what is missing and passes every test: tests/run.sh [quick | --all | --list | PART[:SECTION] ...]
#
# quick: format, lints and the tests that find most, in a few minutes once things are built; CI runs the whole.
# --all: also what is long and rarely fails, as CONTRIBUTING.md lists it, for a release.
# PART: the sections of tests/sections/PART.sh alone; of these, with SECTION, those of this name, which may be a pattern.
# --list: names all sections as PART:SECTION, with * for what differs between several, and ends. Long ones run by that name, too.
# Goes on after a failed section and ends with a count. SUPERPIXEL_NO_SKIPS=1 makes a skipped section a failure.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parts=(lints library miri memory packages readers python cluster scripts studio web arm64 fuzz)
quick='' all='' chosen=()
for argument in "$@"; do
    case " ${parts[*]} " in
        *" ${argument%%:*} "*) chosen+=("$argument"); continue ;;
    esac
    [ "$#,$argument" != 1,quick ] || { quick=yes; continue; }
    [ "$#,$argument" != 1,--all ] || { all=yes; continue; }
    if [ "$#,$argument" = 1,--list ]; then
        for name in "${parts[@]}"; do
            sed -n '/\blong [a-z_]* "/{s/.*long [a-z_]* "\([A-Za-z][^"]*\)".*/'"$name"':\1 (--all)/p; d}
                s/.*\(section\|beside\) "\([A-Za-z][^"]*\)".*/'"$name"':\2/p' "$here/sections/$name.sh"
        done | sed 's/\${[^}]*}\|\$[a-z_]*/*/g' | sort -u
        exit 0
    fi
    sed -n '3,8s/^# *//p' "${BASH_SOURCE[0]}"
    echo "Parts: ${parts[*]}"
    case $argument in -h | --help) exit 0 ;; *) exit 2 ;; esac
done
# shellcheck source=pipelines/setup.sh
. "$here/../pipelines/setup.sh"
# shellcheck source=tools/pinned.sh
. "$here/../tools/pinned.sh"
# shellcheck source=tools/wasm.sh
. "$here/../tools/wasm.sh"
# shellcheck source=tools/arm64.sh
. "$here/../tools/arm64.sh"
cd "$root"
# What each section does stands in tests/sections; here is their order.
# shellcheck source=tests/sections/report.sh
. "$here/sections/report.sh"
for name in "${parts[@]}"; do
    # shellcheck disable=SC1090  # each is checked by itself
    . "$here/sections/$name.sh"
done
rm -rf "$lane_logs"
mkdir -p "$lane_logs"
# What runs in the background does not get interrupts.
trap 'trap - INT; kill 0' INT

say "set-up"
install_packages "${build_packages[@]}" "${play_packages[@]}" "${test_packages[@]}"
install_rust
install_rust_tools
cargo --version
# Reads all of it: where the reader ends early, the writer fails, and so does the pipeline.
gst-inspect-1.0 --version | sed -n 1p
# The tests of standard metadata read it by the real library, where there is one, and fail without.
if at_least "$(pkg-config --modversion gstreamer-1.0)" 1.26; then export SUPERPIXEL_REQUIRE_ANALYTICS=1; fi
# The Python package is loaded by an interpreter and links none.
export CARGO_TARGET_DIR=$target_dir CARGO_TERM_COLOR=never RUST_BACKTRACE=1 PYO3_BUILD_EXTENSION_MODULE=1
say "set-up: done, $SECONDS s"

if [ "$quick" ]; then
    section "format" check_format
    section "clippy" lint_all
    section "quick tests" quick_tests
    finish
fi

# What would help to build once more takes time.
export CARGO_INCREMENTAL=0
scratch=$target_dir/superpixel-tests
rm -rf "$scratch"
mkdir -p "$scratch"

part miri miri_sections
part fuzz fuzz_sections
part packages package_sections
start_lane
if any_of library memory readers python cluster scripts studio web arm64; then build_all; fi
export G_DEBUG=fatal_warnings
# The tests register the elements themselves.
unset GST_PLUGIN_PATH
part python python_sections
part studio page_sections
start_lane
# The corpora wait most of their time.
part cluster corpus_sections
part web web_sections
part arm64 arm64_sections
start_lane
part library emulator_sections
part memory leak_sections
part lints kernel_sections
start_lane

part library library_sections
part memory memory_sections
part readers reader_sections
part scripts script_sections
part packages install_sections
part studio studio_sections
part cluster cluster_sections
part lints lint_sections
part lints supply_sections
collect
finish
