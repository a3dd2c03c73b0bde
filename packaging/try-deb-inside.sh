#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# One step of packaging/try-deb.sh within a root: prepare, install, use or purge.
set -eu

case $1 in
    prepare)
        apt-get -q -q -o Dpkg::Use-Pty=0 update
        # A root that is used again may have it from a run that failed.
        apt-get -q -q -o Dpkg::Use-Pty=0 purge -y gstreamer1.0-superpixel >/dev/null 2>&1 || true
        # Packages that it recommends or the pipelines need come first, so that what it leaves is told from what they leave.
        apt-get -q -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends gstreamer1.0-tools gstreamer1.0-plugins-base \
            gstreamer1.0-plugins-good gstreamer1.0-libav python3-gi gir1.2-gst-plugins-bad-1.0 >/dev/null
        ! command -v cargo rustc
        ;;
    install)
        apt-get -q -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends /tmp/superpixel.deb >/dev/null
        dpkg-query -W gstreamer1.0-superpixel libgstreamer1.0-0
        ;;
    use)
        # The registry is not the package's.
        export GST_REGISTRY=/tmp/registry.bin
        gst-inspect-1.0 superpixel >/tmp/inspect.txt
        grep '^  Version' /tmp/inspect.txt
        gst-launch-1.0 -q videotestsrc num-buffers=10 ! video/x-raw,width=320,height=240 ! \
            superpixel algo=quickshift sigma=2 tau=8 overlay=mean-color ! videoconvert ! fakesink
        gst-launch-1.0 -q filesrc location=/tmp/bigbuckbunny.mp4 ! decodebin ! videoconvert ! \
            superpixel superpixel-size=32 ! videoconvert ! identity eos-after=10 ! fakesink
        # Standard metadata, or where GStreamer is too old for it a line that says so, however many elements there are.
        if python3 -c 'import gi; gi.require_version("GstAnalytics", "1.0")' 2>/dev/null; then
            python3 /tmp/analytics.py
        else
            GST_DEBUG=superpixel:5 GST_DEBUG_FILE=/tmp/debug.txt gst-launch-1.0 -q videotestsrc num-buffers=3 ! \
                superpixel ! superpixel ! fakesink
            grep 'no standard metadata' /tmp/debug.txt
            [ "$(grep -c 'no standard metadata' /tmp/debug.txt)" = 1 ]
        fi
        # Another run starts from the registry; the first one's time is GStreamer's scan.
        for element in identity superpixel identity superpixel identity superpixel; do
            start=$(date +%s%N)
            gst-inspect-1.0 $element >/dev/null
            echo "gst-inspect-1.0 $element: $((($(date +%s%N) - start) / 1000000)) ms"
        done
        ;;
    purge) apt-get -q -q -o Dpkg::Use-Pty=0 purge -y gstreamer1.0-superpixel >/dev/null ;;
esac
