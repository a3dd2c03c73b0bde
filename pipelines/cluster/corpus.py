#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Superpixels of a corpus of videos: corpus.py plan SOURCE DESTINATION, then corpus.py run DESTINATION.

See docs/corpus.md.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from superpixel_corpus import devices, manifest, records, report, scratch, source, storage
from superpixel_corpus.driver import Driver, Options
from superpixel_corpus.lock import Lock
from superpixel_corpus.output import Refused, shown
from superpixel_corpus.program import PER_PROCESS
from superpixel_corpus.records import PlanError
from superpixel_corpus.storage import Folder, Place, place, words
from superpixel_corpus.workers import Cluster, Local

ROOT = Path(__file__).resolve().parents[2]


def find_program(name: str | None) -> str:
    """The program that is named, in PATH, or built in this tree."""
    built = ROOT / "target/release/superpixel-clip"
    found = shutil.which(name or "superpixel-clip") or (built if name is None and built.exists() else None)
    if found is None:
        raise PlanError(
            f"{name or 'superpixel-clip'} is not found: cargo build --release --package superpixel-clip, "
            "or name it with --program"
        )
    return str(Path(found).resolve())


def check(program: str, settings: list[str]) -> tuple[dict[str, str], str]:
    """The properties as the element understands them, and its version."""
    done = subprocess.run([program, "check", *settings], check=False, capture_output=True)
    if done.returncode:
        raise PlanError(done.stderr.decode(errors="replace").strip() or f"{program} check ends with {done.returncode}")
    return records.checked(done.stdout)


def plan(args: argparse.Namespace) -> int:
    """Lists the clips and writes the manifest."""
    properties, version = check(find_program(args.program), args.set)
    videos, destination = place(args.source), place(args.destination)
    storage.check_apart(videos, destination)
    manifest.check_new(destination, args.force)

    def note(path: str, reason: str) -> None:
        print(f"left out: {shown(path)}: {reason}", file=sys.stderr)

    suffixes = {suffix.lower().lstrip(".") for suffix in args.suffixes.split(",")}
    found = source.find(videos, destination, suffixes, note)
    if not found:
        raise PlanError(f"{shown(videos)} has no file that ends with one of {args.suffixes}")
    header = manifest.Header(str(videos), properties, version, args.split_at_cuts)
    with hold(destination, scratch.name_run(), "plan"):
        # Another one may have been quicker.
        manifest.check_new(destination, args.force)
        clips = source.without_collisions(manifest.make(header, found), destination, note)
        manifest.write(destination, header, clips, args.force)
    size = sum(clip.size for clip in clips) / 1e9
    print(f"{len(clips)} clips, {size:.2f} GB; next: corpus.py run {shown(args.destination)}")
    return 0


@contextmanager
def hold(destination: Place, run: str, command: str) -> Iterator[Lock]:
    """The lock of a destination, where what dead runs have left is swept and this one gets a scratch folder."""
    if isinstance(destination, Folder):
        destination.root.mkdir(parents=True, exist_ok=True)
    with Lock(destination, run, command) as lock:
        try:
            scratch.sweep(destination)
            scratch.begin(destination, run)
            yield lock
        finally:
            scratch.end(destination, run)


def devices_of(args: argparse.Namespace, properties: dict) -> list[str]:
    """The devices that tasks of this machine are spread over; none where processes find theirs by themselves."""
    try:
        chosen = int(properties.get("cuda-device-id", -1))
    except ValueError:
        raise PlanError(
            f"the plan sets cuda-device-id={shown(properties['cuda-device-id'])}, which is no number: plan again"
        ) from None
    if chosen >= 0:
        # It counts the devices that a process sees.
        if args.devices is not None:
            raise PlanError("the plan sets cuda-device-id, which leaves nothing for --devices to say")
        return []
    if args.devices is not None:
        return args.devices
    found = devices.visible()
    # What sees one device needs no word of it.
    return found if len(found) > 1 else []


