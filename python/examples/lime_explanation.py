# SPDX-License-Identifier: MPL-2.0
"""Explain a classifier with LIME.

LIME's `segmentation_fn` takes an image and returns a label map, so any function here will do. The image is the one
that the caller passes to `explain_instance`: uint8, or what the network takes, floats in [0, 1], in [-1, 1] or from 0 to
255. `data_range="image"` reads all of them the same. LIME's `get_image_and_mask` writes -1 and 1 into a map of the labels'
type, so that they have to be signed. Without the package lime a few lines stand in for it: hide regions
at random, and fit how much each of them adds to the score.
"""

import numpy as np
import superpixels as sp

y, x = np.mgrid[:120, :160]
image = np.where(((x - 110) ** 2 + (y - 50) ** 2 < 25**2)[..., None], [220, 40, 40], [60, 90, 120]).astype(np.uint8)


def segmentation_fn(image):
    return sp.slic(image, n_segments=60, data_range="image").astype(int)


def classifier_fn(images):
    """Scores of "not red" and "red" for each image of a batch, in [0, 1]."""
    red = np.mean(np.asarray(images)[..., 0] > 0.6, axis=(1, 2))
    return np.stack([1 - red, red], axis=1)


def stand_in(image, samples=200):
    labels, rng = segmentation_fn(image), np.random.default_rng(0)
    count = labels.max() + 1
    shown = rng.integers(0, 2, (samples, count)).astype(bool)
    images = np.where(shown[:, labels][..., None], image, 0)
    weights = np.linalg.lstsq(np.column_stack([shown, np.ones(samples)]), classifier_fn(images)[:, 1], rcond=None)[0]
    return labels, weights[:count]


labels = segmentation_fn(image)
for values in (image / 255, image / 127.5 - 1, image.astype(float)):
    assert np.array_equal(segmentation_fn(values), labels)
print(f"{labels.max() + 1} regions, whatever the range of the values")

image = image / 255
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
    _, signs = explanation.get_image_and_mask(1, positive_only=False, num_features=5)
    assert set(np.unique(signs)) <= {-1, 0, 1}
ys, xs = np.nonzero(labels == weights.argmax())
print(f"the region that speaks most for red is around ({xs.mean():.0f}, {ys.mean():.0f})")
