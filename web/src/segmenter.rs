// SPDX-License-Identifier: MPL-2.0
//! `segment` and the class `Segmenter`: pictures by themselves, and frames one after another with what is known about their regions.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameMut, Geometry, Labels};
use gstsuperpixel::params::{BOUNDARY_WIDTH, Boundaries, Drawing, Fill};
use gstsuperpixel::picture_params::with_enough_superpixels;
use gstsuperpixel::plan::Plan;
use js_sys::{Object, Reflect, Uint8ClampedArray, Uint16Array};
use wasm_bindgen::prelude::*;

use crate::errors::{Result, thrown, type_error};
use crate::image::Image;
use crate::options::Options;
use crate::tables::{columns, put};
use crate::values::{bytes_of, check_object, color, copy, resize, whole, word};

/// Segments one picture.
#[wasm_bindgen(skip_typescript)]
pub fn segment(image: &JsValue, options: &JsValue) -> Result<Object> {
    let mut state = State::new(options)?;
    if state.options.params.temporal {
        return Err(type_error("temporal is for frames one after another; Segmenter takes it"));
    }
    let mask = state.options.mask.clone();
    state.segment(image, &mask)?;
    state.result()
}

/// An engine, and memory that it works in.
pub struct State {
    /// As they are set.
    pub options: Options,
    engine: Option<Engine<Cpu>>,
    /// The next identity, where the engine that knew it is gone.
    next_id: u32,
    geometry: Option<Geometry>,
    bytes: Vec<u8>,
    mask: Vec<u8>,
    /// Labels of the last frame, row by row.
    pub labels: Vec<u16>,
}

impl State {
    /// Nothing has been segmented yet.
    pub fn new(options: &JsValue) -> Result<Self> {
        Ok(Self {
            options: Options::new(options)?,
            engine: None,
            next_id: 1,
            geometry: None,
            bytes: Vec::new(),
            mask: Vec::new(),
            labels: Vec::new(),
        })
    }

    /// An engine for such frames. Identities go on where that is a new one.
    fn engine(&mut self, plan: Plan) -> Result<Engine<Cpu>> {
        if let Some(mut engine) = self.engine.take() {
            if engine.plan().frame() == plan.frame() && engine.change(&plan).map_err(thrown)? {
                return Ok(engine);
            }
            self.next_id = engine.next_id().map_err(thrown)?;
        }
        let mut engine = Engine::new(Cpu::new(1).map_err(thrown)?, plan).map_err(thrown)?;
        engine.set_next_id(self.next_id).map_err(thrown)?;
        Ok(engine)
    }

    /// Segments a frame.
    pub fn segment(&mut self, image: &JsValue, mask: &JsValue) -> Result<()> {
        let image = Image::read(image, &mut self.bytes)?;
        let done = self.segment_image(&image, mask);
        self.bytes = image.bytes;
        done
    }

    fn segment_image(&mut self, image: &Image, mask: &JsValue) -> Result<()> {
        self.geometry = None;
        let geometry = image.info.geometry;
        let (width, pixels) = (geometry.width() as usize, geometry.pixels());
        if !mask.is_undefined() {
            self.options.params.masked = true;
            let bytes = bytes_of("mask", mask, 1)?;
            self.mask.truncate(pixels);
            copy(&format!("mask of {geometry}"), &bytes, pixels as u64, &mut self.mask)?;
        }
        let plan = Plan::new(&with_enough_superpixels(&self.options.params), image.info).map_err(thrown)?;
        self.labels.truncate(pixels);
        resize("labels", &mut self.labels, pixels, 0)?;
        // Until it has worked, there is none: it may be half changed.
        let mut engine = self.engine(plan)?;
        let mut frame = image.frame()?;
        if !mask.is_undefined() {
            frame = frame.with_mask(&self.mask, width).map_err(thrown)?;
        }
        let mut labels = Labels::new(geometry, &mut self.labels, width).map_err(thrown)?;
        // Means are drawn without being asked for again.
        let mut outputs = self.options.outputs;
        outputs.mean_color = outputs.table;
        let done = engine.segment(&frame, &mut labels, outputs).map(drop).map_err(thrown);
        self.engine = Some(engine);
        done?;
        self.geometry = Some(geometry);
        Ok(())
    }

    /// Results of the last frame.
    pub fn done(&self) -> Result<(&Engine<Cpu>, Geometry)> {
        self.engine.as_ref().zip(self.geometry).ok_or_else(|| type_error("nothing has been segmented"))
    }

