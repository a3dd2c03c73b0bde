# SPDX-License-Identifier: MPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154  # sourced: those who do use what stands here, and the other way around
# Sections of tests/run.sh: programs that read the metadata.

# The system's Python has gi and numpy; another may come first in PATH.
python_with_gi() {
    local python=python3
    python3 -c 'import gi, numpy' 2>/dev/null || python=/usr/bin/python3
    GST_PLUGIN_PATH=$plugin_dir "$python" "$@"
}

# The readers get metadata that the element would not write.
try_readers() {
    python_with_gi tests/python/held_fields.py
    # shellcheck disable=SC2046  # words on purpose
    cc -g -O1 -fsanitize=address -Wall -Wextra -Werror -o "$scratch/hostile" tests/readers/hostile.c \
        $(pkg-config --cflags --libs gstreamer-app-1.0 gstreamer-video-1.0)
    ASAN_OPTIONS=detect_leaks=0 "$scratch/hostile"
}

# Makes a stand-in of GStreamer's library of standard metadata the one that is found.
use_analytics() {
    local folder=$scratch/analytics
    mkdir -p "$folder"
    # shellcheck disable=SC2046  # words on purpose
    cc -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror -shared -fPIC -Wl,-soname,libgstanalytics-1.0.so.0 \
        -o "$folder/libgstanalytics-1.0.so.0" tests/readers/analytics.c $(pkg-config --cflags --libs gstreamer-video-1.0)
    export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SUPERPIXEL_REQUIRE_ANALYTICS=1
}

# Standard metadata, on the stand-in; the tests above have used the real library, where that is of 1.26 or newer.
try_analytics() {
    use_analytics
    test_packages --test element -- analytics a_segmentation
}

reader_sections() {
    section "readers" try_readers
    section "standard metadata" try_analytics
    section "processes" python_with_gi tests/python/processes.py
}
