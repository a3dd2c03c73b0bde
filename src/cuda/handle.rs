// SPDX-License-Identifier: MPL-2.0
//! A handle of a device, with streams of its own, and the count of bytes over its bus.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::{CudaEvent, CudaStream, DriverError, sys};

use super::batch::BatchMemory;
use super::device::Device;
use super::launch::check;
use crate::error::{Error, Result};

/// Bytes that went over the bus.
#[derive(Debug, Default)]
pub struct Traffic {
    pub(super) pixels_up: AtomicU64,
    pub(super) pixels_down: AtomicU64,
    pub(crate) results_down: AtomicU64,
}

/// Bytes that [`Traffic`] has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficCount {
    /// Frames of the host to the device.
    pub pixels_up: u64,
    /// Drawn frames to the host.
    pub pixels_down: u64,
    /// Label maps, tables, adjacency lists and their lengths.
    pub results_down: u64,
}

impl Traffic {
    pub(crate) fn add(counter: &AtomicU64, bytes: usize) {
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The bytes until now.
    pub fn count(&self) -> TrafficCount {
        TrafficCount {
            pixels_up: self.pixels_up.load(Ordering::Relaxed),
            pixels_down: self.pixels_down.load(Ordering::Relaxed),
            results_down: self.results_down.load(Ordering::Relaxed),
        }
    }
}

/// A context that another library made.
pub struct ForeignContext {
    /// Its `CUcontext`.
    pub handle: usize,
    /// Index of its device.
    pub ordinal: usize,
    /// Keeps the context alive; dropped after the last use of it.
    pub keeper: Box<dyn std::any::Any + Send + Sync>,
}

/// A device with streams of its own.
#[derive(Clone)]
pub struct Cuda {
    pub(crate) stream: Arc<CudaStream>,
    /// Stream for results that are read while the next frames are worked on.
    pub(crate) reader: Arc<CudaStream>,
    /// Event that [`Cuda::wait_for`] records on another library's stream.
    produced: Arc<Mutex<CudaEvent>>,
    pub(crate) traffic: Arc<Traffic>,
    /// Threads that copy between the host's frames and pinned memory.
    pub(crate) pool: Arc<rayon::ThreadPool>,
    /// Where frames are worked on side by side: their memory, of which all arrays are taken.
    pub(crate) batch: Option<Arc<BatchMemory>>,
    /// Dropped last, because it may hold the context of the streams.
    pub(crate) device: Arc<Device>,
}

impl Cuda {
    /// Opens a device; -1 takes the first that works.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] without driver or device; the message says what to do.
    pub fn new(ordinal: i32) -> Result<Self> {
        let device = Device::open(ordinal)?;
        /// More threads do not copy faster.
        const COPIERS: usize = 8;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(std::thread::available_parallelism().map_or(1, |n| n.get().min(COPIERS)))
            .thread_name(|i| format!("superpixel-copy{i}"))
            .build()
            .map_err(|e| Error::Backend { backend: "cuda", reason: format!("{e}; end other threads") })?;
        Self::on(device, Arc::new(pool), Arc::default())
    }

    fn on(device: Arc<Device>, pool: Arc<rayon::ThreadPool>, traffic: Arc<Traffic>) -> Result<Self> {
        let stream = check("stream", device.context.new_stream())?;
        let reader = check("stream", device.context.new_stream())?;
        let produced = Arc::new(Mutex::new(check("stream", device.context.new_event(None))?));
        Ok(Self { stream, reader, produced, traffic, pool, batch: None, device })
    }

    /// The same handle for arrays of so many frames.
    pub(crate) fn with_batch(&self, frames: u32, distance: usize) -> Result<Self> {
        Ok(Self { batch: Some(Arc::new(BatchMemory::new(frames, distance)?)), ..self.clone() })
    }

    /// Multiprocessors that a frame can have: of a batch each has its share, one at least.
    pub(crate) fn multiprocessors(&self) -> u32 {
        let frames = self.batch.as_ref().map_or(1, |batch| batch.frames());
        (self.device.multiprocessors / frames).max(1)
    }

    /// Whether frames of the batch are more than multiprocessors, so that one has several at once.
    pub(crate) fn shares_multiprocessors(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.frames() > self.device.multiprocessors)
    }

