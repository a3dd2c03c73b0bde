// SPDX-License-Identifier: MPL-2.0
//! Results of a frame, kept on the device until the first read, which downloads them into pinned memory.
//!
//! The stages of the next frame overwrite the same device memory, so a frame's results are copied on the device: a few
//! microseconds, against hundreds over the bus. The copies are in slots, which are reused once readers drop them.

use std::mem::ManuallyDrop;
use std::sync::Mutex;

use cudarc::driver::{CudaEvent, sys};

use super::device::CurrentContext;
use super::handle::Cuda;
use super::launch::check;
use super::memory::{Memory, Rows, copy_rows};
use super::pinned::Pinned;
use super::pool::{Lent, Pool};
use crate::cpu::memory;
use crate::error::{Error, Result};
use crate::outputs::Outputs;
use crate::regions::{MergeStep, Motion, Neighbor, Region};

/// Most frames of a stream whose results stay on the device. Those of further frames are downloaded at once, so that a reader who
/// keeps many does not fill the device.
const MOST_KEPT: usize = 16;

/// Number of [`Part`]s.
pub(crate) const PARTS: usize = 5;

const STAGE: &str = "keep results";

/// Numbers of a frame's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of labels, as in [`Regions`](crate::regions::Regions).
    pub regions: u32,
    /// Number of touching pairs.
    pub pairs: u32,
    /// Number of listed merges.
    pub merges: u32,
}

impl Counts {
    /// Bytes of the numbers in pinned memory.
    pub(crate) const BYTES: usize = 12;

    /// Decodes the numbers that `FrameBuffers::fetch_counts` has copied.
    pub(crate) fn read(outputs: Outputs, from: &Pinned) -> Self {
        let words: &[u32] = bytemuck::cast_slice(from.bytes());
        Self { regions: words[0], pairs: if outputs.neighbors { words[1] } else { 0 }, merges: words[2] }
    }

    /// Bytes of each [`Part`], at most `most`.
    pub(crate) fn lengths(self, most: [usize; PARTS], outputs: Outputs) -> [usize; PARTS] {
        let found = [
            most[0],
            if outputs.table { self.regions as usize * size_of::<Region>() } else { 0 },
            self.pairs as usize * size_of::<Neighbor>(),
            self.regions as usize * size_of::<Motion>(),
            self.merges as usize * size_of::<MergeStep>(),
        ];
        // Numbers may come from any caller.
        std::array::from_fn(|part| found[part].min(most[part]))
    }
}

/// A part of a frame's results that can be read by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One u16 a pixel, rows of [`Results::label_stride`] bytes.
    Labels,
    /// One [`Region`] a label.
    Table,
    /// One [`Neighbor`] for each touching pair.
    Neighbors,
    /// One [`Motion`] per label, in temporal mode.
    Motion,
    /// One [`MergeStep`] per listed merge.
    Merges,
}

/// Addresses of a frame's results, valid until the next frame overwrites them.
pub(crate) struct ResultAddresses {
    /// Address of each [`Part`].
    pub parts: [u64; PARTS],
    /// Most bytes of each part.
    pub most: [usize; PARTS],
    /// Bytes of a row of labels, its stride here and in the slot, and number of rows.
    pub row: usize,
    pub label_stride: usize,
    pub rows: usize,
}

/// Device memory of one frame's results, and pinned memory for downloading them.
struct Slot {
    memory: Memory<u8>,
    pinned: Option<Pinned>,
    /// Recorded behind the copies on the device.
    ready: CudaEvent,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The copies may be on another stream than the one in whose order the memory is freed.
        let _ = self.ready.synchronize();
    }
}

/// Slots of one plan, which engines on several streams may share.
#[derive(Clone, Default)]
pub(crate) struct ResultPool(Pool<Slot>);

impl ResultPool {
    /// Copies results to a slot, on the stream. `counts` are the frame's; without them the largest possible results are
    /// copied.
    pub fn keep(
        &self,
        cuda: &Cuda,
        sources: &ResultAddresses,
        counts: Option<Counts>,
        outputs: Outputs,
    ) -> Result<Results> {
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let most = sources.most;
        let mut starts = [0; PARTS];
        for part in 1..PARTS {
            starts[part] = (starts[part - 1] + most[part - 1]).next_multiple_of(8);
        }
        let slot = self.slot(cuda, starts[PARTS - 1] + most[PARTS - 1])?;
        let lengths = counts.map_or(most, |counts| counts.lengths(most, outputs));
        // SAFETY: the slot holds `most` bytes of each part, and `lengths` are no more.
        unsafe { slot.copy(cuda, sources, &starts, &lengths)? };
        let streams = cuda.batch.as_ref().map_or(1, |batch| batch.frames() as usize);
        let crowded = self.0.lent() >= MOST_KEPT * streams;
        let storage =
            Storage { slot: Some(self.0.lend(slot)), host: memory::Array::new(), here: [false; PARTS] };
        let label_stride = sources.label_stride;
        let cuda = ManuallyDrop::new(cuda.clone());
        let kept = Results { storage: Mutex::new(storage), starts, lengths, label_stride, crowded, cuda };
        if counts.is_some() {
            kept.make_room()?;
        }
        Ok(kept)
    }

    /// A slot of at least `bytes` bytes, which the stream may write to.
    fn slot(&self, cuda: &Cuda, bytes: usize) -> Result<Slot> {
        if let Some(slot) = self.0.take(|slot| slot.memory.len() >= bytes) {
            // The last holder may have filled it on another stream.
            check(STAGE, cuda.stream.wait(&slot.ready))?;
            return Ok(slot);
        }
        let ready = check(STAGE, cuda.device.context.new_event(None))?;
        Ok(Slot { memory: Memory::alone(cuda, STAGE, bytes)?, pinned: None, ready })
    }
}

