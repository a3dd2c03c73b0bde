// SPDX-License-Identifier: MPL-2.0
//! Label maps that JavaScript gives back: objects with `labels`, `width` and `height`, as `segment` returns them.

use gstsuperpixel::image::{Geometry, MAX_SIDE, NO_LABEL};
use js_sys::Uint16Array;
use wasm_bindgen::{JsCast, JsValue};

use crate::errors::{Result, range_error, thrown, type_error};
use crate::values::{check_object, property, resize, shown, whole};

/// A label map in memory of our own, row by row without gaps.
pub struct Map {
    /// Its size.
    pub geometry: Geometry,
    /// The labels, with [`NO_LABEL`] outside of regions.
    pub labels: Vec<u16>,
}

impl Map {
    /// Copies a label map.
    pub fn read(map: &JsValue) -> Result<Self> {
        check_object("map", map)?;
        let side = |name| whole(&format!("map.{name}"), &property(map, name)?, 1, MAX_SIDE);
        let geometry = Geometry::new(side("width")?, side("height")?).map_err(thrown)?;
        let given = property(map, "labels")?;
        let Some(given) = given.dyn_ref::<Uint16Array>() else {
            return Err(type_error(&format!("map.labels must be a Uint16Array, got {}", shown(&given))));
        };
        let (needed, got) = (geometry.pixels(), given.length());
        if got as usize != needed {
            return Err(range_error(&format!(
                "map.labels of {geometry} must have {needed} items, got {got}"
            )));
        }
        let mut labels = Vec::new();
        resize("labels", &mut labels, needed, 0)?;
        given.copy_to(&mut labels);
        Ok(Self { geometry, labels })
    }

    /// One more than the highest label.
    pub fn count(&self) -> usize {
        let inside = self.labels.iter().filter(|label| **label != NO_LABEL);
        inside.max().map_or(0, |&most| usize::from(most) + 1)
    }

    /// Refuses an image of another size.
    pub fn check_size(&self, image: Geometry) -> Result<()> {
        if image == self.geometry {
            return Ok(());
        }
        Err(range_error(&format!("the image is of {image}, the label map of {}", self.geometry)))
    }
}
