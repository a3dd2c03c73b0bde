// SPDX-License-Identifier: MPL-2.0
//! The class `Levels`: all levels of a picture at once, from its superpixels and the steps in which they are merged.

use gstsuperpixel::image::{Geometry, Labels, NO_LABEL};
use gstsuperpixel::regions::{MergeStep, Region};
use gstsuperpixel::vectors::boundaries;
use js_sys::{Array, Object, Reflect, Uint8Array, Uint16Array, Uint32Array};
use wasm_bindgen::prelude::*;

use crate::coarser::Coarser;
use crate::errors::{Result, range_error, thrown, type_error};
use crate::segmenter::State;
use crate::tables::{columns, put};
use crate::values::{resize, whole};

/// Superpixels of the finest level where nobody says how many.
const N_SEGMENTS: u32 = 2000;

/// A label map and the steps in which its regions are merged down to one.
#[wasm_bindgen(skip_typescript)]
pub struct Levels {
    geometry: Geometry,
    labels: Vec<u16>,
    table: Vec<Region>,
    merges: Vec<MergeStep>,
    /// The level that was asked for last: people look at one for a while.
    last: Option<Coarser>,
}

#[wasm_bindgen]
impl Levels {
    /// Segments a picture.
    #[wasm_bindgen(constructor)]
    pub fn new(image: &JsValue, options: &JsValue) -> Result<Levels> {
        let mut state = State::new(options)?;
        let params = &mut state.options.params;
        if params.temporal {
            return Err(type_error("temporal is for frames one after another; Segmenter takes it"));
        }
        let names = ["nSegments", "superpixelSize"].map(JsValue::from);
        let is_given = |name: &JsValue| Ok::<_, JsValue>(!Reflect::get(options, name)?.is_undefined());
        if options.is_undefined() || !(is_given(&names[0])? || is_given(&names[1])?) {
            params.superpixels = N_SEGMENTS;
        }
        params.hierarchy.levels = true;
        state.options.outputs.table = true;
        let mask = state.options.mask.clone();
        state.segment(image, &mask)?;
        let (engine, geometry) = state.done()?;
        let (table, merges) = (engine.regions().table.clone(), engine.regions().merges.clone());
        Ok(Self { geometry, labels: state.labels, table, merges, last: None })
    }

    /// Width in px.
    #[wasm_bindgen(getter)]
    pub fn width(&self) -> u32 {
        self.geometry.width()
    }

    /// Height in px.
    #[wasm_bindgen(getter)]
    pub fn height(&self) -> u32 {
        self.geometry.height()
    }

    /// Number of regions of the finest level.
    #[wasm_bindgen(getter, js_name = nRegions)]
    pub fn n_regions(&self) -> u32 {
        self.table.len() as u32
    }

    /// The finest level, a copy.
    #[wasm_bindgen(getter)]
    pub fn labels(&self) -> Uint16Array {
        Uint16Array::from(&self.labels[..])
    }

    /// The regions of the finest level.
    #[wasm_bindgen(getter)]
    pub fn regions(&self) -> Result<Object> {
        columns(&self.table)
    }

    /// The steps, one record each.
    #[wasm_bindgen(getter)]
    pub fn merges(&self) -> Result<Object> {
        columns(&self.merges)
    }

    /// The label map of a level: of exactly `regions` regions, or as few as there can be.
    pub fn cut(&mut self, regions: &JsValue) -> Result<Object> {
        let wanted = level("regions", regions)?;
        let mut labels = Vec::new();
        resize("labels", &mut labels, self.labels.len(), NO_LABEL)?;
        let level = self.level(wanted)?;
        let count = level.count;
        let of = std::mem::take(&mut level.of);
        for (label, &superpixel) in labels.iter_mut().zip(&self.labels) {
            *label = of.get(usize::from(superpixel)).copied().unwrap_or(NO_LABEL);
        }
        if let Some(level) = &mut self.last {
            level.of = of;
        }
        let object = Object::new();
        put(&object, "width", self.geometry.width())?;
        put(&object, "height", self.geometry.height())?;
        put(&object, "nRegions", count)?;
        put(&object, "labels", Uint16Array::from(&labels[..]))?;
        Ok(object)
    }

