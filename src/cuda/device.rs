// SPDX-License-Identifier: MPL-2.0
//! Devices of this process: opened once each, with all kernels loaded; shared by every element.

use std::any::Any;
use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, Weak};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaModule, DriverError, result, sys};
use once_cell::sync::OnceCell;

use super::launch::{Kernel, guarded, unavailable};
use super::module::{Entry, ModuleCode, module_code};
use crate::error::Result;

/// Loaded when a device is opened, so that one which cannot run our kernels is not chosen. All files are compiled for the same devices.
const PROBE: ModuleCode = module_code!("color");

/// A file of kernels, loaded by the first plan that needs it: the driver's compiler, where it is asked, takes its time.
type Module = Arc<OnceCell<Arc<CudaModule>>>;

pub(crate) struct Device {
    pub context: Arc<CudaContext>,
    pub ordinal: usize,
    pub name: String,
    pub multiprocessors: u32,
    capability: (i32, i32),
    /// Whether a grid may be set up while the one before it runs.
    overlaps: bool,
    /// Whether the driver is to compile PTX even where there is machine code.
    compiles: bool,
    modules: Mutex<HashMap<&'static str, Module>>,
    /// Holds a context that somebody else made; the last to be dropped.
    _keeper: Option<Keeper>,
}

/// What keeps a context alive that is not ours.
pub(crate) type Keeper = Box<dyn Any + Send + Sync>;

/// Puts the thread's current context back where it was: others on this thread may rely on theirs.
pub(crate) struct CurrentContext {
    context: Option<sys::CUcontext>,
    /// Whether it was one that we had adopted.
    ours: bool,
}

impl CurrentContext {
    /// Notes the current context, where there is a driver to ask.
    pub fn keep() -> Self {
        static PRESENT: LazyLock<bool> = LazyLock::new(driver_present);
        let context = PRESENT.then(current).flatten();
        Self { context, ours: context.is_some_and(is_adopted) }
    }
}

impl Drop for CurrentContext {
    fn drop(&mut self) {
        // One that was ours may have been destroyed with what was dropped in between, and a driver takes a destroyed one for a live one.
        let Some(context) = self.context.filter(|&context| !self.ours || is_adopted(context)) else { return };
        // SAFETY: it was current on this thread when `self` was made, or is none at all, and has not been destroyed since: one that
        // is not ours belongs to the caller, who waits for us; ours lives as long as its device.
        let _ = unsafe { result::ctx::set_current(context) };
    }
}

/// The context that is current on this thread, null if none is, as before the driver has been set up. Nothing where that has
/// destroyed, since it must not be made current again: GStreamer's plugin nvcodec leaves such a one behind when it is loaded without an
/// encoder.
fn current() -> Option<sys::CUcontext> {
    let Ok(Some(context)) = result::ctx::get_current() else { return Some(std::ptr::null_mut()) };
    let mut version = 0;
    // SAFETY: of the current context, as null says; writes one number to where it is told. Of one that is destroyed the driver says
    // so here, but not where it is asked for the device or the flags.
    let lives = unsafe { sys::cuCtxGetApiVersion(std::ptr::null_mut(), &mut version) };
    (lives != sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED).then_some(context)
}

/// Whether a context is of a device that was adopted and lives.
fn is_adopted(context: sys::CUcontext) -> bool {
    ADOPTED.lock().unwrap().get(&(context as usize)).is_some_and(|device| device.strong_count() > 0)
}

type Slot = Arc<OnceCell<Arc<Device>>>;
static DEVICES: LazyLock<Mutex<HashMap<usize, Slot>>> = LazyLock::new(Default::default);
/// By the address of their context; a device that lives keeps its context from being another.
static ADOPTED: LazyLock<Mutex<HashMap<usize, Weak<Device>>>> = LazyLock::new(Default::default);
/// Held while kernels are loaded into a context that is being adopted, so that nobody loads them twice. Apart from the list, which
/// every frame asks: the driver's compiler may take seconds.
static ADOPTING: Mutex<()> = Mutex::new(());
/// A reference to each context that was adopted, since the bindings destroy a context with its last.
static BORROWED: Mutex<Vec<Arc<CudaContext>>> = Mutex::new(Vec::new());

/// The process that first asked for a device. The driver serves no process that is forked from it afterwards: its calls fail there, or
/// crash where they free what is inherited.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Refuses a process that was forked from one which the driver serves, before anything inherited is touched.
fn check_process() -> Result<()> {
    let forked = || {
        unavailable(
            "CUDA does not work in a process that was forked after CUDA was used: start processes before the first device is opened, or \
             without a fork (in Python the start method spawn), or use the cpu backend",
        )
    };
    let process = std::process::id();
    if *PROCESS.get_or_init(|| process) != process {
        return Err(forked());
    }
    // Other libraries may have used the driver before the fork.
    let serves = guarded("initialize", || match result::init() {
        Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_INITIALIZED)) => Ok(false),
        other => other.map(|()| true),
    })?;
    if serves { Ok(()) } else { Err(forked()) }
}

