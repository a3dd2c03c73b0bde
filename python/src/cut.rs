// SPDX-License-Identifier: MPL-2.0
//! Coarser levels of a label map from the list of its merges.

use gstsuperpixel::regions::{self, MergeStep};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Rewrites a label map, which has no gaps, to so many regions, or to as few as there can be. `steps` are the bytes of
/// `Segmenter.merges`.
#[pyfunction]
pub fn cut<'py>(
    py: Python<'py>,
    labels: &Bound<'py, PyArray2<u16>>,
    steps: PyReadonlyArray1<'py, u8>,
    regions: u32,
) -> PyResult<()> {
    let mut labels = labels.try_readwrite()?;
    let (labels, steps) = (labels.as_slice_mut()?, steps.as_slice()?);
    if !steps.len().is_multiple_of(size_of::<MergeStep>()) {
        return Err(PyValueError::new_err("merges must be what Segmenter.merges gives"));
    }
    let steps: Vec<MergeStep> = bytemuck::pod_collect_to_vec(steps);
    let done = py.detach(|| regions::cut(labels, &steps, regions));
    done.map(drop).ok_or_else(|| {
        PyValueError::new_err("merges are of another label map: they name a label that is not there")
    })
}
