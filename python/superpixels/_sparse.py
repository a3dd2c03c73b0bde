# SPDX-License-Identifier: MPL-2.0
"""As much of SciPy's sparse matrices as types say: SciPy may be absent, and has none of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Coordinates", "SparseMatrix"]


class Coordinates(Protocol):
    """A scipy.sparse.coo_matrix of int64."""

    data: NDArray[np.int64]
    row: NDArray[np.int32]
    col: NDArray[np.int32]


class SparseMatrix(Protocol):
    """A scipy.sparse.csr_matrix of int64."""

    data: NDArray[np.int64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    def __getitem__(self, place: tuple[int, int], /) -> np.int64: ...
    def __matmul__(self, other: NDArray[Any], /) -> NDArray[Any]: ...
    def toarray(self) -> NDArray[np.int64]: ...
    def tocoo(self) -> Coordinates: ...
