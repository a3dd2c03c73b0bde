# SPDX-License-Identifier: MPL-2.0
"""The drawn picture of benches/picture/mod.rs in numpy, and the hashes that the library's own tests know."""

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
ONE = 1 << 16
SHADING = [(3, 60), (9, 40), (27, 24), (81, 12)]
MASK = (1 << 64) - 1


def random(x, y, purpose):
    """SplitMix64's finalizer; arithmetic wraps."""
    with np.errstate(over="ignore"):
        x, y = np.broadcast_arrays(x, y)
        z = x.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + y.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03)
        z = z + np.uint64(purpose * 0x8CB92BA72F3D8DD7 & MASK)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def spread(x, y, purpose, reach):
    return (random(x, y, purpose) % np.uint64(2 * reach + 1)).astype(np.int64) - reach


def quotient(a, b):
    """Division toward zero, as Rust has it."""
    return np.sign(a) * (np.abs(a) // b)


def shade(x, y, cell, purpose, amplitude):
    cx, cy = x // cell, y // cell

    def smooth(t):
        t = t * ONE // cell
        return t * t // ONE * (3 * ONE - 2 * t) // ONE

    tx, ty = smooth(x % cell), smooth(y % cell)

    def corner(dx, dy):
        return spread(cx + dx, cy + dy, purpose, amplitude)

    top = corner(0, 0) * (ONE - tx) + corner(1, 0) * tx
    bottom = corner(0, 1) * (ONE - tx) + corner(1, 1) * tx
    return quotient(quotient(top, ONE) * (ONE - ty) + quotient(bottom, ONE) * ty, ONE)


def area_of(x, y, side):
    cell, wave = max(side // 14, 2), max(side // 40, 2)
    x, y = x + shade(x, y, wave, 110, wave // 3), y + shade(x, y, wave, 111, wave // 3)
    cx, cy = x // cell, y // cell
    best, found = None, None
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            ax, ay = cx + dx, cy + dy
            px = ax * cell + (random(ax, ay, 100) % np.uint64(cell)).astype(np.int64)
            py = ay * cell + (random(ax, ay, 101) % np.uint64(cell)).astype(np.int64)
            distance = (px - x) ** 2 + (py - y) ** 2
            if best is None:
                best, found = distance, (ax, ay)
            else:
                nearer = distance < best
                best = np.where(nearer, distance, best)
                found = tuple(np.where(nearer, new, old) for new, old in zip((ax, ay), found))
    return found


def rgba(width, height):
    """Shape (height, width, 4)."""
    side = max(width, height)
    y, x = np.mgrid[:height, :width].astype(np.int64)
    ax, ay = area_of(x, y, side)
    out = np.full((height, width, 4), 255, np.uint8)
    for channel in range(3):
        value = 128 + spread(ax, ay, 10 + channel, 70)
        for octave, (cells, amplitude) in enumerate(SHADING):
            cell = max(side // cells, 2)
            value = value + shade(x, y, cell, 20 + octave, amplitude * 3 // 4)
            value = value + shade(x, y, cell, 20 + octave + 10 * (channel + 1), amplitude // 4)
        value = value + spread(x, y, 90 + channel, 4)
        out[..., channel] = value.clip(0, 255)
    return out


START = 0xCBF29CE484222325


def fnv(state, data):
    """FNV-1a of bytes."""
    for byte in bytes(data):
        state = ((state ^ byte) * 0x100000001B3) & MASK
    return state


def known_labels():
    """Sizes and hashes of label maps with default parameters, from benches/picture/mod.rs."""
    text = (ROOT / "benches/picture/mod.rs").read_text()
    table = re.search(r"pub const KNOWN.*?;\n", text, re.S).group()
    return [
        (int(w), int(h), int(value, 16)) for w, h, value in re.findall(r"\((\d+), (\d+), (0x[0-9a-f]+)\)", table)
    ]


def known_hashes():
    """Hashes of label maps, tables and drawn pixels by name, from tests/library/hashes.rs."""
    text = (ROOT / "tests/library/hashes.rs").read_text()
    rows = re.findall(r'\("([^"]+)", \[(0x\w+), (0x\w+), (0x\w+)\]\)', text)
    return {name: [int(value, 16) for value in values] for name, *values in rows}
