// SPDX-License-Identifier: MPL-2.0
//! Checked driver calls and launches; errors carry the stage. The only place that launches.

use std::ffi::c_void;

use cudarc::driver::sys::{
    self, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig, CUresult,
};
use cudarc::driver::{CudaFunction, CudaStream, DriverError, result};

use crate::error::{Error, Result};

/// What to do about an error of the driver.
pub(crate) fn advice(error: DriverError) -> &'static str {
    use CUresult::*;
    match error.0 {
        CUDA_ERROR_OUT_OF_MEMORY => "close other users of the device, take smaller frames or use backend=cpu",
        CUDA_ERROR_INVALID_PTX
        | CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        | CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUDA_ERROR_NOT_FOUND => "update the driver (525 or newer) or use backend=cpu",
        _ => {
            "set every pipeline that uses the device to NULL and start again; if that does not help, restart the \
             program, check nvidia-smi or use backend=cpu"
        }
    }
}

/// A driver result with the stage that asked.
pub(crate) fn check<R>(stage: &'static str, result: Result<R, DriverError>) -> Result<R> {
    result.map_err(|e| Error::Cuda { stage, reason: format!("{e}; {}", advice(e)) })
}

/// A kernel argument: passed by value, its bytes as they stand.
///
/// # Safety
/// The type's layout must be that of the kernel's parameter.
pub(crate) unsafe trait Argument {}
// SAFETY: a word of 32 bits on both sides.
unsafe impl Argument for u32 {}
// SAFETY: a word of 64 bits on both sides.
unsafe impl Argument for i64 {}

/// Address of an argument.
pub(crate) fn arg<T: Argument>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// Arguments of a launch as the driver takes them: addresses of named values, since a temporary would be gone by the launch.
macro_rules! args {
    ($($value:ident),* $(,)?) => { [$($crate::cuda::launch::arg(&$value)),*] };
}
pub(crate) use args;

/// Lets a grid be set up while the one before it runs.
fn overlap() -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: Default::default(),
        value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    }
}

/// Lets all blocks of a grid be on the device at once.
fn together() -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        pad: Default::default(),
        value: CUlaunchAttributeValue { cooperative: 1 },
    }
}

/// A loaded kernel with the stage that it belongs to.
pub(crate) struct Kernel {
    function: CudaFunction,
    pub stage: &'static str,
    /// Whether its grids may be set up while the one before runs: every kernel waits by itself.
    overlaps: bool,
    /// Bytes of shared memory a block, beside what the kernel itself declares.
    shared: u32,
}

impl Kernel {
    pub fn new(function: CudaFunction, stage: &'static str, overlaps: bool) -> Self {
        Self { function, stage, overlaps, shared: 0 }
    }

    /// The same with so many bytes of shared memory a block for what the kernel declares as `DYNAMIC_SHARED`.
    pub fn with_shared(self, bytes: usize) -> Self {
        Self { shared: bytes as u32, ..self }
    }

    /// Most blocks of `threads` that a multiprocessor holds at once.
    pub fn resident_blocks(&self, threads: u32) -> Result<u32> {
        check(self.stage, self.function.occupancy_max_active_blocks_per_multiprocessor(threads, 0, None))
    }

    /// Puts a launch on the stream.
    ///
    /// # Safety
    /// `args` are addresses of exactly the kernel's parameters, alive during the call; every device address among them
    /// is valid for what the kernel does there until the stream has passed the launch.
    pub unsafe fn launch(
        &self,
        stream: &CudaStream,
        grid: (u32, u32),
        threads: u32,
        args: &mut [*mut c_void],
    ) -> Result<()> {
        if self.overlaps {
            // SAFETY: the caller keeps `args` equal to the kernel's parameters and their memory valid, which is all that the
            // callee asks; overlapping is safe since every kernel waits by itself: build.py refuses one that does not.
            return unsafe { self.launch_with(&mut [overlap()], stream, grid, threads, args) };
        }
        // SAFETY: `function` is loaded and of the stream's context, which its device keeps; the caller keeps `args` equal to
        // the kernel's parameters and their memory valid until the stream has passed.
        let launched = unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                (grid.0, grid.1, 1),
                (threads, 1, 1),
                self.shared,
                stream.cu_stream(),
                args,
            )
        };
        check(self.stage, launched)
    }

    /// # Safety
    /// As [`Kernel::launch`].
    unsafe fn launch_with(
        &self,
        attributes: &mut [CUlaunchAttribute],
        stream: &CudaStream,
        grid: (u32, u32),
        threads: u32,
        args: &mut [*mut c_void],
    ) -> Result<()> {
        let config = CUlaunchConfig {
            gridDimX: grid.0,
            gridDimY: grid.1,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.shared,
            hStream: stream.cu_stream(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let (function, args) = (self.function.cu_function(), args.as_mut_ptr());
        // SAFETY: `config` has the stream's context and a grid above zero, and its attributes outlive the call; the caller keeps
        // `args` equal to the kernel's parameters and their memory valid until the stream has passed.
        let launched = unsafe { sys::cuLaunchKernelEx(&config, function, args, std::ptr::null_mut()) };
        check(self.stage, launched.result())
    }

    /// The same for a grid whose blocks wait for each other.
    ///
    /// # Safety
    /// As [`Kernel::launch`].
    pub unsafe fn launch_cooperative(
        &self,
        stream: &CudaStream,
        blocks: u32,
        threads: u32,
        args: &mut [*mut c_void],
    ) -> Result<()> {
        if self.overlaps {
            // SAFETY: as for a launch whose blocks do not meet, which the caller keeps; that all blocks are resident at once the
            // driver checks, and refuses the launch otherwise.
            return unsafe {
                self.launch_with(&mut [overlap(), together()], stream, (blocks, 1), threads, args)
            };
        }
        // SAFETY: the caller keeps `args` equal to the kernel's parameters and their memory valid until the stream has passed; that
        // all blocks are resident at once the driver checks, and refuses the launch otherwise.
        let launched = unsafe {
            result::launch_cooperative_kernel(
                self.function.cu_function(),
                (blocks, 1, 1),
                (threads, 1, 1),
                0,
                stream.cu_stream(),
                args,
            )
        };
        check(self.stage, launched)
    }
}
