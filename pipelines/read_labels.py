#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
# Reads labels, region table and neighbors of every frame from the metadata: read_labels.py [FILE [FRAMES]]
#
# Needs: python3-gi, python3-numpy, gir1.2-gst-plugins-base-1.0, and the plugin in GST_PLUGIN_PATH
# (pipelines/play.sh read_labels.py sets it). Shows: a line a frame. Runs the pipeline of label-branch.launch.

import pathlib
import sys

import gi
import numpy as np

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo  # noqa: E402  (the versions come first)

# One record of the region table: 40 bytes, little endian.
REGION = np.dtype(
    [
        ("track_id", "<u4"),  # name of the region over time
        ("area", "<u4"),  # px
        ("centroid", "<f4", 2),  # x, y in px
        ("mean_rgb", "u1", 4),  # R, G, B, 255
        ("mean_lab", "<f4", 3),  # L, a, b
        ("bounds", "<u2", 4),  # x0, y0, x1, y1; x1 and y1 exclusive
    ]
)
assert REGION.itemsize == 40

# One pair of touching regions: 12 bytes, sorted, a < b.
NEIGHBOR = np.dtype([("a", "<u4"), ("b", "<u4"), ("length", "<u4")])
assert NEIGHBOR.itemsize == 12


def to_array(buffer, dtype):
    """Copies a buffer into an array of its own."""
    return np.frombuffer(buffer.extract_dup(0, buffer.get_size()), dtype)


def read_labels(buffer):
    """Returns the label map (height x width, u16), the table and the pairs, None where not attached."""
    meta = buffer.get_custom_meta("GstSuperpixelMeta")
    if meta is None:
        raise ValueError("the buffer carries no superpixels")
    fields = meta.get_structure()
    width, height = fields.get_value("width"), fields.get_value("height")
    plane = fields.get_value("labels")
    layout = GstVideo.buffer_get_video_meta(plane)
    flat = to_array(plane, "<u2")
    labels = np.lib.stride_tricks.as_strided(flat[layout.offset[0] // 2 :], (height, width), (layout.stride[0], 2))
    table = to_array(fields.get_value("table"), REGION) if fields.has_field("table") else None
    neighbors = to_array(fields.get_value("neighbors"), NEIGHBOR) if fields.has_field("neighbors") else None
    return labels, table, neighbors


def summarize(number, labels, table, neighbors):
    """Returns a line about a frame; raises where labels, table and pairs contradict each other."""
    areas = np.bincount(labels.ravel(), minlength=len(table))
    if not np.array_equal(areas, table["area"]):
        raise ValueError("the areas of the table are not those of the label map")
    if not (neighbors["a"] < neighbors["b"]).all() or neighbors["b"].max(initial=0) >= len(table):
        raise ValueError("a pair of neighbors names a region that is not there")
    largest = table[table["area"].argmax()]
    x, y = largest["centroid"]
    return (
        f"frame {number}: {labels.shape[1]}x{labels.shape[0]}, {len(table)} regions, {len(neighbors)} pairs, "
        f"mean area {table['area'].mean():.1f} px, "
        f"largest {largest['area']} px at ({x:.0f}, {y:.0f}) in rgb{tuple(int(c) for c in largest['mean_rgb'][:3])}"
    )


def main():
    """Runs the pipeline and prints."""
    Gst.init(None)
    here = pathlib.Path(__file__).resolve().parent
    clip = "media/bigbuckbunny.mp4"
    file = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here.parent / clip
    frames = int(sys.argv[2]) if len(sys.argv) > 2 else 25

    lines = (here / "label-branch.launch").read_text().splitlines()
    text = " ".join(line for line in lines if not line.startswith("#"))
    # The labels are what counts here: no window, and no frame is dropped.
    text = text.replace("autovideosink", "fakesink").replace("drop=true", "drop=false")
    pipeline = Gst.parse_launch(text.replace(f"location={clip}", "name=file"))
    # A name in the description would be parsed with it. As a URI it need not even be text.
    pipeline.get_by_name("file").set_uri(file.as_uri())
    sink = pipeline.get_by_name("labels")
    pipeline.set_state(Gst.State.PLAYING)
    seen = 0
    while seen < frames:
        sample = sink.emit("try-pull-sample", 30 * Gst.SECOND)
        if sample is None:
            break
        print(summarize(seen, *read_labels(sample.get_buffer())), flush=True)
        seen += 1
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message:
        sys.exit(f"error: {message.parse_error()[0].message}")
    if seen == 0:
        sys.exit("error: no frame arrived")


if __name__ == "__main__":
    main()