def options_of(args: argparse.Namespace, properties: dict[str, str]) -> Options:
    """How tasks work."""
    settings = tuple(f"{key}={value}" for key, value in properties.items())
    if args.gpus > 0 and "backend" not in properties:
        # Else a node whose device fails would work on its CPU, unseen.
        settings += ("backend=cuda",)
    return Options(
        program=args.program or "superpixel-clip" if args.ray else find_program(args.program),
        words=settings,
        threads=max(1, math.ceil(args.cpus)),
        retries=args.retries,
        stall=args.stall,
        timeout=args.timeout,
        per_process=args.per_process,
    )


def run(args: argparse.Namespace) -> int:
    """Works through what is left; 0 where every clip is done, 1 where some have failed."""
    if args.ray and args.devices is not None:
        raise PlanError("--devices is about this machine: on a cluster Ray gives devices to tasks")
    destination = place(args.destination)
    # No lock is made where no plan is.
    manifest.read(destination)
    destination.check_areas()
    name = scratch.name_run()
    with hold(destination, name, "run") as lock:
        header, clips = manifest.read(destination)
        storage.check_apart(place(header.source), destination)
        known = manifest.state(destination, clips)
        todo = known.left
        if args.retry_failed:
            todo = [clip for clip in clips if clip.path not in known.done]
        parts = {clip.parts for clip in clips if clip.path not in known.done}
        for key in destination.parts():
            if f"_parts/{key}" not in parts:
                destination.forget_parts(f"_parts/{key}")
        told = work(args, header, todo, report.Report(name, len(clips), len(known.done), 1), destination, lock)
    for odd in known.odd:
        print(f"not understood: {shown(odd)}")
    old = 0 if args.retry_failed else len(known.failed)
    if old:
        print(
            f"{old} clips have failed before: corpus.py status {shown(args.destination)} lists them, "
            "run --retry-failed tries them again"
        )
    return 1 if told.failed or told.notes or old else 0


def work(
    args: argparse.Namespace, header: records.Header, todo: list, told: report.Report, destination: Place, lock: Lock
) -> report.Report:
    """Does what is left. Whatever happens, the report is told and written, and work under way ended."""
    options = options_of(args, header.properties)
    progress = report.Progress()
    if args.ray:
        workers = Cluster(args.ray, args.cpus, args.gpus, lambda _: 2 * args.timeout + 120)
    else:
        jobs = args.jobs or max(1, int(len(os.sched_getaffinity(0)) / args.cpus))
        workers = Local(jobs, devices_of(args, header.properties))
    with ExitStack() as stack:
        stack.push(lambda kind, *_: workers.close(at_once=kind is not None))
        # The last one goes first.
        stack.callback(conclude, destination, told, header, progress, bool(todo))
        told.slots = workers.slots()

        def tell(now: report.Report) -> None:
            lock.check()
            progress(now)

        Driver(header, destination, options, workers, told).run(todo, tell)
    return told


def conclude(
    destination: Place, told: report.Report, header: records.Header, progress: report.Progress, has_worked: bool
) -> None:
    """Tells how the run went, and writes that down where there was something to do."""
    told.end = time.monotonic()
    progress(told, last=True)
    if has_worked:
        try:
            report.save(destination, told, asdict(header))
            where = f"report: {shown(destination)}/_reports/{told.run}.html"
        except (OSError, Refused) as error:
            told.note(f"the report is not written: {words(error)}")
            where = ""
    print(told.to_text())
    if has_worked and where:
        print(where)


def status(args: argparse.Namespace) -> int:
    """Says what is done, failed and left."""
    destination = place(args.destination)
    _, clips = manifest.read(destination)
    known = manifest.state(destination, clips)
    frames = sum(marker.frames for marker in known.done.values())
    kinds = Counter(reason.kind for reason in known.failed.values())
    print(
        f"{len(clips)} clips: {len(known.done)} done ({frames} frames), "
        f"{len(known.failed)} failed, {len(known.left)} left"
    )
    short = [path for path, marker in known.done.items() if marker.short]
    if short:
        print(f"{len(short)} are shorter than they say, for instance {shown(short[0])}")
    for kind, number in sorted(kinds.items()):
        print(f"{number} {kind}:")
        chosen = [(path, reason) for path, reason in known.failed.items() if reason.kind == kind]
        for path, reason in chosen[: args.list]:
            print(f"  {shown(path)} ({reason.tries} tries): {shown(reason.error)[:160]}")
    for odd in known.odd[: args.list]:
        print(f"not understood: {shown(odd)}")
    return 0


