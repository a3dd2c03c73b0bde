#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Frames a second of corpus.py on this host, by number of tasks: measure.py CLIP [--cpu-tasks 1,2,4,8] [--gpu-tasks 1,2,4,8]

Copies of CLIP are worked on, as many for each task, on the CPU (with no device in sight) or on devices. --per-process 64,1 does so with
processes that do many clips, then with one for each clip. --devices 2 measures one device and then two, each with so many tasks. Prints
tables in Markdown, and writes them with all figures into the folder OUT (.), as measure.md and measure.json; files of these names that
it has not made stay. `first frame` is the time
from the start of a process to its first frame, and from that of a later clip to the clip's first, in seconds, the medians. Needs
superpixel-clip in PATH or after --program; no network, and nothing beside Python 3.10.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from superpixel_corpus.output import Refused, check_apart, check_target, parse_object, write_file

# The first line of measure.md, by which it is known as made here; measure.json says so in a field.
MARK = "<!-- made by measure.py -->"
CORPUS = Path(__file__).resolve().parent / "corpus.py"


def measure(args: argparse.Namespace, tasks: int, devices: list[str], per_process: int) -> dict:
    """Works with so many tasks on each device, or on the CPU where there is none."""
    copies = args.copies if devices else args.cpu_copies
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        running, start = [], 0.0
        places = devices or [""]
        backend = "backend=cuda" if devices else "backend=cpu"
        for number, device in enumerate(places):
            source, destination = Path(scratch, f"in{number}"), Path(scratch, f"out{number}")
            source.mkdir()
            for copy in range(tasks * copies):
                shutil.copy(args.clip, source / f"{copy}{args.clip.suffix}")
            call(
                args, {}, "plan", source, destination, "--set", backend, *(f"--set={word}" for word in args.set)
            ).communicate()
        start = time.monotonic()
        for number, device in enumerate(places):
            # Hides devices from decoders, too.
            environment = {"CUDA_VISIBLE_DEVICES": device}
            options = ("--jobs", tasks, "--per-process", per_process)
            running.append(call(args, environment, "run", Path(scratch, f"out{number}"), *options))
        failed = [process.communicate()[0] for process in running if process.wait()]
        seconds = time.monotonic() - start
        if failed:
            sys.exit(f"measure.py: a run failed:\n{failed[0]}")
        reports = [json.loads(path.read_text()) for path in Path(scratch).glob("out*/_reports/*.json")]
        markers = [json.loads(path.read_text()) for path in Path(scratch).glob("out*/clips/*/clip.json")]
    frames = sum(marker["frames"] for marker in markers)
    first = markers[0]
    return {
        "tasks": tasks * len(places),
        "devices": len(devices),
        "per_process": per_process,
        "frames": frames,
        "seconds": round(seconds, 2),
        "frames_per_second": round(frames / seconds, 1),
        "first_frame": {name: first_frame(reports, name) for name in ("new_process", "same_process")},
        "backend": first["backend"],
        "decoder": first["decoder"],
        "size": [first["width"], first["height"]],
    }


def call(args: argparse.Namespace, environment: dict[str, str], *words: object) -> subprocess.Popen:
    """Starts corpus.py."""
    command = [sys.executable, str(CORPUS), *map(str, words)]
    if args.program:
        command += ["--program", args.program]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=os.environ | environment, **pipes)


def first_frame(reports: list[dict], name: str) -> float | None:
    """Seconds to the first frame, on the device that took longest."""
    return max(
        (report["first_frame_seconds"][name] for report in reports if name in report["first_frame_seconds"]),
        default=None,
    )


