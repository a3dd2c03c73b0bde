# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the studio.

# A headless Chromium of the system, and what drives it, for pages here and of the web package.
find_browser() {
    local packages=()
    # Again it would take away what a lane is using.
    [ -z "${browser_ready:-}" ] || return 0
    { command -v node && command -v npm; } >/dev/null || packages+=(nodejs npm)
    command -v chromium >/dev/null || packages+=(chromium)
    [ ${#packages[@]} = 0 ] || (install_packages "${packages[@]}") || return 1
    # Ubuntu's package is not the browser.
    chromium --version >/dev/null 2>&1 && (cd studio/browser && npm ci --silent --no-audit --no-fund) || return 1
    browser_ready=yes
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

studio_sections() { section "studio, command line" try_studio; }
page_sections() {
    if find_browser; then
        beside "studio, page" test_page
    else
        skip "studio, page" "no Chromium, node and npm could be installed, or no playwright-core fetched"
    fi
}
