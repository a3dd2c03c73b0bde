// SPDX-License-Identifier: MPL-2.0
//! The native module `superpixels._native`: what Python sees of the library. `superpixels/__init__.py` is its face.

mod arrays;
mod batch;
mod components;
mod contours;
mod cut;
mod data_range;
mod device;
mod device_array;
mod device_batch;
mod device_image;
mod devices;
mod dlpack;
mod eigenvectors;
mod engines;
mod error;
mod foreign;
mod host_frames;
mod image_set;
mod kept_engines;
mod lab_codes;
mod label_arrays;
mod layout;
mod library;
mod mask;
mod memory;
mod names;
mod objects;
mod order;
mod parameters;
mod plane;
mod pools;
mod prior;
mod raw_frame;
mod reading;
mod records;
mod segmenter;
mod side_by_side;
mod single;
mod size;
mod state;
mod streams;
mod tables;
mod values;
mod vectors;
mod watch;
mod wide;
mod wide_device;

use pyo3::prelude::*;

// A fork finds `pools` unlocked because it holds the interpreter's lock. A free-threaded interpreter turns that on when it imports this
// module, and warns.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("N_SEGMENTS", parameters::N_SEGMENTS)?;
    for (name, record) in [
        ("REGION", &records::REGION),
        ("MOTION", &records::MOTION),
        ("NEIGHBOR", &records::NEIGHBOR),
        ("MERGE", &records::MERGE),
    ] {
        module.add(name, record.dtype(module.py())?)?;
    }
    module.add_class::<segmenter::Segmenter>()?;
    module.add_class::<device_array::DeviceArray>()?;
    module.add_class::<image_set::ImageSet>()?;
    module.add_class::<objects::ObjectTracker>()?;
    module.add_function(wrap_pyfunction!(single::segment, module)?)?;
    module.add_function(wrap_pyfunction!(device_batch::segment_batch, module)?)?;
    module.add_function(wrap_pyfunction!(cut::cut, module)?)?;
    module.add_function(wrap_pyfunction!(contours::contours, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::smooth_labels, module)?)?;
    module.add_function(wrap_pyfunction!(vectors::svg, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::defaults, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::described, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::ranges, module)?)
}
