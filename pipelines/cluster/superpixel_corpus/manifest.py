# SPDX-License-Identifier: MPL-2.0
"""What there is to do, `_manifest.jsonl`, and what of it is done: clips with a marker of their key."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from .storage import Place

SCHEMA = 1
NAME = "_manifest.jsonl"
MARKER = "clip.json"
SUFFIXES = ["mp4", "m4v", "mov", "mkv", "webm", "avi", "ts", "m2ts", "mts", "mpg", "mpeg", "mxf", "ogv", "wmv", "flv", "3gp"]
# Reads that wait at the same time: buckets take tens of milliseconds for each.
READERS = 32


class PlanError(Exception):
    """The plan cannot be made or read, and what to do about it."""


@dataclass(frozen=True)
class Header:
    """What all clips have in common. `split` is the shortest part of a clip in seconds, or None for whole clips."""

    source: str
    properties: dict[str, str]
    version: str
    split: float | None = None
    schema: int = SCHEMA


@dataclass(frozen=True)
class Clip:
    """A clip: path below the source, bytes, what changes when it does, and a hash of all that its output depends on."""

    path: str
    size: int
    version: str
    key: str

    @property
    def output(self) -> str:
        """Its folder below the destination."""
        return f"clips/{self.path}"

    @property
    def failure(self) -> str:
        """Where it is written why it failed."""
        return f"failed/{self.path}.json"

    @property
    def parts(self) -> str:
        """The folder of its parts, while there are any."""
        return f"_parts/{self.key}"


def make(source: Place, header: Header, suffixes: list[str]) -> list[Clip]:
    """Lists the clips of a source by the ends of their names, in the order of their paths."""
    wanted = {suffix.lower().lstrip(".") for suffix in suffixes}
    common = json.dumps(asdict(header), sort_keys=True)
    clips = []
    for path, size, version in source.list():
        if PurePosixPath(path).suffix.lower().lstrip(".") in wanted:
            key = hashlib.sha256(json.dumps([common, path, size, version]).encode()).hexdigest()[:32]
            clips.append(Clip(path, size, version, key))
    return clips


def write(destination: Place, header: Header, clips: list[Clip]) -> None:
    """Writes the manifest: a line for the header, then one for each clip."""
    lines = [asdict(header), *map(asdict, clips)]
    destination.write(NAME, "".join(json.dumps(line) + "\n" for line in lines).encode())


def read(destination: Place) -> tuple[Header, list[Clip]]:
    """Reads what `write` wrote."""
    content = destination.read(NAME)
    if content is None:
        raise PlanError(f"{destination} has no {NAME}: make one with `corpus.py plan SOURCE {destination}`")
    first, *rest = content.decode().splitlines()
    header = Header(**json.loads(first))
    if header.schema != SCHEMA:
        raise PlanError(f"{NAME} is of schema {header.schema}, this program of {SCHEMA}: plan again")
    return header, [Clip(**json.loads(line)) for line in rest]


@dataclass
class State:
    """What is known of each clip of a manifest: done with its `clip.json`, failed with why, or left."""

    done: dict[str, dict]
    failed: dict[str, dict]
    left: list[Clip]


def state(destination: Place, clips: list[Clip]) -> State:
    """Looks at the markers. One of another key, of older properties say, does not count."""

    def content(path: str) -> dict:
        try:
            return json.loads(destination.read(path) or b"{}")
        except json.JSONDecodeError:
            return {}

    with ThreadPoolExecutor(READERS) as readers:
        markers = readers.map(lambda clip: content(f"{clip.output}/{MARKER}"), clips)
        done = {clip.path: marker for clip, marker in zip(clips, markers) if marker.get("key") == clip.key}
        there = {entry.path for entry in destination.list("failed")}
        suspects = [clip for clip in clips if clip.path not in done and clip.failure in there]
        reasons = readers.map(lambda clip: content(clip.failure), suspects)
        failed = {clip.path: reason for clip, reason in zip(suspects, reasons) if reason.get("key") == clip.key}
    return State(done, failed, [clip for clip in clips if clip.path not in done and clip.path not in failed])
