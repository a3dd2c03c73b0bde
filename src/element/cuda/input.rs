// SPDX-License-Identifier: MPL-2.0
//! Incoming frames and their masks, on their way to where stages on a device read them.

use super::memory::Producers;
use crate::cuda::access::Guard;
use crate::cuda::frame_mask::{FrameMask, FramePrior};
use crate::cuda::{Cuda, DeviceFrame, Staging};
use crate::element::mask::Counted;
use crate::error::Result;
use crate::image::{Frame, FrameInfo};
use crate::mask::{self, PriorPlane};

/// Memory of an incoming frame.
#[allow(clippy::large_enum_variant)] // Made once a frame; a box would allocate then.
pub(super) enum Input<'a> {
    /// Device memory, with the streams that its producer may still be busy on; 0 is the default stream.
    Device(DeviceFrame<'a>, Producers),
    /// Host memory.
    Host(&'a Frame<'a>),
}

impl<'a> Input<'a> {
    /// The frame in device memory, where work on the stream of `cuda` finds it whole. A frame of the host is uploaded to `staging` on the
    /// stream of `up`.
    pub fn on_device<'b>(
        self,
        cuda: &Cuda,
        up: &Cuda,
        frame: FrameInfo,
        staging: &'b mut Option<Staging>,
    ) -> Result<DeviceFrame<'b>>
    where
        'a: 'b,
    {
        match self {
            Self::Device(on_device, producers) => {
                for producer in producers.streams() {
                    // SAFETY: the stream of a memory of the frame, whose context the engine has adopted, or the default
                    // one; `DeviceMap` checked both.
                    unsafe { cuda.wait_for(producer)? };
                }
                Ok(on_device)
            }
            // The engine waits for the upload by itself.
            Self::Host(host) => in_place(staging, || Staging::new(up, frame))?.upload(host),
        }
    }
}

/// The frame with the mask that says which of its pixels count, if one does, and what orders accesses to that until it is dropped.
pub(super) fn masked<'a>(
    own: &'a mut Option<FrameMask>,
    counted: &Counted<'_>,
    cuda: &Cuda,
    up: &Cuda,
    on_device: DeviceFrame<'a>,
) -> Result<(DeviceFrame<'a>, Option<Guard<'a>>)> {
    let new = || FrameMask::new(up, *on_device.info());
    let made = match counted {
        Counted::All => return Ok((on_device, None)),
        Counted::Masked(plane) => {
            let made = in_place(own, new)?;
            made.upload(plane.bytes(), plane.revision())?;
            made
        }
        Counted::Alpha(_, alpha, least) => {
            let made = in_place(own, new)?;
            made.take_alpha(cuda, &on_device, *alpha, mask::least_code(*alpha, *least).into())?;
            made
        }
    };
    let (masked, access) = made.on(cuda, on_device)?;
    Ok((masked, Some(access)))
}

/// The frame with its prior, if it has one, as [`masked`].
pub(super) fn with_prior<'a>(
    own: &'a mut Option<FramePrior>,
    prior: Option<&PriorPlane>,
    cuda: &Cuda,
    up: &Cuda,
    on_device: DeviceFrame<'a>,
) -> Result<(DeviceFrame<'a>, Option<Guard<'a>>)> {
    let Some((numbers, revision)) = prior.map(PriorPlane::numbers) else { return Ok((on_device, None)) };
    let made = in_place(own, || FramePrior::new(up, *on_device.info()))?;
    made.upload(numbers, revision)?;
    let (with_prior, access) = made.on(cuda, on_device)?;
    Ok((with_prior, Some(access)))
}

/// The content of an option, made if there is none.
fn in_place<T>(own: &mut Option<T>, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
    match own {
        Some(own) => Ok(own),
        none => Ok(none.insert(make()?)),
    }
}
