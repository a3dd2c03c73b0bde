#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
# The standard metadata of GStreamer 1.26 says what the element's own says, read with GStreamer's own bindings: analytics.py
#
# Needs python3-gi and gir1.2-gst-plugins-bad-1.0. packaging/try-deb.sh runs it on the installed package.

import struct

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstAnalytics", "1.0")
from gi.repository import Gst, GstAnalytics  # noqa: E402  (the versions come first)

PIPELINE = (
    "videotestsrc num-buffers=5 pattern=ball ! video/x-raw,width=320,height=240 ! "
    "superpixel superpixels=150 analytics=objects ! appsink name=sink sync=false"
)
# One record of the region table: track_id, area, centroid, mean_rgb, mean_lab, bounds.
REGION = struct.Struct("<2I2f4B3f4H")


def table_of(buffer):
    """Returns (track_id, box) of each region of the table."""
    table = buffer.get_custom_meta("GstSuperpixelMeta").get_structure().get_value("table")
    rows = REGION.iter_unpack(table.extract_dup(0, table.get_size()))
    return [(row[0], (row[11], row[12], row[13] - row[11], row[14] - row[12])) for row in rows]


def standard_of(buffer):
    """Returns (track_id, box) of each object in their order, and the number of regions that the mask names."""
    relations = GstAnalytics.buffer_get_analytics_relation_meta(buffer)
    boxes, identities, masks = [], [], []
    for number in range(GstAnalytics.relation_get_length(relations)):
        found, mask = relations.get_segmentation_mtd(number)
        if found:
            masks.append(mask.get_region_count())
        found, box = relations.get_od_mtd(number)
        if found:
            boxes.append(box.get_location()[1:5])
        found, tracking = relations.get_tracking_mtd(number)
        if found:
            identities.append(tracking.get_info()[1])
    return list(zip(identities, boxes, strict=True)), masks


def main():
    Gst.init(None)
    pipeline = Gst.parse_launch(PIPELINE)
    pipeline.set_state(Gst.State.PLAYING)
    frames = regions = 0
    while (sample := pipeline.get_by_name("sink").emit("try-pull-sample", 10 * Gst.SECOND)) is not None:
        table = table_of(sample.get_buffer())
        objects, masks = standard_of(sample.get_buffer())
        assert objects == table, (frames, objects, table)
        assert masks == [len(table)], (frames, masks)
        frames += 1
        regions += len(table)
    pipeline.set_state(Gst.State.NULL)
    assert frames == 5 and regions > 5 * 50, (frames, regions)
    print(f"standard metadata: {regions} regions of {frames} frames as in the table")


if __name__ == "__main__":
    main()
