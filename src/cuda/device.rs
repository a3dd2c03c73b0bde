// SPDX-License-Identifier: MPL-2.0
//! Devices of this process: each is opened once, and shared by every element.

use std::any::Any;
use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, Weak};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaModule, DriverError, result, sys};
use once_cell::sync::OnceCell;

use super::graph::AddEdges;
use super::launch::{Kernel, guarded, unavailable};
use super::module::{Entry, ModuleCode, module_code};
use crate::error::Result;
use crate::run_time::{open, symbol};

/// Loaded when a device is opened, so that a device which cannot run our kernels is not chosen. All files are compiled
/// for the same devices.
const PROBE: ModuleCode = module_code!("color");

/// A file of kernels, loaded by the first plan that needs it: the driver's compiler, where it is asked, takes its time.
type Module = Arc<OnceCell<Arc<CudaModule>>>;

pub(crate) struct Device {
    pub context: Arc<CudaContext>,
    pub ordinal: usize,
    pub name: String,
    pub multiprocessors: u32,
    /// True if it has no memory of its own and reaches the host's.
    pub shares_memory: bool,
    capability: (i32, i32),
    /// Adds edges to a graph by which a grid may be set up while the one before it runs, where the device does that.
    add_edges: Option<AddEdges>,
    /// True if the driver compiles PTX even if there is machine code.
    compiles: bool,
    modules: Mutex<HashMap<&'static str, Module>>,
    /// Keeps a foreign context alive. Must be dropped last.
    _keeper: Option<Keeper>,
}

/// Keeps a context alive that another library made.
pub(crate) type Keeper = Box<dyn Any + Send + Sync>;

/// Restores the thread's current context, because other code on this thread may rely on it.
pub(crate) struct CurrentContext {
    context: Option<sys::CUcontext>,
    /// True for a context that this library had adopted.
    ours: bool,
}

impl CurrentContext {
    /// Remembers the current context, if there is a driver.
    pub fn keep() -> Self {
        static PRESENT: LazyLock<bool> = LazyLock::new(driver_present);
        let context = PRESENT.then(current).flatten();
        Self { context, ours: context.is_some_and(is_adopted) }
    }
}

impl Drop for CurrentContext {
    fn drop(&mut self) {
        // An adopted context may have been destroyed with a value that was dropped in between, and a driver takes a
        // destroyed context for a live one.
        let Some(context) = self.context.filter(|&context| !self.ours || is_adopted(context)) else { return };
        // SAFETY: it was current on this thread when `self` was made, or is none at all, and has not been destroyed since: one that
        // is not ours belongs to the caller, who waits for us; ours lives as long as its device.
        let _ = unsafe { result::ctx::set_current(context) };
    }
}

/// The context that is current on this thread; null if there is none, for instance before the driver is initialized.
/// `None` for a destroyed one, which must not be made current again: GStreamer's plugin nvcodec leaves such a context
/// behind if it is loaded without an encoder.
fn current() -> Option<sys::CUcontext> {
    let Ok(Some(context)) = result::ctx::get_current() else { return Some(std::ptr::null_mut()) };
    let mut version = 0;
    // SAFETY: of the current context, as null says; writes one number to where it is told. Of one that is destroyed the driver says
    // so here, but not where it is asked for the device or the flags.
    let lives = unsafe { sys::cuCtxGetApiVersion(std::ptr::null_mut(), &mut version) };
    (lives != sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED).then_some(context)
}

/// Returns true if a context belongs to an adopted device that is alive.
fn is_adopted(context: sys::CUcontext) -> bool {
    ADOPTED.lock().unwrap().get(&(context as usize)).is_some_and(|device| device.strong_count() > 0)
}

type Slot = Arc<OnceCell<Arc<Device>>>;
static DEVICES: LazyLock<Mutex<HashMap<usize, Slot>>> = LazyLock::new(Default::default);
/// Adopted devices by the address of their context. A live device keeps the address from being reused.
static ADOPTED: LazyLock<Mutex<HashMap<usize, Weak<Device>>>> = LazyLock::new(Default::default);
/// Held while kernels are loaded into a context that is being adopted, so that they are loaded once. Separate from the
/// list, which every frame locks: compiling may take the driver seconds.
static ADOPTING: Mutex<()> = Mutex::new(());
/// A reference to each adopted context, since the bindings destroy a context with its last reference.
static BORROWED: Mutex<Vec<Arc<CudaContext>>> = Mutex::new(Vec::new());

/// The process that first asked for a device. The driver does not serve a process that is forked from it later: its
/// calls fail there, or crash when they free inherited objects.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Returns an error in a process that was forked from one which the driver serves, before it touches inherited objects.
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
    // Another library may have used the driver before the fork.
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

/// First driver whose graphs have edges for overlapping launches: CUDA 12.3.
const OVERLAPPING_GRAPHS: i32 = 12_030;

