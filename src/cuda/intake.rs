// SPDX-License-Identifier: MPL-2.0
//! Frames in another library's device memory: read in place, or through a copy if their addresses vary.
//!
//! The stages of a frame are replayed from a graph, which is recorded for fixed addresses. Recording takes the host
//! longer than the device takes for a frame, and launching another graph than the last one is slower: frames of
//! 1920x1080 from 240 addresses in turn took 0.216 ms in place and 0.163 through a copy, from 6 addresses 0.175 and
//! 0.185 (H100). So a copy pays wherever addresses vary, and only those that frames keep coming from are read in place.

use super::frame::{DeviceFrame, Planes, Staging};
use super::handle::Cuda;
use super::strided::{Packing, StridedImage};
use crate::error::{Error, Result};
use crate::image::{FrameInfo, FrameMut};

/// Addresses that are remembered: enough for a pool of frames, not for a data set.
const REMEMBERED: usize = 8;
/// Frames at one address that are copied before later ones are read in place.
const COPIED: u32 = 2;

/// Decides for each frame between reading in place and copying.
#[derive(Default)]
pub struct Intake {
    /// Layouts of the last frames, the latest last, and the number of frames with each.
    recent: Vec<(Planes, u32)>,
    staging: Option<Staging>,
    packing: Option<Packing>,
}

impl Intake {
    /// An intake that has seen no frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the frame for an engine on `cuda`: itself, or a copy that is made on the stream of `cuda`.
    ///
    /// # Errors
    ///
    /// No memory for the copy; errors of the driver.
    pub fn take<'a>(&'a mut self, cuda: &Cuda, frame: &DeviceFrame<'a>) -> Result<DeviceFrame<'a>> {
        if self.keeps_coming(frame.planes) { Ok(*frame) } else { self.copy(cuda, frame) }
    }

    /// Copies the frame on the stream of `cuda`. Once that has passed, the frame itself is not needed.
    ///
    /// # Errors
    ///
    /// As [`Intake::take`].
    pub fn copy(&mut self, cuda: &Cuda, frame: &DeviceFrame<'_>) -> Result<DeviceFrame<'_>> {
        frame.check_context(cuda)?;
        Self::fitting(&mut self.staging, cuda, *frame.info())?.copy(cuda, frame)
    }

    /// Packs the image to a frame on the stream of `cuda`. Once that has passed, the image itself is not needed.
    /// `check` waits, and returns `None` if a value is no number, or a float without a scale not in [0, 1].
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

    /// Copies the frame that [`Intake::copy`] or [`Intake::pack`] gave last to the host, without its mask, and waits for it.
    ///
    /// # Errors
    ///
    /// A frame of another kind, or none; errors of the driver.
    pub fn download(&mut self, to: &mut FrameMut<'_>) -> Result<()> {
        self.staging.as_mut().ok_or(Error::NotSegmented)?.download(to)
    }

    /// Returns true if an image packed since the last call had values that are no numbers, or floats without a scale outside of
    /// [0, 1]. Waits for it.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    pub fn was_cut_off(&mut self) -> Result<bool> {
        self.packing.as_mut().map_or(Ok(false), Packing::was_cut_off)
    }

    /// Staging for frames of that kind.
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
        Planes { info, addresses: [address, 0, 0, 0], strides: [12, 0, 0, 0], mask: None, prior: None }
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
