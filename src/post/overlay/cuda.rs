// SPDX-License-Identifier: MPL-2.0
//! Stage `overlay` on a CUDA device: one launch, for an abstraction three.

use super::native;
use crate::backend;
use crate::buffers::cuda::FrameBuffers;
use crate::color::Yuv;
use crate::cuda::abi::DrawArgs;
use crate::cuda::access::Kind;
use crate::cuda::kernels::draw;
use crate::cuda::launch::check;
use crate::cuda::tuning::TILE_THREADS;
use crate::cuda::{Cuda, DeviceFrame, HostLabels};
use crate::error::{Error, Result};
use crate::image::FrameInfo;
use crate::params::{Drawing, Fill};
use crate::plan::Plan;
use crate::post::abstraction::cuda::Abstraction;

pub(crate) struct Overlay {
    plan: Plan,
    /// Made for the first frame that asks for it.
    abstraction: Option<Box<Abstraction>>,
    kernel: draw::Kernel,
    info: FrameInfo,
    yuv: Yuv,
}

impl Overlay {
    pub fn new(cuda: &Cuda, plan: &Plan) -> Result<Self> {
        let kernel = cuda.device.kernel(draw::KERNEL, "overlay")?;
        Ok(Self {
            plan: plan.clone(),
            abstraction: None,
            kernel,
            info: plan.frame,
            yuv: Yuv::new(&plan.frame),
        })
    }
}

impl backend::Overlay<Cuda> for Overlay {
    fn draw(
        &mut self,
        frame: &mut DeviceFrame<'_>,
        buffers: &FrameBuffers,
        _: &HostLabels<'_>,
        drawing: &Drawing,
    ) -> Result<()> {
        self.info.check(frame.info())?;
        let cuda = &buffers.queue.cuda;
        frame.check_context(cuda)?;
        let memory = buffers.drawn_memory()?;
        if let Fill::Abstraction(params) = &drawing.fill {
            if buffers.drawn.is_some() {
                return Err(Error::Batch("an abstraction is for frames that come one by one".into()));
            }
            check("overlay", buffers.queue.cuda.device.context.bind_to_thread())?;
            let _access = frame.access(&buffers.queue.cuda, Kind::Write)?;
            let abstraction = match &mut self.abstraction {
                Some(abstraction) => abstraction,
                none => none.insert(Box::new(Abstraction::new(
                    &buffers.queue.cuda,
                    &self.plan,
                    buffers.max_regions,
                    params,
                )?)),
            };
            abstraction.draw(frame, buffers, params)?;
        } else if let Some(abstraction) = &mut self.abstraction {
            abstraction.forget();
        }
        let [alpha, r, g, b] = drawing.boundaries.map_or(0, |b| b.color).to_be_bytes();
        let color = native(&self.info, &self.yuv, [r, g, b]);
        let shape = DrawArgs {
            label_stride: buffers.geometry.width,
            fill: match drawing.fill {
                Fill::None => 0,
                Fill::MeanColor => 1,
                Fill::Labels => 2,
                Fill::Abstraction(_) => 0,
            },
            width: drawing.boundaries.map_or(0, |b| b.width),
            alpha: u32::from(alpha),
            color: color.map(u32::from),
        };
        if shape.fill == 0 && shape.width == 0 {
            return Ok(());
        }
        check("overlay", buffers.queue.cuda.device.context.bind_to_thread())?;
        let _access = frame.access(&buffers.queue.cuda, Kind::Write)?;
        let args = draw::Args {
            labels: buffers.labels().of_frame(cuda, memory).address(),
            means: buffers.means.of_frame(cuda, memory).address(),
            tracks: buffers.tracks_of(memory),
            frame: &frame.args(),
            args: &shape,
        };
        // SAFETY: the frame was compared with the plan above, for which `FrameBuffers::new` has made labels, and means and tracks for
        // each of the most regions; `_access` orders the frame's other users.
        unsafe { buffers.queue.launch_alone(&self.kernel, buffers.tiles, TILE_THREADS, &args) }
    }
}
