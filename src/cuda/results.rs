// SPDX-License-Identifier: MPL-2.0
//! What a frame gave, kept on the device until somebody reads it: then it comes down once, into pinned memory.
//!
//! The stages of the next frame write the same device memory again, so a frame's results are copied on the device: a few
//! microseconds, against the bus's hundreds. The copies stand in slots that are used again when readers let go.

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

/// Frames whose results stay on the device; those of more come down at once, so that a reader who keeps many frames
/// does not fill the device.
const MOST_KEPT: usize = 16;

/// Number of [`Part`]s.
pub(crate) const PARTS: usize = 5;

const STAGE: &str = "keep results";

/// How much a frame gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of labels, as in [`Regions`](crate::regions::Regions).
    pub regions: u32,
    /// Number of touching pairs.
    pub pairs: u32,
    /// Number of merges that are listed.
    pub merges: u32,
}

impl Counts {
    /// Bytes of the numbers on their way down.
    pub(crate) const BYTES: usize = 12;

    /// The numbers as `FrameBuffers::fetch_counts` brought them.
    pub(crate) fn read(outputs: Outputs, from: &Pinned) -> Self {
        let words: &[u32] = bytemuck::cast_slice(from.bytes());
        Self { regions: words[0], pairs: if outputs.neighbors { words[1] } else { 0 }, merges: words[2] }
    }

    /// Bytes of each [`Part`], where `most` have room.
    pub(crate) fn lengths(self, most: [usize; PARTS], outputs: Outputs) -> [usize; PARTS] {
        let found = [
            most[0],
            if outputs.table { self.regions as usize * size_of::<Region>() } else { 0 },
            self.pairs as usize * size_of::<Neighbor>(),
            self.regions as usize * size_of::<Motion>(),
            self.merges as usize * size_of::<MergeStep>(),
        ];
        // Numbers may come from anybody.
        std::array::from_fn(|part| found[part].min(most[part]))
    }
}

/// What can be read of a frame by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// One u16 a pixel, rows of [`Results::label_stride`] bytes.
    Labels,
    /// One [`Region`] a label.
    Table,
    /// One [`Neighbor`] for each touching pair.
    Neighbors,
    /// One [`Motion`] a label, where identities last.
    Motion,
    /// One [`MergeStep`] a merge that is listed.
    Merges,
}

/// Where a frame's results stand until the next frame's take their place.
pub(crate) struct Sources {
    /// Address of each [`Part`].
    pub parts: [u64; PARTS],
    /// Most bytes of each.
    pub most: [usize; PARTS],
    /// Bytes of a row of labels, here and where they are kept, and number of rows.
    pub row: usize,
    pub label_stride: usize,
    pub rows: usize,
}

/// Device memory of one frame's results, and where they come down.
struct Slot {
    memory: Memory<u8>,
    pinned: Option<Pinned>,
    /// When the copies on the device are done.
    ready: CudaEvent,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The copies may be on another stream than the one that frees the memory in its order.
        let _ = self.ready.synchronize();
    }
}

/// Slots of one plan, which engines on several streams may share.
#[derive(Clone, Default)]
pub(crate) struct ResultPool(Pool<Slot>);

impl ResultPool {
    /// Copies results to where they last, on the stream. `counts` are the frame's; without them all that there could be is copied.
    pub fn keep(
        &self,
        cuda: &Cuda,
        sources: &Sources,
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
        let crowded = self.0.lent() >= MOST_KEPT;
        let place = Place { slot: Some(self.0.lend(slot)), host: memory::Array::new(), here: [false; PARTS] };
        let label_stride = sources.label_stride;
        let cuda = ManuallyDrop::new(cuda.clone());
        let kept = Results { place: Mutex::new(place), starts, lengths, label_stride, crowded, cuda };
        if counts.is_some() {
            kept.make_room()?;
        }
        Ok(kept)
    }

