# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: what leaks or touches what it should not.

# The path of a test program, which the tests have built: NAME
test_program() {
    test_packages --no-run 2>&1 | sed -n 's|^ *Executable tests/'"$1"'/main\.rs (\(.*\))$|\1|p'
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
    local name found bad=0
    for name in element texts; do
        # The readers and examples are other programs, which end as they like. Colors take thousands of frames of one pipeline.
        if trace_leaks "$name" "$(test_program $name)" --skip reads_labels --skip outputs:: --skip colorimetry::; then echo "$name: no leak"; else bad=1; fi
    done
    # The tracer has to find a leak that is there.
    found=$(trace_leaks on-purpose "$(test_program element)" --ignored leaks:: 2>&1 || true)
    if ! grep -q 'object-alive, .*GstPipeline' <<<"$found"; then
        echo "a leak made on purpose is not reported"
        bad=1
    fi
    return $bad
}

check_memory() {
    GST_PLUGIN_PATH=$plugin_dir G_SLICE=always-malloc valgrind -q --error-exitcode=9 --num-callers=30 \
        --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --suppressions=/usr/share/glib-2.0/valgrind/glib.supp --suppressions=tests/valgrind.supp \
        gst-launch-1.0 -q videotestsrc num-buffers=3 pattern=ball ! video/x-raw,format="$1",width=161,height=121 ! \
        superpixel threads=2 neighbors=true "${@:2}" overlay=mean-color-boundaries ! superpixelobjects objects=20,20,80,80 overlay=background ! \
        superpixellabels identity=true ! fakesink
}
# Buffers that lie about themselves, over the test program itself; its clips are decoded by others.
check_bad_buffers() {
    G_SLICE=always-malloc valgrind -q --error-exitcode=9 --num-callers=30 --suppressions=/usr/share/glib-2.0/valgrind/glib.supp \
        --suppressions=tests/valgrind.supp "$(test_program element)" bad_buffers:: --test-threads=1 --skip identities_last
}

leak_sections() { beside "leaks" find_leaks; }
memory_sections() {
    section "valgrind, I420" check_memory I420
    section "valgrind, BGRx" check_memory BGRx temporal=true merge=2
    section "valgrind, bad buffers" check_bad_buffers
}
