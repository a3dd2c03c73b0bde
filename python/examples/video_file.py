# SPDX-License-Identifier: MPL-2.0
"""Track regions through a video file.

Frames come from PyAV, or from GStreamer through PyGObject. A `Segmenter` with `temporal=True` starts each frame from
the one before; a region keeps its `track_id`. Pass a file; without one the bundled clip is taken.
"""

import sys
from pathlib import Path

import numpy as np
import superpixels as sp


def frames_by_pyav(path):
    with av.open(path) as container:
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="rgb24")


def frames_by_gstreamer(path):
    Gst.init(None)
    pipeline = Gst.parse_launch(
        "filesrc name=file ! decodebin ! videoconvert ! video/x-raw,format=RGB ! appsink name=sink sync=false max-buffers=4"
    )
    pipeline.get_by_name("file").set_property("location", path)
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := sink.emit("try-pull-sample", 10 * Gst.SECOND):
        buffer, info = sample.get_buffer(), GstVideo.VideoInfo.new_from_caps(sample.get_caps())
        # Rows end at multiples of 4 bytes; the Segmenter reads them where they are.
        data = buffer.extract_dup(0, buffer.get_size())
        yield np.ndarray((info.height, info.width, 3), np.uint8, data, info.offset[0], (info.stride[0], 3, 1))
    pipeline.set_state(Gst.State.NULL)


try:
    import av

    frames = frames_by_pyav
except ImportError:
    try:
        import gi

        gi.require_version("Gst", "1.0")
        gi.require_version("GstVideo", "1.0")
        from gi.repository import Gst, GstVideo
    except (ImportError, ValueError):
        print("skipped: neither PyAV (pip install av) nor GStreamer's Python bindings are installed")
        sys.exit()
    frames = frames_by_gstreamer

clip = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parents[2] / "media/bigbuckbunny.mp4")
segmenter = sp.Segmenter(n_segments=400, temporal=True)
first = set()
for number, frame in zip(range(24), frames(clip)):
    labels = segmenter.segment(frame)
    tracks = segmenter.regions["track_id"]
    first = first or set(tracks)
speed = np.linalg.norm(segmenter.motion["velocity"], axis=1)
print(f"frame {number}: {len(tracks)} regions, {len(first & set(tracks))} since the first frame, the fastest at {speed.max():.1f} px a frame")