    /// A level without its pixels: the region of each superpixel, and area and bounds of each region.
    pub fn groups(&mut self, regions: &JsValue) -> Result<Object> {
        let level = self.level(level("regions", regions)?)?;
        let (areas, bounds): (Vec<u32>, Vec<[u16; 4]>) = level.covers.iter().copied().unzip();
        let object = Object::new();
        put(&object, "nRegions", level.count)?;
        put(&object, "of", Uint16Array::from(&level.of[..]))?;
        put(&object, "area", Uint32Array::from(&areas[..]))?;
        put(&object, "bounds", Uint16Array::from(bounds.as_flattened()))?;
        Ok(object)
    }

    /// The boundaries between superpixels, each once. Outlines at any level are some of them.
    pub fn boundaries(&mut self) -> Result<Object> {
        let width = self.geometry.width() as usize;
        let labels = Labels::new(self.geometry, &mut self.labels, width).map_err(thrown)?;
        let (mut beside, mut starts, mut corners) = (Vec::new(), vec![0], Vec::new());
        for boundary in boundaries(&labels).map_err(thrown)? {
            beside.extend(boundary.beside.map(|label| u16::try_from(label).unwrap_or(NO_LABEL)));
            corners.extend(boundary.corners.into_iter().map(|corner| corner.map(|place| place as u16)));
            starts.push(corners.len() as u32);
        }
        let object = Object::new();
        put(&object, "beside", Uint16Array::from(&beside[..]))?;
        put(&object, "starts", Uint32Array::from(&starts[..]))?;
        put(&object, "corners", Uint16Array::from(corners.as_flattened()))?;
        Ok(object)
    }

    /// The region of a pixel at a level: label, area and bounds; `undefined` outside of a mask.
    #[wasm_bindgen(js_name = regionAt)]
    pub fn region_at(&mut self, x: &JsValue, y: &JsValue, regions: &JsValue) -> Result<JsValue> {
        let pixel = self.pixel(x, y)?;
        let superpixel = self.labels[pixel];
        let level = self.level(level("regions", regions)?)?;
        let Some(region) = level.region(superpixel) else { return Ok(JsValue::UNDEFINED) };
        let (area, bounds) = level.covers[usize::from(region)];
        let object = Object::new();
        put(&object, "label", region)?;
        put(&object, "area", area)?;
        let [x0, y0, x1, y1] = bounds.map(JsValue::from);
        put(&object, "bounds", Array::of4(&x0, &y0, &x1, &y1))?;
        Ok(object.into())
    }

    /// The pixels of a region of a level inside of its bounds, one byte each: 1 inside, 0 outside.
    pub fn mask(&mut self, label: &JsValue, regions: &JsValue) -> Result<Uint8Array> {
        let label = whole("label", label, 0, u16::MAX.into())?;
        let wanted = level("regions", regions)?;
        let width = self.geometry.width() as usize;
        self.level(wanted)?;
        let Self { last: Some(level), labels, .. } = self else { return Ok(Uint8Array::new_with_length(0)) };
        let Some(&(_, [x0, y0, x1, y1])) = level.covers.get(label as usize) else {
            return Err(range_error(&format!("label must be below {}, got {label}", level.count)));
        };
        let (columns, rows) = (usize::from(x0)..usize::from(x1), usize::from(y0)..usize::from(y1));
        let mut mask = Vec::new();
        resize("a mask", &mut mask, 0, 0u8)?;
        mask.reserve_exact(columns.len() * rows.len());
        for y in rows {
            let inside = |&superpixel: &u16| u8::from(level.region(superpixel).map(u32::from) == Some(label));
            mask.extend(labels[y * width..][columns.clone()].iter().map(inside));
        }
        Ok(Uint8Array::from(&mask[..]))
    }
}

impl Levels {
    fn pixel(&self, x: &JsValue, y: &JsValue) -> Result<usize> {
        let x = whole("x", x, 0, self.geometry.width() - 1)? as usize;
        let y = whole("y", y, 0, self.geometry.height() - 1)? as usize;
        Ok(y * self.geometry.width() as usize + x)
    }

    fn level(&mut self, wanted: u32) -> Result<&mut Coarser> {
        if self.last.as_ref().is_none_or(|level| level.wanted != wanted) {
            self.last = Coarser::new(&self.table, &self.merges, wanted);
        }
        self.last
            .as_mut()
            .ok_or_else(|| js_sys::Error::new("the steps name a label that is not there").into())
    }
}

fn level(name: &str, value: &JsValue) -> Result<u32> {
    whole(name, value, 1, u16::MAX.into())
}
