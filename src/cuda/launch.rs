// SPDX-License-Identifier: MPL-2.0
//! Checked driver calls and launches; errors carry the stage. The only place that launches.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cudarc::driver::sys::{
    self, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue, CUlaunchConfig,
};
use cudarc::driver::{CudaFunction, CudaStream, DriverError};

use super::abi::{Address, Batch};
use crate::error::{Error, Result};

/// A driver result with the stage that asked.
pub(crate) fn check<R>(stage: &'static str, result: Result<R, DriverError>) -> Result<R> {
    result.map_err(|source| Error::Cuda { stage, source, log: String::new() })
}

/// No device, or a driver that cannot be used.
pub(crate) fn unavailable(reason: impl Into<String>) -> Error {
    Error::Backend { backend: "cuda", reason: reason.into() }
}

/// Runs a driver call; a symbol that an old driver lacks is a panic in the bindings and an error here.
pub(crate) fn guarded<R>(stage: &'static str, call: impl FnOnce() -> Result<R, DriverError>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => check(stage, result),
        Err(_) => Err(unavailable(format!(
            "the driver is too old for `{stage}`; update it (525 or newer) or use the cpu backend"
        ))),
    }
}

/// A kernel argument: its bytes as they stand, or a reference to one.
///
/// # Safety
/// The layout of what `pointer` gives is that of the kernel's parameter.
pub(crate) unsafe trait Argument: Sized {
    /// Bytes that the kernel takes.
    #[cfg(test)]
    const BYTES: usize = size_of::<Self>();

    /// Address of these bytes, which holds while `self` is borrowed.
    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}
// SAFETY: a word of 32 bits on both sides.
unsafe impl Argument for u32 {}
// SAFETY: a word of 64 bits on both sides.
unsafe impl Argument for u64 {}
// SAFETY: a word of 64 bits on both sides.
unsafe impl Argument for i64 {}
// SAFETY: a double on both sides.
unsafe impl Argument for f64 {}
// SAFETY: the argument itself, which the reference keeps.
unsafe impl<T: Argument> Argument for &T {
    #[cfg(test)]
    const BYTES: usize = T::BYTES;

    fn pointer(&self) -> *mut c_void {
        T::pointer(self)
    }
}

/// All arguments of a kernel; src/cuda/kernels.rs has one struct for each kernel.
///
/// # Safety
/// `pointers` gives addresses of exactly the kernel's parameters, in their order, which hold while `self` is borrowed. `Static` is of
/// the same parameters.
pub(crate) unsafe trait Arguments {
    /// An array with an entry for each parameter.
    type Pointers: AsMut<[*mut c_void]>;
    /// Type of these arguments without a lifetime, by which a [`Kernel`] is known.
    type Static;
    /// Whether the kernel takes a [`Batch`] as well, its last parameter: only these work on several frames.
    const IS_BATCHED: bool;

    /// Addresses of the arguments, as the driver takes them. That of the batch holds while it is borrowed.
    fn pointers(&self, batch: &Batch) -> Self::Pointers;
}

/// Lets a grid be set up while the one before it runs.
fn overlap() -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: Default::default(),
        value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    }
}

/// Lets all blocks of a grid be on the device at once; the driver refuses a launch of more than it holds.
pub(super) fn together() -> CUlaunchAttribute {
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        pad: Default::default(),
        value: CUlaunchAttributeValue { cooperative: 1 },
    }
}

/// Has the blocks of a grid scheduled before those of others.
pub(super) fn urgent() -> CUlaunchAttribute {
    /// Beyond the highest priority, to which the driver clamps it.
    const URGENT: i32 = -100;
    CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY,
        pad: Default::default(),
        value: CUlaunchAttributeValue { priority: URGENT },
    }
}

/// Frames of one launch, side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frames {
    /// How many, with those that are absent; the third dimension of the grid.
    pub count: u32,
    /// What kernels find them by.
    pub batch: Batch,
}

impl Frames {
    /// One frame by itself, in the first one's memory.
    pub const ONE: Self = Self { count: 1, batch: Batch { planes: Address::NULL, distance: 0, some: 0 } };
}

/// Size of a grid, and what its blocks need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Blocks in x and y.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub threads: u32,
    /// Frames that have such a grid each.
    pub frames: Frames,
    /// True if the blocks wait for each other, so that all have to be on the device at once.
    pub together: bool,
}

impl Shape {
    /// The shape of a grid whose blocks do not wait for each other.
    pub fn of(grid: (u32, u32), threads: u32) -> Self {
        Self { grid, threads, frames: Frames::ONE, together: false }
    }
}