def positive(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("has to be above 0")
    return value


def count(text: str) -> int:
    """A number from 1 on."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("has to be 1 or more")
    return value


def share(text: str) -> float:
    """A number of devices: 0, a fraction or a whole number."""
    value = float(text)
    if not 0 <= value < math.inf or (value > 1 and value != int(value)):
        raise argparse.ArgumentTypeError("has to be a fraction of 1, or a whole number")
    return value


def names(text: str) -> list[str]:
    """Names between commas; the one of no device where the text is empty."""
    found = [name.strip() for name in text.split(",")]
    if len(set(found)) < len(found) or (len(found) > 1 and "" in found):
        raise argparse.ArgumentTypeError("has to be names between commas, each once")
    return found


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    planner = commands.add_parser("plan", help="list the clips of a folder or bucket")
    planner.add_argument("source", help="folder, or s3://bucket/prefix")
    planner.add_argument("destination", help="folder, or s3://bucket/prefix")
    planner.add_argument(
        "--set", action="append", default=[], metavar="PROPERTY=VALUE", help="a property of superpixel; may be repeated"
    )
    planner.add_argument(
        "--split-at-cuts",
        type=positive,
        metavar="SECONDS",
        help="work on parts of at least so many seconds, where clips cut",
    )
    planner.add_argument(
        "--suffixes", default=",".join(manifest.SUFFIXES), help="ends of the names of videos (%(default)s)"
    )
    planner.add_argument(
        "--force",
        action="store_true",
        help="plan in a folder that holds other things; no clip or video in it is replaced",
    )
    planner.set_defaults(call=plan)
    runner = commands.add_parser("run", help="work on what is left")
    runner.add_argument("destination")
    runner.add_argument("--ray", metavar="ADDRESS", help="address of a Ray cluster: auto, HOST:PORT or ray://HOST:PORT")
    runner.add_argument("--cpus", type=positive, default=1.0, help="cores of a task (%(default)s)")
    runner.add_argument("--gpus", type=share, default=0.0, help="devices of a task, for instance 0.25 (%(default)s)")
    runner.add_argument(
        "--devices",
        type=names,
        metavar="LIST",
        help="devices of this machine for tasks, as CUDA_VISIBLE_DEVICES names them (all that are visible)",
    )
    runner.add_argument("--jobs", type=int, help="tasks at a time on this machine (as many as its cores allow)")
    runner.add_argument(
        "--per-process",
        type=count,
        default=PER_PROCESS,
        help="clips that a process does before another takes its place (%(default)s)",
    )
    runner.add_argument("--retries", type=int, default=2, help="tries after the first (%(default)s)")
    runner.add_argument(
        "--timeout", type=positive, default=3600.0, help="longest time of a try in seconds (%(default)s)"
    )
    runner.add_argument(
        "--stall", type=positive, default=30.0, help="longest time without a frame in seconds (%(default)s)"
    )
    runner.add_argument("--retry-failed", action="store_true", help="try clips again that have failed before")
    runner.set_defaults(call=run)
    for command in (planner, runner):
        command.add_argument("--program", help="superpixel-clip, where it is not in PATH")
    teller = commands.add_parser("status", help="say what is done, failed and left")
    teller.add_argument("destination")
    teller.add_argument("--list", type=int, default=20, help="failures of each kind that are listed (%(default)s)")
    teller.set_defaults(call=status)
    return parser.parse_args()


def end(number: int, _: object) -> None:
    """Ends as Ctrl-C does, with a report and no work left behind."""
    raise SystemExit(128 + number)


def main() -> int:
    """Runs the command; what cannot be done is said in words."""
    arguments = parse()
    for stream in (sys.stdout, sys.stderr):
        # A name of any bytes can be shown in any locale.
        stream.reconfigure(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP):
        # One that is ignored, as nohup has it, stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        return arguments.call(arguments)
    except Refused as error:
        sys.exit(f"corpus.py: {shown(error)}")
    except OSError as error:
        sys.exit(f"corpus.py: {words(error)}")
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
