# SPDX-License-Identifier: MPL-2.0
"""Drawn pictures on a device give the labels of numpy's, or are refused with a TypeError or ValueError."""

import numpy as np
import pytest
import superpixels as sp

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from hypothesis import given, settings  # noqa: E402
from machine import calls  # noqa: E402
from test_machine import PROFILE, answer, by_function, repeat  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:image is uint16 with values up to:UserWarning")
# What functions take of numpy and not of a device, as docs/python.md says.
REFUSED = ("data_range", "bands", "dtype", "int16", "float", "uint8", "SNIC", "snic", "mask", "check", "stretch")


def on_flat_memory(array):
    """The same in memory that a copy of bytes to the device takes as it is."""
    ends = [(side - 1) * apart for side, apart in zip(array.shape, array.strides)]
    below, above = -sum(end for end in ends if end < 0), sum(end for end in ends if end > 0)
    view = np.ndarray(array.shape, array.dtype, np.zeros(below + above + array.itemsize, np.uint8), below, array.strides)
    view[...] = array
    return view


def test_labels_are_those_of_numpy(kind, driver):
    @settings(PROFILE, max_examples=60)
    @given(calls(most=1))
    def check(call):
        if call.algorithm == "snic":
            call.algorithm = "slic"
        # No array of a device is of another byte order or lies between its items.
        if not call.given[0].flags.aligned or call.given[0].dtype.byteorder == ">":
            call.given = call.plain
            call.axis = -1
        [(want, refused)] = by_function(call)
        image, mask = kind(driver, on_flat_memory(call.given[0])), call.masks[0]
        named = {**call.options, "channel_axis": call.axis if call.given[0].ndim > 2 else None, "start_label": call.start}
        on_device = None if mask is None else kind(driver, mask.view(np.uint8))
        labels, error = answer(getattr(sp, call.algorithm), image, mask=on_device, check=True, **named)
        if error is None:
            assert refused is None and np.array_equal(labels.numpy(), want.astype(np.int32))
        else:
            assert refused is not None or any(word in str(error) for word in REFUSED), error

    repeat(check)
