# SPDX-License-Identifier: MPL-2.0
"""A bar for calls that take long: tqdm's where that is installed, else a line of text."""

from __future__ import annotations

import sys as _sys
from typing import Any


class Bar:
    """Shows how many images are done; called with that number and the number of all, 0 where nobody knows it."""

    def __init__(self, total: int) -> None:
        self._shown, self._bar, self._is_over = 0, None, False
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            return
        bar: Any = tqdm(total=total or None, unit="image")
        self._bar = bar

    def __call__(self, done: int, total: int) -> None:
        # The last report may be one of those that come some times a second.
        if self._is_over:
            return
        self._is_over = done == total
        bar = self._bar
        if bar is not None:
            bar.update(done - self._shown)
            if done == total:
                bar.close()
        else:
            end = "\n" if done == total else ""
            of = f" of {total}" if total else ""
            print(f"\r{done}{of} images", end=end, file=_sys.stderr, flush=True)
        self._shown = done
