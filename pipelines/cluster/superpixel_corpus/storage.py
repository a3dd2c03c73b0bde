# SPDX-License-Identifier: MPL-2.0
"""Files by their path below a place: a folder, or a bucket of S3 through pyarrow.

What is written follows the rule of `output`.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from . import output, records
from .output import CLIP_FILES, MARKER, MOST_BYTES, Refused, shown
from .records import PlanError

# The folders below a destination that this program fills.
AREAS = ("clips", "failed", "_parts", "_scratch", "_reports")
# The most bytes of a manifest.
MOST_MANIFEST = 4 << 30
# As superpixel-clip has it for a list of parts.
MOST_LIST = 64 << 20
# The name beside an attempt's earlier output that says where that belongs until the new one is there.
REPLACES = "replaces.json"
# Of Linux.
AT_FDCWD, RENAME_EXCHANGE = -100, 2


class Entry(NamedTuple):
    """A file: its path below the place, its bytes, and what changes when it does."""

    path: str
    size: int
    version: str


def limit_of(path: str) -> int:
    """The most bytes that a file of ours has."""
    if path == records.NAME:
        return MOST_MANIFEST
    return MOST_LIST if path.endswith("/parts.json") else MOST_BYTES


def new_only(_: bytes) -> bool:
    """For files that nobody may replace."""
    return False


def exchange(one: Path, two: Path) -> bool:
    """Has two folders change names at once; False where the system or the file system has no such call."""
    try:
        done = ctypes.CDLL(None, use_errno=True).renameat2(
            AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(two), RENAME_EXCHANGE
        )
    except (OSError, AttributeError):
        return False
    if done == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(two))


class Folder:
    """Files of this machine, or of a file system that all machines share."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).resolve()
        # Where files are made before they get their name; on the same file system.
        self.scratch: Path | None = None

    def __str__(self) -> str:
        return str(self.root)

    def local(self, path: str) -> Path:
        """Where programs find a file."""
        return self.root / path

    def is_there(self) -> bool:
        """Whether anything has this name."""
        return output.exists(self.root)

    def check_areas(self) -> None:
        """Raises Refused where the place is no folder, or a folder to be filled is a link: it may lead to the source."""
        if output.exists(self.root) and not self.root.is_dir():
            raise Refused(f"{shown(self.root)} is no folder")
        for area in AREAS:
            path = self.root / area
            if output.exists(path) and (path.is_symlink() or not path.is_dir()):
                raise Refused(f"{shown(path)} is a link or no folder: move it away")

    def others(self) -> list[str]:
        """Names at the top that a plan does not have; those of a plan that was killed are left out."""
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return []
        return sorted(set(names) - {"_lock", "_scratch"})

    def target(self, path: str) -> Path:
        """Where a file is written. Raises Refused where a link on the way leads elsewhere."""
        target = self.root / path
        real = Path(os.path.realpath(target.parent))
        if real != target.parent:
            raise Refused(f"{shown(target.parent)} leads to {shown(real)}: nothing is written through links")
        return target

    def list(self, under: str = "") -> Iterator[Entry]:
        """All files of a folder of ours, in no order; hidden ones and links are left out."""
        left = [self.root / under]
        while left:
            try:
                with os.scandir(left.pop()) as found:
                    entries = [entry for entry in found if not entry.name.startswith(".")]
            except (FileNotFoundError, NotADirectoryError):
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    facts = entry.stat()
                    yield Entry(
                        Path(entry.path).relative_to(self.root).as_posix(), facts.st_size, str(facts.st_mtime_ns)
                    )

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is none.

        Raises PlanError for what is no file, or larger than ours are.
        """
        target = self.root / path
        content = output.read_regular(target, limit_of(path))
        if content is None and output.exists(target):
            raise PlanError(f"{shown(target)} is no file of this program")
        return content

    def write(self, path: str, content: bytes, is_ours: Callable[[bytes], bool], force: bool = False) -> None:
        """Writes a file, whole or not at all, in the place of one that `is_ours`, or of any file with `force`."""
        target = self.target(path)
        output.check_target(target, is_ours, force, limit_of(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = self.scratch / f"file-{os.urandom(8).hex()}"
        partial.write_bytes(content)
        partial.replace(target)

    def check(self, path: str) -> None:
        """Raises Refused where the folder of a clip may not be written."""
        target = self.target(path)
        if why := output.why_not_replaced(target):
            raise Refused(f"{shown(target)} {why}: move it away")

    def publish(self, folder: Path, path: str) -> None:
        """Moves a finished folder to its path; an earlier one of ours stays until the new one is there."""
        self.check(path)
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        self.target(path)
        if not output.exists(target):
            folder.rename(target)
        elif not exchange(folder, target):
            old = folder.with_name("old")
            # For `restore`, should this process be killed between the two renames.
            folder.with_name(REPLACES).write_text(json.dumps({"path": path}))
            target.rename(old)
            try:
                folder.rename(target)
            except OSError:
                old.rename(target)
                raise

    def restore(self, attempt: Path) -> None:
        """Puts an earlier output back that a killed process has moved away for one that did not come."""
        note = output.parse_object(output.read_regular(attempt / REPLACES)) or {}
        old, path = attempt / "old", note.get("path")
        if (
            records.is_path(path)
            and path.split("/")[0] in AREAS
            and old.is_dir()
            and not output.exists(self.root / path)
        ):
            old.rename(self.target(path))

    def forget(self, path: str) -> None:
        """Removes the record of a failure, where it is ours, and folders that are empty then."""
        target = self.target(path)
        content = output.read_regular(target)
        if content is None or not records.is_failure(content):
            return
        target.unlink()
        self._prune(target.parent)

    def forget_parts(self, path: str) -> None:
        """Removes the parts of a clip: the files that this program makes, and folders that are empty then."""
        folder = self.target(path)
        if not folder.is_dir() or folder.is_symlink():
            return
        for part in folder.iterdir():
            if part.name.isdigit() and not part.is_symlink() and not output.why_not_replaced(part):
                # The marker last: a process that is killed here leaves what the next one knows as ours.
                for name in sorted(CLIP_FILES, key=lambda name: name == MARKER):
                    (part / name).unlink(missing_ok=True)
                self._prune(part)
        listed = folder / "parts.json"
        if (content := output.read_regular(listed, MOST_LIST)) is not None and records.are_parts(content):
            listed.unlink()
        self._prune(folder)

    def _prune(self, folder: Path) -> None:
        """Removes empty folders up to the top of their area."""
        while folder != self.root:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def parts(self) -> list[str]:
        """Keys of clips with parts."""
        folder = self.root / "_parts"
        return sorted(os.listdir(folder)) if folder.is_dir() and not folder.is_symlink() else []


class Bucket:
    """Objects of S3, or of what speaks like it: `s3://bucket/prefix`.

    AWS_ENDPOINT_URL names another service than Amazon's.
    """

    def __init__(self, url: str) -> None:
        self.root = url.removeprefix("s3://").rstrip("/")
        if not records.is_path(self.root) or any(0xD800 <= ord(letter) <= 0xDFFF for letter in self.root):
            raise PlanError(
                f"{shown(url)} is no s3://bucket/prefix: names between single slashes, none of them . or .."
            )
        try:
            from pyarrow import fs
        except ImportError as error:
            raise PlanError(f"{url} needs pyarrow, see pipelines/cluster/requirements.txt: {error}") from None
        self.url = f"s3://{self.root}"
        options = {}
        if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
            scheme, _, host = endpoint.rpartition("://")
            options = {"endpoint_override": host, "scheme": scheme or "https"}
        if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
            options["region"] = region
        self.system = fs.S3FileSystem(**options)
        self.scratch: Path | None = None

    def __str__(self) -> str:
        return self.url

    def local(self, path: str) -> None:
        """Programs do not find it: it has to be fetched."""
        return

    def check_areas(self) -> None:
        """Objects have no links."""

    def others(self) -> list[str]:
        """Names at the top that a plan does not have."""
        from pyarrow import fs

        chosen = fs.FileSelector(self.root, allow_not_found=True)
        return sorted({info.base_name for info in self.system.get_file_info(chosen)} - {"_lock"})

    def list(self, under: str = "") -> Iterator[Entry]:
        """All files, in the order of their paths; hidden ones are left out."""
        from pyarrow import fs

        base = f"{self.root}/{under}".rstrip("/")
        chosen = fs.FileSelector(base, recursive=True, allow_not_found=True)
        for info in sorted(self.system.get_file_info(chosen), key=lambda info: info.path):
            path = info.path.removeprefix(self.root + "/")
            if info.type == fs.FileType.File and not any(part.startswith(".") for part in path.split("/")):
                # pyarrow does not tell the ETag.
                yield Entry(path, info.size, str(info.mtime_ns))

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is none. Raises PlanError for what is larger than ours are."""
        try:
            with self.system.open_input_stream(f"{self.root}/{path}") as stream:
                content = stream.read(limit_of(path) + 1)
        except FileNotFoundError:
            return None
        if len(content) > limit_of(path):
            raise PlanError(f"{self.url}/{shown(path)} is no file of this program")
        return content

    def write(self, path: str, content: bytes, is_ours: Callable[[bytes], bool], force: bool = False) -> None:
        """Writes a file, whole or not at all, in the place of one that `is_ours`, or of any with `force`."""
        if not force:
            there = self.read(path)
            if there and not is_ours(there):
                raise Refused(f"{self.url}/{shown(path)} is there and was not made by this program: move it away")
        self._send(path, content)

    def _send(self, path: str, content: bytes) -> None:
        with self.system.open_output_stream(f"{self.root}/{path}") as stream:
            stream.write(content)

    def fetch(self, path: str, target: Path) -> None:
        """Copies a file to this machine."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with self.system.open_input_stream(f"{self.root}/{path}") as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 22)

    def check(self, path: str) -> None:
        """Raises Refused where there are objects that no clip of ours has, or none of them is our marker."""
        from pyarrow import fs

        where = f"{self.url}/{shown(path)}"
        if self.system.get_file_info(f"{self.root}/{path}").type == fs.FileType.File:
            raise Refused(f"{where} is an object: move it away")
        chosen = fs.FileSelector(f"{self.root}/{path}", allow_not_found=True)
        there = self.system.get_file_info(chosen)
        if foreign := [
            info.base_name for info in there if info.base_name not in CLIP_FILES or info.type != fs.FileType.File
        ]:
            raise Refused(f"{where} holds {shown(min(foreign))}, which superpixel-clip did not make: move it away")
        if there and not output.is_marker(output.parse_object(self.read(f"{path}/{MARKER}"))):
            raise Refused(f"{where} has no {MARKER} of superpixel-clip: move it away")

    def publish(self, folder: Path, path: str) -> None:
        """Copies a finished folder to its path.

        A marker that says so comes before the rest, the one of the clip last.
        """
        self.check(path)
        self._send(f"{path}/{MARKER}", json.dumps({"schema": records.SCHEMA, "unfinished": True}).encode())
        files = sorted(folder.iterdir(), key=lambda file: file.name == MARKER)
        for file in files:
            with file.open("rb") as source, self.system.open_output_stream(f"{self.root}/{path}/{file.name}") as copy:
                shutil.copyfileobj(source, copy, 1 << 22)

    def forget(self, path: str) -> None:
        """Removes the record of a failure, where it is ours."""
        content = self.read(path)
        if content is not None and records.is_failure(content):
            self.system.delete_file(f"{self.root}/{path}")

    def forget_parts(self, path: str) -> None:
        """Removes the parts of a clip: objects of such names, the marker of each part last."""
        for entry in sorted(self.list(path), key=lambda entry: entry.path.endswith(f"/{MARKER}")):
            number, _, name = entry.path.removeprefix(f"{path}/").partition("/")
            if (number.isdigit() and name in CLIP_FILES) or (number == "parts.json" and not name):
                self.system.delete_file(f"{self.root}/{entry.path}")

    def parts(self) -> list[str]:
        """Keys of clips with parts."""
        return sorted({entry.path.split("/")[1] for entry in self.list("_parts") if entry.path.count("/") > 1})


Place = Folder | Bucket


def place(name: str) -> Place:
    """The place of that name: `s3://bucket/prefix` or a folder."""
    if name.startswith("s3://"):
        return Bucket(name)
    if not name:
        raise PlanError("an empty name is no folder")
    return Folder(name)


def check_apart(source: Place, destination: Place) -> None:
    """Raises Refused where source and destination are the same, or one of them is inside of the other."""
    if isinstance(source, Folder) and isinstance(destination, Folder):
        output.check_apart([source.root], [destination.root])
    elif isinstance(source, Bucket) and isinstance(destination, Bucket):
        one, other = f"{source.root}/", f"{destination.root}/"
        if one.startswith(other) or other.startswith(one):
            raise Refused(
                f"{destination} and {source}, which is read, are the same or inside of each other: "
                "choose another destination"
            )


def words(error: BaseException) -> str:
    """An error of a file system for people."""
    if isinstance(error, OSError) and error.errno in (
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.ENOSPC,
        errno.EDQUOT,
    ):
        name = f"{shown(error.filename)} cannot be written or read: " if error.filename else ""
        return f"{name}{error.strerror}"
    return f"{type(error).__name__}: {shown(error)}"
