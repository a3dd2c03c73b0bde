# SPDX-License-Identifier: MPL-2.0
"""Segment a picture.

One call gives the label map: `labels[y, x]` is the number of the region that the pixel belongs to. A new folder gets it
as a 16-bit PNG, which keeps the numbers exactly, and beside it a picture to look at: regions in their mean colors. Pass
a file, which Pillow reads; without one a picture is drawn.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import superpixels as sp

if len(sys.argv) > 1:
    from PIL import Image, ImageOps

    # Cameras store photos on their side and note it.
    image = np.asarray(ImageOps.exif_transpose(Image.open(sys.argv[1])).convert("RGB"))
else:
    y, x = np.mgrid[:240, :320]
    image = np.stack([x % 256, y, (x + y) % 256], axis=2).astype(np.uint8)

labels = sp.slic(image, n_segments=300, compactness=10)
print(f"{labels.max() + 1} regions, the largest of {np.bincount(labels.ravel()).max()} px")

folder = Path(tempfile.mkdtemp(prefix="regions-", dir="."))
sp.to_png16(folder / "labels.png", labels)
sp.show(image, labels, mean_color=True, color=(255, 255, 255)).save(folder / "regions.png")
print(f"see labels.png and regions.png in {folder}")
