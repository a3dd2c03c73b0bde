# SPDX-License-Identifier: MPL-2.0
"""Superpixel tokens for a transformer.

A transformer gets one token a region instead of square patches: the mean of a stem's features, its place and size, and a mask
by which it attends to itself and to those that it touches. `n_regions` is exact, so a batch is one tensor. Labels are a custom operator with a fake kernel, which `torch.compile` takes; gradients go through the features. Images of uint8
and shape (N, H, W, 3) are read in place, on a device all in one set of launches. Of an image too small for so many regions
those left have size 0.
"""

import sys

import superpixels as sp

try:
    import torch
except ImportError:
    print("skipped: torch is not installed")
    sys.exit()


@torch.library.custom_op("superpixel_tokens::labels", mutates_args=())
def region_labels(images: torch.Tensor, regions: int) -> torch.Tensor:
    """Labels (N, H, W) of images (N, H, W, 3), int32."""
    return sp.slic(images, n_regions=regions, compactness=10.0)


@region_labels.register_fake
def _(images: torch.Tensor, regions: int) -> torch.Tensor:
    return images.new_empty(images.shape[:3], dtype=torch.int32)


def tokens(labels, features, regions):
    """Means (N, R, C), centers (N, R, 2), sizes (N, R), who touches whom (N, R, R); features (N, C, h, w) of larger steps."""
    count, channels, height, width = features.shape
    down, right = labels.shape[1] // height, labels.shape[2] // width
    labels = labels[:, down // 2 :: down, right // 2 :: right][:, :height, :width].long()
    node = labels + regions * torch.arange(count, device=labels.device).view(-1, 1, 1)
    line = [torch.linspace(0, 1, side, device=labels.device) for side in (height, width)]
    places = torch.stack([*torch.meshgrid(*line, indexing="ij"), torch.ones_like(labels[0], dtype=line[0].dtype)])
    values = torch.cat([features, places.expand(count, 3, height, width)], 1).movedim(1, -1).flatten(0, 2)
    sums = values.new_zeros(count * regions, channels + 3).index_add(0, node.flatten(), values)
    sums = sums.view(count, regions, channels + 3)
    means = sums[..., :-1] / sums[..., -1:].clamp(min=1)
    touching = torch.eye(regions, dtype=torch.bool, device=labels.device).repeat(count, 1, 1).flatten()
    for own, other in ((node[:, 1:], labels[:, :-1]), (node[..., 1:], labels[..., :-1])):
        touching = touching.index_fill(0, (own * regions + other).flatten(), True)
    touching = touching.view(count, regions, regions)
    return means[..., :channels], means[..., channels:], sums[..., -1], touching | touching.mT


class Model(torch.nn.Module):
    def __init__(self, width=64, classes=10):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, width, 7, stride=4, padding=3)
        self.place = torch.nn.Linear(2, width)
        self.block = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.head = torch.nn.Linear(width, classes)

    def forward(self, images, regions=49):
        features = self.stem(images.movedim(-1, 1) / 255)
        means, centers, size, touching = tokens(region_labels(images, regions), features, regions)
        found = self.block(means + self.place(centers), src_mask=~touching.repeat_interleave(4, 0))
        return self.head((found * (size > 0).unsqueeze(-1)).mean(1))


device = "cuda" if torch.cuda.is_available() else "cpu"
images = torch.randint(0, 256, (8, 112, 112, 3), dtype=torch.uint8, device=device)
model = Model().to(device)
torch.nn.functional.cross_entropy(model(images), torch.arange(8, device=device)).backward()
print(f"{len(images)} images on {device}, 49 tokens each, gradient of the stem {float(model.stem.weight.grad.norm()):.3f}")