impl Slot {
    /// Starts to copy all parts on the stream.
    ///
    /// # Safety
    /// The slot has room for `lengths` bytes of each part from `starts` on, and for the rows of labels.
    unsafe fn copy(
        &self,
        cuda: &Cuda,
        sources: &ResultAddresses,
        starts: &[usize; PARTS],
        lengths: &[usize; PARTS],
    ) -> Result<()> {
        let ResultAddresses { parts, row, label_stride, rows, .. } = *sources;
        let to = |part: usize| self.memory.address().byte(starts[part]).raw();
        let stream = cuda.stream.cu_stream();
        let (from, here) =
            (Rows { address: parts[0], stride: row }, Rows { address: to(0), stride: label_stride });
        // SAFETY: the caller has made the slot large enough, and `FrameBuffers::keep` names the sources with what they hold at
        // most; the stream orders the copies before the next frame's stages and before whoever uses the slot next.
        unsafe {
            copy_rows(STAGE, &cuda.stream, from, here, row, rows)?;
            for part in 1..PARTS {
                if lengths[part] > 0 {
                    let copied = sys::cuMemcpyDtoDAsync_v2(to(part), parts[part], lengths[part], stream);
                    check(STAGE, copied.result())?;
                }
            }
        }
        check(STAGE, self.ready.record(&cuda.stream))
    }
}

/// Location of a frame's results.
struct Storage {
    /// `None` once they have been moved to `host`.
    slot: Option<Lent<Slot>>,
    host: memory::Array<u8>,
    /// Flags of the parts that are in the slot's pinned memory.
    here: [bool; PARTS],
}

/// Results of one frame, on the device until they are read. They may be read from any thread and outlive their engine.
pub struct Results {
    storage: Mutex<Storage>,
    starts: [usize; PARTS],
    lengths: [usize; PARTS],
    label_stride: usize,
    /// True if enough other frames are on the device.
    crowded: bool,
    /// Dropped by hand, because it may be the last to hold its context.
    cuda: ManuallyDrop<Cuda>,
}

impl Results {
    /// Bytes from one row of labels to the next.
    pub fn label_stride(&self) -> usize {
        self.label_stride
    }

    /// Sets the numbers, if they were not known when the results were kept.
    pub fn finalize(&mut self, counts: Counts, outputs: Outputs) -> Result<()> {
        self.lengths = counts.lengths(self.lengths, outputs);
        self.make_room()
    }

    /// Bytes of a part; 0 if it was not asked for.
    pub fn bytes(&self, part: Part) -> usize {
        self.lengths[part as usize]
    }

    /// Host address of a part, valid as long as `self`. The first call waits for the download.
    pub fn address(&self, part: Part) -> Result<*mut u8> {
        let part = part as usize;
        let mut storage = self.storage.lock().unwrap();
        if storage.slot.is_none() {
            return Ok(storage.host.as_mut_ptr().wrapping_add(self.starts[part]));
        }
        self.bring(&mut storage, part)?;
        let pinned = storage.slot.as_ref().and_then(|slot| slot.pinned.as_ref());
        let pinned = pinned.ok_or_else(|| Error::Memory { what: STAGE, bytes: self.lengths[part] })?;
        Ok(pinned.address(self.starts[part], self.lengths[part]))
    }

    /// Waits until a part is in pinned memory.
    fn bring(&self, storage: &mut Storage, part: usize) -> Result<()> {
        let stage = "read results";
        let Storage { slot: Some(slot), here, .. } = storage else { return Ok(()) };
        if here[part] {
            return Ok(());
        }
        let _current = CurrentContext::keep();
        check(stage, self.cuda.device.context.bind_to_thread())?;
        let slot: &mut Slot = slot;
        let pinned = match &mut slot.pinned {
            Some(pinned) => pinned,
            none => none.insert(Pinned::new(&self.cuda, stage, slot.memory.len())?),
        };
        if self.lengths[part] > 0 {
            let reader = &self.cuda.reader;
            check(stage, reader.wait(&slot.ready))?;
            let from = slot.memory.address().byte(self.starts[part]).raw();
            // SAFETY: the slot is this frame's alone; the copy is waited for before the lock is given back, after an
            // error too.
            let fetched = unsafe {
                pinned.fetch(&self.cuda, stage, reader, from, self.starts[part], self.lengths[part])
            };
            let waited = check(stage, reader.synchronize());
            fetched.and(waited)?;
        }
        here[part] = true;
        Ok(())
    }

    /// If too many frames are on the device, downloads all parts into ordinary memory and returns the slot.
    fn make_room(&self) -> Result<()> {
        if !self.crowded {
            return Ok(());
        }
        let mut storage = self.storage.lock().unwrap();
        for part in 0..PARTS {
            self.bring(&mut storage, part)?;
        }
        if let Some(slot) = storage.slot.take()
            && let Some(pinned) = &slot.pinned
            && let Err(error) = memory::append(&mut storage.host, "kept results", pinned.bytes())
        {
            storage.slot = Some(slot);
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        // Dropped before the context that it is in.
        drop(self.storage.get_mut().ok().and_then(|storage| storage.slot.take()));
        // SAFETY: once, and nothing uses it after.
        unsafe { ManuallyDrop::drop(&mut self.cuda) };
    }
}
