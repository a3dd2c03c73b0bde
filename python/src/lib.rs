// SPDX-License-Identifier: MPL-2.0
//! The native module `superpixels._native`: what Python sees of the library. `superpixels/__init__.py` is its face.

mod arrays;
mod device;
mod device_array;
mod devices;
mod dlpack;
mod engines;
mod error;
mod foreign;
mod library;
mod parameters;
mod pools;
mod records;
mod segmenter;
mod single;
mod state;
mod streams;
mod tables;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<segmenter::Segmenter>()?;
    module.add_class::<device_array::DeviceArray>()?;
    module.add_function(wrap_pyfunction!(single::segment, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::defaults, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::ranges, module)?)
}
