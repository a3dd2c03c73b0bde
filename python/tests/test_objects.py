# SPDX-License-Identifier: MPL-2.0
"""Objects: boxes, masks, points and scribbles give the thing, in a picture and through a video; what is wrong is refused."""

import numpy as np
import pytest
import superpixels as sp

HEIGHT, WIDTH, SIDE = 120, 160, 40


def thing(x, y=40):
    """Where a square is."""
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[y : y + SIDE, x : x + SIDE] = True
    return mask


def picture(x, y=40):
    """A bright square on dark noise."""
    image = np.random.default_rng(1).integers(20, 60, (HEIGHT, WIDTH, 3), np.uint8)
    image[thing(x, y)] = (220, 180, 40)
    return image


def overlap(a, b):
    return np.count_nonzero(a & b) / np.count_nonzero(a | b)


def scribbles():
    drawn = np.zeros((HEIGHT, WIDTH), np.int8)
    drawn[50, 65:85] = 1
    drawn[10, 10:150] = drawn[110, 10:150] = -1
    return drawn


@pytest.mark.parametrize(
    "said",
    [
        {"box": (50, 32, 110.5, 90)},
        {"mask": thing(58, 42)},
        {"mask": thing(58, 42).astype(np.uint8)},
        {"points": [(70, 50)]},
        {"points": np.array([(70, 50), (20, 20)]), "point_labels": [1, 0]},
        {"scribbles": scribbles()},
    ],
    ids=["box", "mask", "bytes", "point", "points", "scribbles"],
)
def test_one_picture(said):
    mask = sp.select(picture(60), n_segments=300, **said)
    assert mask.dtype == bool and overlap(mask, thing(60)) > 0.95
    [one] = sp.segment_images([picture(60)], n_segments=300)
    np.testing.assert_array_equal(sp.select(one, **said), mask)


def test_a_mask_of_the_picture():
    segmenter = sp.Segmenter(n_segments=300)
    masked = np.ones((HEIGHT, WIDTH), bool)
    masked[:, :20] = False
    labels = segmenter.segment(picture(60), mask=masked)
    [one] = sp.Objects().update(labels, segmenter, [sp.Detection(box=(50, 30, 110, 90))])
    assert not one.mask[:, :20].any() and overlap(one.mask, thing(60)) > 0.95
    with pytest.raises(ValueError, match="points must have something in the object"):
        sp.Objects().update(labels, segmenter, [sp.Detection(points=[(3, 3)])])


def test_a_thing_is_followed():
    segmenter, objects = sp.Segmenter(n_segments=300, temporal=True), sp.Objects()
    for frame in range(12):
        labels = segmenter.segment(picture(30 + 4 * frame))
        seen = [sp.Detection(box=(25, 35, 75, 85))] if frame == 0 else []
        [one] = objects.update(labels, segmenter, seen)
        assert one.id == 1 and overlap(one.mask, thing(30 + 4 * frame)) > 0.9, frame
        assert one.area == np.count_nonzero(one.mask) == segmenter.regions["area"][one.labels].sum()
        x0, y0, x1, y1 = one.bounds
        assert one.mask[y0:y1, x0:x1].sum() == one.area
        assert (one.mask == np.isin(labels, one.labels)).all()
    assert objects.end(1) and not objects.end(1)
    assert objects.update(segmenter.segment(picture(30)), segmenter) == []


def test_ids_of_two():
    image = picture(20)
    image[thing(100)] = (40, 60, 230)
    segmenter, objects = sp.Segmenter(n_segments=300, temporal=True), sp.Objects()
    labels = segmenter.segment(image)
    boxes = [sp.Detection(box=(x - 5, 35, x + 45, 85)) for x in (20, 100)]
    assert [one.id for one in objects.update(labels, segmenter, boxes)] == [1, 2]
    labels = segmenter.segment(image)
    again = objects.update(labels, segmenter, [sp.Detection(points=[(120, 60)], id=2)])
    assert [one.id for one in again] == [1, 2] and overlap(again[1].mask, thing(100)) > 0.9
    assert not (again[0].mask & again[1].mask).any()
    objects.reset()
    assert [one.id for one in objects.update(labels, segmenter, boxes[:1])] == [3]


def test_what_is_wrong_is_refused():
    segmenter, objects = sp.Segmenter(n_segments=300), sp.Objects()
    labels = segmenter.segment(picture(60))
    objects.update(labels, segmenter, [sp.Detection(box=(50, 30, 110, 90))])

    def refused(error, match, *, labels=labels, tables=segmenter, **said):
        with pytest.raises(error, match=match):
            objects.update(labels, tables, [sp.Detection(**said)])

    refused(ValueError, "one of box, mask, points and scribbles, got none")
    refused(ValueError, "got box and points", box=(0, 0, 5, 5), points=[(1, 1)])
    refused(ValueError, "point_labels needs points", box=(0, 0, 5, 5), point_labels=[1])
    refused(ValueError, "x0, y0, x1, y1", box=(0, 0, 5))
    refused(ValueError, "x0, y0, x1, y1", box=(0, 0, np.nan, 5))
    refused(ValueError, "box", box=(500, 500, 600, 600))
    refused(ValueError, "box", box=(9, 9, 9, 20))
    refused(ValueError, "160 wide and 120 high", points=[(160, 0)])
    refused(ValueError, "160 wide and 120 high", points=[(-1, 0)])
    refused(ValueError, "1 or 0 for each of 1 points", points=[(1, 1)], point_labels=[2])
    refused(ValueError, "inside than outside", points=[(1, 1), (1, 1)], point_labels=[1, 0])
    refused(ValueError, r"of shape \(120, 160\)", mask=np.ones((5, 5), bool))
    refused(ValueError, "whole numbers", scribbles=np.ones((HEIGHT, WIDTH)))
    refused(ValueError, "object that goes on", box=(0, 0, 50, 50), id=7)
    refused(ValueError, "that of an object", box=(0, 0, 50, 50), id=-1)
    refused(ValueError, "labels must be those of tables", labels=labels + 500, box=(0, 0, 50, 50))
    refused(TypeError, "integers", labels=labels * 1.0, box=(0, 0, 50, 50))
    refused(RuntimeError, "segment", tables=sp.Segmenter(), box=(0, 0, 50, 50))
    with pytest.raises(TypeError, match="sp.Detection"):
        objects.update(labels, segmenter, [(0, 0, 50, 50)])
    with pytest.raises(ValueError, match="one picture"):
        sp.select(np.zeros((2, 60, 80, 3), np.uint8), box=(0, 0, 5, 5))
    # Nothing of that has changed what is known.
    assert [one.id for one in objects.update(labels, segmenter)] == [1]
