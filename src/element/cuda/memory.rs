// SPDX-License-Identifier: MPL-2.0
//! `memory:CUDAMemory`: GStreamer's CUDA library, opened at run time, and frames in its memory.
//!
//! One build serves machines with and without the library, from GStreamer 1.22 on: only functions and fields are used
//! whose shape has not changed since. From 1.24 on a memory may name a stream, which our work then waits for; before
//! that, and without one, the producer has waited. We wait for our own work before a buffer leaves.

use std::ffi::c_void;
use std::sync::LazyLock;

use gst::glib;
use gst::glib::translate::from_glib_none;
use gst::prelude::*;

use crate::cuda::{DeviceFrame, ForeignContext};
use crate::image::{FrameInfo, MOST_PLANES, PixelFormat};
use crate::run_time::{self, symbol};
use crate::video_map::{Access, Layout, Reason, VideoMap};

use crate::element::frame::{caps_of, shapes, video_formats};
use crate::element::task::Stream;

/// Name of the caps feature.
const FEATURE: &str = "memory:CUDAMemory";
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
        let library = run_time::open(LIBRARY)?;
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

/// Caps of all formats that GStreamer keeps in device memory and that can be segmented there.
pub(in crate::element) fn device_caps() -> Option<gst::Caps> {
    use PixelFormat::*;
    // Formats of GStreamer's CUDA library up to 1.28. Older versions have fewer; then no peer offers the others.
    let formats = [
        Nv12, I420, P010Le, Rgba, Bgra, Rgbx, Bgrx, Argb, Abgr, Rgb, Bgr, Yv12, Nv21, P012Le, P016Le,
        I420p10Le, I420p12Le, Y42b, I422p10Le, I422p12Le, Yuy2, Uyvy, Y444, Y444p10Le, Y444p12Le, Y444p16Le,
        Gbr, Rgbp, Rgb10a2Le, Bgr10a2Le,
    ];
    let formats = formats.into_iter().flat_map(video_formats);
    let mut caps = caps_of(formats);
    caps.make_mut().set_features_simple(Some(gst::CapsFeatures::new([FEATURE])));
    Some(caps)
}

/// Returns true for caps of frames in device memory.
pub(in crate::element) fn is_on_device(features: &gst::CapsFeaturesRef) -> bool {
    features.contains(FEATURE)
}

/// The reason why frames cannot stay on the device, if there is one.
pub(in crate::element) fn unavailable() -> Option<&'static str> {
    Library::get().err()
}

/// The head of `GstCudaStream`, from 1.24 on.
#[repr(C)]
struct CudaStreamHead {
    object: gst::ffi::GstMiniObject,
    context: *mut glib::gobject_ffi::GObject,
}

/// The context of a memory, if it is CUDA memory.
///
/// # Safety
/// The memory is valid; the context is used only while it is.
unsafe fn context_of(library: &Library, memory: Memory) -> Result<*mut glib::gobject_ffi::GObject, Reason> {
    // SAFETY: the caller gives a valid memory; CUDA memory has this head, with a context that lives as long.
    unsafe {
        if memory.is_null() || (library.is_cuda_memory)(memory) == glib::ffi::GFALSE {
            return Err("a plane is not in CUDA memory; put cudaupload before superpixel".into());
        }
        Ok((*memory.cast::<CudaMemoryHead>()).context)
    }
}

/// The device context that a buffer's memory lives in.
pub(in crate::element) struct DeviceContext {
    /// The `CUcontext`.
    handle: usize,
    object: glib::Object,
}

// SAFETY: the object is only held and asked for a property that does not change; GObject counts references atomically.
unsafe impl Send for DeviceContext {}
// SAFETY: shared threads read the handle, which does not change, and take references, which GObject counts atomically.
unsafe impl Sync for DeviceContext {}

impl DeviceContext {
    /// Finds the context of the memory that holds plane 0; `None` if the stream's frames are in system memory.
    /// [`DeviceMap`] checks the other planes.
    pub(in crate::element) fn of(buffer: &gst::BufferRef, stream: &Stream) -> Result<Option<Self>, Reason> {
        if !stream.on_device {
            return Ok(None);
        }
        let library = Library::get()?;
        let offset = Layout::of(buffer, &stream.info, shapes(stream.frame))?.planes()[0].offset;
        let (memories, _) = buffer
            .find_memory(offset..offset + 1)
            .ok_or("no memory holds plane 0; make its producer attach one")?;
        // SAFETY: the memory is the buffer's, which is borrowed; the object is referenced before that ends.
        unsafe {
            let context = context_of(library, buffer.peek_memory(memories.start).as_mut_ptr())?;
            let handle = (library.context_handle)(context) as usize;
            Ok(Some(Self { handle, object: from_glib_none(context) }))
        }
    }

