// SPDX-License-Identifier: MPL-2.0
//! Memory of the frames of a batch.
//!
//! Every array of a frame has its like in all others, one distance apart: kernels move all their pointers by one number. Arrays are
//! taken from chunks of memory, in which each frame has a part as long as that distance.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::CudaSlice;

use crate::error::{Error, Result};

/// Bytes that every array begins at a multiple of, as the driver's own do.
const ALIGNMENT: usize = 256;

struct Chunk {
    owner: Arc<CudaSlice<u8>>,
    address: u64,
    /// Bytes that are taken of each frame's part.
    used: usize,
}

/// Memory of all frames of a batch.
pub(crate) struct BatchMemory {
    frames: u32,
    /// Bytes from an array of a frame to that of the next; also of a frame's part of a chunk.
    distance: usize,
    chunks: Mutex<Vec<Chunk>>,
    /// Bytes of the longest array that was asked for.
    longest: AtomicUsize,
}

impl BatchMemory {
    /// Begins memory for so many frames. No array may be longer than `distance`.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] for no frame, for more than a grid has room for, or for a distance that kernels cannot be told.
    pub fn new(frames: u32, distance: usize) -> Result<Self> {
        /// Most blocks of a grid's third dimension.
        const MOST: u32 = 65535;
        let distance = distance.next_multiple_of(ALIGNMENT);
        if !(1..=MOST).contains(&frames) {
            return Err(Error::Batch(format!("{frames} frames; give 1 to {MOST}")));
        }
        if u32::try_from(distance).is_err() {
            return Err(Error::Batch("its frames are too large; segment them one by one".into()));
        }
        Ok(Self { frames, distance, chunks: Mutex::default(), longest: AtomicUsize::new(0) })
    }

    pub fn frames(&self) -> u32 {
        self.frames
    }

    pub fn distance(&self) -> usize {
        self.distance
    }

    /// Bytes of the longest array that was asked for, in vain or not: the distance that it needs.
    pub fn longest(&self) -> usize {
        self.longest.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, zero, of each frame's memory. Returns what keeps them and the address of the first frame's. `zeroed` gives more
    /// memory, and where it begins.
    pub fn allocate(
        &self,
        what: &'static str,
        bytes: usize,
        zeroed: impl FnOnce(usize) -> Result<(Arc<CudaSlice<u8>>, u64)>,
    ) -> Result<(Arc<CudaSlice<u8>>, u64)> {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        self.longest.fetch_max(bytes, Ordering::Relaxed);
        if bytes > self.distance {
            return Err(Error::Batch(format!(
                "{what} takes {bytes} bytes a frame, more than its memory has"
            )));
        }
        let mut chunks = self.chunks.lock().unwrap();
        let room = chunks.iter().position(|chunk| chunk.used + bytes <= self.distance);
        let at = match room {
            Some(at) => at,
            None => {
                let (owner, address) = zeroed(self.frames as usize * self.distance)?;
                chunks.push(Chunk { owner, address, used: 0 });
                chunks.len() - 1
            }
        };
        let chunk = &mut chunks[at];
        let address = chunk.address + chunk.used as u64;
        chunk.used += bytes;
        Ok((chunk.owner.clone(), address))
    }
}
