# SPDX-License-Identifier: MPL-2.0
"""Cuts a label map to a coarser level with the field `hierarchy` of its metadata: any number of regions below its own.

    labels, merges = to_label_map(buffer), to_array(buffer, "hierarchy", MERGE)  # of pipelines/read_labels.py, with hierarchy=true
    coarse = cut(labels, merges, 50)

Needs: python3-numpy.
"""

import numpy as np

# Layouts, written by tests/texts/records.rs.
# Two regions that become one in the next coarser level; 16 bytes, little endian.
MERGE = np.dtype(
    [
        ("a", "<u4"),  # A label of one; its region is by then part of the first of both
        ("b", "<u4"),  # A label of the other
        ("height", "<f4"),  # How unlike both are, comparable in one frame only; never falls from record to record
        ("area", "<u4"),  # Area of the region that the two are in, with all that has joined it at the same time [px]
    ]
)
assert MERGE.itemsize == 16
# End of the layouts.

# Label outside of a mask.
NO_LABEL = 65535


def cut(labels, merges, regions):
    """Returns a copy of a label map with so many regions, or as few as there can be.

    labels: any shape of u16, values 0 to n-1, each used, and NO_LABEL. merges: the records of the map, in their order.
    Labels of the result follow the order of the lowest label that a region had. Raises ValueError where a record names a
    label that the map does not have.
    """
    inside = labels[labels != NO_LABEL]
    count = int(inside.max()) + 1 if inside.size else 0
    steps = merges[: max(count - regions, 0)]
    # From each label to a lower one of its region, as far as it goes.
    lower = list(range(count))
    for ends in zip(steps["a"].tolist(), steps["b"].tolist()):
        if max(ends) >= count:
            raise ValueError(f"a merge of label {max(ends)} in a map of {count} labels")
        a, b = (lowest(lower, end) for end in ends)
        lower[max(a, b)] = min(a, b)
    numbers = np.full(NO_LABEL + 1, NO_LABEL, np.uint16)
    left = 0
    for label, root in enumerate(lower):
        if root == label:
            numbers[label] = left
            left += 1
        else:
            # The root is lower and has its number already.
            numbers[label] = numbers[root]
    return numbers[labels]


def lowest(lower, label):
    """Returns the lowest label of a region, and shortens the way there."""
    while lower[label] != label:
        lower[label] = lower[lower[label]]
        label = lower[label]
    return label
