// SPDX-License-Identifier: MPL-2.0
//! Objects that are followed on the tables of frames. `superpixels/_objects.py` is its face.

use gstsuperpixel::error::{Error, Result};
use gstsuperpixel::image::Geometry;
use gstsuperpixel::objects::{Detection, Evidence, Objects, Tables};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::exception;

/// Detection of an object: its id, a box, for each label how many pixels of a mask it has, labels inside and outside. A box goes before a
/// mask, and that before labels.
type Said = (Option<u32>, Option<[i32; 4]>, Option<Vec<u32>>, Vec<u32>, Vec<u32>);

/// An object: its id, labels, area and box.
type Seen<'py> = (u32, Bound<'py, PyArray1<u32>>, u64, [u16; 4]);

fn detection((object, bounds, mask, inside, outside): &Said) -> Detection<'_> {
    let evidence = match (bounds, mask) {
        (Some(bounds), _) => Evidence::Box(*bounds),
        (None, Some(counts)) => Evidence::Mask(counts),
        (None, None) => Evidence::Seeds { inside, outside },
    };
    Detection { object: *object, evidence }
}

/// Records from their bytes, which may be anywhere.
fn records<R: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
    name: &'static str,
    bytes: &[u8],
) -> Result<Vec<R>> {
    if !bytes.len().is_multiple_of(size_of::<R>()) {
        let allowed = format!("records of {} bytes", size_of::<R>());
        return Err(Error::Value { name, got: format!("{} bytes", bytes.len()), allowed });
    }
    Ok(bytemuck::pod_collect_to_vec(bytes))
}

#[pyclass(module = "superpixels._native")]
#[derive(Default)]
pub struct ObjectTracker {
    objects: Objects,
}

#[pymethods]
impl ObjectTracker {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Finds the objects of the next frame. Tables are bytes of what a `Segmenter` gives.
    fn update<'py>(
        &mut self,
        py: Python<'py>,
        size: (u32, u32),
        regions: PyReadonlyArray1<'py, u8>,
        motion: PyReadonlyArray1<'py, u8>,
        neighbors: PyReadonlyArray1<'py, u8>,
        said: Vec<Said>,
    ) -> PyResult<Vec<Seen<'py>>> {
        let (regions, motion, neighbors) = (regions.as_slice()?, motion.as_slice()?, neighbors.as_slice()?);
        let detections: Vec<Detection> = said.iter().map(detection).collect();
        let mut find = || -> Result<_> {
            let tables = Tables {
                geometry: Geometry::new(size.0, size.1)?,
                regions: &records("regions", regions)?,
                motion: &records("motion", motion)?,
                neighbors: &records("neighbors", neighbors)?,
            };
            self.objects.update(&tables, &detections).map(<[_]>::to_vec)
        };
        let seen = find().map_err(exception)?;
        Ok(seen
            .iter()
            .map(|object| (object.id, PyArray1::from_slice(py, &object.labels), object.area, object.bounds))
            .collect())
    }

    /// Ends an object. Returns whether it was known.
    fn end(&mut self, id: u32) -> bool {
        self.objects.end(id)
    }

    /// Ends all objects.
    fn reset(&mut self) {
        self.objects.reset();
    }
}
