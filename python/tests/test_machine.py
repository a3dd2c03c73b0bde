# SPDX-License-Identifier: MPL-2.0
"""Pictures of every type, layout and form, with every option: the same labels however they are passed, tables and helpers that agree,
and nothing but a TypeError or ValueError with advice where something is refused.

The same calls are drawn in each run; with SUPERPIXEL_MACHINE_SECONDS others, for so long.
"""

import os
import time

import numpy as np
import pytest
import superpixels as sp

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from machine import calls, check_helpers, check_labels, check_tables  # noqa: E402

# Drawn images of 16 bits may be nearly black, of which the package warns.
pytestmark = pytest.mark.filterwarnings("ignore:image is uint16 with values up to:UserWarning")
SECONDS = float(os.environ.get("SUPERPIXEL_MACHINE_SECONDS", 0))
PROFILE = settings(
    max_examples=250, derandomize=not SECONDS, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck)
)
# What an error is about.
NAMES = ("image", "data_range", "bands", "mask", "channel_axis", "regions", "n_segments", "superpixel")


def repeat(test):
    """Once, or with other examples for as long as is wanted."""
    end = time.monotonic() + SECONDS
    test()
    while time.monotonic() < end:
        test()


def answer(function, *positional, **named):
    """What a call gives, and the error of a call that is refused as it should be."""
    try:
        return function(*positional, **named), None
    except (TypeError, ValueError) as error:
        assert len(str(error)) > 20 and any(name in str(error) for name in NAMES), repr(error)
        return None, error


def by_function(call):
    """What the function gives for each picture in the plainest layout."""
    function = getattr(sp, call.algorithm)
    same = {**call.options, "threads": 1, "start_label": call.start}
    return [answer(function, image, mask=mask, **same) for image, mask in zip(call.plain, call.masks)]


def compare(got, want):
    """An answer is as wanted, or an error is of the type that is wanted."""
    (labels, error), (wanted, refused) = got, want
    assert type(error) is type(refused), (error, refused)
    if refused is None:
        assert labels.dtype == wanted.dtype and np.array_equal(labels, wanted)


def each_alone(call, want):
    """The function and a Segmenter, by pictures in another layout."""
    function, named = getattr(sp, call.algorithm), {**call.options, "channel_axis": call.axis if call.given[0].ndim > 2 else None}
    segmenter, error = answer(sp.Segmenter, call.algorithm, threads=call.threads, **named)
    if error:
        assert all(refused is not None for _, refused in want)
    for image, mask, plain, flat_mask, wanted in zip(call.given, call.given_masks, call.plain, call.masks, want):
        compare(answer(function, image, mask=mask, threads=call.threads, start_label=call.start, **named), wanted)
        if segmenter is None:
            continue
        got = answer(segmenter.segment, image, mask=mask, start_label=call.start)
        compare(got, wanted)
        if got[1] is None:
            labels, count = check_labels(got[0], plain, flat_mask, call.start)
            check_tables(segmenter, labels, count)
            check_helpers(labels, count, plain)


def many_at_once(call, want):
    """A list, a batch, and `segment_images` of both and of a generator."""
    function, named = getattr(sp, call.algorithm), {**call.options, "threads": call.threads, "start_label": call.start}
    axis = call.axis if call.given[0].ndim > 2 else None
    is_good = all(refused is None for _, refused in want)
    masks = None if call.masks[0] is None else call.given_masks
    if masks is None:
        labels, error = answer(function, call.given, channel_axis=axis, **named)
        assert (error is None) == is_good
        for one, (wanted, _) in zip(labels or [], want):
            assert one.dtype == wanted.dtype and np.array_equal(one, wanted)
    sets = [(call.given, masks, axis), (iter(call.given), masks and iter(masks), axis)]
    if len({image.shape for image in call.plain}) == 1:
        batch, of_batch = np.stack(call.given), None if masks is None else np.stack(masks)
        if axis is None:
            batch, axis = batch[..., None], -1
        axis = axis if axis < 0 else axis + 1
        labels, error = answer(function, batch, mask=of_batch, channel_axis=axis, **named)
        assert (error is None) == is_good
        assert error or np.array_equal(labels, np.stack([wanted for wanted, _ in want]))
        sets.append((batch, of_batch, axis))
    for images, masks, axis in sets:
        generator, error = answer(sp.segment_images, images, call.algorithm, mask=masks, channel_axis=axis, **named)
        if error:
            assert not is_good
            continue
        for index, (plain, mask, (wanted, refused)) in enumerate(zip(call.plain, call.masks, want)):
            one, error = answer(next, generator)
            assert type(error) is type(refused)
            if refused is not None:
                assert str(error).startswith(f"image {index}: ")
                break
            assert one.index == index and one.labels.dtype == wanted.dtype and np.array_equal(one.labels, wanted)
            check_tables(one, *check_labels(one.labels, plain, mask, call.start))


def test_every_way_gives_the_same():
    @PROFILE
    @given(calls())
    def check(call):
        want = by_function(call)
        each_alone(call, want)
        many_at_once(call, want)

    repeat(check)
