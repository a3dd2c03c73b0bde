#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Compares the CPU backend with fast-slic and OpenCV on one picture; everyone takes turns, frame by frame.

    python3 -m venv target/peers                        # Python 3.11: fast-slic 0.4.0 is too old for later ones
    target/peers/bin/pip install "setuptools<60" wheel "cython<3" "numpy<1.24" "scipy<1.11" pillow \\
        "opencv-contrib-python-headless<4.9"
    target/peers/bin/pip install --no-build-isolation fast-slic==0.4.0
    cargo build --release --no-default-features --features cli --bin superpixel-bench
    target/peers/bin/python benches/speed_vs_peers.py PICTURE ...

With `--package` the Python package superpixels takes the place of superpixel-bench: install its wheel into the environment
(`pip install --no-deps`; NumPy 1.22 or newer), and it is called as the others are.

What is timed, for everyone: from R, G, B bytes in memory to connected labels in memory; SLIC, compactness 10, or with
`--algorithm lsc` LSC, ratio 0.1, both 10 rounds, grid step 32 or
`--step` (fast-slic: the number of cells that this gives). Each turn runs every implementation once; the ratio of
neighbors in time is what counts ("of pairs"), for it holds on a busy machine too.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS, COMPACTNESS, LSC_RATIO, MIN_REGION = 10, 10, 0.1, 0.25
# Goals of the project: times faster than the peer.
WANTED = {"fast-slic SlicAvx2": 1.5, "OpenCV SLIC": 15.0, "fast-slic LSCAvx2": 2.0, "OpenCV LSC": 15.0}


class Ours:
    """One superpixel-bench that times a frame whenever it is asked."""

    def __init__(self, program, algorithm, picture, size, step, threads, outputs):
        command = [program, "--on-demand", "--backend=cpu", "--format=rgb", f"--picture={picture}",
                   f"--sizes={size[0]}x{size[1]}", f"--superpixel-size={step}", f"--set=iterations={ROUNDS}",
                   f"--algorithms={algorithm}", f"--set=compactness={COMPACTNESS}", f"--set=lsc-ratio={LSC_RATIO}",
                   f"--threads={threads}", f"--outputs={outputs}"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("superpixel-bench ended early")
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def clocked(work):
    """Times a call in ms."""
    def run():
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1e3
    return run


def pixels(picture, size):
    import numpy
    from PIL import Image

    image = Image.open(picture).convert("RGB")
    if image.size != size:
        image = image.resize(size, Image.BICUBIC)
    return numpy.ascontiguousarray(numpy.array(image))


def package(algorithm, rgb, step, threads, tables):
    """The Python package's turn: a Segmenter that is there already, as it is meant for loops."""
    import superpixels

    own = {"compactness": COMPACTNESS} if algorithm == "slic" else {"ratio": LSC_RATIO}
    segmenter = superpixels.Segmenter(algorithm, superpixel_size=step, iterations=ROUNDS, min_region=MIN_REGION, threads=threads,
                                      regions=tables, neighbors=False, **own)
    return clocked(lambda: segmenter.segment(rgb))


def peers(algorithm, rgb, step, threads):
    """Returns name: function that runs one frame and returns its ms. Imports here: threads must be settled before."""
    import cv2
    from fast_slic.avx2 import LSCAvx2, SlicAvx2

    height, width, _ = rgb.shape
    cells = -(-width // step) * -(-height // step)
    cv2.setNumThreads(threads)

    def fast_slic():
        SlicAvx2(num_components=cells, compactness=COMPACTNESS, min_size_factor=MIN_REGION,
                 num_threads=threads).iterate(rgb, ROUNDS)

    def opencv():
        lab = cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB)
        slic = cv2.ximgproc.createSuperpixelSLIC(lab, cv2.ximgproc.SLIC, step, float(COMPACTNESS))
        slic.iterate(ROUNDS)
        slic.enforceLabelConnectivity(25)
        slic.getLabels()

    def fast_slic_lsc():
        # Its compactness is 100 times the ratio.
        LSCAvx2(num_components=cells, compactness=100 * LSC_RATIO, min_size_factor=MIN_REGION,
                num_threads=threads).iterate(rgb, ROUNDS)

    def opencv_lsc():
        lab = cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB)
        lsc = cv2.ximgproc.createSuperpixelLSC(lab, step, LSC_RATIO)
        lsc.iterate(ROUNDS)
        lsc.enforceLabelConnectivity(25)
        lsc.getLabels()

    if algorithm == "lsc":
        return {"fast-slic LSCAvx2": clocked(fast_slic_lsc), "OpenCV LSC": clocked(opencv_lsc)}, cells
    return {"fast-slic SlicAvx2": clocked(fast_slic), "OpenCV SLIC": clocked(opencv)}, cells


