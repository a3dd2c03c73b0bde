// SPDX-License-Identifier: MPL-2.0
//! Frames of one size side by side on a device: an engine for as many, and memory for those that are copied first.

use gstsuperpixel::buffers::{BatchResults, DeviceResults};
use gstsuperpixel::cuda::{Cuda, DeviceFrame, Intake, StridedImage};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Result;
use gstsuperpixel::params::Outputs;
use gstsuperpixel::plan::Plan;

use crate::error::Failure;
use crate::raw_frame::{Form, OUT_OF_RANGE, RawFrame, with_areas};

/// Frames of more pixels fill a device alone: side by side they would take memory for little.
const MOST_PIXELS: usize = 1 << 20;
/// Frames from which on more of them do not go faster.
const MOST_FRAMES: usize = 1024;
/// Bytes of device memory that a pixel takes, about, and a frame beside.
const PIXEL_BYTES: usize = 320;
const FRAME_BYTES: usize = 1 << 20;
/// Part of the free memory that they may take.
const MEMORY_SHARE: usize = 8;

/// Engine and memory for frames side by side.
pub struct SideBySide {
    engine: Engine<Cuda>,
    room: usize,
    intakes: Vec<Intake>,
    /// Frames of the last call.
    frames: usize,
}

impl SideBySide {
    /// How many of `frames` come at once, where nobody says; 1 where each is better off alone.
    pub fn at_once(cuda: &Cuda, plan: &Plan, frames: usize) -> Result<usize> {
        let pixels = plan.frame().geometry.pixels();
        if frames < 2 || pixels > MOST_PIXELS || plan.temporal().is_some() {
            return Ok(1);
        }
        let fitting = cuda.free_memory()? / MEMORY_SHARE / (pixels * PIXEL_BYTES + FRAME_BYTES);
        let most = fitting.clamp(1, MOST_FRAMES);
        // In equal parts.
        Ok(frames.div_ceil(frames.div_ceil(most)))
    }

    /// The one that there is, or another with room for so many frames: of one for many more each frame would have few multiprocessors.
    pub fn fitting<'a>(
        own: &'a mut Option<Self>,
        cuda: &Cuda,
        plan: &Plan,
        frames: usize,
    ) -> Result<&'a mut Self> {
        let fits = |side: &Self| (frames..=4 * frames).contains(&side.room) && side.engine.plan() == plan;
        if !own.as_ref().is_some_and(fits) {
            // Its memory first, or both would be there.
            *own = None;
            let room = u32::try_from(frames).unwrap_or(u32::MAX);
            let engine = Engine::for_batch(cuda, plan, room)?;
            *own = Some(Self { engine, room: frames, intakes: Vec::new(), frames: 0 });
        }
        Ok(own.as_mut().expect("it has just been made"))
    }

    /// Puts frames on the stream, all in one set of launches. `check`: values are looked at before they are used.
    pub fn submit(
        &mut self,
        cuda: &Cuda,
        raw: &[RawFrame],
        check: bool,
        outputs: Outputs,
    ) -> Result<(), Failure> {
        let Self { engine, intakes, .. } = self;
        if raw.iter().any(|frame| matches!(frame.form, Form::Strided(..))) && intakes.len() < raw.len() {
            intakes.resize_with(raw.len(), Intake::new);
        }
        let mut intakes = intakes.iter_mut();
        let mut frames: Vec<DeviceFrame<'_>> = Vec::with_capacity(raw.len());
        for own in raw {
            let RawFrame { info, address, form, mask, .. } = *own;
            let frame = match form {
                // SAFETY: `device.rs` has checked the frame and holds it; streams are in order as said in `Frames::put`.
                Form::Rows(stride) => unsafe {
                    DeviceFrame::from_planes(info, [address, 0, 0], [stride, 0, 0])?
                },
                Form::Strided(samples, strides, scale) => {
                    // SAFETY: as above, and so is the mask.
                    let image =
                        unsafe { StridedImage::from_raw(info, address, samples, strides, scale, mask)? };
                    let intake = intakes.next().expect("there is one for each");
                    intake.pack(cuda, &image, check)?.ok_or_else(|| Failure::Value(OUT_OF_RANGE.into()))?
                }
            };
            frames.push(with_areas(frame, own)?);
        }
        self.frames = frames.len();
        Ok(engine.submit(&DeviceFrame::of_batch(&frames)?, &mut None, outputs)?)
    }

    /// Results of the last call's last frame.
    pub fn last_results(&self) -> Result<DeviceResults<'_>> {
        self.engine.results_of(self.frames.saturating_sub(1))
    }

    /// Results of the last call.
    pub fn results(&self) -> Result<BatchResults<'_>> {
        self.engine.batch_results()
    }

    /// Returns true if a value of the last calls was out of range. Waits for them.
    pub fn was_cut_off(&mut self) -> Result<bool> {
        let mut any = false;
        for intake in &mut self.intakes {
            any |= intake.was_cut_off()?;
        }
        Ok(any)
    }
}
