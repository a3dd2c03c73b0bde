#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Measures segmentation quality through the elements: pictures in, label maps out, an evaluator over the label maps.

    benches/quality.py --data FOLDER --eval EVALUATOR [--compactness 10] [--iterations 10]
    benches/quality.py --data FOLDER --eval EVALUATOR --algorithm lsc [--ratio 0.1] [--sizes 27,19,16,14,12]

FOLDER holds ID.jpg and ID.gt0.png, ID.gt1.png ... (segment numbers by person 0, 1, ...), as BSDS500 gives them.
EVALUATOR is a program with the command line `EVALUATOR images --labels FOLDER --gt FOLDER --json FILE` that writes means
over the pictures: `k` (labels), `br_r2` (boundary recall within two pixels), `ue_np` (undersegmentation error), `asa`
(achievable segmentation accuracy), and for `--sizes` `ue_glsc` (undersegmentation error as GLSC's Eq. 6 has it).

The grid cannot give any wanted number of labels exactly, so a few numbers are asked for and each measure is interpolated
between the two nearest mean counts, linearly in the logarithm of the count. Needs GStreamer with the plugin in its path.
"""

import argparse
import concurrent.futures
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pipelines", "cluster"))
from superpixel_corpus.output import Refused, check_apart  # noqa: E402

WANTED = [200, 400, 1000]
MEASURES = {"br_r2": "BR", "asa": "ASA", "ue_np": "UE NP"}
# fast-slic 0.4.0, compactness 10, 10 rounds, by the same evaluator on BSDS500 val, at the wanted counts.
REFERENCE = {
    "slic": {"br_r2": [0.832, 0.898, 0.966], "asa": [0.9410, 0.9563, 0.9696], "ue_np": [0.116, 0.087, 0.061]},
    "lsc": {"br_r2": [0.844, 0.908, 0.967], "asa": [0.9412, 0.9570, 0.9697], "ue_np": [0.116, 0.085, 0.060]},
}
REFERENCE_NAME = {"slic": "fast-slic 0.4.0, compactness 10", "lsc": "fast-slic 0.4.0 LSC, compactness 10"}
# The property that says how regular superpixels are.
REGULARITY = {"slic": "compactness", "lsc": "lsc-ratio"}


def label_maps(pictures, folder, asked, value, args):
    """Writes one PNG of labels for each picture."""
    os.makedirs(folder)

    def one(picture):
        name = os.path.splitext(os.path.basename(picture))[0]
        # One thread each: the pictures are what runs in parallel. gst-launch-1.0 parses its words, so no path of the user's is one.
        command = ["gst-launch-1.0", "-q", "filesrc", "location=/dev/fd/0", "!", "jpegdec", "!", "videoconvert", "!", "superpixel",
                   f"algo={args.algorithm}", asked, f"iterations={args.iterations}", f"{REGULARITY[args.algorithm]}={value}",
                   f"backend={args.backend}", "threads=1", "overlay=none", *args.properties.split(), "!", "superpixellabels", "!",
                   "videoconvert", "!", "video/x-raw,format=GRAY16_BE", "!", "pngenc", "!", "fdsink"]
        with open(picture, "rb") as source, open(os.path.join(folder, f"{name}.png"), "wb") as result:
            done = subprocess.run(command, stdin=source, stdout=result, stderr=subprocess.PIPE, text=True)
        return f"{picture}: {done.stderr}" if done.returncode or done.stderr.strip() else None

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        failures = [failure for failure in pool.map(one, pictures) if failure]
    if failures:
        raise SystemExit("\n".join(failures[:5]))


def evaluate(folder, args):
    """Returns the evaluator's means."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        command = [*args.eval.split(), "images", "--labels", folder, "--gt", args.data, "--jobs", str(args.jobs), "--json", result.name]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"the evaluator failed:\n{done.stdout}")
        means = json.load(result)
    means = means.get("mean", means)
    return {key: float(means[key]) for key in ("k", *MEASURES, "ue_glsc") if key in means}


def interpolate(points, count, measure):
    """The measure at a count, or None outside the points."""
    points = sorted(points, key=lambda point: point["k"])
    for low, high in zip(points, points[1:]):
        if low["k"] <= count <= high["k"]:
            t = (math.log(count) - math.log(low["k"])) / (math.log(high["k"]) - math.log(low["k"]) or 1.0)
            return low[measure] + t * (high[measure] - low[measure])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="FOLDER")
    parser.add_argument("--eval", required=True, metavar="EVALUATOR", help="may be several words: an interpreter and a script")
    parser.add_argument("--algorithm", default="slic", choices=list(REGULARITY))
    parser.add_argument("--compactness", default="10", help="slic; comma separated: one table each")
    parser.add_argument("--ratio", default="0.1", help="lsc; comma separated: one table each")
    parser.add_argument("--iterations", default=10, type=int)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--properties", default="", help="more properties of superpixel, as in gst-launch-1.0")
    parser.add_argument("--ask", default="180,200,370,400,900,1000,1100", help="numbers of superpixels to ask for")
    parser.add_argument("--sizes", help="superpixel sizes, comma separated: what is measured at each, without a reference")
    parser.add_argument("--jobs", default=os.cpu_count(), type=int)
    parser.add_argument("--limit", default=0, type=int, help="take only so many pictures")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the label maps here")
    args = parser.parse_args()
    pictures = sorted(p for p in glob.glob(os.path.join(args.data, "*.jpg")) if re.fullmatch(r"\w+\.jpg", os.path.basename(p)))
    if args.keep:
        check_apart([args.data], [args.keep])
    if args.limit:
        pictures = pictures[: args.limit]
    if not pictures:
        raise SystemExit(f"{args.data} has no picture")
    below = False
    asked = [f"superpixels={number}" for number in args.ask.split(",")]
    if args.sizes:
        asked = [f"superpixel-size={size}" for size in args.sizes.split(",")]
    for value in (args.compactness if args.algorithm == "slic" else args.ratio).split(","):
        points = []
        for ask in asked:
            with tempfile.TemporaryDirectory() as temp:
                name = f"{args.algorithm}-{value}-{ask.replace('=', '-')}"
                folder = os.path.join(args.keep, name) if args.keep else os.path.join(temp, "labels")
                label_maps(pictures, folder, ask, value, args)
                point = evaluate(folder, args)
            points.append(point)
            print(f"  {ask}: " + ", ".join(f"{key} {point[key]:.4f}" for key in point), flush=True)
        if args.sizes:
            continue
        print(f"{args.algorithm}, {REGULARITY[args.algorithm]} {value}, {args.iterations} rounds, {len(pictures)} pictures; "
              f"{REFERENCE_NAME[args.algorithm]} in brackets")
        print("| labels |" + "".join(f" {name} |" for name in MEASURES.values()) + "\n|--:|" + "--:|" * len(MEASURES))
        for i, count in enumerate(WANTED):
            cells = []
            for measure in MEASURES:
                value, reference = interpolate(points, count, measure), REFERENCE[args.algorithm][measure][i]
                better = value is not None and (value <= reference if measure.startswith("ue") else value >= reference)
                below |= not better
                cells.append("not reached" if value is None else f"{value:.4f} ({reference}{'' if better else ', which is better'})")
            print(f"| {count} | " + " | ".join(cells) + " |", flush=True)
    sys.exit(below)


if __name__ == "__main__":
    try:
        main()
    except (Refused, FileExistsError) as error:
        sys.exit(f"quality.py: {error}")