    pub(super) fn handle(&self) -> usize {
        self.handle
    }

    /// The context in the form that the library adopts.
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

/// Makes a pipeline drop its CUDA context after the device has broken it. Bins and elements keep a context from start
/// to start: the next to ask for one is told of an empty one, and makes another.
pub(in crate::element) fn forget_context(element: &gst::Element) {
    let mut top = element.clone().upcast::<gst::Object>();
    while let Some(parent) = top.parent() {
        top = parent;
    }
    if let Ok(top) = top.downcast::<gst::Element>() {
        // Only a persistent context replaces a persistent one. Bins pass it on to all their elements.
        top.set_context(&gst::Context::new("gst.cuda.context", true));
    }
}

/// Streams on which a frame's producer may still be busy.
#[derive(Clone, Copy, Default)]
pub(super) struct Producers {
    streams: [usize; MOST_PLANES],
    count: usize,
}

impl Producers {
    fn add(&mut self, stream: usize) {
        if !self.streams[..self.count].contains(&stream) {
            self.streams[self.count] = stream;
            self.count += 1;
        }
    }

    /// The streams, each once; 0 is the default stream.
    pub(super) fn streams(&self) -> impl Iterator<Item = usize> {
        self.streams.into_iter().take(self.count)
    }
}

/// A buffer mapped on the device. A map for drawing copies memory on the device if others hold it too.
pub(super) struct DeviceMap<'a> {
    map: VideoMap<'a>,
    frame: FrameInfo,
    producers: Producers,
}

impl<'a> DeviceMap<'a> {
    /// Maps a frame for reading. `context` is the handle of the engine's context.
    pub(super) fn read(
        buffer: &'a gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
        context: usize,
    ) -> Result<Self, Reason> {
        // SAFETY: the buffer is valid and stays borrowed while it is mapped.
        let map = unsafe { VideoMap::map(buffer.as_mut_ptr(), info, shapes(frame), Access::Read, MAP_CUDA) }?;
        Self::checked(map, frame, context)
    }

    /// Maps a frame for drawing.
    pub(super) fn draw(
        buffer: &'a mut gst::BufferRef,
        info: &gst_video::VideoInfo,
        frame: FrameInfo,
        context: usize,
    ) -> Result<Self, Reason> {
        // SAFETY: the buffer is valid and stays borrowed, mutably, while it is mapped.
        let map =
            unsafe { VideoMap::map(buffer.as_mut_ptr(), info, shapes(frame), Access::Write, MAP_CUDA) }?;
        Self::checked(map, frame, context)
    }

    /// Checks that every plane is in memory of the context: for other memory a map for the device returns a host
    /// address, and a map for drawing may have replaced the memory by a copy.
    fn checked(map: VideoMap<'a>, frame: FrameInfo, context: usize) -> Result<Self, Reason> {
        let library = Library::get()?;
        let mut producers = Producers::default();
        for memory in map.memories() {
            // SAFETY: the memory is mapped, so it lives; its context and stream live as long.
            unsafe {
                let same = |object| (library.context_handle)(object) as usize == context;
                if !same(context_of(library, memory)?) {
                    return Err(
                        "its planes are in memory of several CUDA contexts; keep a frame in one".into()
                    );
                }
                let stream = library.stream.map_or(std::ptr::null_mut(), |(get, _)| get(memory));
                match library.stream {
                    Some((_, handle)) if !stream.is_null() => {
                        if !same((*stream.cast::<CudaStreamHead>()).context) {
                            return Err("its memory names a stream of another CUDA context".into());
                        }
                        producers.add(handle(stream) as usize);
                    }
                    // Without a stream the producer has waited, or its work is on the default stream, as are
                    // GStreamer's copies for a map.
                    _ => producers.add(0),
                }
            }
        }
        Ok(Self { map, frame, producers })
    }

    /// The planes in device memory.
    pub(super) fn frame(&self) -> Result<DeviceFrame<'_>, Reason> {
        let (mut addresses, mut strides) = ([0; MOST_PLANES], [0; MOST_PLANES]);
        for (i, plane) in self.map.planes().iter().enumerate().filter(|(_, plane)| plane.len > 0) {
            addresses[i] = plane.data as u64;
            strides[i] = u32::try_from(plane.stride).map_err(|e| e.to_string())?;
        }
        // SAFETY: `VideoMap` checked that the planes lie in memory that stays mapped while `self` lives, `checked` that it
        // is memory of the engine's context.
        unsafe { DeviceFrame::from_planes(self.frame, addresses, strides) }.map_err(|e| e.to_string())
    }

    /// Streams that our work has to wait for.
    pub(super) fn producers(&self) -> Producers {
        self.producers
    }
}
