# SPDX-License-Identifier: MPL-2.0
"""The way of a clip through its pieces of work: one piece, or cuts, parts and a join."""

from __future__ import annotations

from . import records
from .output import MARKER
from .records import Clip
from .storage import Place


class Job:
    """A clip under way. `next` are the pieces that can be given out now, as (work, number)."""

    def __init__(self, clip: Clip, split: bool, destination: Place) -> None:
        self.clip = clip
        self.tries: dict[tuple[str, int], int] = {}
        self.frames = 0
        self.missing: set[int] = set()
        self.count = 0
        self.next: list[tuple[str, int]] = [("whole", 0)]
        if split:
            self._resume(destination)

    def _resume(self, destination: Place) -> None:
        """Goes on with the parts that an earlier run has made. Raises PlanError where what it wrote was changed."""
        content = destination.read(f"{self.clip.parts}/parts.json")
        if content is None:
            self.next = [("cuts", 0)]
            return
        found = []
        count = records.parts(content)
        for number in range(count):
            marker = destination.read(f"{self.clip.parts}/{number}/{MARKER}")
            if marker is not None and records.marker(marker).key == self.clip.key:
                found.append(number)
        self._give_parts(count, found)

    def _give_parts(self, count: int, done: list[int]) -> None:
        self.count = count
        if self.count == 1:
            self.next = [("whole", 0)]
            return
        self.missing = set(range(self.count)) - set(done)
        self.next = [("part", number) for number in sorted(self.missing)] or [("join", self.count)]

    def took(self, piece: tuple[str, int], summary: dict) -> bool:
        """Notes that a piece is done. Returns whether the clip is."""
        work, number = piece
        self.next = []
        if work == "cuts":
            self._give_parts(summary["parts"], [])
        elif work == "part":
            self.frames += summary.get("frames", 0)
            self.missing.discard(number)
            if not self.missing:
                self.next = [("join", self.count)]
        return work in ("whole", "join")
