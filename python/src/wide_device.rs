// SPDX-License-Identifier: MPL-2.0
//! Label maps of 32 bits on a device: frames there come down, since their regions are found on the CPU, and labels go back up.

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{
    Cuda, DeviceFrame, DeviceLabels, DeviceMemory, DevicePool, Intake, KeepsContext, LabelType, StridedImage,
};
use gstsuperpixel::error::Result;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, PixelFormat};
use gstsuperpixel::wide;

use crate::engines::{Target, Task};
use crate::error::Failure;
use crate::memory;
use crate::plane::shifted;
use crate::raw_frame::{Form, OUT_OF_RANGE, RawFrame};
use crate::watch::Watch;

/// An engine whose windows are clustered on a device. Each use leaves the thread's current context as it was.
pub struct WideDevice {
    plan: wide::Plan,
    frames: KeepsContext<WideFrames>,
}

struct WideFrames {
    intake: Intake,
    /// For masks.
    masks: Intake,
    labels: DevicePool,
    engine: wide::Engine<Cuda>,
    cuda: Cuda,
}

impl WideDevice {
    pub fn new(cuda: &Cuda, cpu: &Cpu, plan: wide::Plan) -> Result<Self> {
        let frames = KeepsContext::make(|| {
            let cuda = cuda.lane()?;
            Ok(WideFrames {
                intake: Intake::new(),
                masks: Intake::new(),
                labels: DevicePool::new(&cuda),
                engine: wide::Engine::new(cuda.clone(), cpu.clone(), plan.clone())?,
                cuda,
            })
        });
        Ok(Self { plan, frames: frames? })
    }

    /// Its plan.
    pub fn plan(&self) -> &wide::Plan {
        &self.plan
    }

    /// Segments a frame of the host, and returns the number of labels.
    pub fn segment_host(
        &mut self,
        frame: &Frame<'_>,
        labels: &mut [u32],
        stride: usize,
        look: impl FnMut() -> Result<(), Failure>,
    ) -> Result<u32, Failure> {
        self.frames.with_mut(|frames| frames.engine.segment(frame, labels, stride, look))
    }

    /// Segments frames on the device, and waits. Gives the memory of the labels, if that is ours, and the number of the last frame's.
    pub fn segment(
        &mut self,
        task: &Task<'_>,
        watch: &Watch,
    ) -> Result<(Option<DeviceMemory>, u32), Failure> {
        self.frames.with_mut(|frames| {
            let done = frames.segment(task, || watch.look_if_due());
            if done.is_err() {
                // Work on our stream may still use the caller's memory.
                let _ = frames.cuda.synchronize();
            }
            done
        })
    }
}

impl WideFrames {
    fn segment(
        &mut self,
        task: &Task<'_>,
        mut look: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(Option<DeviceMemory>, u32), Failure> {
        let Task { info, ref frames, target, kind, streams, .. } = *task;
        // `Call::first_label` has refused others.
        let first = if let LabelType::I32 { first } = kind { first } else { 0 };
        let cuda = self.cuda.clone();
        streams.wait_for_all(&cuda)?;
        let geometry = info.geometry;
        let (pixels, width) = (geometry.pixels(), geometry.width() as usize);
        let plane = pixels * kind.bytes();
        let (mut memory, (place, stride, apart)) = match target {
            Target::Given { address, stride, apart } => (None, (address, stride, apart)),
            Target::Own => {
                let memory = self.labels.take(frames.len() * plane)?;
                let place = (memory.address(), width * kind.bytes(), plane as u64);
                (Some(memory), place)
            }
        };
        let mut map = memory::filled("labels of an image", pixels, 0_i32)?;
        let mut count = 0;
        for (i, frame) in frames.iter().enumerate() {
            let host = self.bring_down(frame, task.check)?;
            count =
                self.engine.segment(&host.frame()?, bytemuck::cast_slice_mut(&mut map), width, &mut look)?;
            map.iter_mut().for_each(|label| *label = shifted(*label, first));
            let address = place + i as u64 * apart;
            // SAFETY: `device.rs` has checked the target, or it is ours and has room for all planes. Our stream waits for the caller's,
            // and `write` waits for ours.
            unsafe { DeviceLabels::from_raw(address, stride, geometry, kind)? }.write(&cuda, &map)?;
        }
        if let Some(memory) = &mut memory {
            memory.mark()?;
        }
        streams.precede_all(&cuda)?;
        Ok((memory, count))
    }

    /// Copies a frame and its mask to the host.
    fn bring_down(&mut self, frame: &RawFrame, check: bool) -> Result<HostImage, Failure> {
        let Self { intake, masks, cuda, .. } = self;
        let RawFrame { info, address, form, mask, .. } = *frame;
        match form {
            Form::Rows(stride) => {
                // SAFETY: `device.rs` has checked the frame and holds it, and our stream waits for the caller's.
                let frame = unsafe { DeviceFrame::from_planes(info, [address, 0, 0], [stride, 0, 0])? };
                intake.copy(cuda, &frame)?;
            }
            Form::Strided(samples, strides, scale) => {
                // SAFETY: as above.
                let image = unsafe { StridedImage::from_raw(info, address, samples, strides, scale, mask)? };
                if intake.pack(cuda, &image, check)?.is_none() {
                    return Err(Failure::Value(OUT_OF_RANGE.into()));
                }
            }
        }
        let (pixels, stride) = host_copy(intake, info)?;
        let mut host = HostImage { info, pixels, stride, mask: None };
        if let Some((address, stride)) = mask {
            let bytes = FrameInfo::new(info.geometry, PixelFormat::Gray8);
            // SAFETY: as above; a mask has a byte a pixel.
            let frame = unsafe { DeviceFrame::from_planes(bytes, [address, 0, 0], [stride, 0, 0])? };
            masks.copy(cuda, &frame)?;
            host.mask = Some(host_copy(masks, bytes)?.0);
        }
        Ok(host)
    }
}

/// An image in the host's memory, in rows without gaps.
struct HostImage {
    info: FrameInfo,
    pixels: Vec<u8>,
    stride: usize,
    mask: Option<Vec<u8>>,
}

impl HostImage {
    fn frame(&self) -> Result<Frame<'_>> {
        let frame = Frame::new(self.info, &[&self.pixels], &[self.stride])?;
        let width = self.info.geometry.width() as usize;
        self.mask.as_ref().map_or(Ok(frame), |mask| frame.with_mask(mask, width))
    }
}

/// Copies what an intake has taken last: its bytes, and those of a row.
fn host_copy(intake: &mut Intake, info: FrameInfo) -> Result<(Vec<u8>, usize)> {
    // Arrays have one plane.
    let (row, rows) = info.format.planes(info.geometry).next().unwrap_or((0, 0));
    let mut pixels = memory::filled("a copy of an image", row * rows, 0_u8)?;
    intake.download(&mut FrameMut::new(info, [&mut pixels[..]], &[row])?)?;
    Ok((pixels, row))
}
