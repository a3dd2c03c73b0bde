#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Compares quick shift on the CPU with scikit-image's on one picture, one thread each; both take turns.

    python3 -m venv target/peers && target/peers/bin/pip install scikit-image pillow
    cargo build --release --no-default-features --features cli --bin superpixel-bench
    target/peers/bin/python benches/quickshift_vs_skimage.py PICTURE ...

What is timed: from R, G, B bytes in memory to labels in memory, both from Lab colors with the same width of the kernel, longest
link and color scale; ours with connectivity. The ratio of neighbors in time is what counts, for it holds on a busy machine
too.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from PIL import Image
from skimage.segmentation import quickshift

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = (481, 321)
CASES = [(3, 8, 0.5), (6, 10, 0.5), (2, 8, 0.5)]
WANTED = 10.0


def ours(program, picture, threads, sigma, tau, scale):
    """Starts a superpixel-bench that times a frame whenever it is asked."""
    command = [program, "--on-demand", "--backend=cpu", "--format=rgb", "--algorithms=quickshift", "--superpixel-size=16",
               f"--picture={picture}", f"--sizes={SIZE[0]}x{SIZE[1]}", f"--threads={threads}", "--outputs=labels",
               f"--set=sigma={sigma}", f"--set=tau={tau}", f"--set=color-scale={scale}"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--program", default=os.path.join(HERE, "../target/release/superpixel-bench"))
    args = parser.parse_args()
    failed = False
    print("| picture | sigma | tau | ours, 1 thread | ours, 2 threads | scikit-image | of pairs |\n|---|--:|--:|--:|--:|--:|--:|")
    for picture in args.pictures:
        rgb = np.asarray(Image.open(picture).convert("RGB").resize(SIZE))
        for sigma, tau, scale in CASES:
            one, two = (ours(args.program, picture, threads, sigma, tau, scale) for threads in (1, 2))
            times = [[], [], []]
            for _ in range(args.runs):
                times[0].append(ask(one))
                times[1].append(ask(two))
                start = time.perf_counter()
                quickshift(rgb, ratio=scale, kernel_size=sigma, max_dist=tau, convert2lab=True)
                times[2].append((time.perf_counter() - start) * 1e3)
            for process in (one, two):
                process.stdin.close()
                process.wait()
            ratio = statistics.median(peer / own for own, peer in zip(times[0], times[2]))
            medians = " | ".join(f"{statistics.median(t):.1f}" for t in times)
            print(f"| {os.path.basename(picture)} | {sigma} | {tau} | {medians} | {ratio:.1f} |", flush=True)
            failed |= ratio < WANTED
    if failed:
        sys.exit(f"below {WANTED} times somewhere")


if __name__ == "__main__":
    main()
