# SPDX-License-Identifier: MPL-2.0
"""Segment in the workers of a DataLoader.

A torch `Dataset` segments each picture as it is loaded, so that labels are ready while the network works. Workers are
processes beside each other: with `threads=1` each keeps to one core. The default, a thread for each core, would start
workers times cores threads, which take the cores from each other.
"""

import os
import sys

import superpixels as sp

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError:
    print("skipped: torch is not installed")
    sys.exit()


class Pictures(Dataset):
    """Random pictures in place of yours, (3, H, W) floats in [0, 1], with a label map each."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        blocks = torch.rand((1, 3, 12, 16), generator=torch.Generator().manual_seed(index))
        image = torch.nn.functional.interpolate(blocks, scale_factor=10, mode="bilinear")[0]
        # Exactly so many regions in each, so that what is pooled over them stacks, too.
        return image, sp.slic(image, channel_axis=0, n_regions=50, threads=1)


# Where processes start by spawn or forkserver, a worker imports this file anew.
if __name__ == "__main__":
    loader = DataLoader(Pictures(), batch_size=8, num_workers=min(2, os.cpu_count() or 1))
    for images, labels in loader:
        # One index for all regions of the batch.
        index = labels.flatten(1).long() + 50 * torch.arange(len(labels))[:, None]
        area = index.flatten().bincount(minlength=50 * len(labels))
        sums = torch.zeros(50 * len(labels), 3).index_add_(0, index.flatten(), images.permute(0, 2, 3, 1).reshape(-1, 3))
        means = (sums / area[:, None]).view(len(labels), 50, 3)
    print(f"batches of {tuple(images.shape)} and {tuple(labels.shape)} {labels.dtype}, pooled to {tuple(means.shape)}")
