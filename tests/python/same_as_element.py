#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""The Python package gives what the element gives, bit for bit: same_as_element.py [--frames N] [--pictures N] [FOLDER]

60 temporal frames of the bundled clip with each algorithm, and N (20) JPEG pictures of FOLDER, or of SUPERPIXEL_IMAGES. Compares label
maps, region tables, motion and neighbors with those of the element's metadata. Needs the plugin in GST_PLUGIN_PATH, and the package in
PYTHONPATH. Prints a line for each comparison, and ends with status 1 where one failed.
"""

import argparse
import os
import sys
from pathlib import Path

import gi
import numpy as np
import superpixels as sp

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo  # noqa: E402  (the versions come first)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "pipelines"))
import read_labels  # noqa: E402

# Each with another than the default grid, and what its own parameters are called here and there.
SETTINGS = {
    "slic": (dict(n_segments=400, compactness=12.0), "superpixels=400 compactness=12"),
    "lsc": (dict(superpixel_size=24, ratio=0.2), "superpixel-size=24 lsc-ratio=0.2"),
    "quickshift": (dict(sigma=0.5, tau=4.0, merge=1.5), "sigma=0.5 tau=4 merge=1.5"),
    "snic": (dict(n_segments=300), "superpixels=300"),
}
MOTION = np.dtype([("velocity", "<f4", 2), ("age", "<u4")])


def pixels(sample):
    """The frame as an array, as the element got it."""
    buffer, info = sample.get_buffer(), GstVideo.VideoInfo.new_from_caps(sample.get_caps())
    layout = GstVideo.buffer_get_video_meta(buffer)
    offset, stride = (layout.offset[0], layout.stride[0]) if layout else (info.offset[0], info.stride[0])
    data = buffer.extract_dup(0, buffer.get_size())
    return np.ndarray((info.height, info.width, 3), np.uint8, data, offset, (stride, 3, 1))


def samples(file, properties, count):
    """The first frames of a file from behind the element."""
    pipeline = Gst.parse_launch(
        "filesrc name=file ! decodebin ! videoconvert ! video/x-raw,format=RGB ! "
        f"superpixel backend=cpu overlay=none neighbors=true {properties} ! appsink name=sink sync=false max-buffers=2"
    )
    pipeline.get_by_name("file").set_property("location", str(file))
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    seen = 0
    while seen < count and (sample := sink.emit("try-pull-sample", 60 * Gst.SECOND)):
        seen += 1
        yield sample
    message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message or seen < count:
        raise SystemExit(f"{file}: {message.parse_error()[0].message if message else f'{seen} frames'}")


def differences(segmenter, sample):
    """Names of what differs in a frame."""
    buffer = sample.get_buffer()
    want, table, neighbors = read_labels.read_labels(buffer)
    labels = segmenter.segment(pixels(sample))
    pairs = {"regions": (segmenter.regions, table), "neighbors": (segmenter.neighbors, neighbors)}
    if segmenter.parameters["temporal"]:
        pairs["motion"] = (segmenter.motion, read_labels.to_array(buffer, "motion", MOTION))
    # All bytes, those between fields too.
    different = [name for name, (one, other) in pairs.items() if one.view(np.uint8).tobytes() != other.tobytes()]
    return different if np.array_equal(labels, want) else ["labels", *different]


def compare(what, algorithm, files, frames, temporal):
    """Whether all frames of all files are the same; says so."""
    own, properties = SETTINGS[algorithm]
    seen, regions, found = 0, 0, []
    for file in files:
        segmenter = sp.Segmenter(algorithm, temporal=temporal, threads=2, **own)
        for sample in samples(file, f"algo={algorithm} temporal={str(temporal).lower()} {properties}", frames):
            found += [f"{file.name}, frame {seen}: {name} differ" for name in differences(segmenter, sample)]
            seen, regions = seen + 1, regions + segmenter.n_regions
    mean = regions / max(seen, 1)
    print(f"{what}, {algorithm}: {seen} frames, {mean:.0f} regions in the mean, {len(found)} differences", *found[:5], sep="\n  ")
    return not found and regions > seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", metavar="FOLDER", default=os.environ.get("SUPERPIXEL_IMAGES"))
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--pictures", type=int, default=20)
    args = parser.parse_args()
    Gst.init(None)
    clip = ROOT / "media/bigbuckbunny.mp4"
    # snic takes half a second a frame.
    good = [compare("clip", name, [clip], args.frames if name != "snic" else 3, True) for name in SETTINGS]
    if args.folder:
        files = sorted(path for path in Path(args.folder).iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))[: args.pictures]
        good += [bool(files)] + [compare("pictures", algorithm, files, 1, False) for algorithm in SETTINGS]
    else:
        print("pictures: skipped, no FOLDER and no SUPERPIXEL_IMAGES")
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
