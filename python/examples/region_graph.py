# SPDX-License-Identifier: MPL-2.0
"""Make graphs for PyTorch Geometric.

Regions are nodes, regions that touch are joined. `n_regions` gives every picture exactly so many nodes, for networks
and batches of a fixed size; `n_segments` is about. `segment_images` works on many pictures at once, and gives each with
its tables; `edge_index` is (2, 2E) int64 as PyG takes it, both directions; colors and centers are the nodes' features.
Without PyG they are plain arrays.
"""

import numpy as np
import superpixels as sp

y, x = np.mgrid[:240, :320]
image = np.stack([x % 256, y, (x + y) % 256], axis=2).astype(np.uint8)
# In place of yours, which may differ in size; a list does as well.
pictures = (np.roll(image, 30 * i, axis=1) for i in range(8))

graphs = []
for one in sp.segment_images(pictures, n_regions=100):
    height, width = one.labels.shape
    nodes = np.column_stack([one.regions["mean_lab"] / 100, one.regions["area"] / one.labels.size]).astype(np.float32)
    # The length of the boundary that two regions share, in the order of the edges.
    weights = np.tile(one.neighbors["length"], 2).astype(np.float32)
    graphs.append((nodes, one.edge_index, weights, one.regions["centroid"] / np.float32([width, height])))
print(f"{len(graphs)} graphs: {len(nodes)} nodes with {nodes.shape[1]} features, {one.edge_index.shape[1]} edges")

try:
    import torch
    from torch_geometric.data import Batch, Data
except ImportError:
    print("skipped: torch_geometric is not installed")
else:
    data = [
        Data(
            x=torch.from_numpy(nodes),
            edge_index=torch.from_numpy(edges),
            edge_attr=torch.from_numpy(weights)[:, None],
            pos=torch.from_numpy(positions),
        )
        for nodes, edges, weights, positions in graphs
    ]
    data[0].validate()
    print(Batch.from_data_list(data))
