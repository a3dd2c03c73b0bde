// SPDX-License-Identifier: MPL-2.0
//! What a frame gave, kept on the device until somebody reads it: then it comes down once, into pinned memory.
//!
//! The stages of the next frame write the same device memory again, so a frame's results are copied on the device: a few
//! microseconds, against the bus's hundreds. The copies stand in slots that are used again when readers let go.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use cudarc::driver::{CudaEvent, CudaStream, PinnedHostSlice, sys};

use super::device::CurrentContext;
use super::launch::check;
use super::work::{Memory, Work};
use super::{Cuda, Traffic};
use crate::cpu::memory;
use crate::error::{Error, Result};
use crate::params::Outputs;
use crate::regions::{Motion, Neighbor, Region};

/// Frames whose results stay on the device; those of more come down at once, so that a reader who keeps many frames
/// does not fill the device.
const MOST_KEPT: usize = 16;

/// Number of [`Part`]s.
pub(crate) const PARTS: usize = 4;

const STAGE: &str = "keep results";

/// Pinned memory of the host, zero at first.
pub(crate) struct Pinned {
    memory: PinnedHostSlice<u8>,
    start: *mut u8,
    len: usize,
}

// SAFETY: `start` points into `memory`, which is owned.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Takes memory for `len` bytes, at least one.
    pub fn new(cuda: &Cuda, what: &'static str, len: usize) -> Result<Self> {
        let len = len.max(1);
        check(what, cuda.device.context.bind_to_thread())?;
        // SAFETY: bytes of any value; they are zeroed below.
        let memory = unsafe { cuda.device.context.alloc_pinned_with_flags::<u8>(len, 0) };
        let mut memory = check(what, memory)?;
        let start = check(what, memory.as_mut_ptr())?;
        // SAFETY: `memory` holds `len` bytes.
        unsafe { start.write_bytes(0, len) };
        Ok(Self { memory, start, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// All bytes; whoever put a copy into them on a stream has waited for it.
    pub fn bytes(&self) -> &[u8] {
        debug_assert!(self.len <= self.memory.len());
        // SAFETY: `memory` holds `len` bytes, written by `new` at the latest.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Puts a copy of device memory at `at` on a stream.
    ///
    /// # Safety
    /// The device holds `bytes` at `from`; nobody reads or frees this memory before the stream has passed the copy.
    pub unsafe fn fetch(
        &mut self,
        cuda: &Cuda,
        what: &'static str,
        stream: &CudaStream,
        from: u64,
        at: usize,
        bytes: usize,
    ) -> Result<()> {
        let to = self.address(at, bytes);
        // SAFETY: `to` has room for `bytes`; the caller sees to the device's end, and that nobody uses ours meanwhile.
        let copied = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream.cu_stream()) };
        check(what, copied.result())?;
        Traffic::add(&cuda.traffic.results_down, bytes);
        Ok(())
    }

    /// Where `bytes` from `at` on stand. No reference to others of these bytes is made, which readers of another part may have.
    fn address(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(at <= self.len && bytes <= self.len - at, "inside the pinned memory");
        self.start.wrapping_add(at)
    }

    #[cfg(feature = "gst")]
    pub(crate) fn writable(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

/// How much a frame gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of labels, as in [`Regions`](crate::regions::Regions).
    pub regions: u32,
    /// Number of touching pairs.
    pub pairs: u32,
}

impl Counts {
    /// The two numbers as [`Work::fetch_counts`] brought them.
    pub(crate) fn read(outputs: Outputs, from: &Pinned) -> Self {
        let words: &[u32] = bytemuck::cast_slice(from.bytes());
        Self { regions: words[0], pairs: if outputs.neighbors { words[1] } else { 0 } }
    }

    /// Bytes of each [`Part`], where `most` have room.
    fn lengths(self, most: [usize; PARTS], outputs: Outputs) -> [usize; PARTS] {
        let found = [
            most[0],
            if outputs.table { self.regions as usize * size_of::<Region>() } else { 0 },
            self.pairs as usize * size_of::<Neighbor>(),
            self.regions as usize * size_of::<Motion>(),
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

struct Shared {
    free: Mutex<Vec<Slot>>,
    held: AtomicUsize,
}

/// Slots of one plan, which engines on several streams may share.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

impl Default for Pool {
    fn default() -> Self {
        Self(Arc::new(Shared { free: Mutex::default(), held: AtomicUsize::new(0) }))
    }
}

impl Pool {
    pub fn keep(&self, work: &Work, counts: Option<Counts>, outputs: Outputs) -> Result<Results> {
        let cuda = &work.cuda;
        check(STAGE, cuda.device.context.bind_to_thread())?;
        let row = 2 * work.geometry.width as usize;
        // As GStreamer lays out a plane of 16-bit gray by default.
        let label_stride = row.next_multiple_of(4);
        let most = work.most_kept(label_stride, outputs);
        let mut starts = [0; PARTS];
        for part in 1..PARTS {
            starts[part] = (starts[part - 1] + most[part - 1]).next_multiple_of(8);
        }
        let size = starts[PARTS - 1] + most[PARTS - 1];
        let free = self.0.free.lock().unwrap().pop();
        let slot = match free {
            Some(slot) if slot.memory.len() >= size => {
                // Whoever had it last may have filled it on another stream.
                check(STAGE, cuda.stream.wait(&slot.ready))?;
                slot
            }
            small => {
                drop(small);
                let memory = Memory::new(cuda, STAGE, size)?;
                Slot { memory, pinned: None, ready: check(STAGE, cuda.device.context.new_event(None))? }
            }
        };
        let lengths = counts.map_or(most, |counts| counts.lengths(most, outputs));
        let to = |part: usize| slot.memory.address() + starts[part] as u64;
        let stream = cuda.stream.cu_stream();
        let labels = sys::CUDA_MEMCPY2D {
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: work.labels().address(),
            srcPitch: row,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: to(0),
            dstPitch: label_stride,
            WidthInBytes: row,
            Height: work.geometry.height as usize,
            srcXInBytes: 0,
            srcY: 0,
            srcHost: std::ptr::null(),
            srcArray: std::ptr::null_mut(),
            dstXInBytes: 0,
            dstY: 0,
            dstHost: std::ptr::null_mut(),
            dstArray: std::ptr::null_mut(),
        };
        // SAFETY: the slot holds what `most_kept` says, the sources hold at least as much as `counts` says; the stream
        // orders the copies before the next frame's stages and before whoever uses the slot next.
        unsafe {
            check(STAGE, sys::cuMemcpy2DAsync_v2(&labels, stream).result())?;
            let pairs = work.neighbors.as_ref().map_or(0, |memory| memory.pairs.address());
            let motion = work.temporal.as_ref().map_or(0, |state| state.motion.address());
            for (part, from) in [(1, work.records.address()), (2, pairs), (3, motion)] {
                if lengths[part] > 0 {
                    check(STAGE, sys::cuMemcpyDtoDAsync_v2(to(part), from, lengths[part], stream).result())?;
                }
            }
        }
        check(STAGE, slot.ready.record(&cuda.stream))?;
        let crowded = self.0.held.fetch_add(1, Ordering::Relaxed) >= MOST_KEPT;
        let place = Place { slot: Some(slot), host: memory::Array::new(), here: [false; PARTS] };
        let kept = Results {
            cuda: ManuallyDrop::new(cuda.clone()),
            place: Mutex::new(place),
            starts,
            lengths,
            label_stride,
            crowded,
            pool: Arc::downgrade(&self.0),
        };
        if counts.is_some() {
            kept.make_room()?;
        }
        Ok(kept)
    }
}

/// Where a frame's results are.
struct Place {
    /// `None` once they have been moved to `host`.
    slot: Option<Slot>,
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
    pool: Weak<Shared>,
    /// May be the last of its context; dropped by hand.
    cuda: ManuallyDrop<Cuda>,
}

impl Results {
    /// Bytes from one row of labels to the next.
    pub fn label_stride(&self) -> usize {
        self.label_stride
    }

    /// Says what there is, where that was not known when it was kept.
    pub fn settle(&mut self, counts: Counts, outputs: Outputs) -> Result<()> {
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
        let pinned = match &mut slot.pinned {
            Some(pinned) => pinned,
            none => none.insert(Pinned::new(&self.cuda, stage, slot.memory.len())?),
        };
        if self.lengths[part] > 0 {
            let reader = &self.cuda.reader;
            check(stage, reader.wait(&slot.ready))?;
            let from = slot.memory.address() + self.starts[part] as u64;
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
        if let Some(slot) = place.slot.take() {
            if let Some(pinned) = &slot.pinned {
                let kept = memory::append(&mut place.host, "kept results", pinned.bytes());
                if let Err(error) = kept {
                    place.slot = Some(slot);
                    return Err(error);
                }
            }
            self.give_back(slot);
        }
        Ok(())
    }

    fn give_back(&self, slot: Slot) {
        match self.pool.upgrade() {
            Some(pool) => {
                pool.held.fetch_sub(1, Ordering::Relaxed);
                pool.free.lock().unwrap().push(slot);
            }
            None => drop(slot),
        }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        if let Some(slot) = self.place.get_mut().ok().and_then(|place| place.slot.take()) {
            self.give_back(slot);
        }
        // SAFETY: once, and nothing uses it after.
        unsafe { ManuallyDrop::drop(&mut self.cuda) };
    }
}
