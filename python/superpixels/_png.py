# SPDX-License-Identifier: MPL-2.0
"""Writer of PNG files."""

from __future__ import annotations

import struct as _struct
import zlib as _zlib
from typing import TYPE_CHECKING

import numpy as _np

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["encode"]

# Color types of PNG by the number of channels.
_COLOR_TYPES = {1: 0, 3: 2, 4: 6}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return _struct.pack(">I", len(data)) + kind + data + _struct.pack(">I", _zlib.crc32(kind + data))


def encode(pixels: NDArray[Any], level: int = 6) -> bytes:
    """The bytes of a PNG file.

    Parameters
    ----------
    pixels : ndarray of uint8 or uint16, shape (H, W) or (H, W, C)
        Gray, RGB or RGBA: C is 1, 3 or 4.
    level : int
        Effort of the compression, 0 to 9.

    Returns
    -------
    data : bytes
        The file, without interlacing; all rows have filter 0.
    """
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    depth = 8 * pixels.dtype.itemsize
    samples = _np.ascontiguousarray(pixels.astype(f">u{pixels.dtype.itemsize}", copy=False))
    samples = samples.view(_np.uint8).reshape(height, -1)
    # Each row begins with the number of its filter.
    rows = _np.zeros((height, 1 + samples.shape[1]), _np.uint8)
    rows[:, 1:] = samples
    head = _struct.pack(">IIBBBBB", width, height, depth, _COLOR_TYPES[channels], 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", _zlib.compress(rows.tobytes(), level)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)
