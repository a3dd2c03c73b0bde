# SPDX-License-Identifier: MPL-2.0
"""Boundaries that are refined: other pixels, the same on a device and in a loop, smoother with more weight."""

import numpy as np
import pytest
import superpixels as sp


def boundary(labels):
    return np.count_nonzero(np.diff(labels.astype(int), axis=0)) + np.count_nonzero(np.diff(labels.astype(int), axis=1))


@pytest.mark.parametrize("function", [sp.slic, sp.lsc, sp.quickshift, sp.snic])
def test_refined(function, picture):
    plain, refined = function(picture), function(picture, refine=2)
    assert not np.array_equal(plain, refined)
    assert np.array_equal(np.unique(refined), np.arange(refined.max() + 1))
    assert np.array_equal(function(picture, refine=2, threads=1), refined)
    assert boundary(function(picture, refine=4, smoothness=40)) < boundary(function(picture, refine=4, smoothness=1))


def test_segmenter(picture):
    segmenter = sp.Segmenter(n_segments=100, refine=3, smoothness=2.5)
    assert segmenter.parameters["refine"] == 3 and segmenter.parameters["smoothness"] == 2.5
    assert np.array_equal(segmenter.segment(picture), sp.slic(picture, refine=3, smoothness=2.5))
