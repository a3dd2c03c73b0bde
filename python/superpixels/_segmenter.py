# SPDX-License-Identifier: MPL-2.0
"""The class `Segmenter` as annotations name it, with the type of its arrays: `Segmenter[torch.Tensor]`."""

from __future__ import annotations

from types import GenericAlias as _GenericAlias

from ._native import Segmenter

__all__ = ["Segmenter"]

setattr(Segmenter, "__class_getitem__", classmethod(_GenericAlias))
