# SPDX-License-Identifier: MPL-2.0
"""Paint annotations with a brush of regions.

Label maps of several coarseness are the brush's sizes: the same superpixels, merged to fewer and fewer regions. A click
paints the region under it. Levels are nested, so that a coarse stroke can be mended with a finer brush.
"""

import numpy as np
import superpixels as sp


class Brush:
    def __init__(self, image, counts=(400, 100, 30, 8)):
        labels, merges = sp.hierarchy(image, n_segments=1200)
        self.levels = [sp.cut(labels, merges, count) for count in counts]
        self.painted = np.zeros(image.shape[:2], np.uint8)

    def click(self, x, y, level, value=1):
        """Gives the pixels of the region at (x, y) a value; 0 wipes."""
        labels = self.levels[level]
        self.painted[labels == labels[y, x]] = value


y, x = np.mgrid[:240, :320]
image = np.where(((x - 160) ** 2 + (y - 120) ** 2 < 80**2)[..., None], [220, 120, 60], [40, 90, 160])
image = (image + np.random.default_rng(0).integers(-8, 8, image.shape)).clip(0, 255).astype(np.uint8)

brush = Brush(image)
print("regions by level:", *[labels.max() + 1 for labels in brush.levels])
for level in range(len(brush.levels)):
    brush.painted[:] = 0
    brush.click(160, 120, level)
    print(f"a click with level {level} paints {brush.painted.sum()} px")
