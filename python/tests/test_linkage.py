# SPDX-License-Identifier: MPL-2.0
"""Steps as SciPy's linkage matrix, and levels by height."""

import numpy as np
import pytest
import superpixels as sp
from superpixels import _native


@pytest.fixture(scope="module")
def levels(picture):
    return sp.hierarchy(picture, 200)


def steps(*rows):
    """Steps a, b, height."""
    merges = np.zeros(len(rows), _native.MERGE)
    for i, (a, b, height) in enumerate(rows):
        merges[i] = (a, b, height, 0)
    return merges


def same_partition(one, other):
    pairs = len(set(zip(one.tolist(), other.tolist())))
    return pairs == len(set(one.tolist())) == len(set(other.tolist()))


def test_known_matrix():
    matrix = sp.linkage(steps((1, 3, 2), (0, 2, 5), (0, 1, 5.5)))
    assert matrix.dtype == np.float64 and matrix.tolist() == [[1, 3, 2, 2], [0, 2, 5, 2], [4, 5, 5.5, 4]]
    # A height that falls is raised to the one before.
    assert sp.linkage(steps((0, 1, 3), (1, 2, 1)))[:, 2].tolist() == [3, 3]
    assert sp.linkage(steps()).shape == (0, 4)
    assert sp.linkage(steps(), 3).tolist() == [[0, 1, np.inf, 2], [2, 3, np.inf, 3]]
    columns = {name: steps((0, 1, 3))[name] for name in _native.MERGE.names}
    assert sp.linkage(columns).tolist() == [[0, 1, 3, 2]]


def test_scipy_cuts_as_cut_does(levels):
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    labels, merges = levels
    matrix = sp.linkage(merges)
    assert hierarchy.is_valid_linkage(matrix, throw=True) and hierarchy.is_monotonic(matrix)
    first = np.unique(labels, return_index=True)[1]
    for height in [-1, 0, *merges["height"][[0, 5, 50, 120]].tolist(), float(merges["height"][-1]), np.inf]:
        level = sp.cut(labels, merges, height=height)
        assert same_partition(level.ravel()[first], hierarchy.fcluster(matrix, height, "distance"))
        assert np.array_equal(level, sp.cut(labels, merges, int(level.max()) + 1))
    tree = hierarchy.dendrogram(matrix, no_plot=True)
    assert sorted(tree["leaves"]) == list(range(labels.max() + 1))


def test_areas(levels):
    # The number of regions that row i joins gives the area of the step.
    labels, merges = levels
    area, number = np.bincount(labels.ravel()).tolist(), [1] * (labels.max() + 1)
    for a, b, height, count in sp.linkage(merges).tolist():
        area.append(area[int(a)] + area[int(b)])
        number.append(number[int(a)] + number[int(b)])
        assert a < b and number[-1] == count
    assert area[-1] == labels.size and number[-1] == labels.max() + 1


def test_pieces(picture):
    mask = np.zeros(picture.shape[:2], bool)
    mask[10:60, 10:70] = mask[80:110, 100:150] = mask[70:75, :30] = True
    labels, merges = sp.hierarchy(picture, 200, mask=mask)
    count = int(labels[mask].max()) + 1
    assert len(merges) == count - 3
    matrix = sp.linkage(merges, count)
    assert matrix.shape == (count - 1, 4) and np.isinf(matrix[:, 2]).sum() == 2 and matrix[-1, 3] == count
    level = sp.cut(labels, merges, height=np.inf)
    assert level[mask].max() == 2 and (level[~mask] == -1).all()
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    first = np.unique(labels[mask], return_index=True)[1]
    assert same_partition(level[mask][first], hierarchy.fcluster(matrix, 1e30, "distance"))
    assert same_partition(level[mask][first], hierarchy.fcluster(matrix, 3, "maxclust"))
    with pytest.raises(ValueError):
        sp.linkage(merges, count - 3)


def test_maps_without_regions():
    labels = np.full((4, 5), 65535, np.uint16)
    assert np.array_equal(sp.cut(labels, steps(), height=3), labels)


def test_cut_by_height(levels):
    labels, merges = levels
    assert np.array_equal(sp.cut(labels, merges, height=-1), labels)
    assert sp.cut(labels, merges, height=np.inf).max() == 0
    for taken in (1, 60, len(merges)):
        # Of equal heights all are taken.
        height = merges["height"][taken - 1]
        want = labels.max() + 1 - np.count_nonzero(merges["height"] <= height)
        assert sp.cut(labels, merges, height=height).max() + 1 == want


def test_what_is_refused(levels):
    labels, merges = levels
    for named in ({}, {"n_regions": 3, "height": 2.0}):
        with pytest.raises(TypeError, match="either n_regions or height"):
            sp.cut(labels, merges, **named)
    with pytest.raises(ValueError, match="nan"):
        sp.cut(labels, merges, height=np.nan)
    for height in ("2", [2.0], np.zeros(2)):
        with pytest.raises(TypeError):
            sp.cut(labels, merges, height=height)
    for bad in (None, 5, np.zeros(3), [(0, 1, 2.0, 3)], {"a": [1]}):
        with pytest.raises(TypeError, match="merges"):
            sp.linkage(bad)
    for given in ((steps((0, 1, 1), (1, 0, 2)),), (steps((0, 9, 1)),), (merges, 3), (merges, 0), (merges, -1)):
        with pytest.raises(ValueError, match="merges"):
            sp.linkage(*given)
    with pytest.raises(TypeError):
        sp.linkage(merges, 500.0)
