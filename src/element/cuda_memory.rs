// SPDX-License-Identifier: MPL-2.0
//! `memory:CUDAMemory`: GStreamer's CUDA library, opened at run time, and frames in its memory.
//!
//! One build serves machines with and without the library, from GStreamer 1.22 on: only functions and fields are used
//! whose shape has not changed since. From 1.24 on a memory may name a stream, behind which our work is put; before
//! that, and without one, the producer has waited. We wait for our own work before a buffer goes on.

use std::ffi::c_void;
use std::sync::LazyLock;

use gst::glib;
use gst::glib::translate::{ToGlibPtr, from_glib_none};
use gst::prelude::*;

use crate::cuda::{DeviceFrame, ForeignContext};
use crate::image::FrameInfo;

use super::frame::{check_meta, map_failed, planes, refuse};

/// Name of the caps feature.
pub(super) const FEATURE: &str = "memory:CUDAMemory";
const LIBRARY: &str = "libgstcuda-1.0.so.0";
/// `GST_MAP_CUDA`: maps to a device address.
const MAP_CUDA: u32 = gst::ffi::GST_MAP_FLAG_LAST << 1;

/// The head of `GstCudaMemory`, which is the same in all versions.
#[repr(C)]
struct CudaMemoryHead {
    memory: gst::ffi::GstMemory,
    context: *mut glib::gobject_ffi::GObject,
}

type Memory = *mut gst::ffi::GstMemory;

struct Library {
    is_cuda_memory: unsafe extern "C" fn(Memory) -> glib::ffi::gboolean,
    context_handle: unsafe extern "C" fn(*mut glib::gobject_ffi::GObject) -> *mut c_void,
    /// From 1.24 on: the stream of a memory, and its `CUstream`.
    stream: Option<(
        unsafe extern "C" fn(Memory) -> *mut c_void,
        unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    )>,
}

impl Library {
    fn open() -> Result<Self, String> {
        // SAFETY: a library of GStreamer, whose initialisers are those of any program that links it.
        let library = unsafe { libloading::Library::new(LIBRARY) }.map_err(|e| e.to_string())?;
        // SAFETY: the names have had these signatures since 1.22, and the library stays loaded, see below.
        let opened = unsafe {
            let load: unsafe extern "C" fn() -> glib::ffi::gboolean =
                symbol(&library, c"gst_cuda_load_library")?;
            // Its other functions abort the process where this has not succeeded.
            if load() == glib::ffi::GFALSE {
                return Err("it does not find the driver".into());
            }
            Self {
                is_cuda_memory: symbol(&library, c"gst_is_cuda_memory")?,
                context_handle: symbol(&library, c"gst_cuda_context_get_handle")?,
                stream: symbol(&library, c"gst_cuda_memory_get_stream")
                    .and_then(|get| Ok((get, symbol(&library, c"gst_cuda_stream_get_handle")?)))
                    .ok(),
            }
        };
        // Types that it has registered with GObject cannot be unloaded.
        std::mem::forget(library);
        Ok(opened)
    }

    fn get() -> Result<&'static Self, &'static str> {
        static LIBRARY: LazyLock<Result<Library, String>> = LazyLock::new(Library::open);
        LIBRARY.as_ref().map_err(String::as_str)
    }
}

/// Finds a function.
///
/// # Safety
/// `F` is its signature; the library stays loaded while it is called.
unsafe fn symbol<F: Copy>(library: &libloading::Library, name: &std::ffi::CStr) -> Result<F, String> {
    // SAFETY: promised by the caller.
    unsafe { library.get::<F>(name) }.map(|found| *found).map_err(|e| e.to_string())
}

/// Why frames cannot stay on the device, if so.
pub(super) fn unavailable() -> Option<&'static str> {
    Library::get().err()
}

fn memory_of(buffer: &gst::BufferRef) -> Option<*mut CudaMemoryHead> {
    let library = Library::get().ok()?;
    let memory = (buffer.n_memory() > 0).then(|| buffer.peek_memory(0).as_mut_ptr())?;
    // SAFETY: the memory is the buffer's.
    (unsafe { (library.is_cuda_memory)(memory) } != glib::ffi::GFALSE).then_some(memory.cast())
}

/// Where a buffer's memory lives.
pub(super) struct Home {
    /// The `CUcontext`.
    handle: usize,
    object: glib::Object,
}

// SAFETY: the object is only held and asked for a property that does not change; GObject counts references atomically.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Home {
    /// Finds the context of a buffer's memory.
    pub(super) fn of(buffer: &gst::BufferRef) -> Result<Self, gst::ErrorMessage> {
        let (Ok(library), Some(memory)) = (Library::get(), memory_of(buffer)) else {
            return Err(refuse("its memory is not CUDA memory"));
        };
        // SAFETY: the memory is CUDA memory and so has this head, with a context that lives as long.
        unsafe {
            let context = (*memory).context;
            let handle = (library.context_handle)(context) as usize;
            Ok(Self { handle, object: from_glib_none(context) })
        }
    }

    pub(super) fn handle(&self) -> usize {
        self.handle
    }

    /// The context as the library adopts it.
    pub(super) fn into_foreign(self) -> ForeignContext {
        let ordinal = self.object.find_property("cuda-device-id").map_or(0, |found| {
            if found.value_type() == u32::static_type() {
                self.object.property::<u32>("cuda-device-id")
            } else {
                0
            }
        });
        ForeignContext { handle: self.handle, ordinal: ordinal as usize, keeper: Box::new(self) }
    }
}