/// Looks up what such edges are added by.
fn find_add_edges() -> Option<AddEdges> {
    let driver = open("libcuda.so.1").ok()?;
    // SAFETY: the driver's function of this name has this signature from CUDA 12.3 on.
    let found = unsafe { symbol(&driver, c"cuGraphAddDependencies_v2") }.ok();
    // The bindings have loaded the driver, too, and never unload it.
    std::mem::forget(driver);
    found
}

fn driver_version() -> Result<i32> {
    let mut version = 0;
    guarded("driver version", || {
        // SAFETY: writes one number to where it is told.
        unsafe { sys::cuDriverGetVersion(&mut version) }.result()
    })?;
    Ok(version)
}

/// Owner of memory whose address another library gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Index of the device.
    pub ordinal: usize,
    /// The `CUcontext` that allocated it; 0 for memory of no single context, such as the driver's pools.
    pub context: usize,
}

/// Looks up the owner of the memory at an address. `None` if the driver does not know it, as for ordinary host memory.
///
/// # Errors
///
/// [`Error::Backend`](crate::error::Error::Backend) without a driver, or in a process that was forked from one which the driver serves.
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

/// Returns an error without a driver, and in a process that it does not serve.
fn check_driver() -> Result<()> {
    // Remembers a success, because every frame of another library checks, and the driver is looked for in many places.
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
    /// Opens a device, or returns the one that this process has opened.
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

    /// Returns this process's device of that index, or opens it.
    fn shared(ordinal: usize) -> Result<Arc<Self>> {
        let slot = DEVICES.lock().unwrap().entry(ordinal).or_default().clone();
        let device = slot.get_or_try_init(|| Self::load(ordinal).map(Arc::new))?.clone();
        if device.works() {
            return Ok(device);
        }
        // A context does not recover from an error; the driver makes another one after the last reference to this one
        // is dropped.
        DEVICES.lock().unwrap().retain(|_, kept| !Arc::ptr_eq(kept, &slot));
        drop((slot, device));
        let slot = DEVICES.lock().unwrap().entry(ordinal).or_default().clone();
        slot.get_or_try_init(|| Self::load(ordinal).map(Arc::new)).cloned()
    }

    /// Returns true if the context has not failed for good.
    pub fn works(&self) -> bool {
        self.context.bind_to_thread().and_then(|()| self.context.mem_get_info()).is_ok()
    }

    fn load(ordinal: usize) -> Result<Self> {
        let context = guarded("open device", || CudaContext::new(ordinal))?;
        Self::with_context(context, ordinal, None)
    }

    /// Opens a device in a context that another library made. It loads its own kernels.
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
        // results) is ordered by events of ours or by a wait of the host.
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
        let add_edges = if overlaps { find_add_edges() } else { None };
        // The driver honors this variable for its own program format, and so does this library.
        let compiles = std::env::var_os("CUDA_FORCE_PTX_JIT").is_some_and(|value| value != "0");
        let modules = Mutex::default();
        // Unknown is no: then frames are copied, which every device can do.
        let has = |attribute| context.attribute(attribute).is_ok_and(|value| value == 1);
        let shares_memory = has(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)
            && has(Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
        let device = Self {
            context,
            shares_memory,
            ordinal,
            name,
            multiprocessors,
            capability,
            add_edges,
            compiles,
            modules,
            _keeper: keeper,
        };
        device.module(&PROBE)?;
        Ok(device)
    }

    /// Loads a file of kernels on first use.
    fn module(&self, code: &ModuleCode) -> Result<Arc<CudaModule>> {
        let module = self.modules.lock().unwrap().entry(code.name).or_default().clone();
        module.get_or_try_init(|| code.load(&self.context, self.capability, self.compiles)).cloned()
    }

    /// Loads a kernel; errors call it by its stage.
    pub fn kernel<A>(&self, entry: Entry<A>, stage: &'static str) -> Result<Kernel<A>> {
        let module = self.module(entry.file)?;
        entry.load(&module, stage, self.add_edges.is_some())
    }

    /// [`AddEdges`], where grids overlap.
    pub fn add_edges(&self) -> Option<AddEdges> {
        self.add_edges
    }

    pub fn details(&self) -> String {
        let (major, minor) = self.capability;
        format!("{}, compute capability {major}.{minor}, {} multiprocessors", self.name, self.multiprocessors)
    }
}

/// Keeps the bindings from destroying a foreign context, and releases those that nothing else refers to.
fn borrow_for_good(context: Arc<CudaContext>) {
    let mut borrowed = BORROWED.lock().unwrap();
    for unused in std::mem::take(&mut *borrowed) {
        match Arc::try_unwrap(unused) {
            // Skips the bindings' destructor. The rest of the value are plain numbers.
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
