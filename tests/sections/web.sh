# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: the npm package, in Node and in a browser.

# Frames for both: FILE
web_frames() {
    gst-launch-1.0 -q filesrc location=media/bigbuckbunny.mp4 ! decodebin ! videoconvert ! videoscale ! \
        video/x-raw,format=RGBA,width=320,height=180 ! identity eos-after=61 ! filesink location="$1"
}
# Unpacks the packages as npm would: FOLDER TO
unpack_web() {
    local name
    for name in superpixels superpixels-scalar superpixels-threads; do
        mkdir -p "$2/node_modules/$name"
        tar -xzf "$1/$name"-[0-9]*.tgz --strip-components=1 -C "$2/node_modules/$name"
    done
}
try_web() {
    local folder=$target_dir/superpixel-npm-test
    rm -rf "$folder"
    packaging/build.sh web "$folder"
    unpack_web "$folder" "$folder"
    web_frames "$folder/frames.rgba"
    export SUPERPIXEL_WEB=$folder/node_modules/superpixels SUPERPIXEL_FRAMES=$folder/frames.rgba \
        SUPERPIXEL_EXPECTED=$target_dir/debug/examples/expected
    node --test web/tests/package.test.mjs web/tests/scalar.test.mjs web/tests/mask.test.mjs
    # The same with the other WebAssembly, and in three threads.
    NODE_OPTIONS="--import $PWD/web/tests/without-simd.mjs" node --test --test-name-pattern="library|levels" web/tests/package.test.mjs
    SUPERPIXEL_WEB=$folder/node_modules/superpixels-threads NODE_OPTIONS="--import $PWD/web/tests/three-threads.mjs" \
        node --test web/tests/package.test.mjs web/tests/threads.test.mjs
}
# What the script serves is tried, and the package that it built, in Chromium or in a Firefox: [FIREFOX]
try_web_pages() {
    local firefox=${1:-} log server address status=0 tests=(web/tests/page.test.mjs)
    local folder=$target_dir/superpixel-pages-test${firefox:+-firefox}
    # Other lanes have their own.
    local scratch=$folder
    rm -rf "$folder"
    mkdir -p "$folder"
    expect 0 pipelines/playground.sh --help
    expect 2 pipelines/playground.sh --port
    expect 2 pipelines/playground.sh --port 65536
    expect 2 pipelines/playground.sh picture.png
    log=$folder/playground.log
    pipelines/playground.sh --port 0 >"$log" &
    server=$!
    while ! address=$(grep -m 1 '^http://localhost:[0-9]*/$' "$log"); do
        kill -0 $server 2>/dev/null || { cat "$log"; return 1; }
        sleep 0.2
    done
    # A plain server of files gives the page one thread: web/tests/unwatched.mjs says why a driven Firefox should have no more.
    if [ "$firefox" ]; then
        kill $server
        python3 -u -m http.server --bind 127.0.0.1 --directory "$target_dir/superpixel-playground" 0 >"$log" 2>"$folder/requests.log" &
        server=$!
        while ! address=$(grep -o -m 1 'http://[0-9.]*:[0-9]*/' "$log"); do
            kill -0 $server 2>/dev/null || { cat "$log" "$folder/requests.log"; return 1; }
            sleep 0.2
        done
    fi
    unpack_web "$target_dir/superpixel-playground-package" "$folder"
    web_frames "$folder/frames.rgba"
    # Types are of no browser.
    [ "$firefox" ] || tests+=(web/tests/types.test.mjs)
    SUPERPIXEL_WEB=$folder/node_modules/superpixels SUPERPIXEL_FRAMES=$folder/frames.rgba SUPERPIXEL_PLAYGROUND=$address FIREFOX=$firefox \
        node --test "${tests[@]}" || status=1
    kill $server
    return $status
}
try_web_react() {
    local folder=$target_dir/superpixel-react-test
    # Other lanes have their own.
    local scratch=$folder
    rm -rf "$folder"
    packaging/build.sh web "$folder"
    cp -r web/examples/react "$folder/react"
    rm -rf "$folder/react/node_modules"
    (cd "$folder/react" && npm ci --silent --no-audit --no-fund)
    unpack_web "$folder" "$folder/react"
    SUPERPIXEL_REACT=$folder/react node --test web/tests/react.test.mjs
}
# Whether Vite runs here.
has_vite_node() { node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; }
find_web() {
    { command -v node && command -v npm; } >/dev/null || (install_packages nodejs npm) || return 1
    # In a shell of its own: it may choose another compiler.
    (prepare_wasm)
}
# Names the section, which needs Debian's Firefox: NAME
name_firefox() {
    command -v firefox-esr >/dev/null || (install_packages firefox-esr) || true
    if firefox-esr --version >/dev/null 2>&1; then
        beside "$1" try_web_pages "$(command -v firefox-esr)"
    else
        skip "$1" "no firefox-esr could be installed"
    fi
}
web_sections() {
    if ! find_web; then
        skip "npm package" "no node and npm could be installed, or there is no compiler for WebAssembly"
        return
    fi
    beside "npm package" try_web
    if find_browser; then
        beside "npm package, pages" try_web_pages
        if has_vite_node; then
            beside "npm package, React" try_web_react
        else
            skip "npm package, React" "Vite needs Node 20.19 or newer"
        fi
        long name_firefox "npm package, Firefox"
    else
        skip "npm package, pages" "no Chromium, node and npm could be installed, or no playwright-core fetched"
        skip "npm package, React" "no Chromium, node and npm could be installed, or no playwright-core fetched"
        long skip "npm package, Firefox" "no node and npm could be installed, or no playwright-core fetched"
    fi
}
