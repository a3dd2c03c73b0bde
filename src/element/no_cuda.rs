// SPDX-License-Identifier: MPL-2.0
//! Replaces `cuda/` in builds without CUDA: no device opens, so no value of these types exists.

use crate::any_engine::Continuity;
use crate::bad_buffers::Failure;
use crate::error::{Error, Result};
use crate::mask::PriorPlane;
use crate::parameter::parameters;
use crate::plan::Plan;
use crate::video_map::Reason;

use super::mask::Counted;
use super::task::{FrameResults, Stream, Task};

const REASON: &str = "not in this build; build with the cargo feature `cuda` or use the cpu backend";

pub(super) fn device_caps() -> Option<gst::Caps> {
    None
}

pub(super) fn is_on_device(_: &gst::CapsFeaturesRef) -> bool {
    false
}

pub(super) fn unavailable() -> Option<&'static str> {
    Some(REASON)
}

pub(super) fn forget_context(_: &gst::Element) {}

/// Builds without CUDA have no properties of a device.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct DeviceSettings {}

impl DeviceSettings {
    pub(super) fn depth(&self) -> usize {
        0
    }

    pub(super) fn wait(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

parameters!(DeviceSettings {});

pub(super) enum DeviceContext {}

impl DeviceContext {
    pub(super) fn of(_: &gst::BufferRef, stream: &Stream) -> Result<Option<Self>, Reason> {
        if stream.on_device { Err(REASON.into()) } else { Ok(None) }
    }
}

pub(super) enum CudaBackend {}

impl CudaBackend {
    pub(super) fn open(_: &DeviceSettings) -> Result<Self> {
        Err(Error::Backend { backend: "cuda", reason: REASON.into() })
    }

    pub(super) fn describe(&self) -> String {
        match *self {}
    }

    pub(super) fn at(self, _: DeviceContext) -> Result<Self> {
        match self {}
    }

    pub(super) fn engine(self, _: Plan, _: usize) -> Result<CudaEngine> {
        match self {}
    }
}

pub(super) enum CudaEngine {}

impl CudaEngine {
    pub(super) fn into_backend(self) -> CudaBackend {
        match self {}
    }

    pub(super) fn is_broken(&self) -> bool {
        match *self {}
    }

    pub(super) fn reaches(&self, _: &DeviceContext) -> bool {
        match *self {}
    }

    pub(super) fn figures(&self) -> [(&'static str, u64); 4] {
        match *self {}
    }

    pub(super) fn synchronize(&self) {
        match *self {}
    }

    pub(super) fn start(
        &mut self,
        _: &mut gst::BufferRef,
        _: &Stream,
        _: Task,
        _: (Counted<'_>, Option<&PriorPlane>),
    ) -> Result<Pending, Failure> {
        match *self {}
    }
}

impl Continuity for CudaEngine {
    fn plan(&self) -> &Plan {
        match *self {}
    }

    fn change(&mut self, _: &Plan) -> Result<bool> {
        match *self {}
    }

    fn reset(&mut self) {
        match *self {}
    }

    fn next_id(&mut self) -> Result<u32> {
        match *self {}
    }

    fn set_next_id(&mut self, _: u32) -> Result<()> {
        match *self {}
    }
}

pub(super) enum Pending {}

impl Pending {
    pub(super) fn wait(&self) {
        match *self {}
    }

    pub(super) fn finish(
        self,
        _: &mut gst::Buffer,
        _: &gst_video::VideoInfo,
        _: Option<&mut CudaEngine>,
    ) -> Result<FrameResults, Failure> {
        match self {}
    }
}
