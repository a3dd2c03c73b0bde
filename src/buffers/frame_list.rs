// SPDX-License-Identifier: MPL-2.0
//! Where the frames of a batch are, as kernels find them.

use bytemuck::Zeroable;

use crate::cuda::abi::{FramePlanes, PlaneList};
use crate::cuda::kernels::list_planes;
use crate::cuda::launch::Shape;
use crate::cuda::memory::Memory;
use crate::cuda::tuning::LISTED_FRAMES;
use crate::cuda::{Cuda, DeviceFrame};
use crate::error::Result;

/// Where the frames of a batch are, in device memory, as the last one submitted has left it.
pub(super) struct FrameList {
    pub list: Memory<FramePlanes>,
    write: list_planes::Kernel,
}

impl FrameList {
    /// `None` for a handle without batch.
    pub fn of(cuda: &Cuda) -> Result<Option<Self>> {
        let Some(batch) = &cuda.batch else { return Ok(None) };
        let empty = vec![FramePlanes::zeroed(); batch.frames() as usize];
        Ok(Some(Self {
            list: Memory::with(cuda, "list of frames", &empty)?,
            write: cuda.device.kernel(list_planes::KERNEL, "ingest")?,
        }))
    }

    /// Writes the list on the stream, behind all that reads the last one: for each memory of a frame its index in the batch, if it has
    /// one.
    pub fn fill(&self, cuda: &Cuda, frame: &DeviceFrame<'_>, memories: &[Option<usize>]) -> Result<()> {
        const MOST: usize = LISTED_FRAMES as usize;
        const ABSENT: FramePlanes = FramePlanes { plane: [0; 3], mask: 0, prior: 0, absent: 1 };
        for (i, part) in memories.chunks(MOST).enumerate() {
            let mut given = PlaneList { frames: [ABSENT; MOST] };
            for (to, member) in given.frames.iter_mut().zip(part) {
                *to = member.map_or(ABSENT, |member| frame.each()[member].places());
            }
            let (list, first, count) = (self.list.address(), (i * MOST) as u32, part.len() as u32);
            let args = list_planes::Args { list, given: &given, first, count };
            // SAFETY: `of` has made an entry for each frame of the largest batch, which `Backend::check` has compared with this one.
            unsafe { self.write.launch(&cuda.stream, Shape::of((1, 1), LISTED_FRAMES), &args)? };
        }
        Ok(())
    }
}
