# SPDX-License-Identifier: MPL-2.0
"""Where work under way lies: a folder for each run with a marker in it, and a folder there for each attempt."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import time
from pathlib import Path

from . import output
from .output import Refused, shown
from .storage import Folder, Place

# The name of a run: its time and process.
RUN = re.compile(r"\d{8}-\d{6}-\d+")
RUN_MARKER = "run.json"


def name_run() -> str:
    """A name for a run that begins now in this process."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + f"-{os.getpid()}"


def root(destination: Place) -> Path:
    """The folder for work on a destination: in it, where a rename publishes, or among this user's temporary files."""
    if isinstance(destination, Folder):
        return destination.root / "_scratch"
    name = hashlib.sha256(str(destination).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"superpixel-corpus-{os.getuid()}" / name


def begin(destination: Place, run: str) -> Path:
    """Makes the folder of a run, with its marker, and has the destination make its files there. Returns the folder."""
    base = root(destination)
    if isinstance(destination, Folder):
        destination.target("_scratch/run")
    else:
        base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(base.parent)
        # Everybody may make names among temporary files.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise Refused(f"{shown(base.parent)} is not this user's alone: remove it, or set TMPDIR to another folder")
    folder = base / run
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / RUN_MARKER
    if not marker.exists():
        marker.write_text(json.dumps({"run": run}))
    destination.scratch = folder
    return folder


def attempt(destination: Place, run: str, key: str) -> Path:
    """A new folder for one attempt. The first of a run on a machine that shares no folder sweeps there."""
    if not isinstance(destination, Folder) and not (root(destination) / run).exists():
        sweep(destination, run)
    folder = Path(tempfile.mkdtemp(prefix=f"{key[:8]}-", dir=begin(destination, run)))
    destination.scratch = folder
    return folder


def sweep(destination: Place, keep: str = "") -> None:
    """Removes what runs other than `keep` have left: whoever was killed could not.

    Only the holder of the lock may do so.
    """
    base = root(destination)
    if base.is_symlink() or not base.is_dir():
        return
    for folder in base.iterdir():
        if RUN.fullmatch(folder.name) and folder.name != keep and not folder.is_symlink() and folder.is_dir():
            _sweep_run(destination, folder)
    _remove_empty(base)


def end(destination: Place, run: str) -> None:
    """Removes the work of a run that ends."""
    folder = root(destination) / run
    if folder.is_dir() and not folder.is_symlink():
        _sweep_run(destination, folder)
    _remove_empty(root(destination))


def _sweep_run(destination: Place, folder: Path) -> None:
    marker = folder / RUN_MARKER
    content = output.read_regular(marker)
    # It is killed before the marker is written, or the folder is not ours: then it stays unless it is empty.
    if content and (output.parse_object(content) or {}).get("run") == folder.name:
        for attempt_folder in folder.iterdir():
            if attempt_folder == marker:
                continue
            if isinstance(destination, Folder) and attempt_folder.is_dir():
                try:
                    destination.restore(attempt_folder)
                except (OSError, Refused):
                    # The only copy of a clip's earlier output stays where it is.
                    continue
            if attempt_folder.is_dir() and not attempt_folder.is_symlink():
                shutil.rmtree(attempt_folder, ignore_errors=True)
            else:
                attempt_folder.unlink(missing_ok=True)
    if content is not None and {entry.name for entry in folder.iterdir()} == {RUN_MARKER}:
        # Last, so that the rest is known as ours as long as it is there.
        marker.unlink()
    _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
