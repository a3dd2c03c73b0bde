#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
# Reads labels, region table, neighbors and events of every frame from the metadata: read_labels.py [FILE [FRAMES]]
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

# Layouts, written by tests/texts/records.rs.
# One region; record i belongs to label i; 40 bytes, little endian.
REGION = np.dtype(
    [
        ("track_id", "<u4"),  # Name of the region over time; the label where `temporal` is off
        ("area", "<u4"),  # Number of pixels [px]
        ("centroid", "<f4", 2),  # Centroid, x then y; pixel centers have integer coordinates [px]
        ("mean_rgb", "u1", 4),  # Mean R', G', B', rounded half up [code values]
        ("mean_lab", "<f4", 3),  # Mean CIE L, a, b (D65) [Lab units]
        ("bounds", "<u2", 4),  # Bounding box: x0, y0, x1, y1; x1 and y1 exclusive [px]
    ]
)
assert REGION.itemsize == 40

# Two regions that touch; records are sorted by (a, b); 12 bytes, little endian.
NEIGHBOR = np.dtype(
    [
        ("a", "<u4"),  # Lower label
        ("b", "<u4"),  # Higher label
        ("length", "<u4"),  # Length of the shared boundary: pairs of pixels side by side or one above the other [pixel edges]
    ]
)
assert NEIGHBOR.itemsize == 12

# What became of a region since the last frame, or a cut; 16 bytes, little endian.
EVENT = np.dtype(
    [
        ("kind", "<u4"),  # 1 birth, 2 split, 3 death, 4 merge, 5 cut
        ("track_id", "<u4"),  # The region that is new or gone; 0 for a cut
        ("other", "<u4"),  # The region that it split off from or merged into; else 0
        ("area", "<u4"),  # Its pixels: where it is new in this frame, where it is gone in the last [px]
    ]
)
assert EVENT.itemsize == 16
# End of the layouts.


def get_field(buffer, name):
    """Returns a field of a frame's metadata (a buffer, number or string), None where it is not attached.

    PyGObject's get_value only borrows a buffer: once the frame is gone, it holds labels of other frames, or is freed memory. A
    buffer from here is one of its own, which shares the memory and may be kept.
    """
    meta = buffer.get_custom_meta("GstSuperpixelMeta")
    if meta is None:
        raise ValueError("the buffer carries no superpixels")
    fields = meta.get_structure()
    value = fields.get_value(name) if fields.has_field(name) else None
    return value.copy() if isinstance(value, Gst.Buffer) else value


def to_array(buffer, name, dtype):
    """Returns a copy of the records in a field, None where it is not attached."""
    field = get_field(buffer, name)
    if field is None:
        return None
    if not isinstance(field, Gst.Buffer):
        raise ValueError(f"the field {name} holds no buffer")
    data = field.extract_dup(0, field.get_size())
    if len(data) % dtype.itemsize:
        raise ValueError(f"the field {name} does not hold whole records")
    return np.frombuffer(data, dtype)


def to_label_map(buffer):
    """Returns a copy of the label map: height x width, u16."""
    plane, width, height = (get_field(buffer, name) for name in ("labels", "width", "height"))
    if not isinstance(plane, Gst.Buffer) or not isinstance(width, int) or not isinstance(height, int):
        raise ValueError("the metadata has no label map")
    # Rows of GRAY16_LE end at multiples of 4 bytes where nothing else is said.
    offset, stride = 0, (2 * width + 3) // 4 * 4
    layout = GstVideo.buffer_get_video_meta(plane)
    if layout is not None:
        if (layout.format, layout.width, layout.height) != (GstVideo.VideoFormat.GRAY16_LE, width, height):
            raise ValueError("the layout of the label map contradicts the metadata")
        offset, stride = layout.offset[0], layout.stride[0]
    data = plane.extract_dup(0, plane.get_size())
    if min(width, height) < 1 or stride < 2 * width or offset + (height - 1) * stride + 2 * width > len(data):
        raise ValueError("the label map ends before its last row")
    return np.ndarray((height, width), "<u2", data, offset, (stride, 2))


def read_labels(buffer):
    """Returns copies of the label map, the table and the pairs, the latter two None where not attached."""
    labels = to_label_map(buffer)
    table = to_array(buffer, "table", REGION)
    if table is not None and len(table) != get_field(buffer, "regions"):
        raise ValueError("the table does not hold one record a region")
    return labels, table, to_array(buffer, "neighbors", NEIGHBOR)


def read_events(buffer):
    """Returns a copy of what became of regions since the last frame, None where it is not attached."""
    return to_array(buffer, "events", EVENT)


def summarize(number, labels, table, neighbors, events=None):
    """Returns a line about a frame; raises where labels, table and pairs are missing or contradict each other."""
    if table is None or neighbors is None or len(table) == 0:
        raise ValueError("the frame has no table or no pairs of neighbors")
    areas = np.bincount(labels.ravel(), minlength=len(table))
    if not np.array_equal(areas, table["area"]):
        raise ValueError("the areas of the table are not those of the label map")
    if not (neighbors["a"] < neighbors["b"]).all() or neighbors["b"].max(initial=0) >= len(table):
        raise ValueError("a pair of neighbors names a region that is not there")
    new, gone = (0, 0) if events is None else (np.isin(events["kind"], kinds).sum() for kinds in ((1, 2), (3, 4)))
    largest = table[table["area"].argmax()]
    x, y = largest["centroid"]
    return (
        f"frame {number}: {labels.shape[1]}x{labels.shape[0]}, {len(table)} regions, {len(neighbors)} pairs, "
        f"mean area {table['area'].mean():.1f} px, {new} new, {gone} gone, "
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
        buffer = sample.get_buffer()
        print(summarize(seen, *read_labels(buffer), read_events(buffer)), flush=True)
        seen += 1
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message:
        sys.exit(f"error: {message.parse_error()[0].message}")
    if seen == 0:
        sys.exit("error: no frame arrived")


if __name__ == "__main__":
    main()
