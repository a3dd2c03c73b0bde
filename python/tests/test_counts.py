# SPDX-License-Identifier: MPL-2.0
"""How many regions come for `n_segments`."""

import numpy as np
import pytest
import superpixels as sp

GRIDS = {"slic": sp.slic, "lsc": sp.lsc, "snic": sp.snic}


def corners(picture, side):
    """Square parts of a picture."""
    height, width = picture.shape[:2]
    return [picture[y : y + side, x : x + side] for y in (0, height - side) for x in (0, width - side)]


@pytest.mark.parametrize("side", [24, 28, 32, 48, 64, 96])
@pytest.mark.parametrize("wanted", [25, 50, 75, 100])
def test_a_tenth_more_at_most(side, wanted, picture):
    images = corners(picture, side)
    for name, function in GRIDS.items():
        counts = [labels.max() + 1 for labels in function(images, n_segments=wanted)]
        # SNIC has no detached fragments, and so fewer regions than cells.
        least = 0.8 if name == "snic" else 0.9
        assert all(least * wanted <= count <= 1.1 * wanted for count in counts), (name, counts)


@pytest.mark.parametrize("wanted", [40, 75, 100, 300])
def test_the_most_alike_are_merged(wanted, picture):
    labels, most = sp.slic(picture, n_segments=wanted), wanted + wanted // 10
    plain = {size: sp.slic(picture, superpixel_size=size) for size in range(4, 64)}
    cuts = {size: sp.cut(*sp.hierarchy(picture, superpixel_size=size), most) for size in plain}
    sizes = [size for size, cut in cuts.items() if np.array_equal(cut, labels)]
    assert sizes, wanted
    # What is within the bound stays as it is.
    size = sizes[0]
    assert plain[size].max() + 1 > most or np.array_equal(plain[size], labels)


def test_segmenters_hold_it_too(picture):
    still = sp.Segmenter(n_segments=75)
    assert np.array_equal(still.segment(picture[:32, :32]), sp.slic(picture[:32, :32], n_segments=75))
    assert still.parameters["n_regions"] == 0 and still.parameters["n_segments"] == 75
    # What lasts is not merged, and has the coarser grid.
    moving = sp.Segmenter(n_segments=75, temporal=True)
    assert np.array_equal(moving.segment(picture[:32, :32]), sp.slic(picture[:32, :32], superpixel_size=4))


def test_where_it_is_not_held(picture):
    small = picture[:23, :60]
    for image, more in [(small, {}), (picture, {"merge": 2.0}), (picture, {"connectivity": False})]:
        counts = {sp.slic(image, superpixel_size=size, **more).max() + 1 for size in range(4, 30)}
        assert sp.slic(image, n_segments=60, **more).max() + 1 in counts, more
    assert sp.slic(picture, n_segments=60, n_regions=9).max() + 1 == 9