/// Whether the driver's library can be loaded at all; asked first, because the bindings panic without it.
fn driver_present() -> bool {
    // SAFETY: loads libcuda by name and looks up no symbol; the library has no unsound initialiser.
    catch_unwind(|| unsafe { cudarc::driver::sys::is_culib_present() }).unwrap_or(false)
}

/// The first driver whose graphs keep what launches say of overlapping: CUDA 12.3.
const OVERLAPPING_GRAPHS: i32 = 12_030;

fn driver_version() -> Result<i32> {
    let mut version = 0;
    guarded("driver version", || {
        // SAFETY: writes one number to where it is told.
        unsafe { sys::cuDriverGetVersion(&mut version) }.result()
    })?;
    Ok(version)
}

/// Where memory is that another library gives an address of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Number of the device.
    pub ordinal: usize,
    /// The `CUcontext` that it was taken in; 0 where it is of no single one, as memory of the driver's pools.
    pub context: usize,
}

/// Who holds the memory at an address; nothing where the driver does not know it, as ordinary memory of the host.
///
/// # Errors
///
/// [`Error::Backend`] without a driver, or in a process that was forked from one which the driver serves.
pub fn owner_of(address: u64) -> Result<Option<Owner>> {
    use sys::CUpointer_attribute::{CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    check_driver()?;
    guarded("address", || {
        let (mut ordinal, mut context) = (-1i32, std::ptr::null_mut::<std::ffi::c_void>());
        let to = std::ptr::from_mut(&mut ordinal).cast();
        // SAFETY: writes a number of 32 bits to where it is told; the address is only looked up.
        let known = unsafe { sys::cuPointerGetAttribute(to, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) };
        let Ok(ordinal) = usize::try_from(ordinal) else { return Ok(None) };
        if known != sys::CUresult::CUDA_SUCCESS {
            return Ok(None);
        }
        let to = std::ptr::from_mut(&mut context).cast();
        // SAFETY: writes a pointer to where it is told; the address is only looked up. Where there is no context, it stays null.
        let _ = unsafe { sys::cuPointerGetAttribute(to, CU_POINTER_ATTRIBUTE_CONTEXT, address) };
        Ok(Some(Owner { ordinal, context: context as usize }))
    })
}

/// Refuses a machine without a driver, and a process that it does not serve.
fn check_driver() -> Result<()> {
    // Every frame of another library asks, and the driver is looked for in many places.
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    if PASSED.load(Ordering::Relaxed) == process {
        return Ok(());
    }
    if !driver_present() {
        return Err(unavailable(
            "the NVIDIA driver (libcuda.so.1) is not installed; install it or use the cpu backend",
        ));
    }
    check_process()?;
    PASSED.store(process, Ordering::Relaxed);
    Ok(())
}

impl Device {
    /// The device, opened by the first who asks.
    pub fn open(ordinal: i32) -> Result<Arc<Self>> {
        check_driver()?;
        let count = guarded("device count", CudaContext::device_count)?;
        if count <= 0 {
            return Err(unavailable("the driver finds no device; check nvidia-smi or use the cpu backend"));
        }
        if ordinal >= count || ordinal < -1 {
            return Err(unavailable(format!(
                "there is no device {ordinal}; this machine has {count}, numbered from 0; -1 takes the first that works"
            )));
        }
        let wanted = if ordinal < 0 { 0..count } else { ordinal..ordinal + 1 };
        let mut last = unavailable("no device could be opened");
        for ordinal in wanted {
            match Self::shared(ordinal as usize) {
                Ok(device) => return Ok(device),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The one that this process has open, or a new one.
    fn shared(ordinal: usize) -> Result<Arc<Self>> {
        let slot = DEVICES.lock().unwrap().entry(ordinal).or_default().clone();
        let device = slot.get_or_try_init(|| Self::load(ordinal).map(Arc::new))?.clone();
        if device.works() {
            return Ok(device);
        }
        // An error that a context does not recover from: the driver makes another once all have let go of this one.
        DEVICES.lock().unwrap().retain(|_, kept| !Arc::ptr_eq(kept, &slot));
        drop((slot, device));
        let slot = DEVICES.lock().unwrap().entry(ordinal).or_default().clone();
        slot.get_or_try_init(|| Self::load(ordinal).map(Arc::new)).cloned()
    }

    /// Whether the driver still takes orders for this context.
    pub fn works(&self) -> bool {
        self.context.bind_to_thread().and_then(|()| self.context.mem_get_info()).is_ok()
    }

    fn load(ordinal: usize) -> Result<Self> {
        let context = guarded("open device", || CudaContext::new(ordinal))?;
        Self::with_context(context, ordinal, None)
    }

    /// A device in a context that somebody else made, with kernels of its own.
    ///
    /// # Safety
    /// `handle` is a context of device `ordinal` that lives as long as `keeper`.
    pub unsafe fn adopt(handle: sys::CUcontext, ordinal: usize, keeper: Keeper) -> Result<Arc<Self>> {
        let stage = "adopt context";
        let _adopting = ADOPTING.lock().unwrap();
        {
            let mut adopted = ADOPTED.lock().unwrap();
            adopted.retain(|_, device| device.strong_count() > 0);
            if let Some(device) = adopted.get(&(handle as usize)).and_then(Weak::upgrade) {
                return Ok(device);
            }
        }
        let context = guarded(stage, || {
            let device = result::device::get(ordinal as i32)?;
            // SAFETY: the caller keeps `handle` a live context of this device. Were it the bindings that fail to make it current, they would destroy it.
            unsafe { result::ctx::set_current(handle)? };
            // SAFETY: the caller keeps `handle` a live context of device `ordinal` until `keeper` goes. We do not own it as the
            // bindings believe: `borrow_for_good` below sees to it that they never destroy it.
            unsafe { CudaContext::from_raw_context(ordinal, device, handle) }
        })?;
        borrow_for_good(context.clone());
        let device = Arc::new(Self::with_context(context, ordinal, Some(keeper))?);
        ADOPTED.lock().unwrap().insert(handle as usize, Arc::downgrade(&device));
        Ok(device)
    }

    fn with_context(context: Arc<CudaContext>, ordinal: usize, keeper: Option<Keeper>) -> Result<Self> {
        // SAFETY: a frame's work goes to one stream, which orders it. What several streams touch (staging, what is kept of
        // results, launches beside others) is ordered by events of ours or by a wait of the host.
        unsafe { context.disable_event_tracking() };
        let capability = guarded("device capability", || context.compute_capability())?;
        if capability < (7, 5) {
            return Err(unavailable(format!(
                "compute capability {}.{} is below 7.5 (Turing); use the cpu backend",
                capability.0, capability.1
            )));
        }
        let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = guarded("device size", || context.attribute(attribute))? as u32;
        let name = guarded("device name", || context.name())?;
        let overlaps = capability >= (9, 0) && driver_version()? >= OVERLAPPING_GRAPHS;
        // The driver's own switch, for programs in its format.
        let compiles = std::env::var_os("CUDA_FORCE_PTX_JIT").is_some_and(|value| value != "0");
        let modules = Mutex::default();
        let device = Self {
            context,
            ordinal,
            name,
            multiprocessors,
            capability,
            overlaps,
            compiles,
            modules,
            _keeper: keeper,
        };
        device.module(&PROBE)?;
        Ok(device)
    }

    /// A file of kernels, loaded by the first who asks.
    fn module(&self, code: &ModuleCode) -> Result<Arc<CudaModule>> {
        let module = self.modules.lock().unwrap().entry(code.name).or_default().clone();
        module.get_or_try_init(|| code.load(&self.context, self.capability, self.compiles)).cloned()
    }

    /// Loads a kernel; errors call it by its stage.
    pub fn kernel<A>(&self, entry: Entry<A>, stage: &'static str) -> Result<Kernel<A>> {
        let module = self.module(entry.file)?;
        entry.load(&module, stage, self.overlaps)
    }

    pub fn details(&self) -> String {
        let (major, minor) = self.capability;
        format!("{}, compute capability {major}.{minor}, {} multiprocessors", self.name, self.multiprocessors)
    }
}

/// Keeps the bindings from destroying a context that is not theirs, and forgets those that nobody else refers to now.
fn borrow_for_good(context: Arc<CudaContext>) {
    let mut borrowed = BORROWED.lock().unwrap();
    for unused in std::mem::take(&mut *borrowed) {
        match Arc::try_unwrap(unused) {
            // Plain numbers; there is nothing but the context to give back.
            Ok(context) => std::mem::forget(context),
            Err(in_use) => borrowed.push(in_use),
        }
    }
    borrowed.push(context);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_the_error_says_what_to_do() {
        if driver_present() {
            println!("skipped: a CUDA driver is installed");
            return;
        }
        let error = Device::open(-1).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("libcuda.so.1") && error.contains("cpu backend"), "{error}");
    }
}
