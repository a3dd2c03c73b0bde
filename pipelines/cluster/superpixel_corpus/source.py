# SPDX-License-Identifier: MPL-2.0
"""The videos of a source, and what had to be left out of it, each with its reason."""

from __future__ import annotations

import os
import stat
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from . import output
from .output import Refused, shown
from .records import Clip, is_path
from .storage import Entry, Folder, Place

Note = Callable[[str, str], None]


def has_suffix(path: str, suffixes: set[str]) -> bool:
    """Whether a name ends as videos do."""
    return PurePosixPath(path).suffix.lower().lstrip(".") in suffixes


def find(source: Place, destination: Place, suffixes: set[str], note: Note) -> list[Entry]:
    """Videos by the ends of their names, in the order of their paths. `note` gets path and reason of what is left out.

    Raises Refused where a link of the source leads to the destination.
    """
    if not isinstance(source, Folder):
        found = []
        for entry in source.list():
            if not has_suffix(entry.path, suffixes):
                continue
            if is_path(entry.path):
                found.append(entry)
            else:
                note(entry.path, "its name is no path of a file")
        return found
    if not source.root.is_dir():
        raise Refused(
            f"{shown(source.root)} is no folder" if source.is_there() else f"there is no folder {shown(source.root)}"
        )
    return sorted(Walk(source.root, destination, suffixes, note).all())


class Walk:
    """One look at a folder and at what its links lead to, each real folder once."""

    def __init__(self, root: Path, destination: Place, suffixes: set[str], note: Note) -> None:
        self.root, self.suffixes, self.note = root, suffixes, note
        self.destination = destination.root if isinstance(destination, Folder) else None
        self.seen: set[tuple[int, int]] = set()
        self.links: list[str] = []
        self.found: list[Entry] = []

    def all(self) -> list[Entry]:
        """Folders first, then those behind links: a folder with two names gets that without a link."""
        self._enter("")
        while self.links:
            path = self.links.pop(0)
            if self._is_new_behind(path):
                self._enter(path)
        return self.found

    def _is_new_behind(self, path: str) -> bool:
        target = self.root / path
        real = os.path.realpath(target)
        above = os.path.realpath(target.parent)
        if output.is_within(self.root, real) or output.is_within(above, real):
            self.note(path, "a link to a folder that it is in")
            return False
        self._check(target)
        return True

    def _check(self, target: Path) -> None:
        """A link may lead to label maps, which would be clips, or to the folder around them."""
        if self.destination is not None:
            try:
                output.check_apart([target], [self.destination])
            except Refused as error:
                raise Refused(f"{shown(target)} is a link: {error}") from None

    def _enter(self, top: str) -> None:
        left = [top]
        while left:
            path = left.pop()
            folder = self.root / path
            try:
                facts = folder.stat()
                if (facts.st_dev, facts.st_ino) in self.seen:
                    continue
                self.seen.add((facts.st_dev, facts.st_ino))
                with os.scandir(folder) as found:
                    entries = sorted(
                        (entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name
                    )
            except OSError as error:
                self.note(path or ".", f"the folder cannot be read: {error.strerror}")
                continue
            for entry in entries:
                name = f"{path}/{entry.name}" if path else entry.name
                if entry.is_dir(follow_symlinks=False):
                    left.append(name)
                else:
                    self._look(name, entry)

    def _look(self, path: str, entry: os.DirEntry) -> None:
        is_video = has_suffix(path, self.suffixes)
        try:
            facts = entry.stat()
        except OSError as error:
            if is_video:
                dead = entry.is_symlink() and isinstance(error, FileNotFoundError)
                self.note(path, "a link that leads nowhere" if dead else f"it cannot be read: {error.strerror}")
            return
        if stat.S_ISDIR(facts.st_mode):
            self.links.append(path)
        elif not is_video:
            return
        elif not stat.S_ISREG(facts.st_mode):
            self.note(path, "it is no regular file")
        elif not os.access(entry.path, os.R_OK):
            self.note(path, "it may not be read by this user")
        else:
            if entry.is_symlink():
                self._check(Path(entry.path))
            self.found.append(Entry(path, facts.st_size, str(facts.st_mtime_ns)))


def without_collisions(clips: Iterable[Clip], destination: Place, note: Note) -> list[Clip]:
    """Leaves out clips whose output or record would be, or be inside of, that of an earlier one."""
    taken = Taken(destination)
    kept = []
    for clip in clips:
        if other := taken.by(clip):
            note(clip.path, f"its output would be in the way of that of {shown(other)}")
        else:
            kept.append(clip)
            taken.add(clip)
    return kept


class Taken:
    """The names below a destination that clips take, and the folders on the way there.

    Two names may be one on its file system.
    """

    def __init__(self, destination: Place) -> None:
        self.destination = destination
        # From a name, without its case, to names of that kind with the clips that they are of.
        self.ends: dict[str, list[tuple[str, str]]] = {}
        self.ways: dict[str, list[tuple[str, str]]] = {}

    def add(self, clip: Clip) -> None:
        """Takes the names of a clip."""
        for end in (clip.output, clip.failure):
            self.ends.setdefault(fold(end), []).append((end, clip.path))
            for above in ways(end):
                there = self.ways.setdefault(fold(above), [])
                if all(way != above for way, _ in there):
                    there.append((above, clip.path))

    def by(self, clip: Clip) -> str | None:
        """The path of a clip that has what this one needs."""
        for end in (clip.output, clip.failure):
            others = [(end, *other) for other in self.ends.get(fold(end), []) + self.ways.get(fold(end), [])]
            others += [(above, *other) for above in ways(end) for other in self.ends.get(fold(above), [])]
            for mine, name, path in others:
                if self._is_one(mine, name):
                    return path
        return None

    def _is_one(self, mine: str, other: str) -> bool:
        if mine == other or not isinstance(self.destination, Folder):
            return mine == other
        parts = zip(mine.split("/"), other.split("/"))
        return all(one == two or is_one_name(self.destination.scratch, one, two) for one, two in parts)


def fold(name: str) -> str:
    """What file systems that ignore case compare."""
    return unicodedata.normalize("NFC", name.casefold())


def ways(end: str) -> list[str]:
    """The folders that a name is in, the first ones of which are everybody's."""
    parts = end.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]


def is_one_name(folder: Path, one: str, two: str) -> bool:
    """Whether the file system of a folder takes two names for one, tried there."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        Path(scratch, one).touch()
        return os.path.lexists(os.path.join(scratch, two))