/// Makes a pipeline let go of its CUDA context, which its bins and elements keep from start to start: whoever asks for
/// one next is told of an empty one, and makes another. For one that the device has broken.
pub(super) fn forget_context(element: &gst::Element) {
    let mut top = element.clone().upcast::<gst::Object>();
    while let Some(parent) = top.parent() {
        top = parent;
    }
    if let Ok(top) = top.downcast::<gst::Element>() {
        // A persistent context is replaced by a persistent one only. Bins hand it on to all that is in them.
        top.set_context(&gst::Context::new("gst.cuda.context", true));
    }
}

/// A buffer mapped on the device. A map for drawing copies memory on the device where others hold it too.
pub(super) struct DeviceMap<'a> {
    mapped: gst_video::ffi::GstVideoFrame,
    frame: FrameInfo,
    stream: Option<usize>,
    _buffer: std::marker::PhantomData<&'a gst::BufferRef>,
}

impl<'a> DeviceMap<'a> {
    /// Maps a frame for reading.
    pub(super) fn read(
        buffer: &'a gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
    ) -> Result<Self, gst::ErrorMessage> {
        check_meta(buffer, info)?;
        // SAFETY: the buffer stays borrowed while it is mapped.
        unsafe { Self::map(buffer.as_mut_ptr(), info, frame, gst::ffi::GST_MAP_READ) }
            .ok_or_else(|| map_failed("reading on the device"))
    }

    /// Maps a frame for drawing.
    pub(super) fn draw(
        buffer: &'a mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
    ) -> Result<Self, gst::ErrorMessage> {
        check_meta(buffer, info)?;
        let flags = gst::ffi::GST_MAP_READ | gst::ffi::GST_MAP_WRITE;
        // SAFETY: the buffer stays borrowed, mutably, while it is mapped.
        unsafe { Self::map(buffer.as_mut_ptr(), info, frame, flags) }
            .ok_or_else(|| map_failed("drawing on the device"))
    }

    /// # Safety
    /// `buffer` is valid, writable if `flags` say so, and borrowed for `'a`.
    unsafe fn map(
        buffer: *mut gst::ffi::GstBuffer,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
        flags: gst::ffi::GstMapFlags,
    ) -> Option<Self> {
        let flags = flags | MAP_CUDA | gst_video::ffi::GST_VIDEO_FRAME_MAP_FLAG_NO_REF;
        let mut mapped = std::mem::MaybeUninit::uninit();
        // SAFETY: promised by the caller; the frame is read only where the call says that it has filled it.
        let mapped = unsafe {
            let done = gst_video::ffi::gst_video_frame_map(
                mapped.as_mut_ptr(),
                info.to_glib_none().0,
                buffer,
                flags,
            );
            (done != glib::ffi::GFALSE).then(|| mapped.assume_init())?
        };
        let mut map = Self { mapped, frame, stream: None, _buffer: std::marker::PhantomData };
        // After the map, which may have put a copy in the place of the memory.
        // SAFETY: promised by the caller; it is looked at while it is mapped.
        map.stream = stream_of(unsafe { gst::BufferRef::from_ptr(buffer) });
        Some(map)
    }

    /// The planes in device memory.
    pub(super) fn frame(&self) -> Result<DeviceFrame, gst::ErrorMessage> {
        let (mut addresses, mut strides) = ([0; 3], [0; 3]);
        let count = self.frame.format.planes(self.frame.geometry).len();
        for (i, plane) in planes(&self.mapped, self.frame)?.into_iter().take(count).enumerate() {
            addresses[i] = plane.data as u64;
            strides[i] = u32::try_from(plane.stride).map_err(refuse)?;
        }
        // SAFETY: `planes` checked that they lie in memory that stays mapped while `self` lives; that is the context
        // of the engine, which the caller sees to.
        unsafe { DeviceFrame::from_planes(self.frame, addresses, strides) }.map_err(refuse)
    }

    /// The `CUstream` that the producer may still be busy on.
    pub(super) fn stream(&self) -> Option<usize> {
        self.stream
    }
}

impl Drop for DeviceMap<'_> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and unmapped once.
        unsafe { gst_video::ffi::gst_video_frame_unmap(&mut self.mapped) };
    }
}

fn stream_of(buffer: &gst::BufferRef) -> Option<usize> {
    let (get, handle) = Library::get().ok()?.stream?;
    let memory = memory_of(buffer)?;
    // SAFETY: the memory is CUDA memory; its stream lives as long, and none gives none.
    let stream = unsafe {
        let stream = get(memory.cast());
        if stream.is_null() { std::ptr::null_mut() } else { handle(stream) }
    };
    (!stream.is_null()).then_some(stream as usize)
}
