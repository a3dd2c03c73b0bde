// SPDX-License-Identifier: MPL-2.0
//! Pinned memory that frames pass through on their way to the device and back: the bus is several times as fast from
//! there, and pieces of a frame are on the bus while others are being copied.

use cudarc::driver::{CudaEvent, sys};
use rayon::prelude::*;

use super::handle::{Cuda, Traffic};
use super::launch::check;
use super::pinned::Pinned;
use crate::error::Result;

/// Bytes of one transfer: large enough for the bus's full speed, small enough to overlap.
const PIECE: usize = 1 << 20;
/// Fewest bytes that a thread copies.
const COPY: usize = 64 << 10;

/// Rows of the device: address, stride, used bytes, number; and their offset in the pinned memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceRows {
    pub address: u64,
    pub stride: usize,
    pub row: usize,
    pub rows: usize,
    /// Offset of the first row in the pinned memory.
    pub offset: usize,
}

impl DeviceRows {
    /// Rows per copy if `threads` threads share the upload of a plane.
    fn rows_of_a_copy(self, threads: usize) -> usize {
        let bytes = (self.stride * self.rows / threads).clamp(COPY, PIECE);
        (bytes / self.stride.max(1)).max(1)
    }

    /// First row and number of rows of each piece of a download.
    fn pieces(self) -> impl Iterator<Item = (usize, usize)> {
        let step = (PIECE / self.stride.max(1)).max(1);
        (0..self.rows).step_by(step).map(move |first| (first, step.min(self.rows - first)))
    }

    /// Rows that a thread copies at once.
    pub fn copied_together(self) -> usize {
        (COPY / self.row.max(1)).max(1)
    }
}

/// Pinned memory as large as all planes together.
pub(crate) struct StagingBuffer {
    memory: Pinned,
    /// Recorded once the device has read the last upload.
    read: CudaEvent,
    /// True if `read` has been recorded and not been waited for.
    busy: bool,
    /// Recorded once each piece of a plane has been downloaded.
    arrived: Vec<CudaEvent>,
    /// Dropped last, because it may hold the context.
    cuda: Cuda,
}

impl StagingBuffer {
    pub fn new(cuda: &Cuda, len: usize) -> Result<Self> {
        let memory = Pinned::new(cuda, "pinned memory", len)?;
        Ok(Self { memory, read: cuda.event()?, busy: false, arrived: Vec::new(), cuda: cuda.clone() })
    }

    /// Waits until the device has read the last upload.
    pub fn ready(&mut self) -> Result<()> {
        if std::mem::take(&mut self.busy) { check("upload", self.read.synchronize()) } else { Ok(()) }
    }

    /// Bytes of the pinned memory.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// The handle on whose stream the copies are.
    pub fn cuda(&self) -> &Cuda {
        &self.cuda
    }

    /// Uploads rows; `host` has its own stride. Returns once `host` may be reused.
    ///
    /// # Safety
    /// The device holds `to.rows` rows at `to.address`. [`StagingBuffer::ready`] has been called since the last frame.
    pub unsafe fn up(&mut self, host: &[u8], host_stride: usize, to: DeviceRows) -> Result<()> {
        let stage = "upload";
        let cuda = self.cuda.clone();
        let step = to.rows_of_a_copy(cuda.pool.current_num_threads());
        self.busy = true;
        let plane = &mut self.memory.writable()[to.offset..][..(to.rows - 1) * to.stride + to.row];
        // The thread that has copied a piece also launches its transfer, so none waits for others before the end.
        let sent = cuda.pool.install(|| {
            plane.par_chunks_mut(step * to.stride).enumerate().try_for_each(|(i, piece)| {
                check(stage, cuda.device.context.bind_to_thread())?;
                let first = i * step;
                for (j, row) in piece.chunks_mut(to.stride).enumerate() {
                    row[..to.row].copy_from_slice(&host[(first + j) * host_stride..][..to.row]);
                }
                let bytes = (piece.len().div_ceil(to.stride) - 1) * to.stride + to.row;
                let target = to.address + (first * to.stride) as u64;
                // SAFETY: the caller keeps `to.rows` rows on the device, of which this piece is a part; the pinned bytes stay
                // as they are until `ready` has waited for `read`.
                let result = unsafe {
                    sys::cuMemcpyHtoDAsync_v2(target, piece.as_ptr().cast(), bytes, cuda.stream.cu_stream())
                };
                check(stage, result.result())?;
                Traffic::add(&cuda.traffic.pixels_up, bytes);
                Ok(())
            })
        });
        // If one piece has failed, others may still be in flight.
        sent.and(check(stage, self.read.record(&cuda.stream)))
    }

