# SPDX-License-Identifier: MPL-2.0
"""The rule for what Python programs of this tree write: it is new, or was made by them, or is replaced after `--force`.

Inputs and outputs that overlap are refused before anything is touched. Scripts for kernels, packages and measuring
import this file, too, so it needs Python 3.9 and nothing else.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Optional, Union

PathLike = Union[str, "os.PathLike[str]"]
# The file that says that superpixel-clip made a folder, and all that it writes there.
MARKER = "clip.json"
CLIP_FILES = frozenset({MARKER, "labels.mkv", "regions.parquet", "adjacency.parquet", "events.parquet"})
# Its version, and the numbers that every one has.
SCHEMA = 1
NUMBERS = ("frames", "width", "height", "tracks", "regions", "adjacency")
# Whole numbers are below this one everywhere, as those of 64 bits are.
MOST_COUNT = 1 << 63
# More bytes than any marker or record of ours has.
MOST_BYTES = 1 << 20


class Refused(Exception):
    """What was asked for would touch what is not ours; the message says what to do."""


def shown(text: object) -> str:
    """A name or message as any terminal can show it: bytes that are no UTF-8 as \\xNN, control characters escaped."""
    out = []
    for letter in str(text):
        if letter.isprintable():
            out.append(letter)
        elif "\udc80" <= letter <= "\udcff":
            out.append(f"\\x{ord(letter) - 0xDC00:02x}")
        else:
            out.append(letter.encode("unicode_escape").decode("ascii"))
    return "".join(out)


def identity(path: PathLike) -> Optional[tuple[int, int]]:
    """Device and number of a file, through links; None where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def is_within(inner: PathLike, outer: PathLike) -> bool:
    """Whether `inner` is `outer` or would be inside of it, by whatever names, links or mounts."""
    one, other = os.path.realpath(inner), os.path.realpath(outer)
    if one == other or one.startswith(other.rstrip(os.sep) + os.sep):
        return True
    wanted = identity(other)
    if wanted is None:
        return False
    # The same folder may have two names, by a mount or on a file system that ignores case.
    while True:
        if identity(one) == wanted:
            return True
        above = os.path.dirname(one)
        if above == one:
            return False
        one = above


def check_apart(inputs: Iterable[PathLike], outputs: Iterable[PathLike]) -> None:
    """Raises Refused where an output is an input, or one of both is inside of the other.

    Hard links count as the same file.
    """
    inputs = list(inputs)
    for output in outputs:
        for given in inputs:
            if is_within(output, given):
                same = is_within(given, output)
                how = "is" if same else "is inside of"
                raise Refused(
                    f"{shown(output)} {how} {shown(given)}, which is read: choose another place for what is written"
                )
            if is_within(given, output):
                raise Refused(
                    f"{shown(given)}, which is read, is inside of {shown(output)}: "
                    "choose another place for what is written"
                )


def exists(path: PathLike) -> bool:
    """Whether there is anything of that name, a link that leads nowhere included."""
    return os.path.lexists(path)


def read_regular(path: PathLike, most: int = MOST_BYTES) -> Optional[bytes]:
    """The content of a regular file.

    None where there is none, where it is something else, or has more than `most` bytes.
    """
    try:
        # A named pipe would wait for somebody to write.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        content = file.read(most + 1)
    return content if len(content) <= most else None


def parse_object(content: Optional[bytes]) -> Optional[dict]:
    """JSON with an object at its top, as Python writes it; None for anything else."""
    try:
        value = json.loads((content or b"").decode(), parse_constant=_refuse_constant)
    # Deep nesting is a RecursionError, a number of thousands of digits a ValueError.
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def is_count(value: object) -> bool:
    """Whether this is a whole number from 0 on, no larger than the programs' own."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_COUNT


def is_marker(value: Optional[dict]) -> bool:
    """Whether this is the clip.json of a program of ours, finished or not."""
    if value is None:
        return False
    is_whole = all(is_count(value.get(name)) for name in NUMBERS)
    return is_count(value.get("schema")) and value["schema"] == SCHEMA and (is_whole or value.get("unfinished") is True)


def why_not_replaced(folder: PathLike) -> str:
    """Why a folder of a clip may not be replaced; empty where it may, or where there is nothing."""
    try:
        kind = os.lstat(folder).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"cannot be there: {error.strerror}"
    if not stat.S_ISDIR(kind):
        return "is a link" if stat.S_ISLNK(kind) else "is a file"
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name not in CLIP_FILES or not entry.is_file(follow_symlinks=False):
            return f"holds {shown(entry.name)}, which superpixel-clip did not make"
    if not is_marker(parse_object(read_regular(os.path.join(folder, MARKER)))):
        return f"has no {MARKER} of superpixel-clip"
    return ""


def check_target(path: PathLike, is_ours: Callable[[bytes], bool], force: bool = False, most: int = MOST_BYTES) -> None:
    """Raises Refused unless a file may be written there: it is new, empty, of ours, or is replaced with `force`.

    A device, such as /dev/null, may be written to. Files of ours have at most `most` bytes.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISCHR(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise Refused(f"{shown(path)} is a folder: move it away")
    if force:
        return
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{shown(path)} is a link or no regular file: move it away, or use --force")
    if found.st_size:
        content = read_regular(path, most)
        if content is None or not is_ours(content):
            raise Refused(f"{shown(path)} is there and was not made by this program: move it away, or use --force")


def write_file(
    path: PathLike, content: bytes, is_ours: Callable[[bytes], bool], force: bool = False, most: int = MOST_BYTES
) -> None:
    """Writes a file, whole or not at all, by the rule of `check_target`.

    What links to an earlier one keeps what it had.
    """
    check_target(path, is_ours, force, most)
    if exists(path) and stat.S_ISCHR(os.lstat(path).st_mode):
        Path(path).write_bytes(content)
        return
    handle, partial = tempfile.mkstemp(prefix=".partial-", dir=os.path.dirname(os.path.abspath(path)))
    try:
        with open(handle, "wb") as file:
            file.write(content)
        # That of mkstemp is for its owner alone.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