    /// The last frame as JavaScript sees it.
    pub fn result(&self) -> Result<Object> {
        let (engine, geometry) = self.done()?;
        let (regions, plan) = (engine.regions(), engine.plan());
        let object = Object::new();
        put(&object, "width", geometry.width())?;
        put(&object, "height", geometry.height())?;
        put(&object, "nRegions", regions.count)?;
        put(&object, "labels", Uint16Array::from(&self.labels[..]))?;
        let outputs = self.options.outputs;
        if outputs.table {
            put(&object, "regions", columns(&regions.table)?)?;
        }
        if outputs.table && plan.temporal().is_some() {
            put(&object, "motion", columns(&regions.motion)?)?;
        }
        if outputs.neighbors {
            put(&object, "neighbors", columns(&regions.neighbors)?)?;
        }
        if self.options.params.hierarchy.levels {
            put(&object, "merges", columns(&regions.merges)?)?;
        }
        Ok(object)
    }

    fn draw(&mut self, image: &JsValue, drawing: &Drawing) -> Result<Uint8ClampedArray> {
        let (_, geometry) = self.done()?;
        if drawing.fill.needs_mean_color() && !self.options.outputs.table {
            return Err(type_error("this fill needs the option regions"));
        }
        let mut image = Image::read(image, &mut Vec::new())?;
        let info = image.info;
        let (planes, strides) = image.planes_mut();
        let mut frame = frame_mut(info, planes, &strides)?;
        let width = geometry.width() as usize;
        let labels = Labels::new(geometry, &mut self.labels, width).map_err(thrown)?;
        if let Some(engine) = &mut self.engine {
            engine.draw(&mut frame, &labels, drawing).map_err(thrown)?;
        }
        Ok(Uint8ClampedArray::from(&image.bytes[..]))
    }
}

/// A frame to draw on, of as many planes as its format has.
fn frame_mut<'a>(
    info: gstsuperpixel::image::FrameInfo,
    planes: Vec<&'a mut [u8]>,
    strides: &[usize],
) -> Result<FrameMut<'a>> {
    let mut planes = planes.into_iter();
    let mut next = || planes.next().unwrap_or_default();
    let frame = match strides.len() {
        1 => FrameMut::new(info, [next()], strides),
        2 => FrameMut::new(info, [next(), next()], strides),
        3 => FrameMut::new(info, [next(), next(), next()], strides),
        _ => FrameMut::new(info, [next(), next(), next(), next()], strides),
    };
    frame.map_err(thrown)
}

/// Segments frames one after another, and keeps what that needs from call to call.
#[wasm_bindgen(skip_typescript)]
pub struct Segmenter {
    state: State,
}

#[wasm_bindgen]
impl Segmenter {
    /// Reads options; memory is taken with the first frame.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue) -> Result<Segmenter> {
        Ok(Self { state: State::new(options)? })
    }

    /// Segments the next frame.
    pub fn segment(&mut self, image: &JsValue, mask: &JsValue) -> Result<Object> {
        let mask = if mask.is_undefined() { self.state.options.mask.clone() } else { mask.clone() };
        self.state.segment(image, &mask)?;
        self.state.result()
    }

    /// Changes options from the next frame on.
    pub fn set(&mut self, options: &JsValue) -> Result<()> {
        self.state.options.change(options)
    }

    /// Forgets the frames before.
    pub fn reset(&mut self) {
        if let Some(engine) = &mut self.state.engine {
            engine.reset();
        }
    }

    /// Draws the regions of the last frame on an image of its size and format, and returns the bytes of a copy.
    pub fn draw(&mut self, image: &JsValue, options: &JsValue) -> Result<Uint8ClampedArray> {
        let mut drawing = Drawing { fill: Fill::None, boundaries: Some(Boundaries::default()) };
        if !options.is_undefined() {
            check_object("options", options)?;
            drawing = drawing_of(options)?;
        }
        self.state.draw(image, &drawing)
    }
}

/// Fills by their names.
const FILLS: [(&str, Fill); 3] =
    [("none", Fill::None), ("mean-color", Fill::MeanColor), ("labels", Fill::Labels)];

fn drawing_of(options: &JsValue) -> Result<Drawing> {
    let (mut fill, mut lines, mut is_lined) = (Fill::None, Boundaries::default(), true);
    for key in Reflect::own_keys(options)? {
        let Some(name) = key.as_string() else { return Err(type_error("options have no symbols")) };
        let value = Reflect::get(options, &key)?;
        match name.as_str() {
            _ if value.is_undefined() => {}
            "fill" => {
                let names = FILLS.iter().map(|(name, _)| *name).chain(["abstraction"]);
                let index = word(&name, names, &value)?;
                fill =
                    FILLS.get(index).map_or_else(|| Fill::Abstraction(Default::default()), |(_, fill)| *fill);
            }
            "width" => {
                lines.width = whole(&name, &value, 0, BOUNDARY_WIDTH.max)?;
                is_lined = lines.width > 0;
            }
            "color" => {
                let [r, g, b] = color(&name, &value)?;
                lines.color = u32::from_be_bytes([255, r, g, b]);
            }
            _ => return Err(type_error(&format!("draw has no option {name}; it takes fill, width, color"))),
        }
    }
    Ok(Drawing { fill, boundaries: is_lined.then_some(lines) })
}
