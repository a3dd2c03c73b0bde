// SPDX-License-Identifier: MPL-2.0
//! A device with streams of our own on it, and what went over its bus.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::{CudaEvent, CudaStream, DriverError, sys};

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

/// What [`Traffic`] has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficCount {
    /// Frames of the host to the device.
    pub pixels_up: u64,
    /// Drawn frames back.
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
    /// Number of its device.
    pub ordinal: usize,
    /// Keeps it alive; dropped when nothing uses the context any more.
    pub keeper: Box<dyn std::any::Any + Send + Sync>,
}

/// A device and streams of our own on it.
#[derive(Clone)]
pub struct Cuda {
    pub(crate) stream: Arc<CudaStream>,
    /// For results that are read while the next frames are worked on.
    pub(crate) reader: Arc<CudaStream>,
    /// What [`Cuda::wait_for`] notes on another library's stream.
    produced: Arc<Mutex<CudaEvent>>,
    pub(crate) traffic: Arc<Traffic>,
    /// Copies between the host's frames and pinned memory.
    pub(crate) pool: Arc<rayon::ThreadPool>,
    /// Last, since it may hold the context that the streams are of.
    pub(crate) device: Arc<Device>,
}

impl Cuda {
    /// Opens a device; -1 takes the first that works.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] without driver or device, with what to do.
    pub fn new(ordinal: i32) -> Result<Self> {
        let device = Device::open(ordinal)?;
        /// More threads than this do not copy faster.
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
        Ok(Self { stream, reader, produced, traffic, pool, device })
    }

    /// The same device with a stream of its own, on which work overlaps with that on the others.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn lane(&self) -> Result<Self> {
        let stream = check("stream", self.device.context.new_stream())?;
        self.on_stream(stream)
    }

    /// The same device with a stream of its own, whose blocks go first wherever one of them and one of another stream could.
    pub(crate) fn urgent_lane(&self) -> Result<Self> {
        /// Far beyond the greatest that there is, which the driver takes instead.
        const URGENT: i32 = -100;
        let stream = check("stream", self.device.context.new_stream_with_priority(URGENT))?;
        self.on_stream(stream)
    }

    fn on_stream(&self, stream: Arc<CudaStream>) -> Result<Self> {
        let produced = Arc::new(Mutex::new(check("stream", self.device.context.new_event(None))?));
        Ok(Self { stream, produced, ..self.clone() })
    }

    /// The same in a context that another library made, whose memory then can be read and written.
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

    /// Number of the device, as the driver counts.
    pub fn ordinal(&self) -> usize {
        self.device.ordinal
    }

    /// Our `CUstream`, for other libraries to wait for. It lives as long as `self` and what was made with it.
    pub fn stream_handle(&self) -> usize {
        self.stream.cu_stream() as usize
    }

    /// The `CUcontext` in use, to tell it from others.
    pub fn context_handle(&self) -> usize {
        self.device.context.cu_ctx() as usize
    }

    /// Whether the driver still takes orders for this context.
    #[cfg(feature = "gst")]
    pub(crate) fn works(&self) -> bool {
        self.device.works()
    }

    /// Lets our stream wait for what is on another library's stream by now; the host does not wait. 0 is the context's
    /// default stream, and with it all streams that the driver orders by it.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of the same context, or 0.
    pub unsafe fn wait_for(&self, stream: usize) -> Result<()> {
        let stage = "wait for the producer";
        check(stage, self.device.context.bind_to_thread())?;
        // Clones share the event: nobody else notes another stream with it before ours waits.
        let produced = self.produced.lock().unwrap();
        // SAFETY: `stream` is one of this context, or 0, says the caller, who keeps it while this call lasts.
        let recorded = unsafe { sys::cuEventRecord(produced.cu_event(), stream as sys::CUstream) };
        check(stage, recorded.result())?;
        check(stage, self.stream.wait(&produced))
    }

    /// Lets what comes on another library's stream from now on wait for what is on ours by now; the host does not wait. 0 is
    /// the context's default stream.
    ///
    /// # Errors
    ///
    /// What the driver says.
    ///
    /// # Safety
    /// `stream` is a `CUstream` of the same context, or 0.
    pub unsafe fn precede(&self, stream: usize) -> Result<()> {
        let stage = "let the consumer wait";
        check(stage, self.device.context.bind_to_thread())?;
        // Clones share the event; who waits for it waits for what it notes now.
        let produced = self.produced.lock().unwrap();
        check(stage, produced.record(&self.stream))?;
        // SAFETY: `stream` is one of this context, or 0, says the caller, who keeps it while this call lasts.
        check(stage, unsafe { wait_on(stream, &produced) })
    }

    /// Counter of the bytes that went over the bus; shared by all that came from one [`Cuda::new`].
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Waits until the device has done everything that was asked of it.
    pub fn synchronize(&self) -> Result<()> {
        check("synchronize", self.stream.synchronize())
    }

    /// An event that nothing has been noted with yet.
    pub(crate) fn event(&self) -> Result<CudaEvent> {
        check("mark", self.device.context.new_event(None))
    }

    /// Notes what is on the stream by now.
    pub(crate) fn mark(&self, event: &CudaEvent) -> Result<()> {
        check("mark", event.record(&self.stream))
    }

    /// Lets the stream wait for what was noted on another of ours.
    pub(crate) fn follow(&self, event: &CudaEvent) -> Result<()> {
        check("mark", self.stream.wait(event))
    }

    /// The host waits for what was noted.
    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        check("synchronize", event.synchronize())
    }

    /// Device time between what `work` puts on the stream first and last; waits for it.
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

    /// Free device memory in bytes.
    pub fn free_memory(&self) -> Result<usize> {
        check("memory", self.device.context.mem_get_info()).map(|(free, _)| free)
    }

    /// The device's driver and size in words, for reports.
    pub fn details(&self) -> String {
        self.device.details()
    }
}

/// Lets another library's stream wait for an event of ours.
///
/// # Safety
/// `stream` is a `CUstream` of the current context, or 0.
pub(super) unsafe fn wait_on(stream: usize, event: &CudaEvent) -> std::result::Result<(), DriverError> {
    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT as u32;
    // SAFETY: the caller keeps the stream; the event is ours and of the current context.
    unsafe { sys::cuStreamWaitEvent(stream as sys::CUstream, event.cu_event(), flags) }.result()
}