def compare(program, algorithm, picture, size, step, threads, runs, slow_runs):
    """`program` is superpixel-bench, or None for the Python package."""
    rgb = pixels(picture, size)
    others, cells = peers(algorithm, rgb, step, threads)
    ours = {"ours, labels": "labels", "ours, labels and region table": "table"}
    for name, outputs in ours.items():
        ours[name] = (Ours(program, algorithm, picture, size, step, threads, outputs) if program else
                      package(algorithm, rgb, step, threads, outputs == "table"))
    runners = {**ours, **others}
    times = {name: [] for name in runners}
    for name in runners:
        runners[name]()
    for turn in range(runs):
        for name, run in runners.items():
            if not name.startswith("OpenCV") or turn < slow_runs:
                times[name].append(run())
    for our in ours.values():
        if program:
            our.close()
    print(f"{algorithm}, {os.path.basename(picture)}, {size[0]}x{size[1]}, step {step}, {cells} cells, {ROUNDS} rounds, threads: {threads}, "
          f"load {os.getloadavg()[0]:.2f}")
    print(f"  {'':32} {'median ms':>10} {'least ms':>10} {'ratio':>7} {'of least':>9} {'of pairs':>9}")
    good = True
    base = times["ours, labels"]
    for name, values in times.items():
        ratio = statistics.median(values) / statistics.median(base)
        least = min(values) / min(base)
        pairs = statistics.median(v / b for v, b in zip(values, base))
        verdict = ""
        if name in WANTED:
            # Of the package, that it is faster.
            wanted = WANTED[name] if program else 1
            good &= pairs >= wanted
            verdict = f"  wanted {wanted:g}: {'yes' if pairs >= wanted else 'NO'}"
        print(f"  {name:32} {statistics.median(values):10.2f} {min(values):10.2f} {ratio:7.2f} {least:9.2f} {pairs:9.2f}{verdict}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+", metavar="PICTURE")
    parser.add_argument("--algorithm", default="slic", choices=["slic", "lsc"])
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--step", type=int, default=32, help="grid step in px")
    parser.add_argument("--package", action="store_true", help="time the Python package instead of superpixel-bench")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, comma separated")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--slow-runs", type=int, default=7, help="turns that OpenCV takes part in")
    parser.add_argument("--bench", help="the program superpixel-bench",
                        default=os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "..", "target")),
                                             "release", "superpixel-bench"))
    args = parser.parse_args()
    size = tuple(int(side) for side in args.size.split("x"))
    if len(args.threads.split(",")) > 1:
        # OpenMP settles its threads once a process.
        good = True
        for threads in args.threads.split(","):
            for picture in args.pictures:
                command = [sys.executable, __file__, picture, "--algorithm", args.algorithm, "--size", args.size,
                           "--step", str(args.step), "--threads", threads, *["--package"][:args.package], "--runs", str(args.runs),
                           "--slow-runs", str(args.slow_runs), "--bench", args.bench]
                good &= subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": threads}).returncode == 0
        sys.exit(not good)
    os.environ["OMP_NUM_THREADS"] = args.threads
    program = None if args.package else args.bench
    good = [compare(program, args.algorithm, picture, size, args.step, int(args.threads), args.runs, args.slow_runs) for picture in args.pictures]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
