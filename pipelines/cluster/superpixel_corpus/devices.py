# SPDX-License-Identifier: MPL-2.0
"""The CUDA devices of this machine that a run may use, by the names that CUDA_VISIBLE_DEVICES has for them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

VARIABLE = "CUDA_VISIBLE_DEVICES"
# How long a driver may take to answer, in seconds.
PATIENCE = 60.0


def visible() -> list[str]:
    """The devices that a process of this environment sees, in CUDA's order; none where there is no driver."""
    listed = os.environ.get(VARIABLE)
    if listed is not None and not listed.strip():
        return []
    found = count()
    # CUDA ends the list before the first name that it does not know.
    return (
        [str(number) for number in range(found)]
        if listed is None
        else [name.strip() for name in listed.split(",")][:found]
    )


def count() -> int:
    """How many there are, asked in a process of its own: what a driver sets up, and a driver that breaks, ends with that."""
    try:
        asked = subprocess.run(
            [sys.executable, "-I", __file__], check=False, capture_output=True, text=True, timeout=PATIENCE
        )
        return int(asked.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def ask_driver() -> int:
    """How many devices the driver gives this process."""
    found = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(found))
    except (OSError, AttributeError):
        return 0
    return 0 if failed else found.value


if __name__ == "__main__":
    print(ask_driver())
