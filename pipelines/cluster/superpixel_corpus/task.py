# SPDX-License-Identifier: MPL-2.0
"""One piece of work on one machine: fetch, run `superpixel-clip`, publish. Nothing here raises what the driver does not count."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .program import PER_PROCESS, Ended, Slot
from .storage import Bucket, Folder, place

DATA, MACHINE, CRASH, TIMEOUT, LOST = KINDS = ("data", "machine", "crash", "timeout", "lost")


@dataclass(frozen=True)
class Task:
    """What is to be done: `work` is `whole`, `cuts`, `part` or `join`; `number` is the part's, or how many parts are joined.

    It runs in a process that has done fewer than `per_process` pieces, or in a new one if `anew`.
    """

    work: str
    run: str
    source: str
    destination: str
    path: str
    key: str
    output: str
    parts: str
    program: str
    words: tuple[str, ...]
    threads: int
    stall: float
    timeout: float
    least: float = 0.0
    number: int = 0
    per_process: int = PER_PROCESS
    anew: bool = False


@dataclass
class Outcome:
    """How it ended: `kind` is empty where it is done. `summary` is the program's last line. `fresh`: first piece of its process."""

    kind: str = ""
    error: str = ""
    summary: dict = field(default_factory=dict)
    seconds: float = 0.0
    host: str = ""
    fresh: bool = True


def execute(task: Task, slot: Slot) -> Outcome:
    """Does a piece of work and cleans up after itself."""
    began = time.monotonic()
    scratch = None
    try:
        scratch = make_scratch(task)
        outcome = attempt(task, slot, scratch)
    except Exception as error:  # noqa: BLE001  (whatever a file system may say)
        outcome = Outcome(MACHINE, f"{type(error).__name__}: {error}")
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    outcome.seconds = time.monotonic() - began
    outcome.host = socket.gethostname()
    return outcome


def scratch_root(destination: str) -> Path:
    """Where work on a destination is done: beside it, where a rename publishes it, or in the machine's folder for such."""
    target = place(destination)
    if isinstance(target, Folder):
        return target.root / "_scratch"
    name = hashlib.sha256(destination.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"superpixel-corpus-{os.getuid()}" / name


def sweep(destination: str, keep: str) -> None:
    """Removes what runs other than `keep` have left on this machine: whoever was killed could not."""
    root = scratch_root(destination)
    if root.is_dir():
        for folder in root.iterdir():
            if folder.name != keep:
                shutil.rmtree(folder, ignore_errors=True)


def make_scratch(task: Task) -> Path:
    """A new folder for one attempt. The first of a run on a machine without a shared folder sweeps there."""
    root = scratch_root(task.destination)
    if not (root / task.run).exists() and task.destination.startswith("s3://"):
        sweep(task.destination, task.run)
    (root / task.run).mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=task.key[:8] + "-", dir=root / task.run))


def attempt(task: Task, slot: Slot, scratch: Path) -> Outcome:
    """Runs the program and publishes what it made."""
    destination, out = place(task.destination), scratch / "out"
    if task.work == "join":
        pieces = [fetch_part(destination, f"{task.parts}/{number}", scratch) for number in range(task.number)]
        command = ["join", str(out), *map(str, pieces)]
    else:
        command = decode_command(task, destination, scratch, out)
    outcome = call(task, slot, [*command, "--stall", str(task.stall)])
    if outcome.kind:
        return outcome
    if task.work == "cuts":
        destination.write(f"{task.parts}/parts.json", out.read_bytes())
    elif task.work == "part":
        destination.publish(out, f"{task.parts}/{task.number}", "clip.json")
    else:
        destination.publish(out, task.output, "clip.json")
        destination.remove(task.parts)
    return outcome


def fetch_part(destination: Folder | Bucket, path: str, scratch: Path) -> Path:
    """The folder of a part, on this machine."""
    if isinstance(destination, Folder):
        return destination.local(path)
    folder = scratch / path.rpartition("/")[2]
    for entry in destination.list(path):
        destination.fetch(entry.path, folder / entry.path.rpartition("/")[2])
    return folder


def decode_command(task: Task, destination: Folder | Bucket, scratch: Path, out: Path) -> list[str]:
    """The command line of work that reads the clip."""
    source = place(task.source)
    clip = source.local(task.path)
    if clip is None:
        clip = scratch / ("clip" + Path(task.path).suffix)
        source.fetch(task.path, clip)
    threads = ["--threads", str(task.threads)]
    if task.work == "cuts":
        return ["cuts", str(clip), str(out), "--least", str(task.least), *threads]
    command = [str(clip), str(out), *task.words, "--key", task.key, "--source", f"{source}/{task.path}", *threads]
    if task.work == "part":
        cuts = scratch / "parts.json"
        cuts.write_bytes(destination.read(f"{task.parts}/parts.json") or b"")
        command += ["--cuts", str(cuts), "--part", str(task.number)]
    return command


def call(task: Task, slot: Slot, words: list[str]) -> Outcome:
    """Has the program do it, to its end or to the time limit."""
    try:
        ended = slot.run(task.program, words, task.timeout, task.per_process, task.anew)
    except OSError as error:
        return Outcome(MACHINE, f"{task.program} does not start: {error}")
    if ended.late:
        return Outcome(TIMEOUT, f"not done after {task.timeout:g} s", fresh=ended.fresh)
    return Outcome(kind_of(ended), ended.error, ended.last, fresh=ended.fresh)


def kind_of(ended: Ended) -> str:
    """The kind of a failure by the last line; empty where there is none."""
    last = ended.last
    if last.get("event") == "done":
        return ""
    if not last:
        return CRASH
    if last.get("fault") == "clip":
        return DATA
    # A wrong command line is the same for every clip, so it counts as the machine's.
    return TIMEOUT if last.get("stalled") else MACHINE
