# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: what can be said without running anything.

features() { echo --no-default-features ${1:+--features "$1"}; }
# Compiles, with --all also what tests it; clippy reads the whole. A warning is a failure.
check_features() {
    local targets=(--lib --bins)
    [ ! "$all" ] || targets=(--all-targets)
    # shellcheck disable=SC2046  # words on purpose
    cargo check --locked "${targets[@]}" $(features "$1") 2>&1 | tee "$scratch/check.log"
    ! grep '^warning' "$scratch/check.log"
}
check_fuzz() {
    cargo check --locked --manifest-path fuzz/Cargo.toml 2>&1 | tee "$scratch/check.log"
    ! grep '^warning' "$scratch/check.log"
}
check_format() {
    cargo fmt --check --package gst-plugin-superpixel --package superpixels --package superpixel-clip --package superpixel-output --package superpixel-studio --package superpixels-web
    cargo fmt --check --manifest-path fuzz/Cargo.toml
    cargo fmt --check --manifest-path web/bindgen/Cargo.toml
}
check_dependencies() {
    local manifest
    fetch_cargo_deny
    # What builds the web package is a workspace of its own.
    for manifest in Cargo.toml web/bindgen/Cargo.toml; do
        # All that the lock file names, for any platform, has to be there.
        cargo fetch -q --locked --manifest-path "$manifest" || say "cargo fetch failed: what is there has to do"
        "$tool" --manifest-path "$manifest" --config "$PWD/deny.toml" --offline --locked --workspace check --hide-inclusion-graph \
            bans licenses sources
    done
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
    SUPERPIXEL_ADVISORIES_CLONE=$target_dir/superpixel-tools/advisories \
        "$tool" --manifest-path web/bindgen/Cargo.toml --config "$config" --locked check --hide-inclusion-graph advisories
}
# Versions in the lock file that their authors withdrew, as most do where something is wrong. Asks the registry that everything
# else comes from, so that there is a check where the database is not reached. Nothing is built.
check_withdrawn() {
    local folder=$target_dir/superpixel-tools/withdrawn
    mkdir -p "$folder"
    cargo package --locked --allow-dirty --no-verify --workspace --target-dir "$folder" 2>&1 | tee "$folder/said.log"
    ! grep -F 'is yanked in registry' "$folder/said.log"
}
check_scripts() {
    fetch_shellcheck
    "$tool" --severity=warning --external-sources --source-path="$root" pipelines/*.sh tests/*.sh tests/sections/*.sh tools/*.sh packaging/*.sh web/playground/*.sh docs/pictures/*.sh .ci/run
}
# Every package, in one call: for each alone Cargo would choose other features of what they share, and check that again.
lint_all() { cargo clippy --locked --workspace --all-targets --features gst-plugin-superpixel/cli -- -D warnings; }
write_documentation() {
    # shellcheck disable=SC2046  # words on purpose
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --lib $(features gst,cuda)
}

kernel_sections() { beside "kernels are built" python3 kernels/build.py --check; }

# What packages come from.
supply_sections() {
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
}

lint_sections() {
    local set
    if [ "$(uname -m)" = x86_64 ]; then
        section "scripts" check_scripts
    else
        skip "scripts" "the pinned shellcheck is a program for x86-64"
    fi
    section "format" check_format
    section "clippy" lint_all
    for set in "" gst cuda; do
        section "check, features: ${set:-none}" check_features "$set"
    done
    section "check, fuzz targets" check_fuzz
    section "documentation" write_documentation
}
