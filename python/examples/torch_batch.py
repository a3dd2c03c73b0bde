# SPDX-License-Identifier: MPL-2.0
"""Segment a batch of torch tensors.

Tensors on a CUDA device are segmented there, on torch's stream, and label maps are tensors on the same device: no
pixel goes over the bus. Without a device the same runs on the CPU. A network's batch of floats in [0, 1] of shape
(N, 3, H, W) is taken as it is, seen as (N, H, W, 3): `permute` copies nothing.
"""

import sys

import superpixels as sp

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit()

batch = torch.rand(4, 3, 240, 320, device="cuda" if torch.cuda.is_available() else "cpu")

labels = sp.slic(batch.permute(0, 2, 3, 1), n_segments=300)
print(f"{tuple(labels.shape)} on {labels.device}, {int(labels[0].max()) + 1} regions in the first")
