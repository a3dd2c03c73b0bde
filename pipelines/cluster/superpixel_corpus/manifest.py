# SPDX-License-Identifier: MPL-2.0
"""What there is to do, `_manifest.jsonl`, and what of it is done: clips with a marker of their key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

from . import records
from .output import MARKER, Refused
from .records import NAME, Clip, Failure, Header, Marker, PlanError
from .storage import Entry, Place, words

SUFFIXES = [
    "mp4",
    "m4v",
    "mov",
    "mkv",
    "webm",
    "avi",
    "ts",
    "m2ts",
    "mts",
    "mpg",
    "mpeg",
    "mxf",
    "ogv",
    "wmv",
    "flv",
    "3gp",
]
# Reads that wait at the same time: buckets take tens of milliseconds for each.
READERS = 32


def make(header: Header, videos: Iterable[Entry]) -> list[Clip]:
    """Names what the output of each video depends on."""
    common = json.dumps(asdict(header), sort_keys=True)
    clips = []
    for path, size, version in videos:
        key = hashlib.sha256(json.dumps([common, path, size, version]).encode()).hexdigest()[:32]
        clips.append(Clip(path, size, version, key))
    return clips


def check_new(destination: Place, force: bool) -> None:
    """Raises Refused where a plan would go to a place that holds other things, without `force`."""
    destination.check_areas()
    content = None
    try:
        content = destination.read(NAME)
    except PlanError:
        if not force:
            raise
    if force or (content is not None and records.is_manifest(content)):
        return
    if content:
        raise Refused(f"{destination}/{NAME} is no manifest of this program: move it away, or plan with --force")
    if others := destination.others():
        raise Refused(f"{destination} holds {others[0]} and no plan: choose a new place, or plan there with --force")


def write(destination: Place, header: Header, clips: list[Clip], force: bool = False) -> None:
    """Writes the manifest: a line for the header, then one for each clip."""
    lines = [asdict(header), *map(asdict, clips)]
    destination.write(NAME, "".join(json.dumps(line) + "\n" for line in lines).encode(), records.is_manifest, force)


def read(destination: Place) -> tuple[Header, list[Clip]]:
    """Reads what `write` wrote."""
    content = destination.read(NAME)
    if content is None:
        raise PlanError(f"{destination} has no {NAME}: make one with `corpus.py plan SOURCE {destination}`")
    return records.manifest(content)


@dataclass
class State:
    """What is known of each clip of a manifest: done with its `clip.json`, failed with why, or left.

    `odd` are files that should say so and do not, with the reason.
    """

    done: dict[str, Marker]
    failed: dict[str, Failure]
    left: list[Clip]
    odd: list[str] = field(default_factory=list)


def state(destination: Place, clips: list[Clip]) -> State:
    """Looks at the markers. One of another key, of older properties say, does not count."""
    odd: list[str] = []

    def look(path: str, reader: Callable[[bytes], object]) -> object:
        try:
            content = destination.read(path)
            return None if content is None else reader(content)
        except Refused as error:
            odd.append(f"{path}: {error}")
        except OSError as error:
            odd.append(f"{path}: {words(error)}")
        return None

    with ThreadPoolExecutor(READERS) as readers:
        markers = readers.map(lambda clip: look(f"{clip.output}/{MARKER}", records.marker), clips)
        done = {clip.path: marker for clip, marker in zip(clips, markers) if marker and marker.key == clip.key}
        there = {entry.path for entry in destination.list("failed")}
        suspects = [clip for clip in clips if clip.path not in done and clip.failure in there]
        reasons = readers.map(lambda clip: look(clip.failure, records.failure), suspects)
        failed = {clip.path: reason for clip, reason in zip(suspects, reasons) if reason and reason.key == clip.key}
    left = [clip for clip in clips if clip.path not in done and clip.path not in failed]
    return State(done, failed, left, sorted(odd))
