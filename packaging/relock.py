#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Makes the lock file of a source archive fit what the archive holds: relock.py ARCHIVE

maturin takes members out of the workspace and leaves Cargo.lock as it is; `cargo --locked` refuses that. What only those
members need goes, and no version changes. All other files, their order and their dates stay, so that the same archive
gives the same bytes.
"""

import gzip
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipelines/cluster"))
from superpixel_corpus.output import write_file


def fitting(archive):
    """The name of the lock file in the archive, and what it has to be."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
        (lock,) = Path(folder).glob("*/Cargo.lock")
        before = packages(lock)
        manifest = lock.with_name("Cargo.toml")
        command = ["cargo", "metadata", "--offline", "--format-version=1", "--manifest-path", manifest]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        if not packages(lock) <= before:
            sys.exit(f"error: {archive} needs what Cargo.lock of the checkout lacks: {packages(lock) - before}")
        return str(lock.relative_to(folder)), lock.read_bytes()


def packages(lock):
    """Name, version, source and checksum of each package; what it needs may be fewer."""
    tables = lock.read_text().split("[[package]]")[1:]
    return {table.split("dependencies = [")[0].strip() for table in tables}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    archive = Path(sys.argv[1])
    if archive.is_symlink() or not archive.is_file() or not tarfile.is_tarfile(archive):
        sys.exit(f"relock.py: {archive} is no archive, or a link to one: name the archive itself")
    name, lock = fitting(archive)
    written = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT) as new:
        for member in old:
            data = old.extractfile(member).read() if member.isfile() else b""
            if member.name == name:
                data = lock
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    # What it replaces is what it was given.
    write_file(archive, gzip.compress(written.getvalue(), mtime=0), lambda _: True, force=True)


if __name__ == "__main__":
    main()