    /// A slot of at least so many bytes, which the stream may write to.
    fn slot(&self, cuda: &Cuda, bytes: usize) -> Result<Slot> {
        if let Some(slot) = self.0.take(|slot| slot.memory.len() >= bytes) {
            // Whoever had it last may have filled it on another stream.
            check(STAGE, cuda.stream.wait(&slot.ready))?;
            return Ok(slot);
        }
        let ready = check(STAGE, cuda.device.context.new_event(None))?;
        Ok(Slot { memory: Memory::new(cuda, STAGE, bytes)?, pinned: None, ready })
    }
}

impl Slot {
    /// Puts copies of all parts on the stream.
    ///
    /// # Safety
    /// The slot has room for `lengths` bytes of each part from `starts` on, and for the rows of labels.
    unsafe fn copy(
        &self,
        cuda: &Cuda,
        sources: &Sources,
        starts: &[usize; PARTS],
        lengths: &[usize; PARTS],
    ) -> Result<()> {
        let Sources { parts, row, label_stride, rows, .. } = *sources;
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

/// Where a frame's results are.
struct Place {
    /// `None` once they have been moved to `host`.
    slot: Option<Lent<Slot>>,
    host: memory::Array<u8>,
    /// Parts that are in the slot's pinned memory.
    here: [bool; PARTS],
}

/// What one frame gave; on the device until it is read. May be read from any thread and outlive its engine.
pub struct Results {
    place: Mutex<Place>,
    starts: [usize; PARTS],
    lengths: [usize; PARTS],
    label_stride: usize,
    /// Whether enough others are on the device.
    crowded: bool,
    /// May be the last of its context; dropped by hand.
    cuda: ManuallyDrop<Cuda>,
}

impl Results {
    /// Bytes from one row of labels to the next.
    pub fn label_stride(&self) -> usize {
        self.label_stride
    }

    /// Says what there is, where that was not known when it was kept.
    pub fn finalize(&mut self, counts: Counts, outputs: Outputs) -> Result<()> {
        self.lengths = counts.lengths(self.lengths, outputs);
        self.make_room()
    }

    /// Bytes of a part; 0 where it was not asked for.
    pub fn bytes(&self, part: Part) -> usize {
        self.lengths[part as usize]
    }

    /// Address of a part in the host's memory, where it stays as long as `self`; the first call waits for it to come
    /// down.
    pub fn address(&self, part: Part) -> Result<*mut u8> {
        let part = part as usize;
        let mut place = self.place.lock().unwrap();
        if place.slot.is_none() {
            return Ok(place.host.as_mut_ptr().wrapping_add(self.starts[part]));
        }
        self.bring(&mut place, part)?;
        let pinned = place.slot.as_ref().and_then(|slot| slot.pinned.as_ref());
        let pinned = pinned.ok_or_else(|| Error::Cuda { stage: STAGE, reason: "no pinned memory".into() })?;
        Ok(pinned.address(self.starts[part], self.lengths[part]))
    }

    /// Waits until a part is in pinned memory.
    fn bring(&self, place: &mut Place, part: usize) -> Result<()> {
        let stage = "read results";
        let Place { slot: Some(slot), here, .. } = place else { return Ok(()) };
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

    /// Where too many are on the device: brings all parts down into ordinary memory and gives the slot back.
    fn make_room(&self) -> Result<()> {
        if !self.crowded {
            return Ok(());
        }
        let mut place = self.place.lock().unwrap();
        for part in 0..PARTS {
            self.bring(&mut place, part)?;
        }
        if let Some(slot) = place.slot.take()
            && let Some(pinned) = &slot.pinned
            && let Err(error) = memory::append(&mut place.host, "kept results", pinned.bytes())
        {
            place.slot = Some(slot);
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        // Before the context that it is in.
        drop(self.place.get_mut().ok().and_then(|place| place.slot.take()));
        // SAFETY: once, and nothing uses it after.
        unsafe { ManuallyDrop::drop(&mut self.cuda) };
    }
}
