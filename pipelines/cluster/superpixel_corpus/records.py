# SPDX-License-Identifier: MPL-2.0
"""The border where records come in: manifest, markers, failures, parts, locks and what programs say.

Whatever else stands in them is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from .output import MARKER, MOST_COUNT, SCHEMA, Refused, is_count, is_marker, parse_object, shown

NAME = "_manifest.jsonl"
KINDS = ("data", "machine", "crash", "timeout", "lost", "refused")
KEY = re.compile(r"[0-9a-f]{32}")
# A property's name, as GObject has them.
PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
# File names end here on Linux.
MOST_NAME = 255
MOST_PARTS = 1_000_000


class PlanError(Refused):
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
        """Where it is written why it failed: its path with `.json`, or its key where that is too long for a name."""
        folder, slash, name = f"failed/{self.path}".rpartition("/")
        fits = len(name.encode(errors="surrogateescape")) + len(".json") <= MOST_NAME
        return f"{folder}{slash}{name if fits else self.key}.json"

    @property
    def parts(self) -> str:
        """The folder of its parts, while there are any."""
        return f"_parts/{self.key}"


def is_text(value: object) -> bool:
    """Whether this is text that a command line can have: no NUL, and surrogates only for bytes of a name."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def is_seconds(value: object) -> bool:
    """Whether this is a finite number above 0."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 < value < MOST_COUNT
        and math.isfinite(value)
    )


def is_path(value: object) -> bool:
    """Whether this is a path that stays below a place."""
    return is_text(value) and all(part not in ("", ".", "..") for part in value.split("/"))


def _object(content: bytes | str | None, what: str, names: set[str]) -> dict:
    value = parse_object(content.encode(errors="replace") if isinstance(content, str) else content)
    if value is None:
        raise PlanError(f"{what} is no JSON object: it was changed or cut off")
    if unknown := set(value) - names:
        raise PlanError(f"{what} has a field {shown(min(unknown))[:80]!r}, which this program does not know")
    return value


def _need(right: bool, what: str, field: str) -> None:
    if not right:
        raise PlanError(f"{what}: the field {field} is missing or no value that this program writes")


def header(content: bytes | str | None) -> Header:
    """The first line of a manifest. Raises PlanError."""
    what = f"the first line of {NAME}"
    value = _object(content, what, {"source", "properties", "version", "split", "schema"})
    schema = value.get("schema")
    _need(is_count(schema), what, "schema")
    if schema != SCHEMA:
        raise PlanError(f"{NAME} is of schema {schema}, this program of {SCHEMA}: plan again, with --force")
    _need(is_text(value.get("source")) and value["source"] != "", what, "source")
    properties = value.get("properties")
    _need(isinstance(properties, dict), what, "properties")
    _need(all(PROPERTY.fullmatch(name) and is_text(text) for name, text in properties.items()), what, "properties")
    _need(is_text(value.get("version")), what, "version")
    split = value.get("split")
    _need(split is None or is_seconds(split), what, "split")
    return Header(value["source"], properties, value["version"], split)


def clip(content: bytes | str | None, line: int) -> Clip:
    """Another line of a manifest. Raises PlanError."""
    what = f"line {line} of {NAME}"
    value = _object(content, what, {"path", "size", "version", "key"})
    _need(is_path(value.get("path")), what, "path")
    _need(is_count(value.get("size")), what, "size")
    _need(is_text(value.get("version")), what, "version")
    _need(isinstance(value.get("key"), str) and KEY.fullmatch(value["key"]) is not None, what, "key")
    return Clip(value["path"], value["size"], value["version"], value["key"])


def manifest(content: bytes) -> tuple[Header, list[Clip]]:
    """A whole manifest. Raises PlanError."""
    first, *lines = content.split(b"\n")
    head = header(first)
    if not lines or lines.pop():
        raise PlanError(f"{NAME} is cut off: its last line does not end")
    clips = [clip(line, number) for number, line in enumerate(lines, 2)]
    if len({item.path for item in clips}) < len(clips):
        raise PlanError(f"{NAME} names a clip twice")
    return head, clips


def is_manifest(content: bytes) -> bool:
    """Whether a file begins as a manifest of ours, so that a plan may replace it."""
    try:
        header(content.split(b"\n", 1)[0])
    except PlanError:
        return False
    return True


@dataclass(frozen=True)
class Marker:
    """What counts of a `clip.json`: `key` is None where nothing says for which plan it was made."""

    key: str | None
    frames: int
    short: bool


def marker(content: bytes) -> Marker:
    """A `clip.json`. Raises PlanError."""
    value = parse_object(content)
    if not is_marker(value):
        raise PlanError(f"{MARKER} is none of superpixel-clip: it was changed or cut off")
    if value.get("unfinished") is True:
        return Marker(None, 0, False)
    key = value.get("key")
    _need(key is None or is_text(key), MARKER, "key")
    _need(value.get("short") is None or isinstance(value["short"], bool), MARKER, "short")
    return Marker(key, value["frames"], value.get("short") is True)


@dataclass(frozen=True)
class Failure:
    """Why a clip has failed. `kind` is one of KINDS."""

    path: str
    key: str
    kind: str
    tries: int
    error: str
    work: str
    host: str
    time: str


def failure(content: bytes) -> Failure:
    """A file of `failed`. Raises PlanError."""
    what, texts = "the record of a failure", ("path", "key", "kind", "error", "work", "host", "time")
    value = _object(content, what, {*texts, "tries"})
    for field in texts:
        _need(is_text(value.get(field)), what, field)
    _need(value["kind"] in KINDS, what, "kind")
    _need(is_count(value.get("tries")), what, "tries")
    return Failure(**value)


def is_failure(content: bytes) -> bool:
    """Whether a file is a record of ours."""
    try:
        failure(content)
    except PlanError:
        return False
    return True


def parts(content: bytes | None) -> int:
    """How many parts a list of `superpixel-clip cuts` has. Raises PlanError."""
    value = parse_object(content)
    found = None if value is None else value.get("parts")
    if not isinstance(found, list) or not 1 <= len(found) <= MOST_PARTS:
        raise PlanError("parts.json is no list of parts: it was changed or cut off")
    return len(found)


def are_parts(content: bytes) -> bool:
    """Whether a file is a list of parts."""
    try:
        parts(content)
    except PlanError:
        return False
    return True


def summary(said: dict) -> dict:
    """What the driver uses of the last line of a program: whatever is not as expected is left out."""
    used: dict = {"frames": said["frames"] if is_count(said.get("frames")) else 0, "short": said.get("short") is True}
    if is_seconds(said.get("first_frame_seconds")):
        used["first_frame_seconds"] = float(said["first_frame_seconds"])
    if isinstance(said.get("parts"), list) and 1 <= len(said["parts"]) <= MOST_PARTS:
        used["parts"] = len(said["parts"])
    return used


@dataclass(frozen=True)
class Holder:
    """Who works on a destination.

    `machine` names the kernel and its space of process numbers, `beat` changes while it lives.
    """

    run: str
    command: str
    host: str
    machine: str
    process: int
    started: int
    since: str
    beat: int


def holder(content: bytes) -> Holder:
    """The record of a lock. Raises PlanError."""
    what, texts = "the lock", ("run", "command", "host", "machine", "since")
    numbers = ("process", "started", "beat")
    value = _object(content, what, {*texts, *numbers})
    for field in texts:
        _need(is_text(value.get(field)), what, field)
    for field in numbers:
        _need(is_count(value.get(field)), what, field)
    return Holder(**value)


def checked(said: bytes | str) -> tuple[dict[str, str], str]:
    """Properties and version, from the last line of `superpixel-clip check`. Raises PlanError."""
    lines = (said if isinstance(said, bytes) else said.encode(errors="surrogateescape")).splitlines()
    value = parse_object(lines[-1] if lines else b"") or {}
    properties, version = value.get("properties"), value.get("version")
    right = isinstance(properties, dict) and all(
        PROPERTY.fullmatch(name) and is_text(text) for name, text in properties.items()
    )
    if not right or not is_text(version):
        raise PlanError("the program answers `check` with something else than properties: is it superpixel-clip?")
    return properties, version