    /// Starts to download a piece on the stream. Returns its bytes.
    ///
    /// # Safety
    /// The device holds `from.rows` rows at `from.address`; nobody reads the pinned bytes before the stream has passed.
    unsafe fn start_down(&mut self, from: DeviceRows, (first, rows): (usize, usize)) -> Result<usize> {
        let bytes = (rows - 1) * from.stride + from.row;
        let target = self.memory.writable()[from.offset + first * from.stride..][..bytes].as_mut_ptr();
        // SAFETY: the caller keeps `from.rows` rows on the device, of which this piece is a part, and leaves the pinned bytes
        // alone until the stream has passed.
        let result = unsafe {
            sys::cuMemcpyDtoHAsync_v2(
                target.cast(),
                from.address + (first * from.stride) as u64,
                bytes,
                self.cuda.stream.cu_stream(),
            )
        };
        check("download", result.result())?;
        Ok(bytes)
    }

    /// Copies a downloaded piece to the host's rows.
    fn copy_out(
        &mut self,
        host: &mut [u8],
        host_stride: usize,
        from: DeviceRows,
        (first, rows): (usize, usize),
    ) {
        let (pool, together) = (self.cuda.pool.clone(), from.copied_together());
        let piece = &self.memory.writable()[from.offset + first * from.stride..]
            [..(rows - 1) * from.stride + from.row];
        let end = ((first + rows - 1) * host_stride + from.row).min(host.len());
        let target = &mut host[first * host_stride..end];
        pool.install(|| {
            target.par_chunks_mut(host_stride * together).enumerate().for_each(|(i, rows)| {
                for (j, row) in rows.chunks_mut(host_stride).enumerate() {
                    let at = (i * together + j) * from.stride;
                    row[..from.row].copy_from_slice(&piece[at..at + from.row]);
                }
            });
        });
    }

    /// Downloads rows into `host` with its own stride, and waits for them. Returns the number of bytes.
    ///
    /// # Safety
    /// The device holds `from.rows` rows at `from.address`.
    pub unsafe fn down(&mut self, host: &mut [u8], host_stride: usize, from: DeviceRows) -> Result<usize> {
        check("download", self.cuda.device.context.bind_to_thread())?;
        // SAFETY: the caller keeps `from.rows` rows on the device; after an error the stream is waited for here.
        unsafe { self.bring_down(host, host_stride, from) }.inspect_err(|_| {
            // Other pieces may still be in flight into the pinned memory.
            let _ = self.cuda.stream.synchronize();
        })
    }

    /// # Safety
    /// As [`StagingBuffer::down`]; after an error the stream is waited for before the pinned memory is used again.
    unsafe fn bring_down(&mut self, host: &mut [u8], host_stride: usize, from: DeviceRows) -> Result<usize> {
        let stage = "download";
        let cuda = self.cuda.clone();
        let mut sum = 0;
        for (i, piece) in from.pieces().enumerate() {
            // SAFETY: the caller keeps `from.rows` rows on the device; a piece is read below, after its event.
            sum += unsafe { self.start_down(from, piece)? };
            if i == self.arrived.len() {
                self.arrived.push(check(stage, cuda.device.context.new_event(None))?);
            }
            check(stage, self.arrived[i].record(&cuda.stream))?;
        }
        for (i, piece) in from.pieces().enumerate() {
            check(stage, self.arrived[i].synchronize())?;
            self.copy_out(host, host_stride, from, piece);
        }
        Ok(sum)
    }
}

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        // Ignores errors: the device has finished with the memory, or is gone.
        let _ = self.ready();
    }
}
