# SPDX-License-Identifier: MPL-2.0
"""Files by their path below a place: a folder, or a bucket of S3 through pyarrow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """A file: its path below the place, its bytes, and what changes when it does."""

    path: str
    size: int
    version: str


class Folder:
    """Files of this machine, or of a file system that all machines share."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).resolve()

    def __str__(self) -> str:
        return str(self.root)

    def local(self, path: str) -> Path:
        """Where programs find a file."""
        return self.root / path

    def list(self, under: str = "") -> Iterator[Entry]:
        """All files, in the order of their paths; hidden ones are left out."""
        for folder, names, files in os.walk(self.root / under):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                if not name.startswith("."):
                    path = Path(folder, name)
                    found = path.stat()
                    yield Entry(path.relative_to(self.root).as_posix(), found.st_size, str(found.st_mtime_ns))

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is none."""
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, content: bytes) -> None:
        """Writes a file, whole or not at all."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(target)

    def publish(self, folder: Path, path: str, marker: str) -> None:
        """Moves a finished folder to its path, in the place of an earlier one. `marker` comes with the rest."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rename(folder.with_name(folder.name + ".old"))
        folder.rename(target)

    def remove(self, path: str) -> None:
        """Removes a file or a folder with all in it, if there is one."""
        target = self.root / path
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)


class Bucket:
    """Objects of S3, or of what speaks like it: `s3://bucket/prefix`. AWS_ENDPOINT_URL names another service than Amazon's."""

    def __init__(self, url: str) -> None:
        from pyarrow import fs

        self.url = url.rstrip("/")
        options = {}
        if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
            scheme, _, host = endpoint.rpartition("://")
            options = {"endpoint_override": host, "scheme": scheme or "https"}
        if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
            options["region"] = region
        self.system = fs.S3FileSystem(**options)
        self.root = self.url.removeprefix("s3://")

    def __str__(self) -> str:
        return self.url

    def local(self, path: str) -> None:
        """Programs do not find it: it has to be fetched."""
        return

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
        """The content of a file; None where there is none."""
        try:
            with self.system.open_input_stream(f"{self.root}/{path}") as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """Writes a file, whole or not at all."""
        with self.system.open_output_stream(f"{self.root}/{path}") as stream:
            stream.write(content)

    def fetch(self, path: str, target: Path) -> None:
        """Copies a file to this machine."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with self.system.open_input_stream(f"{self.root}/{path}") as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 22)

    def publish(self, folder: Path, path: str, marker: str) -> None:
        """Copies a finished folder to its path. An earlier marker goes first, the new one comes last."""
        self.remove(f"{path}/{marker}")
        files = sorted(folder.iterdir(), key=lambda file: file.name == marker)
        for file in files:
            with file.open("rb") as source, self.system.open_output_stream(f"{self.root}/{path}/{file.name}") as copy:
                shutil.copyfileobj(source, copy, 1 << 22)

    def remove(self, path: str) -> None:
        """Removes a file or all files of a folder, if there are any."""
        from pyarrow import fs

        target = f"{self.root}/{path}"
        kind = self.system.get_file_info(target).type
        if kind == fs.FileType.Directory:
            self.system.delete_dir(target)
        elif kind == fs.FileType.File:
            self.system.delete_file(target)


Place = Folder | Bucket


def place(name: str) -> Place:
    """The place of that name: `s3://bucket/prefix` or a folder."""
    return Bucket(name) if name.startswith("s3://") else Folder(name)
