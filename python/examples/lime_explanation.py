# SPDX-License-Identifier: MPL-2.0
"""Explain a classifier with LIME.

LIME's `segmentation_fn` takes an image and returns a label map, so any function here will do. Without the package
lime a few lines stand in for its `explain_instance`: hide regions at random, and fit how much each of them adds to
the score.
"""

import numpy as np
import superpixels as sp

y, x = np.mgrid[:120, :160]
image = np.where(((x - 110) ** 2 + (y - 50) ** 2 < 25**2)[..., None], [220, 40, 40], [60, 90, 120]).astype(np.uint8)


def segmentation_fn(image):
    # LIME passes floats for some images.
    return sp.slic(np.asarray(image).astype(np.uint8), n_segments=60).astype(np.int64)


def classifier_fn(images):
    """Scores of "not red" and "red" for each image of a batch."""
    red = np.mean(np.asarray(images, float)[..., 0] > 150, axis=(1, 2))
    return np.stack([1 - red, red], axis=1)


def stand_in(image, samples=200):
    labels, rng = segmentation_fn(image), np.random.default_rng(0)
    count = labels.max() + 1
    shown = rng.integers(0, 2, (samples, count)).astype(bool)
    images = np.where(shown[:, labels][..., None], image, 0)
    weights = np.linalg.lstsq(np.column_stack([shown, np.ones(samples)]), classifier_fn(images)[:, 1], rcond=None)[0]
    return labels, weights[:count]


try:
    from lime.lime_image import LimeImageExplainer
except ImportError:
    print("skipped: lime is not installed; a stand-in takes its place")
    labels, weights = stand_in(image)
else:
    explanation = LimeImageExplainer(random_state=0).explain_instance(
        image, classifier_fn, labels=(1,), hide_color=0, top_labels=None, num_samples=200, segmentation_fn=segmentation_fn
    )
    labels, weights = explanation.segments, np.zeros(explanation.segments.max() + 1)
    for region, weight in explanation.local_exp[1]:
        weights[region] = weight
ys, xs = np.nonzero(labels == weights.argmax())
print(f"the region that speaks most for red is around ({xs.mean():.0f}, {ys.mean():.0f})")
