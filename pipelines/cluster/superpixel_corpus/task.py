# SPDX-License-Identifier: MPL-2.0
"""One piece of work on one machine: fetch, run `superpixel-clip`, publish. Nothing here raises what the driver does not count."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .storage import Bucket, Folder, place

DATA, MACHINE, CRASH, TIMEOUT, LOST = KINDS = ("data", "machine", "crash", "timeout", "lost")


@dataclass(frozen=True)
class Task:
    """What is to be done: `work` is `whole`, `cuts`, `part` or `join`; `number` is the part's, or how many parts are joined."""

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


@dataclass
class Outcome:
    """How it ended: `kind` is empty where it is done. `summary` is the program's last line."""

    kind: str = ""
    error: str = ""
    summary: dict = field(default_factory=dict)
    seconds: float = 0.0
    host: str = ""


def execute(task: Task) -> Outcome:
    """Does a piece of work and cleans up after itself."""
    began = time.monotonic()
    scratch = None
    try:
        scratch = make_scratch(task)
        outcome = attempt(task, scratch)
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


def attempt(task: Task, scratch: Path) -> Outcome:
    """Runs the program and publishes what it made."""
    destination, out = place(task.destination), scratch / "out"
    if task.work == "join":
        pieces = [fetch_part(destination, f"{task.parts}/{number}", scratch) for number in range(task.number)]
        command = ["join", str(out), *map(str, pieces)]
    else:
        command = decode_command(task, destination, scratch, out)
    outcome = call(task, [task.program, *command, "--parent", str(os.getpid()), "--stall", str(task.stall)])
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


def call(task: Task, command: list[str]) -> Outcome:
    """Runs the program to its end, or to the time limit."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=task.timeout or None, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Outcome(TIMEOUT, f"not done after {task.timeout:g} s")
    except OSError as error:
        return Outcome(MACHINE, f"{task.program} does not start: {error}")
    lines = done.stdout.decode(errors="replace").splitlines()
    try:
        last = json.loads(lines[-1]) if lines else {}
    except json.JSONDecodeError:
        last = {}
    if done.returncode == 0 and last.get("event") == "done":
        return Outcome(summary=last)
    return Outcome(kind_of(done.returncode, last), reason(done, last), last)


def kind_of(status: int, last: dict) -> str:
    """The kind of a failure by exit status and last line."""
    if status == 65:
        return DATA
    if status == 74:
        return TIMEOUT if last.get("stalled") else MACHINE
    # A wrong command line is the same for every clip.
    return MACHINE if status == 2 else CRASH


def reason(done: subprocess.CompletedProcess, last: dict) -> str:
    """Why the program failed, in words."""
    if "error" in last:
        return last["error"]
    noise = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
    status = done.returncode
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return " | ".join([how, *noise])
