// SPDX-License-Identifier: MPL-2.0
//! Streams of a batch, in the memory of a CUDA device: which go on from a frame, and what is kept of those that have none in a batch.

use super::device::{NEXT_ID, State};
use crate::cuda::Cuda;
use crate::cuda::memory::Memory;
use crate::error::Result;

impl State {
    /// An array of every stream of a batch, or that of the only one.
    pub(super) fn of_streams<'a, T>(
        &self,
        cuda: &'a Cuda,
        memory: &'a Memory<T>,
    ) -> impl Iterator<Item = Memory<T>> + use<'a, T> {
        (0..self.go_on.len()).map(|stream| memory.of_frame(cuda, stream))
    }

    /// Final clusters of the last frame, in a batch of every stream's.
    pub fn carried_of_streams<'a>(&'a self, cuda: &'a Cuda) -> impl Iterator<Item = Memory<u32>> + use<'a> {
        self.of_streams(cuda, &self.carried[self.current])
    }

    /// The array with the identity of the next new region, and its index.
    pub(super) fn next_ids(&self) -> (&Memory<u32>, usize) {
        self.merged.as_ref().map_or((&self.state, NEXT_ID), |merged| (&merged.next_id, 0))
    }

    /// Discards the frames of a stream before.
    pub fn forget_stream(&mut self, stream: usize) {
        if let Some(goes_on) = self.go_on.get_mut(stream) {
            *goes_on = false;
        }
    }

    /// Returns true if the next frame of a stream is a warm start.
    pub fn goes_on(&self, stream: usize) -> bool {
        self.go_on[stream]
    }

    /// Has the next launches work on streams that go on, or on those that begin.
    pub fn select(&mut self, warm: bool) {
        self.warm = warm;
    }

    /// Completes a frame of a stream, from which its next one starts warm.
    pub fn complete(&mut self, stream: usize) {
        self.go_on[stream] = true;
    }

    /// Keeps the last frame of each stream that has none in this batch, although buffers swap. `first_labels` is the first label plane.
    pub fn hold_others(
        &self,
        cuda: &Cuda,
        first_labels: &Memory<u16>,
        is_there: impl Fn(usize) -> bool,
    ) -> Result<()> {
        (0..self.go_on.len())
            .filter(|&stream| self.go_on[stream] && !is_there(stream))
            .try_for_each(|stream| self.hold(cuda, stream, first_labels))
    }

    /// The last frame of a stream becomes this one.
    fn hold(&self, cuda: &Cuda, stream: usize, first_labels: &Memory<u16>) -> Result<()> {
        let (now, last) = (self.current, self.current ^ 1);
        fn copy<T>(cuda: &Cuda, stream: usize, from: &Memory<T>, to: &Memory<T>) -> Result<()> {
            to.of_frame(cuda, stream).copy_from(cuda, "streams", &from.of_frame(cuda, stream))
        }
        copy(cuda, stream, &self.slots[last], &self.slots[now])?;
        copy(cuda, stream, &self.carried[last], &self.carried[now])?;
        copy(cuda, stream, &self.features[last], &self.features[now])?;
        copy(cuda, stream, &self.thumbnails[last], &self.thumbnails[now])?;
        copy(cuda, stream, &self.tracks[last], &self.tracks[now])?;
        if let Some(second) = &self.labels {
            let planes = [first_labels, second];
            copy(cuda, stream, planes[last], planes[now])?;
        }
        if let Some(merged) = &self.merged {
            copy(cuda, stream, &merged.numbers[last], &merged.numbers[now])?;
            copy(cuda, stream, &merged.tracks[last], &merged.tracks[now])?;
        }
        Ok(())
    }
}
