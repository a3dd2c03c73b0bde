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

passed=0 failed=() skipped=()
# Runs a command as a section. In the background, because bash ignores `set -e` inside the condition of an `if`.
section() {
    local name=$1 start=$SECONDS
    shift
    say "$name"
    (set -e; "$@") &
    if wait $!; then
        passed=$((passed + 1))
        say "$name: passed, $((SECONDS - start)) s"
    else
        failed+=("$name")
        say "$name: FAILED, $((SECONDS - start)) s"
    fi
}
skip() {
    say "$1: skipped, $2"
    skipped+=("$1")
}

say "set-up"
install_packages "${build_packages[@]}" "${play_packages[@]}" "${test_packages[@]}"
install_rust
install_rust_tools
cargo --version
# Reads all of it: where the reader ends early, the writer fails, and so does the pipeline.
gst-inspect-1.0 --version | sed -n 1p
export CARGO_TARGET_DIR=$target_dir CARGO_TERM_COLOR=never RUST_BACKTRACE=1
say "set-up: done, $SECONDS s"

# Prints how the sections ended and exits.
finish() {
    say "$passed sections passed, ${#failed[@]} failed, ${#skipped[@]} skipped, $((SECONDS / 60)) min $((SECONDS % 60)) s"
    for name in "${failed[@]}"; do say "failed: $name"; done
    for name in "${skipped[@]}"; do say "skipped: $name"; done
    if [ "${SUPERPIXEL_NO_SKIPS:-}" = 1 ] && [ ${#skipped[@]} -gt 0 ]; then exit 1; fi
    [ ${#failed[@]} = 0 ]
    exit
}

features() { echo --no-default-features ${1:+--features "$1"}; }
lint() {
    # shellcheck disable=SC2046  # words on purpose
    cargo clippy --locked --all-targets $(features "$1") -- -D warnings
}
check_format() {
    cargo fmt --check --package gst-plugin-superpixel --package superpixels --package superpixel-clip --package superpixel-studio
    cargo fmt --check --manifest-path fuzz/Cargo.toml
}

if [ "$quick" ]; then
    quick_tests() {
        # shellcheck disable=SC2046  # words on purpose
        cargo test --locked --no-fail-fast $(features gst,cuda) --lib --test layers --test documents --test element --test label_element \
            --test meta --test bad_buffers --test drawing --test merge --test temporal --test by_hand --test hashes
    }
    section "format" check_format
    section "clippy, features: gst,cuda" lint gst,cuda
    section "quick tests, features: gst,cuda" quick_tests
    finish
fi

# With the demo in one call: apart, each would build the library again, for other features of its dependencies.
build_plugin --example demo
# Each set of features is built once; what would help to build it again takes time.
export CARGO_INCREMENTAL=0
export G_DEBUG=fatal_warnings
# The tests register the elements themselves.
unset GST_PLUGIN_PATH

run_tests() {
    local set=$1
    shift
    # Cargo names the library's files alike whatever its features, and takes those of another set for fresh.
    cargo clean -q -p gst-plugin-superpixel --profile dev
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --no-fail-fast $(features "$set") "$@"
}

check_dependencies() {
    fetch_cargo_deny
    # All that the lock file names, for any platform, has to be there.
    cargo fetch -q --locked || say "cargo fetch failed: what is there has to do"
    "$tool" --offline --locked --workspace check --hide-inclusion-graph bans licenses sources
}
# The database of advisories is cloned into the target folder. SUPERPIXEL_ADVISORIES names a folder with a clone of it, for hosts
# without a network.
advisories=https://github.com/RustSec/advisory-db
check_advisories() {
    fetch_cargo_deny
    local config=$target_dir/superpixel-tools/deny.toml
    # shellcheck disable=SC2016  # expanded by cargo-deny
    sed 's|^\[advisories\]$|&\ndb-path = "${SUPERPIXEL_ADVISORIES_CLONE}"|' deny.toml >"$config"
    SUPERPIXEL_ADVISORIES_CLONE=$target_dir/superpixel-tools/advisories \
        "$tool" --config "$config" --locked --workspace check --hide-inclusion-graph advisories
}
# Versions in the lock file that their authors withdrew, as most do where something is wrong. Asks the registry that everything
# else comes from, so that there is a check where the database is not reached. Nothing is built.
check_withdrawn() {
    local folder=$target_dir/superpixel-tools/withdrawn
    mkdir -p "$folder"
    cargo package --locked --allow-dirty --no-verify --workspace --target-dir "$folder" 2>&1 | tee "$folder/said.log"
    ! grep -F 'is yanked in registry' "$folder/said.log"
}
section "withdrawn versions" check_withdrawn
if [ "$(uname -m)" != x86_64 ]; then
    skip "dependencies" "the pinned cargo-deny is a program for x86-64"
    skip "advisories" "the pinned cargo-deny is a program for x86-64"
else
    section "dependencies" check_dependencies
    if [ -n "${SUPERPIXEL_ADVISORIES:-}" ]; then
        clone=$(realpath "$SUPERPIXEL_ADVISORIES")
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.$clone.insteadOf GIT_CONFIG_VALUE_0=$advisories
    fi
    # A failed fetch and a finding look alike to who reads the status of cargo-deny.
    if GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote -q "$advisories" HEAD >/dev/null 2>&1; then
        section "advisories" check_advisories
    else
        skip "advisories" "$advisories is not reached; SUPERPIXEL_ADVISORIES may name a folder with a clone of it"
    fi
    unset GIT_CONFIG_COUNT
fi

check_scripts() {
    fetch_shellcheck
    "$tool" --severity=warning --external-sources --source-path="$root" pipelines/*.sh tests/*.sh tools/*.sh packaging/*.sh docs/pictures/*.sh .ci/run
}
if [ "$(uname -m)" = x86_64 ]; then
    section "scripts" check_scripts
else
    skip "scripts" "the pinned shellcheck is a program for x86-64"
fi
section "format" check_format
section "kernels are built" python3 kernels/build.py --check
for set in "" gst cuda gst,cuda gst,cuda,cli; do
    section "clippy, features: ${set:-none}" lint "$set"
done
# In a folder of its own: Cargo would put a library without the elements where the plugin is looked for.
python_target=$target_dir/superpixel-python
lint_python() { CARGO_TARGET_DIR=$python_target cargo clippy --locked --package superpixels --all-targets -- -D warnings; }
section "clippy, Python package" lint_python
write_documentation() {
    # shellcheck disable=SC2046  # words on purpose
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --lib $(features gst,cuda)
}
section "documentation" write_documentation
# Of the smaller sets, what differs from the whole: a library alone; what the element says of itself without a backend, and the documents.
section "tests, features: none" run_tests "" --lib --test allocations --test temporal
section "tests, features: gst" run_tests gst --lib --test element --test documents
section "tests, features: cuda" run_tests cuda --lib
section "tests, features: gst,cuda" run_tests gst,cuda
# The program has the features of the whole. It is built beside the plugin, from the same library.
lint_clip() { cargo clippy --locked --package superpixel-clip --all-targets -- -D warnings; }
section "clippy, superpixel-clip" lint_clip
try_clip() { cargo test --locked --package superpixel-clip; }
section "tests, superpixel-clip" try_clip
# Again as users get it; with debug assertions it has run above. The features are the plugin's: for others much would be built again.
try_levels() {
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --release $(features gst,cuda) --test levels -- --nocapture
}
section "instruction sets, release" try_levels
# Only nightly compilers have Miri. This one is pinned, and installed beside what the user has.
miri_toolchain=nightly-2026-05-20
has_miri() { rustup run "$miri_toolchain" cargo miri --version >/dev/null 2>&1; }
# Colors, planes and rows, which every pixel goes through, and arrays in pages of their own. In a folder whose manifest leaves out what
# only other tests need: Miri would compile all of it.
try_miri() {
    local folder=$target_dir/superpixel-miri part
    mkdir -p "$folder"
    for part in src benches examples build.rs; do ln -sfn "$root/$part" "$folder/$part"; done
    # Nor other members of the workspace.
    sed '/^\[dev-dependencies\]$/,/^$/{/^\[\|^image /!d}; /^members = /d; /^default-members = /d; /^exclude = /d' Cargo.toml \
        >"$folder/Cargo.toml"
    cp Cargo.lock "$folder/"
    run_miri() { (cd "$folder" && rustup run "$miri_toolchain" cargo miri test --no-default-features --lib -- "$@"); }
    run_miri color:: cpu::memory::
    # The queues of rayon's threads are sound by the newer rules only; its threads outlive the tests.
    MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks" run_miri image::
}
if ! command -v rustup >/dev/null; then
    skip "Miri" "it comes with $miri_toolchain, which rustup installs; there is no rustup"
elif ! has_miri && ! timeout 300 rustup toolchain install "$miri_toolchain" --no-self-update --profile minimal --component miri,rust-src; then
    skip "Miri" "rustup could not install $miri_toolchain with miri"
else
    section "Miri" try_miri
fi

# The system's Python has gi and numpy; another may come first in PATH.
python_with_gi() {
    local python=python3
    python3 -c 'import gi, numpy' 2>/dev/null || python=/usr/bin/python3
    GST_PLUGIN_PATH=$plugin_dir "$python" "$@"
}

# The CUDA backend, kernels and all, on a device of the emulator's making; a real one may be there as well.
run_emulated() {
    local folder=$target_dir/superpixel-emulator
    tests/emulator/build.py "$folder"
    # A registry of its own: GStreamer's CUDA elements are there only with a device.
    rm -f "$folder/registry.bin"
    export GST_REGISTRY=$folder/registry.bin LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export SUPERPIXEL_EMULATED=1 SUPERPIXEL_REQUIRE_CUDA=1 SUPERPIXEL_SHORT=1
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked --no-fail-fast $(features gst,cuda) --test parity --test parity_stages --test cuda_temporal --test cuda_masks --test cuda_hierarchy --test cuda_memory --test cuda_ownership --test cuda_arrays --test kept --test cuda_context --test cuda_element \
        --test cuda_zero_copy --test cuda_bad_buffers --test cuda_async --test cuda_decoder --test cuda_cycles --test cuda_faults
    # Once more as a device whose grids overlap, with all work put off until somebody waits for it.
    # shellcheck disable=SC2046  # words on purpose
    EMULATOR_CAPABILITY=90 EMULATOR_LAZY=1 cargo test --locked --no-fail-fast $(features gst,cuda) --test cuda_memory --test cuda_ownership --test cuda_arrays --test kept --test cuda_context \
        --test cuda_zero_copy --test cuda_bad_buffers --test cuda_async --test cuda_decoder
    # And as one with as many multiprocessors as large devices have, whose grids are larger than small frames, which puts branches of
    # graphs off, and sets some blocks up before the grid before has begun.
    # shellcheck disable=SC2046  # words on purpose
    EMULATOR_CAPABILITY=90 EMULATOR_EARLY=1 EMULATOR_MULTIPROCESSORS=132 EMULATOR_BACKWARDS=1 cargo test --locked --no-fail-fast $(features gst,cuda) --test parity --test cuda_temporal --test cuda_masks --test cuda_hierarchy -- \
        many_rounds merged_regions drawn_parameters quickshift_matches resets_match drawn_clips masked numbers_of_regions islands_match clips_match
    # Its other cases take a minute.
    python_with_gi tests/python/processes.py --cuda an_error_after_a_fork
}
section "CUDA on an emulated device" run_emulated

scratch=$target_dir/superpixel-tests
rm -rf "$scratch"
mkdir -p "$scratch"

# The test programs of the elements, as "name path". They were built by the last run of the tests.
element_tests() {
    # shellcheck disable=SC2046  # words on purpose
    cargo test --locked $(features gst,cuda) --no-run --tests 2>&1 |
        sed -n 's/^ *Executable tests\/\([a-z0-9_]*\)\.rs (\(.*\))$/\1 \2/p' |
        while read -r name path; do
            if grep -q '^mod common;' "tests/$name.rs"; then echo "$name $path"; fi
        done
}
# Runs a test program under the leaks tracer, which reports when the program ends GStreamer at exit.
trace_leaks() {
    local name=$1 path=$2 status=0
    shift 2
    rm -f "$scratch/leaks-$name".*
    GST_TRACERS=leaks GST_DEBUG=GST_TRACER:7 GST_DEBUG_NO_COLOR=1 GST_DEBUG_FILE="$scratch/leaks-$name.%p" \
        "$path" "$@" >"$scratch/$name.out" 2>&1 || status=$?
    [ $status = 0 ] || cat "$scratch/$name.out"
    # A program without a test to run leaves no log.
    if grep -hs 'object-alive, .*(gpointer)0x' "$scratch/leaks-$name".*; then status=1; fi
    return $status
}
find_leaks() {
    local list name path found bad=0
    list=$(element_tests)
    [ "$(wc -l <<<"$list")" -ge 5 ]
    while read -r name path; do
        # The readers are other programs, which end as they like.
        if trace_leaks "$name" "$path" --skip reads_labels; then echo "$name: no leak"; else bad=1; fi
    done <<<"$list"
    # The tracer has to find a leak that is there.
    read -r name path <<<"$(grep '^leaks ' <<<"$list")"
    found=$(trace_leaks "$name" "$path" --ignored 2>&1 || true)
    if ! grep -q 'object-alive, .*GstPipeline' <<<"$found"; then
        echo "a leak made on purpose is not reported"
        bad=1
    fi
    return $bad
}
section "leaks" find_leaks

check_memory() {
    GST_PLUGIN_PATH=$plugin_dir G_SLICE=always-malloc valgrind -q --error-exitcode=9 --num-callers=30 \
        --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --suppressions=/usr/share/glib-2.0/valgrind/glib.supp --suppressions=tests/valgrind.supp \
        gst-launch-1.0 -q videotestsrc num-buffers=3 pattern=ball ! video/x-raw,format="$1",width=161,height=121 ! \
        superpixel threads=2 neighbors=true "${@:2}" overlay=mean-color-boundaries ! superpixellabels identity=true ! fakesink
}
section "valgrind, I420" check_memory I420
section "valgrind, BGRx" check_memory BGRx temporal=true merge=2
# Buffers that lie about themselves, over the test program itself; its clips are decoded by others.
check_bad_buffers() {
    local name path
    while read -r name path; do
        [ "$name" = bad_buffers ] || continue
        G_SLICE=always-malloc valgrind -q --error-exitcode=9 --num-callers=30 --suppressions=/usr/share/glib-2.0/valgrind/glib.supp \
            --suppressions=tests/valgrind.supp "$path" --test-threads=1 --skip identities_last
        return
    done < <(element_tests)
    return 1
}
section "valgrind, bad buffers" check_bad_buffers

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
section "meson" use_meson

# The packages that need no other system; packaging/try-deb.sh tries fresh ones.
try_packages() {
    local folder=$scratch/packages installed=$scratch/installed plugin
    packaging/build.sh crate "$folder"
    packaging/build.sh deb "$folder"
    dpkg -x "$folder"/gstreamer1.0-superpixel_*.deb "$installed"
    export GST_PLUGIN_PATH=$installed/usr/lib GST_REGISTRY=$scratch/packages-registry.bin
    gst-inspect-1.0 superpixel >"$scratch/inspect.txt"
    plugin=$(sed -n 's/^  Filename *//p' "$scratch/inspect.txt")
    [[ $plugin == "$installed"/usr/lib/*/gstreamer-1.0/libgstsuperpixel.so ]]
    gst-launch-1.0 -q videotestsrc num-buffers=10 ! superpixel algo=quickshift overlay=mean-color ! videoconvert ! fakesink
    grep -q '"name": "cudarc"' "$folder"/gst-plugin-superpixel-*.cdx.json
    grep -q 'cudarc' "$installed/usr/share/doc/gstreamer1.0-superpixel/copyright"
}
if command -v dpkg-deb >/dev/null; then
    install_packages debhelper
    section "packages" try_packages
else
    skip "packages" "not a Debian or Ubuntu system"
fi

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
section "choice of a toolchain" try_toolchains

# The readers get metadata that the element would not write.
try_readers() {
    python_with_gi tests/python/held_fields.py
    # shellcheck disable=SC2046  # words on purpose
    cc -g -O1 -fsanitize=address -Wall -Wextra -Werror -o "$scratch/hostile" tests/readers/hostile.c \
        $(pkg-config --cflags --libs gstreamer-app-1.0 gstreamer-video-1.0)
    ASAN_OPTIONS=detect_leaks=0 "$scratch/hostile"
}
section "readers" try_readers

# Standard metadata, on a stand-in of GStreamer's library; the tests above have used the real one, where that is of 1.26 or newer.
try_analytics() {
    local folder=$scratch/analytics
    mkdir -p "$folder"
    # shellcheck disable=SC2046  # words on purpose
    cc -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror -shared -fPIC -Wl,-soname,libgstanalytics-1.0.so.0 \
        -o "$folder/libgstanalytics-1.0.so.0" tests/readers/analytics.c $(pkg-config --cflags --libs gstreamer-video-1.0)
    # shellcheck disable=SC2046  # words on purpose
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SUPERPIXEL_REQUIRE_ANALYTICS=1 \
        cargo test --locked $(features gst,cuda) --test analytics
}
section "standard metadata" try_analytics
section "processes" python_with_gi tests/python/processes.py

# The oldest and the newest Python at hand that the package is for, as "version path".
suitable_pythons() {
    local python
    for python in python3 /usr/bin/python3 python3.{9..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
        "$python" -c '
import ensurepip, sys, venv
if sys.version_info >= (3, 9) and sys.version_info.releaselevel == "final":
    print("%d.%02d" % sys.version_info[:2], sys.executable)' 2>/dev/null || true
    done | sort -u -k1,1 | sed -n '1p; 1!{$p}'
}
# Environments with what the tests need beside the package, each anew.
make_environments() {
    local version python environment
    rm -rf "$python_target"/environment-*
    while read -r version python; do
        environment=$python_target/environment-$version
        "$python" -m venv "$environment" &&
            "$environment/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: numpy scipy pillow \
            pytest hypothesis==6.141.1 || return 1
    done < <(suitable_pythons)
}
try_python() {
    local environment packages
    rm -rf "$python_target/wheels" "$python_target/packages"
    # Without optimizations of the last seconds; releases are built with --release.
    CARGO_TARGET_DIR=$python_target "$tool" build --manifest-path python/Cargo.toml --locked --profile dev --out "$python_target/wheels"
    # What users get takes a core for a minute, as the tests do.
    packaging/build.sh wheel "$python_target/packages" >"$python_target/packages.log" 2>&1 &
    packages=$!
    # No other section runs beside it.
    trap wait EXIT
    for environment in "$python_target"/environment-*; do
        "$environment/bin/python" --version
        "$environment/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps "$python_target"/wheels/*.whl
        # From another folder, so that the installed package is the one that is found.
        (cd "$python_target" && "$environment/bin/python" -m pytest -q -rs -p no:cacheprovider "$root/python/tests" --ignore "$root/python/tests/test_fuzz.py")
    done
    # The newest Python takes part in the rest.
    (cd "$python_target" && SUPERPIXEL_FUZZ_SECONDS=${SUPERPIXEL_FUZZ_SECONDS:-60} "$environment/bin/python" -m pytest -q -p no:cacheprovider \
        "$root/python/tests/test_fuzz.py")
    wait $packages || { cat "$python_target/packages.log"; return 1; }
}
# The wheel as users get it: what is in it, and that it gives what the element gives.
try_wheel() {
    local environment
    for environment in "$python_target"/environment-*; do :; done
    "$environment/bin/python" -m pip install -q --disable-pip-version-check --no-index --no-deps --force-reinstall "$python_target"/packages/*.whl
    (cd "$python_target" && "$environment/bin/python" "$root/tests/python/wheel.py" "$python_target/packages")
    "$environment/bin/python" -m pip install -q --disable-pip-version-check --only-binary=:all: auditwheel==6.8.2
    # Split where lines end, which may be within the tag.
    "$environment/bin/python" -m auditwheel show "$python_target"/packages/*.whl | tr -s '\n ' ' ' |
        grep 'is consistent with the following platform tag: "manylinux_2_17_x86_64"'
    rm -rf "$python_target/with-gi"
    python3 -m zipfile -e "$python_target"/packages/*.whl "$python_target/with-gi"
    export PYTHONPATH=$python_target/with-gi
    python_with_gi tests/python/same_as_element.py
    python_with_gi python/examples/video_file.py | grep '^frame 23: '
}
# The part of the package on a device, with the newest Python.
try_python_emulated() {
    local folder=$target_dir/superpixel-emulator environment
    [ -e "$folder/libcuda.so.1" ] || tests/emulator/build.py "$folder"
    for environment in "$python_target"/environment-*; do :; done
    (cd "$python_target" && LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SUPERPIXEL_EMULATED=1 SUPERPIXEL_REQUIRE_CUDA=1 \
        "$environment/bin/python" -m pytest -q -p no:cacheprovider "$root"/python/tests/test_device*.py)
}
mkdir -p "$python_target"
if [ "$(uname -m)" != x86_64 ]; then
    skip "Python package" "the pinned maturin is a program for x86-64"
elif ! fetch_zig || ! fetch_maturin || ! make_environments; then
    skip "Python package" "pip could not fetch zig, maturin, numpy, scipy, pillow, pytest and hypothesis"
else
    section "Python package" try_python
    section "Python package on an emulated device" try_python_emulated
    section "Python wheel" try_wheel
fi

# A corpus on a cluster: two nodes of Ray and a service that speaks S3, which find nothing but the loopback.
cluster_python=$target_dir/superpixel-cluster/bin/python
# One that Ray has wheels for.
cluster_base=$(suitable_pythons | awk -F '[ .]' '$2 >= 10 && $2 <= 14' | sed -n '$s/^[^ ]* //p')
make_cluster_environment() {
    "$cluster_base" -m venv --clear "$target_dir/superpixel-cluster" &&
        "$cluster_python" -m pip install -q --disable-pip-version-check --only-binary=:all: -r tests/cluster/requirements.txt
}
in_namespace() { unshare --map-root-user --net sh -c 'ip link set lo up && exec "$@"' sh "$@"; }
try_cluster() {
    cargo build --locked --package superpixel-clip
    # As the section of the Python package has built it; without it the tests of the stage are skipped.
    if compgen -G "$python_target/wheels/*.whl" >/dev/null; then
        "$cluster_python" -m pip install -q --disable-pip-version-check --no-index --no-deps "$python_target"/wheels/*.whl
    fi
    cd "$scratch"
    SUPERPIXEL_CLIP=$target_dir/debug/superpixel-clip in_namespace "$cluster_python" -m pytest -q -rs -p no:cacheprovider "$root/tests/cluster"
    "$cluster_python" "$root/tests/cluster/load.py"
}
if [ -z "$cluster_base" ]; then
    skip "cluster" "no Python of 3.10 to 3.14, which Ray is for, with venv"
elif ! in_namespace true 2>/dev/null; then
    skip "cluster" "this system makes no network namespace, or has no ip from iproute2"
elif ! make_cluster_environment; then
    skip "cluster" "pip could not fetch what tests/cluster/requirements.txt names"
else
    section "cluster" try_cluster
fi

# Expects an exit status from a command.
expect() {
    local wanted=$1 status=0
    shift
    "$@" >"$scratch/out.txt" 2>&1 || status=$?
    [ "$status" = "$wanted" ] || { cat "$scratch/out.txt"; echo "status $status, not $wanted: $*"; return 1; }
}
try_demo() {
    local folder=$scratch/demo
    mkdir -p "$folder"
    cd "$folder"
    expect 0 "$root/pipelines/demo.sh" --help
    expect 2 "$root/pipelines/demo.sh" no-such-file.mp4
    expect 2 "$root/pipelines/demo.sh" camera camera
    expect 2 "$root/pipelines/demo.sh" --fast
    expect 2 "$root/pipelines/demo.sh" ""
    expect 2 "$root/pipelines/play.sh" no-such-pipeline
    expect 1 "$root/pipelines/demo.sh" no-such-property=1
    expect 1 "$root/pipelines/demo.sh" superpixel-size=3
    expect 1 "$root/pipelines/demo.sh" overlay=plaid
    expect 1 "$root/pipelines/demo.sh" "$root/README.md"
    if [ ! -e /dev/video0 ]; then expect 1 "$root/pipelines/demo.sh" camera; fi
    rm -f superpixel-demo*
    expect 0 env -u DISPLAY -u WAYLAND_DISPLAY "$root/pipelines/demo.sh" superpixels=500
    grep -E '^(backend: cpu|132 frames in)' "$scratch/out.txt"
    [ "$(head -c 8 superpixel-demo.png | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
    gst-launch-1.0 -q filesrc location=superpixel-demo.mp4 ! decodebin ! fakesink
}
section "demo" try_demo

# Whatever a file is called, it plays, and no other file appears.
try_names() {
    local folder=$scratch/names bin=$scratch/names-bin name names
    # shellcheck disable=SC1003  # a name that ends like that
    names=(
        $'tab\t!\tfilesink\tlocation=stolen.mp4'
        'quote" ! filesink location="stolen.mp4'
        "quote' ! filesink location='stolen.mp4"
        $'all \\ \t"\'!\n$(touch stolen) `touch stolen` ; * %05d ! filesink location=stolen.mp4\n'
        'location=stolen.mp4'
        'backslash\'
        $'bytes \xff\xfe'
    )
    rm -rf "$folder" "$bin"
    mkdir -p "$folder" "$bin"
    # The plugin and the demo are there; this cargo leaves them alone.
    # shellcheck disable=SC2016  # expanded by the script
    printf '#!/bin/sh\n[ "$1" != --version ] || echo cargo 99.0.0\n' >"$bin/cargo"
    chmod +x "$bin/cargo"
    export PATH=$bin:$PATH
    unset DISPLAY WAYLAND_DISPLAY
    cd "$folder"
    gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,width=96,height=64 ! x264enc ! mp4mux ! filesink location=../names.mp4
    for name in "${names[@]}"; do cp ../names.mp4 "$name"; done
    for name in "${names[@]}"; do
        expect 0 timeout 60 "$root/pipelines/play.sh" boundaries "$name"
        gst-launch-1.0 -q filesrc location=boundaries.mp4 ! decodebin ! fakesink
        expect 0 timeout 60 "$root/pipelines/play.sh" read_labels.py "$name"
        [ "$(grep -c '^frame [0-2]: 96x64, ' "$scratch/out.txt")" = 3 ]
        rm boundaries.mp4
    done
    expect 0 timeout 60 "$root/pipelines/demo.sh" "./${names[3]}"
    expect 0 timeout 60 "$root/pipelines/demo.sh" "${names[6]}"
    rm superpixel-demo.*
    find . -mindepth 1
    [ "$(find . -mindepth 1 -printf x)" = "$(printf '%0*d' ${#names[@]} 0 | tr 0 x)" ]
}
section "file names" try_names

# The studio: its server, and its page in a headless Chromium of the system.
lint_studio() { cargo clippy --locked --package superpixel-studio --all-targets -- -D warnings; }
test_studio() {
    cargo clean -q -p gst-plugin-superpixel --profile dev
    cargo test --locked --no-fail-fast --package superpixel-studio
}
find_browser() {
    local packages=()
    { command -v node && command -v npm; } >/dev/null || packages+=(nodejs npm)
    command -v chromium >/dev/null || packages+=(chromium)
    [ ${#packages[@]} = 0 ] || (install_packages "${packages[@]}") || return 1
    # Ubuntu's package is not the browser.
    chromium --version >/dev/null 2>&1 && (cd studio/browser && npm ci --silent --no-audit --no-fund)
}
test_page() {
    export SUPERPIXEL_STUDIO=$target_dir/debug/superpixel-studio SUPERPIXEL_PLUGIN=$plugin_dir
    node --test studio/browser/page.test.mjs
}
try_studio() {
    expect 0 pipelines/studio.sh --help
    expect 2 pipelines/studio.sh no-such-file.mp4
    expect 2 pipelines/studio.sh --fast
    expect 2 pipelines/studio.sh camera camera
    expect 1 "$target_dir/debug/superpixel-studio" --port 0 camera overlay=none
}
section "studio, clippy" lint_studio
section "studio" test_studio
section "studio, command line" try_studio
if find_browser; then
    section "studio, page" test_page
else
    skip "studio, page" "no Chromium, node and npm could be installed, or no playwright-core fetched"
fi

# Half a minute of each; fuzz/run.sh for hours. Built by itself: for a sanitizer, with the coverage that libFuzzer needs.
for target in library metadata buffers emulated; do
    if ! compgen -G "$(rustc --print target-libdir)/librustc*_rt.asan.a" >/dev/null; then
        skip "fuzz, $target" "this compiler comes without AddressSanitizer; rustup's stable one has it"
    elif ! command -v c++ >/dev/null; then
        skip "fuzz, $target" "libFuzzer needs a C++ compiler"
    else
        section "fuzz, $target" fuzz/run.sh 30 "$target"
    fi
done

finish
