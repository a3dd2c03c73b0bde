# SPDX-License-Identifier: MPL-2.0
"""One run or plan at a time on a destination: `_lock` there says who, and a second one is refused.

On a file system of this machine, or one that shares locks, the kernel's lock decides: it ends with its process.
Machines that share no locks, and buckets, go by signs of life: the holder counts up in the record every few seconds.
Clocks are not compared. Whoever finds another record watches it: if it changes, its holder lives; if it stays the
same long enough, the holder is dead.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace

from . import output, records
from .output import Refused, shown
from .records import Holder, PlanError
from .storage import Bucket, Folder, Place

NAME = "_lock"
# Seconds between signs of life; without one for so long a holder is dead; after writing to a bucket it is looked who
# wrote last.
BEAT = 5.0
DEAD = 30.0
SETTLE = 2.0
FOREIGN = "{} is there and was not made by this program: move it away"


def machine() -> str:
    """The kernel and its space of process numbers: containers of a machine share the one, not the other."""
    parts = []
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        parts.append(file.read().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts) or socket.gethostname()


def started(process: int) -> int:
    """When a process of this machine began, in ticks since the machine did; 0 where there is none."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def is_dead_here(holder: Holder) -> bool:
    """Whether the holder was a process of this machine that has ended."""
    return holder.machine == machine() and started(holder.process) != holder.started


def refusal(destination: Place, holder: Holder | None) -> Refused:
    """Who holds it, in words."""
    if holder is None:
        return Refused(f"another run has just begun to work on {shown(destination)}: wait for it")
    who = f"process {holder.process} on {shown(holder.host)} has held it since {shown(holder.since)}"
    return Refused(f"corpus.py {shown(holder.command)} works on {shown(destination)}: {who}; wait for it, or end it")


class Lock:
    """Held from `with` to its end. Raises Refused where another one holds it."""

    def __init__(self, destination: Place, run: str, command: str) -> None:
        self.destination = destination
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        process = os.getpid()
        self.mine = Holder(run, command, socket.gethostname(), machine(), process, started(process), since, 0)
        self.backend = FolderLock(destination) if isinstance(destination, Folder) else BucketLock(destination)
        self.ended = threading.Event()
        self.was_taken = False

    def __enter__(self) -> Lock:
        self.backend.open()
        try:
            self._take()
        except BaseException:
            self.backend.close(remove=False)
            raise
        self.thread = threading.Thread(target=self._live, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.backend.close(remove=not self.was_taken)

    def check(self) -> None:
        """Raises Refused where another run took this one for dead, for instance while this machine slept."""
        if self.was_taken:
            raise Refused(
                f"another run has taken over {shown(self.destination)}: this one gave no sign of life for too long"
            )

    def _take(self) -> None:
        there = self._read()
        if not self.backend.certain_of(there):
            self._watch(there)
        self.backend.write(self._record())
        if self.backend.SETTLES:
            time.sleep(SETTLE)
            there = self._read()
            if there is None or (there.run, there.machine) != (self.mine.run, self.mine.machine):
                raise refusal(self.destination, there)

    def _read(self) -> Holder | None:
        content = self.backend.read()
        try:
            return records.holder(content) if content else None
        except PlanError as error:
            raise Refused(f"{shown(self.destination)}/{NAME}: {error}; remove it if no run is going") from None

    def _watch(self, first: Holder) -> None:
        """Waits until the holder is known to live, which raises Refused, or to be dead."""
        if is_dead_here(first):
            return
        if first.machine == self.mine.machine:
            raise refusal(self.destination, first)
        end = time.monotonic() + DEAD
        while time.monotonic() < end:
            time.sleep(BEAT / 2)
            there = self._read()
            if there is None:
                return
            if there != first:
                raise refusal(self.destination, there)

    def _record(self) -> bytes:
        return (json.dumps(asdict(self.mine)) + "\n").encode()

    def _live(self) -> None:
        while not self.ended.wait(BEAT):
            # A file system that fails for a while is what the next sign is for.
            with suppress(OSError, Refused):
                there = self._read()
                if there is None or (there.run, there.machine) != (self.mine.run, self.mine.machine):
                    self.was_taken = True
                    return
                self.mine = replace(self.mine, beat=self.mine.beat + 1)
                self.backend.write(self._record())


class FolderLock:
    """The kernel's lock on a file, with the record as its content."""

    SETTLES = False

    def __init__(self, destination: Folder) -> None:
        self.destination, self.path = destination, destination.target(NAME)
        self.handle, self.is_locked = -1, False

    def open(self) -> None:
        """Opens the file and takes the kernel's lock, where there are such locks.

        Raises Refused where it is held or is not our file.
        """
        while True:
            try:
                self.handle = os.open(
                    self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644
                )
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                    raise Refused(FOREIGN.format(shown(self.path))) from None
                raise
            found = os.fstat(self.handle)
            if (
                not stat.S_ISREG(found.st_mode)
                or found.st_nlink > 1
                or found.st_size > output.MOST_BYTES
                or not self._is_ours()
            ):
                os.close(self.handle)
                raise Refused(FOREIGN.format(shown(self.path)))
            try:
                fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.is_locked = True
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    holder = self._holder()
                    os.close(self.handle)
                    raise refusal(self.destination, holder) from None
                if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                    os.close(self.handle)
                    raise
            # The holder before may have removed it since.
            if output.identity(self.path) == (found.st_dev, found.st_ino):
                return
            os.close(self.handle)

    def _is_ours(self) -> bool:
        content = self.read()
        return (
            not content
            or (output.parse_object(content) or {}).keys() == asdict(Holder("", "", "", "", 0, 0, "", 0)).keys()
        )

    def _holder(self) -> Holder | None:
        try:
            content = self.read()
            return records.holder(content) if content else None
        except PlanError:
            return None

    def certain_of(self, there: Holder | None) -> bool:
        """Whether nobody else can hold it: where the kernel's lock is ours, nobody of this machine does."""
        return there is None or (self.is_locked and there.machine.split(" ")[0] == machine().split(" ")[0])

    def read(self) -> bytes:
        """The record; empty where there is none."""
        return os.pread(self.handle, output.MOST_BYTES, 0)

    def write(self, content: bytes) -> None:
        """Writes the record in place, since the kernel's lock belongs to the file."""
        os.pwrite(self.handle, content, 0)
        os.ftruncate(self.handle, len(content))

    def close(self, remove: bool) -> None:
        """Lets go of it."""
        if remove:
            with suppress(OSError):
                os.unlink(self.path)
        os.close(self.handle)


class BucketLock:
    """An object with the record. Buckets have no lock that every service knows, so the last one to write holds it."""

    SETTLES = True

    def __init__(self, destination: Bucket) -> None:
        self.destination = destination

    def open(self) -> None:
        """Nothing has to be opened."""

    def certain_of(self, there: Holder | None) -> bool:
        """Whether nobody else can hold it."""
        return there is None

    def read(self) -> bytes | None:
        """The record; None where there is none."""
        return self.destination.read(NAME)

    def write(self, content: bytes) -> None:
        """Writes the record."""
        self.destination.write(NAME, content, is_record)

    def close(self, remove: bool) -> None:
        """Lets go of it."""
        if remove:
            with suppress(OSError):
                self.destination.system.delete_file(f"{self.destination.root}/{NAME}")


def is_record(content: bytes) -> bool:
    """Whether a file is a lock of ours."""
    try:
        records.holder(content)
    except PlanError:
        return False
    return True
