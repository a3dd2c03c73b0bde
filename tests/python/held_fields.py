#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""The reader in Python: fields outlive their frames, and metadata that is not what the element writes is refused without a crash.

Needs the plugin in GST_PLUGIN_PATH. Prints what is wrong and ends with status 1.
"""

import ctypes
import importlib.util
import pathlib
import struct
import sys

import gi
import numpy as np

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import GObject, Gst, GstVideo  # noqa: E402  (the versions come first)

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("read_labels", ROOT / "pipelines" / "read_labels.py")
reader = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reader)

FRAMES, HELD = 120, range(20, 60)
NAMES = ("labels", "table", "neighbors", "motion")
PIPELINE = (
    f"videotestsrc num-buffers={FRAMES} pattern=ball ! video/x-raw,format=GRAY8,width=322,height=240 ! "
    "superpixel backend=cpu overlay=none neighbors=true ! appsink name=out max-buffers=2 sync=false"
)


def content(buffer):
    return buffer.extract_dup(0, buffer.get_size())


def fields_outlive_their_frames():
    """Holds the fields of 40 frames that are gone, and compares them with copies made while the frames were there."""
    pipeline = Gst.parse_launch(PIPELINE)
    out = pipeline.get_by_name("out")
    pipeline.set_state(Gst.State.PLAYING)
    held, copies, strides = [], [], []
    for i in range(FRAMES):
        sample = out.emit("try-pull-sample", 30 * Gst.SECOND)
        frame = sample.get_buffer()
        if i in HELD:
            fields = frame.get_custom_meta("GstSuperpixelMeta").get_structure()
            copies.append([content(fields.get_value(name)) for name in NAMES])
            strides.append(GstVideo.buffer_get_video_meta(fields.get_value("labels")).stride[0])
            del fields
            held.append([reader.get_field(frame, name) for name in NAMES])
        del sample, frame
    for name, index in zip(NAMES, range(len(NAMES))):
        changed = sum(content(fields[index]) != copy[index] for fields, copy in zip(held, copies))
        assert changed == 0, f"{changed} of {len(held)} held fields {name} are not their frame's"
    assert len({copy[0] for copy in copies}) > 1, "the frames do not differ"
    assert [GstVideo.buffer_get_video_meta(fields[0]).stride[0] for fields in held] == strides
    pipeline.set_state(Gst.State.NULL)


# PyGObject hands out copies of a frame's structure, in which nothing can be set. The address of its objects is their hash.
_gst = ctypes.CDLL("libgstreamer-1.0.so.0")
for _function in (_gst.gst_buffer_add_custom_meta, _gst.gst_custom_meta_get_structure, _gst.gst_structure_get_value):
    _function.restype = ctypes.c_void_p
    _function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_gst.gst_custom_meta_get_structure.argtypes = [ctypes.c_void_p]
_gst.gst_structure_set_value.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def make_frame(width=5, height=3, layout=None, **fields):
    """A frame with a map of `width` x `height` whose rows start with a one; other fields and a layout where they are given."""
    stride = (2 * width + 3) // 4 * 4
    row = struct.pack("<H", 1).ljust(stride, b"\0")
    table = np.zeros(2, reader.REGION)
    table["area"] = (width * height - height, height)
    values = {"width": width, "height": height, "regions": 2, "labels": row * height, "table": table.tobytes(),
              "neighbors": struct.pack("<III", 0, 1, 3), **fields}
    frame, source = Gst.Buffer.new(), Gst.Structure.new_empty("fields")
    target = _gst.gst_custom_meta_get_structure(_gst.gst_buffer_add_custom_meta(hash(frame), b"GstSuperpixelMeta"))
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, bytes):
            value = Gst.Buffer.new_wrapped(value) if value else Gst.Buffer.new()
            if name == "labels" and layout is not None:
                GstVideo.buffer_add_video_meta_full(value, GstVideo.VideoFrameFlags.NONE, *layout)
        elif isinstance(value, int):
            value = GObject.Value(GObject.TYPE_UINT, value)
        source.set_value(name, value)
        _gst.gst_structure_set_value(target, name.encode(), _gst.gst_structure_get_value(hash(source), name.encode()))
    return frame


def foreign_metadata_is_read_or_refused():
    """Reads maps with and without a layout; refuses what contradicts itself with a ValueError."""
    gray = GstVideo.VideoFormat.GRAY16_LE
    row = struct.pack("<5H", 1, 0, 0, 0, 0)
    good = {
        "no layout": make_frame(),
        "no layout, an even width": make_frame(width=6),
        "a layout": make_frame(labels=b"\0" * 6 + row.ljust(16, b"\0") * 2 + row,
                               layout=(gray, 5, 3, 1, [6, 0, 0, 0], [16, 0, 0, 0])),
    }
    for name, frame in good.items():
        labels, table, neighbors = reader.read_labels(frame)
        assert (labels[:, 0] == 1).all() and (labels[:, 1:] == 0).all(), name
        reader.summarize(0, labels, table, neighbors)
    assert reader.read_labels(make_frame(table=None))[1] is None
    assert reader.read_labels(make_frame(neighbors=None))[2] is None
    assert reader.read_events(make_frame()) is None
    events = np.zeros(3, reader.EVENT)
    events["kind"] = (2, 3, 4)
    assert "1 new, 2 gone" in reader.summarize(0, *reader.read_labels(make_frame()), reader.read_events(make_frame(events=events.tobytes())))

    def layout(width=5, height=3, offset=0, stride=12, form=gray):
        return make_frame(layout=(form, width, height, 1, [offset, 0, 0, 0], [stride, 0, 0, 0]))

    bad = {
        "no metadata": Gst.Buffer.new(),
        "no label map": make_frame(labels=None),
        "labels of another type": make_frame(labels=7),
        "no number of regions": make_frame(regions=None),
        "a map without its last row": make_frame(labels=b"\0" * 24),
        "a map without its last byte": make_frame(labels=b"\0" * 33),
        "an empty map": make_frame(labels=b""),
        "an offset beyond the memory": layout(offset=2**40),
        "a stride beyond the memory": layout(stride=2**31 - 1),
        "rows that overlap": layout(stride=4),
        "rows upside down": layout(offset=24, stride=-12),
        "another format": layout(form=GstVideo.VideoFormat.GRAY8),
        "another width": layout(width=4),
        "a table of another length": make_frame(table=b"\0" * 40),
        "half a record": make_frame(table=b"\0" * 60),
        "a table of another type": make_frame(table="table"),
        "half a pair": make_frame(neighbors=b"\0" * 6),
        "half an event": make_frame(events=b"\0" * 24),
    }
    for name, frame in bad.items():
        try:
            reader.read_labels(frame)
            reader.read_events(frame)
        except ValueError as error:
            print(f"{name}: {error}")
        else:
            raise AssertionError(f"{name}: taken")


def main():
    Gst.init(None)
    if Gst.ElementFactory.make("superpixel") is None:
        sys.exit("no element superpixel: GST_PLUGIN_PATH does not name the plugin's folder")
    fields_outlive_their_frames()
    foreign_metadata_is_read_or_refused()


if __name__ == "__main__":
    main()