/// A loaded kernel with the stage that it belongs to; `A` is [`Arguments::Static`] of its arguments.
pub(crate) struct Kernel<A> {
    function: Function,
    arguments: PhantomData<fn() -> A>,
}

impl<A> Kernel<A> {
    /// # Safety
    /// The function's parameters are those of `A`.
    pub unsafe fn new(function: CudaFunction, stage: &'static str, overlaps: bool) -> Self {
        Self { function: Function { function, stage, overlaps, shared: 0 }, arguments: PhantomData }
    }

    /// The same with so many bytes of shared memory a block for what the kernel declares as `DYNAMIC_SHARED`.
    pub fn with_shared(mut self, bytes: usize) -> Self {
        self.function.shared = bytes as u32;
        self
    }

    /// The stage that errors and profiles call it by.
    pub fn stage(&self) -> &'static str {
        self.function.stage
    }

    /// Most blocks of `threads` that a multiprocessor holds at once.
    pub fn resident_blocks(&self, threads: u32) -> Result<u32> {
        let Function { function, stage, .. } = &self.function;
        check(stage, function.occupancy_max_active_blocks_per_multiprocessor(threads, 0, None))
    }

    /// Puts a launch on the stream.
    ///
    /// # Safety
    /// Every device address among the arguments is valid for what the kernel does there until the stream has passed the launch.
    pub unsafe fn launch(
        &self,
        stream: &CudaStream,
        shape: Shape,
        args: &impl Arguments<Static = A>,
    ) -> Result<()> {
        let mut pointers = self.pointers(&shape.frames, args)?;
        // SAFETY: `A` are the kernel's parameters, says who made `self`; the caller keeps the memory behind them valid.
        unsafe { self.function.launch(stream, shape, pointers.as_mut()) }
    }

    /// Addresses of all that the kernel takes.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] if it works on one frame and gets several, or that of a stream.
    pub(super) fn pointers<B: Arguments<Static = A>>(
        &self,
        frames: &Frames,
        args: &B,
    ) -> Result<B::Pointers> {
        if (frames.count > 1 || frames.batch.some != 0) && !B::IS_BATCHED {
            return Err(Error::Batch(format!("`{}` works on one frame; take a batch of one", self.stage())));
        }
        Ok(args.pointers(&frames.batch))
    }

    /// The driver's handle, the stage and the bytes of shared memory a block, for a node of a graph.
    pub(super) fn node(&self) -> (sys::CUfunction, &'static str, u32) {
        let Function { function, stage, shared, .. } = &self.function;
        (function.cu_function(), stage, *shared)
    }
}

/// A kernel of any arguments.
struct Function {
    function: CudaFunction,
    stage: &'static str,
    /// Grids may be set up while the one before runs: every kernel waits by itself.
    overlaps: bool,
    /// Bytes of shared memory a block, beside what the kernel itself declares.
    shared: u32,
}

impl Function {
    /// Puts a launch on the stream.
    ///
    /// # Safety
    /// `args` are addresses of exactly the kernel's parameters, alive during the call; every device address among them
    /// is valid for what the kernel does there until the stream has passed the launch.
    unsafe fn launch(&self, stream: &CudaStream, shape: Shape, args: &mut [*mut c_void]) -> Result<()> {
        let mut attributes = [overlap(), together()];
        let attributes = match (self.overlaps, shape.together) {
            (true, true) => &mut attributes[..],
            (true, false) => &mut attributes[..1],
            (false, true) => &mut attributes[1..],
            (false, false) => &mut [],
        };
        let config = CUlaunchConfig {
            gridDimX: shape.grid.0,
            gridDimY: shape.grid.1,
            gridDimZ: shape.frames.count,
            blockDimX: shape.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.shared,
            hStream: stream.cu_stream(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let (function, args) = (self.function.cu_function(), args.as_mut_ptr());
        // SAFETY: `config` has the stream's context and a grid above zero, and its attributes outlive the call; the caller keeps
        // `args` equal to the kernel's parameters and their memory valid until the stream has passed. Grids may overlap since every
        // kernel waits by itself: build.py refuses one that does not.
        let launched = unsafe { sys::cuLaunchKernelEx(&config, function, args, std::ptr::null_mut()) };
        check(self.stage, launched.result())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_the_bindings_become_errors() {
        let error = guarded::<()>("probe", || panic!("no symbol")).unwrap_err().to_string();
        assert!(error.contains("too old for `probe`"), "{error}");
    }
}