    /// Makes a handle of the same device with a stream of its own, whose work overlaps with that of the others.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    pub fn lane(&self) -> Result<Self> {
        let stream = check("stream", self.device.context.new_stream())?;
        let produced = Arc::new(Mutex::new(check("stream", self.device.context.new_event(None))?));
        Ok(Self { stream, produced, ..self.clone() })
    }

    /// Makes a handle of the same device in a context that another library made, whose memory can then be accessed.
    ///
    /// # Errors
    ///
    /// As [`Cuda::new`].
    ///
    /// # Safety
    /// `handle` is a context of device `ordinal`, and lives as long as `keeper`.
    pub unsafe fn adopt(&self, context: ForeignContext) -> Result<Self> {
        // SAFETY: the caller says that the handle is a context of this device and lives as long as its keeper, which the device
        // holds.
        let device =
            unsafe { Device::adopt(context.handle as sys::CUcontext, context.ordinal, context.keeper)? };
        Self::on(device, self.pool.clone(), self.traffic.clone())
    }

    /// Index of the device, as the driver counts.
    pub fn ordinal(&self) -> usize {
        self.device.ordinal
    }

    /// The `CUstream` of this handle, for other libraries to wait for. It lives as long as `self` and all values made
    /// with it.
    pub fn stream_handle(&self) -> usize {
        self.stream.cu_stream() as usize
    }

    /// The `CUcontext` in use.
    pub fn context_handle(&self) -> usize {
        self.device.context.cu_ctx() as usize
    }

    /// Returns true if the context has not failed for good.
    #[cfg(feature = "gst")]
    pub(crate) fn works(&self) -> bool {
        self.device.works()
    }

    /// Makes our stream wait for all earlier work on another library's stream. The host does not wait. 0 is the
    /// context's default stream, and with it all streams that the driver orders by it.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of the same context, or 0.
    pub unsafe fn wait_for(&self, stream: usize) -> Result<()> {
        let stage = "wait for the producer";
        check(stage, self.device.context.bind_to_thread())?;
        // Clones share the event: locked until our stream waits for it.
        let produced = self.produced.lock().unwrap();
        // SAFETY: `stream` is one of this context, or 0, says the caller, who keeps it while this call lasts.
        let recorded = unsafe { sys::cuEventRecord(produced.cu_event(), stream as sys::CUstream) };
        check(stage, recorded.result())?;
        check(stage, self.stream.wait(&produced))
    }

    /// Makes later work on another library's stream wait for all earlier work on ours. The host does not wait. 0 is the
    /// context's default stream.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of the same context, or 0.
    pub unsafe fn precede(&self, stream: usize) -> Result<()> {
        let stage = "let the consumer wait";
        check(stage, self.device.context.bind_to_thread())?;
        // Clones share the event; a wait refers to its state at the time of the call.
        let produced = self.produced.lock().unwrap();
        check(stage, produced.record(&self.stream))?;
        // SAFETY: `stream` is one of this context, or 0, says the caller, who keeps it while this call lasts.
        check(stage, unsafe { wait_on(stream, &produced) })
    }

    /// Counts the bytes over the bus for all handles that come from one [`Cuda::new`].
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Waits until the device has finished all work of this handle.
    pub fn synchronize(&self) -> Result<()> {
        check("synchronize", self.stream.synchronize())
    }

    /// Makes an event that has not been recorded.
    pub(crate) fn event(&self) -> Result<CudaEvent> {
        check("mark", self.device.context.new_event(None))
    }

    /// Records all earlier work on the stream.
    pub(crate) fn mark(&self, event: &CudaEvent) -> Result<()> {
        check("mark", event.record(&self.stream))
    }

    /// Makes the stream wait for an event of another one of ours.
    #[cfg(feature = "gst")]
    pub(crate) fn follow(&self, event: &CudaEvent) -> Result<()> {
        check("mark", self.stream.wait(event))
    }

    /// Makes the host wait for an event.
    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        check("synchronize", event.synchronize())
    }

    /// Measures the device time of the work that `work` launches on the stream. Waits for it.
    pub fn device_time<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<(R, std::time::Duration)> {
        let stage = "clock";
        let flags = cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT;
        check(stage, self.device.context.bind_to_thread())?;
        let start = check(stage, self.stream.record_event(Some(flags)))?;
        let result = work()?;
        let end = check(stage, self.stream.record_event(Some(flags)))?;
        let ms = check(stage, start.elapsed_ms(&end))?;
        Ok((result, std::time::Duration::from_secs_f64(f64::from(ms) / 1e3)))
    }

    /// Returns true if the device has no memory of its own and reads the host's where it is: frames are not copied there.
    pub fn shares_memory(&self) -> bool {
        self.device.shares_memory
    }

    /// Free device memory in bytes.
    pub fn free_memory(&self) -> Result<usize> {
        check("memory", self.device.context.mem_get_info()).map(|(free, _)| free)
    }

    /// Driver and size of the device in words, for reports.
    pub fn details(&self) -> String {
        self.device.details()
    }
}

/// Makes another library's stream wait for an event of ours.
///
/// # Safety
/// `stream` is a `CUstream` of the current context, or 0.
pub(super) unsafe fn wait_on(stream: usize, event: &CudaEvent) -> std::result::Result<(), DriverError> {
    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT as u32;
    // SAFETY: the caller keeps the stream; the event is ours and of the current context.
    unsafe { sys::cuStreamWaitEvent(stream as sys::CUstream, event.cu_event(), flags) }.result()
}
