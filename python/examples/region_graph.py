# SPDX-License-Identifier: MPL-2.0
"""Make a graph for PyTorch Geometric.

Regions are nodes, regions that touch are joined. `n_regions` gives every picture exactly so many nodes, for networks
and batches of a fixed size; `n_segments` is about. `Segmenter.edge_index` is (2, 2E) int64 as PyG takes it, both
directions; colors and centers are the nodes' features. Without PyG they are plain arrays.
"""

import numpy as np
import superpixels as sp

y, x = np.mgrid[:240, :320]
image = np.stack([x % 256, y, (x + y) % 256], axis=2).astype(np.uint8)

segmenter = sp.Segmenter(n_regions=100)
segmenter.segment(image)
regions, edge_index = segmenter.regions, segmenter.edge_index

nodes = np.column_stack([regions["mean_lab"] / 100, regions["area"] / image[..., 0].size]).astype(np.float32)
positions = regions["centroid"] / [320, 240]
# The length of the boundary that two regions share, in the order of the edges.
weights = np.tile(segmenter.neighbors["length"], 2).astype(np.float32)
print(f"{len(nodes)} nodes with {nodes.shape[1]} features, {edge_index.shape[1]} edges")

try:
    import torch
    from torch_geometric.data import Data
except ImportError:
    print("skipped: torch_geometric is not installed")
else:
    graph = Data(
        x=torch.from_numpy(nodes),
        edge_index=torch.from_numpy(edge_index),
        edge_attr=torch.from_numpy(weights)[:, None],
        pos=torch.from_numpy(positions).float(),
    )
    graph.validate()
    print(graph)
