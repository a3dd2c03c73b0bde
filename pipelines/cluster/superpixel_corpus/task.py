# SPDX-License-Identifier: MPL-2.0
"""One piece of work on one machine: fetch, run `superpixel-clip`, publish.

Nothing here raises what the driver does not count.
"""

from __future__ import annotations

import shutil
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import records, scratch
from .output import Refused
from .program import PER_PROCESS, Ended, Slot
from .records import KINDS
from .storage import Bucket, Folder, place, words

DATA, MACHINE, CRASH, TIMEOUT, LOST, REFUSED = KINDS


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
    """How it ended: `kind` is empty where it is done. `summary` is of the program's last line.

    `fresh`: first piece of its process.
    """

    kind: str = ""
    error: str = ""
    summary: dict = field(default_factory=dict)
    seconds: float = 0.0
    host: str = ""
    fresh: bool = True


def execute(task: Task, slot: Slot) -> Outcome:
    """Does a piece of work and cleans up after itself."""
    began = time.monotonic()
    folder = None
    try:
        destination = place(task.destination)
        # What stands there and is not ours is known before an hour of work.
        destination.check(task.output)
        folder = scratch.attempt(destination, task.run, task.key)
        outcome = attempt(task, slot, destination, folder)
    except Refused as error:
        outcome = Outcome(REFUSED, str(error))
    except Exception as error:  # noqa: BLE001  (whatever a file system may say)
        outcome = Outcome(MACHINE, words(error))
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    outcome.seconds = time.monotonic() - began
    outcome.host = socket.gethostname()
    return outcome


def attempt(task: Task, slot: Slot, destination: Folder | Bucket, folder: Path) -> Outcome:
    """Runs the program and publishes what it made."""
    out = folder / "out"
    if task.work == "join":
        pieces = [fetch_part(destination, f"{task.parts}/{number}", folder) for number in range(task.number)]
        command = ["join", str(out), *map(str, pieces)]
    else:
        command = decode_command(task, destination, folder, out)
    outcome = call(task, slot, [*command, "--stall", str(task.stall)])
    if outcome.kind:
        return outcome
    if task.work == "cuts":
        listed = out.read_bytes()
        if not records.are_parts(listed):
            return Outcome(MACHINE, f"{task.program} cuts wrote no list of parts", fresh=outcome.fresh)
        outcome.summary["parts"] = records.parts(listed)
        destination.write(f"{task.parts}/parts.json", listed, records.are_parts)
    elif task.work == "part":
        destination.publish(out, f"{task.parts}/{task.number}")
    else:
        destination.publish(out, task.output)
        destination.forget_parts(task.parts)
    return outcome


def fetch_part(destination: Folder | Bucket, path: str, folder: Path) -> Path:
    """The folder of a part, on this machine."""
    if isinstance(destination, Folder):
        return destination.local(path)
    part = folder / path.rpartition("/")[2]
    for entry in destination.list(path):
        destination.fetch(entry.path, part / entry.path.rpartition("/")[2])
    return part


def decode_command(task: Task, destination: Folder | Bucket, folder: Path, out: Path) -> list[str]:
    """The command line of work that reads the clip."""
    source = place(task.source)
    clip = source.local(task.path)
    if clip is None:
        clip = folder / ("clip" + Path(task.path).suffix)
        source.fetch(task.path, clip)
    threads = ["--threads", str(task.threads)]
    if task.work == "cuts":
        return ["cuts", str(clip), str(out), "--least", str(task.least), *threads]
    command = [str(clip), str(out), *task.words, "--key", task.key, "--source", f"{source}/{task.path}", *threads]
    if task.work == "part":
        cuts = folder / "parts.json"
        cuts.write_bytes(destination.read(f"{task.parts}/parts.json") or b"")
        command += ["--cuts", str(cuts), "--part", str(task.number)]
    return command


def call(task: Task, slot: Slot, arguments: list[str]) -> Outcome:
    """Has the program do it, to its end or to the time limit."""
    try:
        ended = slot.run(task.program, arguments, task.timeout, task.per_process, task.anew)
    except OSError as error:
        return Outcome(MACHINE, f"{task.program} does not start: {error}")
    if ended.late:
        return Outcome(TIMEOUT, f"not done after {task.timeout:g} s", fresh=ended.fresh)
    return Outcome(kind_of(ended), ended.error, records.summary(ended.last), fresh=ended.fresh)


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
