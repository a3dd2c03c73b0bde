// SPDX-License-Identifier: MPL-2.0
//! Frames in device memory that have been checked.

use gstsuperpixel::cuda::{DeviceFrame, SampleType, ValueScale};
use gstsuperpixel::error::Result;
use gstsuperpixel::image::{FrameInfo, Geometry};

/// A frame in device memory that has been checked: whoever made it keeps what [`DeviceFrame::from_planes`] and
/// [`StridedImage::from_raw`] ask for.
#[derive(Clone, Copy)]
pub struct RawFrame {
    pub info: FrameInfo,
    pub address: u64,
    pub form: Form,
    /// Address and bytes from row to row of its mask.
    pub mask: Option<(u64, u32)>,
    pub prior: Option<RawPrior>,
}

/// Numbers on a device that say which areas no region leaves, as [`DeviceFrame::with_prior`] takes them.
#[derive(Clone, Copy)]
pub struct RawPrior {
    pub address: u64,
    pub bytes: u32,
    pub geometry: Geometry,
    /// Samples from row to row.
    pub stride: u32,
}

/// How pixels lie.
#[derive(Clone, Copy)]
pub enum Form {
    /// Together, with so many bytes from row to row.
    Rows(u32),
    /// Samples anywhere, with so many bytes from one row, one pixel, one channel to the next.
    Strided(SampleType, [i64; 3], ValueScale),
}

/// The error of values that no range is said for.
pub const OUT_OF_RANGE: &str = "an image on the device has a value that is no number, or without data_range one that is not in [0, 1], which has been cut \
     off; data_range=(low, high) says what black and white are, a mask leaves pixels out, and nan_to_num replaces NaN";

/// A frame with the mask and the prior of `raw`, if it has them.
pub fn with_areas<'a>(frame: DeviceFrame<'a>, raw: &RawFrame) -> Result<DeviceFrame<'a>> {
    // SAFETY: `device.rs` has checked both and holds them; streams are in order as said in `Frames::put`.
    unsafe {
        let frame = raw.mask.map_or(Ok(frame), |(address, stride)| frame.with_mask(address, stride))?;
        raw.prior.map_or(Ok(frame), |RawPrior { address, bytes, geometry, stride }| {
            frame.with_prior(address, bytes, geometry, stride)
        })
    }
}