def table(rows: list[dict]) -> str:
    """Rows of one place as Markdown: how far from linear they are, and what more devices give."""
    heads = [
        "tasks",
        "devices",
        "clips a process",
        "frames/s",
        "of linear",
        "times one device",
        "first frame",
        "backend",
        "decoder",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|--:|--:|--:|--:|--:|--:|---|---|---|"]
    ones = {(row["per_process"], row["tasks"]): row["frames_per_second"] for row in rows if row["devices"] <= 1}
    for row in rows:
        count, rate = row["devices"] or 1, row["frames_per_second"]
        base = next(other for other in rows if other["per_process"] == row["per_process"])
        share = rate / row["tasks"] / (base["frames_per_second"] / base["tasks"])
        gain = f"{rate / ones[row['per_process'], row['tasks'] // count]:.2f}" if count > 1 else ""
        first = ", ".join("-" if seconds is None else f"{seconds:.2f}" for seconds in row["first_frame"].values())
        facts = (row["tasks"], row["devices"] or "-", row["per_process"], rate, f"{share:.2f}", gain, first)
        lines.append("| " + " | ".join(map(str, (*facts, row["backend"], row["decoder"]))) + " |")
    return "\n".join(lines)


def is_ours(content: bytes) -> bool:
    """Whether a file is the result of an earlier measurement."""
    return content.startswith(MARK.encode()) or (parse_object(content) or {}).get("made_by") == "measure.py"


def check_places(args: argparse.Namespace, results: list[Path]) -> None:
    """Raises Refused, before hours of measuring, where the results cannot be written by the rule for all programs."""
    if not args.clip.is_file():
        raise Refused(f"{args.clip} is no file")
    for folder in (results[0].parent, *([Path(args.scratch)] if args.scratch else [])):
        if not folder.is_dir():
            raise Refused(f"{folder} is no folder")
    check_apart([args.clip], results)
    for path in results:
        check_target(path, is_ours, args.force)


def numbers(text: str) -> list[int]:
    """Numbers with commas between, none for an empty text."""
    return [int(word) for word in text.split(",") if word]


def main() -> int:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path)
    parser.add_argument("--cpu-tasks", type=numbers, default="1,2,4,8")
    parser.add_argument("--gpu-tasks", type=numbers, default="", help="tasks on each device, for instance 1,2,4,8")
    parser.add_argument("--devices", type=int, default=1, help="how many devices (%(default)s)")
    parser.add_argument(
        "--per-process", type=numbers, default="64,1", help="clips of a process, one after the other (%(default)s)"
    )
    parser.add_argument("--copies", type=int, default=8, help="clips for each task of a device (%(default)s)")
    parser.add_argument("--cpu-copies", type=int, default=2, help="clips for each task of the CPU (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="PROPERTY=VALUE")
    parser.add_argument("--program")
    parser.add_argument("--scratch", help="folder for copies and output, which a memory disk keeps out of the figures")
    parser.add_argument("--force", action="store_true", help="replace measure.md and measure.json whoever made them")
    args = parser.parse_args()
    out = Path(os.environ.get("OUT", "."))
    results = [out / "measure.md", out / "measure.json"]
    check_places(args, results)
    model = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    host = {"cores": len(os.sched_getaffinity(0)), "processor": model[0] if model else platform.machine()}
    pieces = [f"{host['processor']}, {host['cores']} cores; {args.clip.name}, {' '.join(args.set) or 'defaults'}"]
    rows = []
    devices = [str(number) for number in range(args.devices)]
    for counts, places in ((args.cpu_tasks, [[]]), (args.gpu_tasks, [devices[:1], devices][: args.devices])):
        own = []
        for tasks, per_process, given in itertools.product(counts, args.per_process, places):
            own.append(measure(args, tasks, given, per_process))
            print(own[-1], flush=True)
        if own:
            pieces.append(table(own))
        rows += own
    text = "\n\n".join(pieces) + "\n"
    print(text)
    facts = {"made_by": "measure.py", "host": host, "clip": args.clip.name, "rows": rows}
    for path, content in zip(results, (f"{MARK}\n{text}", json.dumps(facts, indent=2) + "\n")):
        write_file(path, content.encode(errors="backslashreplace"), is_ours, args.force)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Refused, OSError) as error:
        sys.exit(f"measure.py: {error}")
