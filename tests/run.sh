#!/usr/bin/env bash
# SPDX-License-Identifier: MPL-2.0
# Installs what is missing and passes every test: tests/run.sh [quick]
#
# quick: format, lints and the tests that find most, in a few minutes once things are built; CI runs the whole.
# Goes on after a failed section and ends with a count. SUPERPIXEL_NO_SKIPS=1 makes a skipped section a failure.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
quick=
case $#,${1:-} in
    0,) ;;
    1,quick) quick=yes ;;
    *)
        sed -n '3,6s/^# *//p' "${BASH_SOURCE[0]}"
        case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
        ;;
esac
# shellcheck source=pipelines/setup.sh
. "$here/../pipelines/setup.sh"
# shellcheck source=tools/pinned.sh
. "$here/../tools/pinned.sh"
cd "$root"
# What each section does stands in tests/sections; here is their order.
# shellcheck source=tests/sections/report.sh
. "$here/sections/report.sh"
for part in lints library miri clip memory packages readers python cluster scripts studio fuzz; do
    # shellcheck disable=SC1090  # each is checked by itself
    . "$here/sections/$part.sh"
done
rm -rf "$lane_logs"
# What runs in the background does not get interrupts.
trap 'trap - INT; kill 0' INT

say "set-up"
install_packages "${build_packages[@]}" "${play_packages[@]}" "${test_packages[@]}"
install_rust
install_rust_tools
cargo --version
# Reads all of it: where the reader ends early, the writer fails, and so does the pipeline.
gst-inspect-1.0 --version | sed -n 1p
export CARGO_TARGET_DIR=$target_dir CARGO_TERM_COLOR=never RUST_BACKTRACE=1
say "set-up: done, $SECONDS s"

if [ "$quick" ]; then
    section "format" check_format
    section "clippy, features: gst,cuda" lint gst,cuda
    section "quick tests, features: gst,cuda" quick_tests
    finish
fi

# Each set of features is built once; what would help to build it again takes time.
export CARGO_INCREMENTAL=0
scratch=$target_dir/superpixel-tests
rm -rf "$scratch"
mkdir -p "$scratch"

beside "kernels are built" python3 kernels/build.py --check
miri_sections
start_lane
# With the demo in one call: apart, each would build the library again, for other features of its dependencies.
build_plugin --example demo
export G_DEBUG=fatal_warnings
# The tests register the elements themselves.
unset GST_PLUGIN_PATH
python_sections
fuzz_sections
package_sections
start_lane

supply_sections
lint_sections
# In this order: Cargo builds the library again wherever another set of dependencies has written its file meanwhile.
library_sections
section "CUDA on an emulated device" run_emulated
memory_sections
reader_sections
script_sections
install_sections
clip_sections
cluster_sections
studio_sections
collect
finish
