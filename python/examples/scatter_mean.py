# SPDX-License-Identifier: MPL-2.0
"""Average features over regions.

Pooling a feature map (C, H, W) by labels gives one vector a region, (N, C): `np.bincount` in numpy, `index_add_` in
torch, which also passes gradients. `n_regions` makes N the same for every picture, so that the results of many stack.
"""

import numpy as np
import superpixels as sp

y, x = np.mgrid[:240, :320]
image = np.stack([x % 256, y, (x + y) % 256], axis=2).astype(np.uint8)
labels = sp.slic(image, n_regions=200)
features = np.random.default_rng(0).random((8, 240, 320), np.float32)

index, count = labels.ravel(), int(labels.max()) + 1
area = np.bincount(index, minlength=count)
pooled = np.stack([np.bincount(index, plane.ravel(), count) / area for plane in features], axis=1)
print(f"{pooled.shape[0]} regions with {pooled.shape[1]} features")

# Each pixel gets its region's mean back.
smooth = pooled[labels].transpose(2, 0, 1)
assert smooth.shape == features.shape

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
else:
    flat = torch.from_numpy(features).flatten(1).T
    which = torch.from_numpy(index.astype(np.int64))
    means = torch.zeros(count, 8).index_add_(0, which, flat) / torch.from_numpy(area)[:, None]
    assert np.allclose(means.numpy(), pooled, atol=1e-5)
    print("the same in torch")
