# SPDX-License-Identifier: MPL-2.0
"""Get exactly as many regions as asked for.

`n_segments` is about: a grid decides. `n_regions` merges superpixels, the most alike first, until exactly so many are left.
Fewer regions are made of more: each region of a coarse map is some of the regions of a finer one.
"""

import numpy as np
import superpixels as sp

y, x = np.mgrid[:240, :320]
image = np.stack([x % 256, y, (x + y) % 256], axis=2).astype(np.uint8)

print("about 50:", sp.slic(image, n_segments=50).max() + 1)
maps = {count: sp.slic(image, n_segments=600, n_regions=count) for count in (200, 50, 10, 2)}
for count, labels in maps.items():
    print(f"exactly {count}: {len(np.unique(labels))}")

# The region of a coarse map that each region of a fine one lies in.
parent = np.zeros(200, int)
parent[maps[200]] = maps[10]
assert np.array_equal(parent[maps[200]], maps[10])
