// SPDX-License-Identifier: MPL-2.0
//! Frames of the host that a device has drawn on: they replace those that came.

use crate::cpu::memory;
use crate::cuda::host_frames::{HostFrame, HostLayout};
use crate::element::frame::shapes;
use crate::image::{FrameInfo, MOST_PLANES};
use crate::video_map::{Layout, Reason};

/// Host memory for a drawn frame, and the layout of its planes.
pub(super) struct Drawn {
    pub host: HostFrame,
    pub layout: HostLayout,
}

impl Drawn {
    /// Replaces the frame by the drawn one, whose pixels are all new. The old memory, which others may hold or a pool
    /// may want back, does not change.
    pub fn replace(
        mut self,
        buffer: &mut gst::Buffer,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
        crowded: bool,
    ) -> Result<(), Reason> {
        if host_layout(buffer, info, frame)? != self.layout {
            return Err("it has changed while it was in flight; make its producer leave it alone".into());
        }
        if self.layout.has_gaps() {
            let came = buffer.map_readable().map_err(|e| e.to_string())?;
            self.layout.fill_gaps(&came, self.host.as_mut());
        }
        let memory = if crowded {
            let mut copy = memory::Array::new();
            memory::append(&mut copy, "drawn frame", self.host.as_ref()).map_err(|e| e.to_string())?;
            gst::Memory::from_mut_slice(copy)
        } else {
            gst::Memory::from_mut_slice(self.host)
        };
        let mut fresh = buffer.copy();
        fresh.make_mut().replace_all_memory(memory);
        *buffer = fresh;
        Ok(())
    }
}

/// Layout of a buffer's planes.
pub(super) fn host_layout(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    frame: FrameInfo,
) -> Result<HostLayout, Reason> {
    let layout = Layout::of(buffer, info, shapes(frame))?;
    let (mut offsets, mut strides) = ([0; MOST_PLANES], [0; MOST_PLANES]);
    for (i, plane) in layout.planes().iter().enumerate() {
        (offsets[i], strides[i]) = (plane.offset, plane.stride);
    }
    HostLayout::new(frame, buffer.size(), offsets, strides).map_err(|e| e.to_string())
}
