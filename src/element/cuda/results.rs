// SPDX-License-Identifier: MPL-2.0
//! Buffers of the metadata, whose bytes stay on the device until the first map.

use std::sync::Arc;

use crate::cuda::{Part, Results};
use crate::element::task::{FrameResults, Task, advised};
use crate::image::Geometry;
use crate::lazy_memory::{self, LazyBytes};

/// One part of a frame's results.
struct PartOf {
    results: Arc<Results>,
    part: Part,
}

// SAFETY: results keep a part in one place of as many bytes as long as they live; they make it under a lock.
unsafe impl LazyBytes for PartOf {
    fn len(&self) -> usize {
        self.results.bytes(self.part)
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn address(&self) -> Result<*mut u8, String> {
        let address = self.results.address(self.part);
        address.map_err(|error| format!("cannot read {:?}: {}", self.part, advised(&error)))
    }
}

/// Collects the results to attach.
pub(super) fn found(
    regions: u32,
    kept: Option<Results>,
    geometry: Geometry,
    task: Task,
) -> Result<FrameResults, gst::ErrorMessage> {
    let mut found =
        FrameResults { regions, labels: None, table: None, motion: None, neighbors: None, hierarchy: None };
    if let Some(kept) = kept.map(Arc::new) {
        found.labels = Some(label_buffer(&kept, geometry)?);
        found.table = task.outputs.table.then(|| buffer(&kept, Part::Table));
        found.neighbors = task.outputs.neighbors.then(|| buffer(&kept, Part::Neighbors));
        found.hierarchy = task.merges.then(|| buffer(&kept, Part::Merges));
        let has_motion = regions == 0 || kept.bytes(Part::Motion) > 0;
        found.motion = (task.motion && has_motion).then(|| buffer(&kept, Part::Motion));
    }
    Ok(found)
}

/// A buffer that maps to a part of a frame's results.
fn buffer(results: &Arc<Results>, part: Part) -> gst::Buffer {
    let source: Arc<dyn LazyBytes> = Arc::new(PartOf { results: results.clone(), part });
    lazy_memory::buffer(&source)
}

/// A label buffer that downloads the labels on the first map: GRAY16_LE with a video meta.
fn label_buffer(results: &Arc<Results>, geometry: Geometry) -> Result<gst::Buffer, gst::ErrorMessage> {
    let mut buffer = buffer(results, Part::Labels);
    let failed = |reason: String| {
        gst::error_msg!(gst::LibraryError::Failed, ("Cannot describe the label map: {reason}"))
    };
    let stride = [i32::try_from(results.label_stride()).map_err(|e| failed(e.to_string()))?];
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), gst_video::VideoFormat::Gray16Le);
    let writable = buffer.get_mut().ok_or_else(|| failed("a new buffer is shared".into()))?;
    gst_video::VideoMeta::add_full(writable, flags, format, geometry.width, geometry.height, &[0], &stride)
        .map_err(|e| failed(e.to_string()))?;
    Ok(buffer)
}
