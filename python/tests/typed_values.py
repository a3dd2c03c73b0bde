# SPDX-License-Identifier: MPL-2.0
"""`assert_type` of values: fails where one is not of the type that checkers find."""

import typing

import numpy as np
from numpy.typing import NDArray


def holds(value, kind):
    """Returns True if a value is of a type; types of arrays say their items."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, str):
        return any(holds(value, {"None": type(None), "str": str}[one]) for one in kind.split(" | "))
    if origin is typing.Union:
        return any(holds(value, part) for part in parts)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and holds(value.dtype, parts[1])
    # An alias of its own in numpy 2.5.
    if origin is NDArray:
        return isinstance(value, np.ndarray) and holds(value.dtype, np.dtype[parts[0]])
    if origin is np.dtype:
        return isinstance(value, np.dtype) and value == np.dtype(parts[0])
    if origin is list:
        return isinstance(value, list) and all(holds(item, parts[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(holds(key, parts[0]) and holds(item, parts[1]) for key, item in value.items())
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(holds, value, parts))
    if kind is typing.Any:
        return True
    # A TypedDict is a dict with keys of its own.
    if isinstance(value, dict):
        return set(value) <= set(kind.__annotations__)
    # Of a class of the package its own parts are not looked at.
    return isinstance(value, origin or kind)


def assert_type(value, kind):
    assert holds(value, kind), (value, kind)
    return value
