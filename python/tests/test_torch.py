# SPDX-License-Identifier: MPL-2.0
"""Workers of a torch DataLoader, where torch is installed."""

import numpy as np
import pytest
import superpixels as sp

torch = pytest.importorskip("torch", reason="torch is not installed")


class Pictures(torch.utils.data.Dataset):
    """Label maps of a picture and of itself moved, from a Segmenter of the worker's own."""

    segmenter = None

    def __init__(self, picture):
        self.picture = picture

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if self.segmenter is None:
            self.segmenter = sp.Segmenter(n_segments=60, threads=1)
        image = np.roll(self.picture, i, axis=1).copy()
        return torch.from_numpy(self.segmenter.segment(image).astype(np.int32))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_data_loader(method, picture):
    # The parent has threads of its own before it starts workers.
    want = torch.stack([item for item in map(Pictures(picture).__getitem__, range(8))])
    loader = torch.utils.data.DataLoader(
        Pictures(picture), batch_size=4, num_workers=2, multiprocessing_context=method, timeout=120
    )
    assert torch.equal(torch.cat(list(loader)), want)


def test_tensors_share_memory_with_arrays(picture):
    frame = torch.from_numpy(picture.copy())
    out = torch.zeros(frame.shape[:2], dtype=torch.int32)
    sp.slic(frame.numpy(), start_label=1, out=out.numpy())
    assert np.array_equal(out.numpy() - 1, sp.slic(picture))
