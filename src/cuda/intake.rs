// SPDX-License-Identifier: MPL-2.0
//! Frames of another library's device memory: taken where they are, or through a copy where no two come from one place.
//!
//! The stages of a frame are replayed from a graph, and a graph is recorded for addresses. Recording takes the host longer than the
//! device takes for a frame, and a graph that is not the last one is slower to launch: frames of 1920x1080 from 240 places in turn took
//! 0.216 ms where they were and 0.163 through a copy, from 6 places 0.175 and 0.185 (H100). A copy costs less than that is worth
//! wherever places vary, so only a place that frames have kept coming from is read directly.

use super::frame::{DeviceFrame, Planes, Staging};
use super::handle::Cuda;
use super::strided::{Packing, StridedImage};
use crate::error::Result;
use crate::image::FrameInfo;

/// Places that are remembered: those of a pool of frames, not of a data set.
const REMEMBERED: usize = 8;
/// Frames of a place that are copied before others are read there.
const COPIED: u32 = 2;

/// The way in for frames that are in device memory already.
#[derive(Default)]
pub struct Intake {
    /// Places of the last frames, the latest last, and how often each has come.
    recent: Vec<(Planes, u32)>,
    staging: Option<Staging>,
    packing: Option<Packing>,
}

impl Intake {
    /// An intake that has seen no frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// The frame as an engine on `cuda` had better take it: itself, or a copy that is made on the stream of `cuda`.
    ///
    /// # Errors
    ///
    /// No memory for the copy; what the driver says.
    pub fn take<'a>(&'a mut self, cuda: &Cuda, frame: &DeviceFrame<'a>) -> Result<DeviceFrame<'a>> {
        if self.keeps_coming(frame.planes) { Ok(*frame) } else { self.copy(cuda, frame) }
    }

    /// A copy of the frame, made on the stream of `cuda`: once that has passed, the frame itself is not needed.
    ///
    /// # Errors
    ///
    /// As [`Intake::take`].
    pub fn copy(&mut self, cuda: &Cuda, frame: &DeviceFrame<'_>) -> Result<DeviceFrame<'_>> {
        frame.check_context(cuda)?;
        Self::fitting(&mut self.staging, cuda, *frame.info())?.copy(cuda, frame)
    }

    /// The image as a frame of packed pixels, made on the stream of `cuda`: once that has passed, the image itself is not needed.
    /// `check` waits, and gives nothing where floats are not in [0, 1].
    ///
    /// # Errors
    ///
    /// As [`Intake::take`].
    pub fn pack(
        &mut self,
        cuda: &Cuda,
        image: &StridedImage<'_>,
        check: bool,
    ) -> Result<Option<DeviceFrame<'_>>> {
        let packing = match self.packing.take().filter(|packing| packing.is_on(cuda)) {
            Some(packing) => packing,
            None => Packing::new(cuda)?,
        };
        let packing = self.packing.insert(packing);
        let staging = Self::fitting(&mut self.staging, cuda, *image.info())?;
        if check {
            packing.forget()?;
        }
        let frame = packing.pack(image, staging)?;
        Ok(if check && packing.was_cut_off()? { None } else { Some(frame) })
    }

    /// Whether floats of an image that was packed since this was asked last were not in [0, 1], and have been cut off. Waits for it.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn was_cut_off(&mut self) -> Result<bool> {
        self.packing.as_mut().map_or(Ok(false), Packing::was_cut_off)
    }

    /// Staging for such frames.
    fn fitting<'a>(own: &'a mut Option<Staging>, cuda: &Cuda, info: FrameInfo) -> Result<&'a mut Staging> {
        let fits = |staging: &Staging| {
            let own = staging.frame();
            *own.info() == info && own.context() == Some(cuda.context_handle())
        };
        Ok(match own.take().filter(fits) {
            Some(staging) => own.insert(staging),
            None => own.insert(Staging::new(cuda, info)?),
        })
    }

    fn keeps_coming(&mut self, planes: Planes) -> bool {
        let seen = match self.recent.iter().position(|(place, _)| *place == planes) {
            Some(at) => self.recent.remove(at).1,
            None => 0,
        };
        if self.recent.len() == REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push((planes, (seen + 1).min(COPIED)));
        seen >= COPIED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{FrameInfo, Geometry, PixelFormat};

    fn planes(address: u64) -> Planes {
        let info = FrameInfo::new(Geometry::new(4, 3).unwrap(), PixelFormat::Rgb);
        Planes { info, addresses: [address, 0, 0, 0], strides: [12, 0, 0, 0], mask: None }
    }

    #[test]
    fn a_place_is_read_directly_once_frames_keep_coming_from_it() {
        let mut intake = Intake::new();
        for round in 0..5 {
            for address in 0..REMEMBERED as u64 {
                assert_eq!(intake.keeps_coming(planes(address)), round >= 2, "{round} {address}");
            }
        }
        for address in (0..=REMEMBERED as u64).cycle().skip(REMEMBERED).take(50) {
            assert!(!intake.keeps_coming(planes(100 + address)));
        }
        assert_eq!(intake.recent.len(), REMEMBERED);
    }
}
