// SPDX-License-Identifier: MPL-2.0
//! Smooth outlines: label maps that have them, and drawings with curves.

use gstsuperpixel::error::Result;
use gstsuperpixel::image::{Geometry, Labels};
use gstsuperpixel::post::abstraction::labels::LabelSmoother;
use gstsuperpixel::vectors::{Drawing, Gradients, Lines, Outlines, SEAM, Style};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::exception;
use crate::pools::pool;

fn geometry(shape: &[usize]) -> Result<Geometry> {
    // A side that 32 bits do not hold is too long for any.
    let [height, width] = [shape[0], shape[1]].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    Geometry::new(width, height)
}

/// Writes the smoothed labels of a map into another of its shape; 65535 is outside of a mask. Both have no gaps.
#[pyfunction]
pub fn smooth_labels<'py>(
    py: Python<'py>,
    labels: &Bound<'py, PyArray2<u16>>,
    smoothed: &Bound<'py, PyArray2<u16>>,
    smoothness: f32,
    threads: u32,
) -> PyResult<()> {
    let (mut labels, mut smoothed) = (labels.try_readwrite()?, smoothed.try_readwrite()?);
    let geometry = geometry(labels.shape()).map_err(exception)?;
    let cpu = pool(py, threads)?;
    let (labels, smoothed) = (labels.as_slice_mut()?, smoothed.as_slice_mut()?);
    let stride = geometry.width() as usize;
    let mut smooth = || {
        let labels = Labels::new(geometry, labels, stride)?;
        let mut smoothed = Labels::new(geometry, smoothed, stride)?;
        LabelSmoother::new(&cpu, geometry, smoothness)?.smooth(&labels, &mut smoothed)
    };
    py.detach(&mut smooth).map_err(exception)
}

/// A drawing of a label map with curves; 2^32 - 1 is outside of a mask. `colors` has a row for each label, `names` its number and the
/// element's id. `shading` has the labels and the pixels that gradients are measured in.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Callers see `to_svg`.
pub fn svg<'py>(
    py: Python<'py>,
    labels: PyReadonlyArray2<'py, u32>,
    colors: Option<PyReadonlyArray2<'py, u8>>,
    shading: Option<(PyReadonlyArray2<'py, u32>, PyReadonlyArray3<'py, u8>)>,
    names: Vec<(i64, Option<String>)>,
    tolerance: f32,
    line_width: f32,
    line_color: [u8; 3],
) -> PyResult<String> {
    let gaps = |_| PyValueError::new_err("the array has gaps");
    let geometry = geometry(labels.shape()).map_err(exception)?;
    let labels = labels.as_slice().map_err(gaps)?;
    let colors = colors.as_ref().map(|colors| colors.as_slice()).transpose().map_err(gaps)?;
    let gradients = match &shading {
        Some((labels, pixels)) => {
            let (labels, pixels) = (labels.as_slice().map_err(gaps)?, pixels.as_slice().map_err(gaps)?);
            Some(py.detach(|| Gradients::new(labels, pixels, geometry)).map_err(exception)?)
        }
        None => None,
    };
    let fill = |label: u32| {
        let color = colors.and_then(|colors| colors.as_chunks().0.get(label as usize));
        let color = color.copied().unwrap_or_default();
        let gradient = gradients.as_ref().and_then(|gradients| gradients.gradient(label, color));
        let (label, id) = names.get(label as usize).cloned().unwrap_or_default();
        Style { label, id, color, gradient }
    };
    let lines = (line_width > 0.0).then_some(Lines { width: line_width, color: line_color });
    // Along pixels' sides there is nothing to smooth.
    let seam = if tolerance > 0.0 { SEAM } else { 0.0 };
    let drawing = Drawing { fill: if colors.is_some() { Some(&fill) } else { None }, seam, lines };
    let outlines = py.detach(|| Outlines::new(labels, geometry, tolerance)).map_err(exception)?;
    Ok(outlines.svg(&drawing))
}
