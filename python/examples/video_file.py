# SPDX-License-Identifier: MPL-2.0
"""Track regions through a video file.

`segment_video` gives frames with their regions, by PyAV. Each frame starts from the one before, and a region keeps its
`track_id`. Where there is no PyAV, a `Segmenter` with `temporal=True` does the same with frames of GStreamer, through
PyGObject. Pass a file; without one the bundled clip is taken.
"""

import sys
from pathlib import Path

import numpy as np
import superpixels as sp


def tables_by_pyav(path):
    for frame in sp.segment_video(path, n_segments=400):
        yield frame.regions, frame.motion


def tables_by_gstreamer(path):
    Gst.init(None)
    segmenter = sp.Segmenter(n_segments=400, temporal=True)
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
        segmenter.segment(np.ndarray((info.height, info.width, 3), np.uint8, data, info.offset[0], (info.stride[0], 3, 1)))
        yield segmenter.regions, segmenter.motion
    pipeline.set_state(Gst.State.NULL)


try:
    import av  # noqa: F401

    tables = tables_by_pyav
except ImportError:
    try:
        import gi

        gi.require_version("Gst", "1.0")
        gi.require_version("GstVideo", "1.0")
        from gi.repository import Gst, GstVideo
    except (ImportError, ValueError):
        print("skipped: neither PyAV (pip install av) nor GStreamer's Python bindings are installed")
        sys.exit()
    tables = tables_by_gstreamer

clip = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parents[2] / "media/bigbuckbunny.mp4")
first = set()
for number, (regions, motion) in zip(range(24), tables(clip)):
    tracks = set(regions["track_id"])
    first = first or tracks
speed = np.linalg.norm(motion["velocity"], axis=1)
print(f"frame {number}: {len(tracks)} regions, {len(first & tracks)} since the first frame, the fastest at {speed.max():.1f} px a frame")
