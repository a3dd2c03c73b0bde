// SPDX-License-Identifier: MPL-2.0
//! Memory of GStreamer whose bytes stay on the device until somebody maps it: the buffers of the metadata.

use std::mem::ManuallyDrop;
use std::sync::{Arc, LazyLock};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use crate::cuda::{Part, Results};
use crate::image::Geometry;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("superpixelresults", gst::DebugColorFlags::empty(), Some("Results of superpixel"))
});

/// What the allocator hands out; the rest of a `GstMemory`.
#[repr(C)]
struct ResultMemory {
    memory: gst::ffi::GstMemory,
    results: ManuallyDrop<Arc<Results>>,
    part: Part,
}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct ResultAllocator;

    #[glib::object_subclass]
    impl ObjectSubclass for ResultAllocator {
        const NAME: &'static str = "GstSuperpixelResultAllocator";
        type Type = super::ResultAllocator;
        type ParentType = gst::Allocator;
    }

    impl ObjectImpl for ResultAllocator {
        fn constructed(&self) {
            self.parent_constructed();
            let allocator = self.obj();
            allocator.set_object_flags(gst::ObjectFlags::from_bits_retain(
                gst::ffi::GST_ALLOCATOR_FLAG_CUSTOM_ALLOC,
            ));
            let raw: *mut gst::ffi::GstAllocator = allocator.upcast_ref::<gst::Allocator>().as_ptr();
            // SAFETY: nobody else has seen the object yet; the name is static.
            unsafe {
                (*raw).mem_type = c"SuperpixelResult".as_ptr();
                (*raw).mem_map = Some(map);
                (*raw).mem_unmap = Some(unmap);
                (*raw).mem_share = Some(share);
            }
        }
    }

    impl GstObjectImpl for ResultAllocator {}

    // SAFETY: `free` releases what `make` made, once: GStreamer calls it with the last reference.
    unsafe impl AllocatorImpl for ResultAllocator {
        unsafe fn alloc(&self, _: usize, _: &gst::AllocationParams) -> *mut gst::ffi::GstMemory {
            // There are no results to allocate without a frame.
            std::ptr::null_mut()
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: made by `make` from a box, and nobody refers to it any more.
            unsafe {
                let mut memory = Box::from_raw(memory.cast::<ResultMemory>());
                ManuallyDrop::drop(&mut memory.results);
            }
        }
    }
}

glib::wrapper! {
    pub struct ResultAllocator(ObjectSubclass<imp::ResultAllocator>)
        @extends gst::Allocator, gst::Object;
}

/// Brings the bytes down where they are not here yet.
///
/// # Safety
/// As GStreamer calls it, with a memory of this allocator.
unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    _maxsize: usize,
    _flags: gst::ffi::GstMapFlags,
) -> glib::ffi::gpointer {
    // SAFETY: the memory is one of `make`, and is not freed while it is mapped.
    let memory = unsafe { &*memory.cast::<ResultMemory>() };
    match memory.results.address(memory.part) {
        Ok(address) => address.cast(),
        Err(error) => {
            gst::error!(CAT, "cannot read {:?}: {error}", memory.part);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// As GStreamer calls it.
unsafe extern "C" fn unmap(_: *mut gst::ffi::GstMemory) {}

/// A part of the memory by itself.
///
/// # Safety
/// As GStreamer calls it, with a memory of this allocator.
unsafe extern "C" fn share(
    memory: *mut gst::ffi::GstMemory,
    offset: isize,
    size: isize,
) -> *mut gst::ffi::GstMemory {
    // SAFETY: the memory is one of `make`; the new one refers to the root of the family, as GStreamer wants it.
    unsafe {
        let whole = &*memory.cast::<ResultMemory>();
        let size = usize::try_from(size).unwrap_or_else(|_| {
            whole.memory.size.saturating_sub(offset.unsigned_abs().min(whole.memory.size))
        });
        let parent = if whole.memory.parent.is_null() { memory } else { whole.memory.parent };
        let offset = whole.memory.offset.wrapping_add_signed(offset);
        make(whole.memory.allocator, &whole.results, whole.part, parent, offset, size)
    }
}

/// # Safety
/// `allocator` is a [`ResultAllocator`]; `parent` is null or a memory of it.
unsafe fn make(
    allocator: *mut gst::ffi::GstAllocator,
    results: &Arc<Results>,
    part: Part,
    parent: *mut gst::ffi::GstMemory,
    offset: usize,
    size: usize,
) -> *mut gst::ffi::GstMemory {
    // SAFETY: a `GstMemory` is plain data, which `gst_memory_init` fills.
    let memory = unsafe { std::mem::zeroed() };
    let made = Box::new(ResultMemory { memory, results: ManuallyDrop::new(results.clone()), part });
    let raw = Box::into_raw(made).cast::<gst::ffi::GstMemory>();
    // What shares the bytes of another must not write them: who asks to gets a copy.
    let flags = if parent.is_null() { 0 } else { gst::ffi::GST_MINI_OBJECT_FLAG_LOCK_READONLY };
    // SAFETY: `raw` is ours; the call takes references to allocator and parent.
    unsafe {
        gst::ffi::gst_memory_init(raw, flags, allocator, parent, results.bytes(part), 0, offset, size);
    }
    raw
}

/// A buffer that shows a part of a frame's results to whoever maps it.
pub(super) fn buffer(results: &Arc<Results>, part: Part) -> gst::Buffer {
    static ALLOCATOR: LazyLock<ResultAllocator> = LazyLock::new(|| {
        let allocator: ResultAllocator = glib::Object::new();
        // It lives as long as the process, which the leak tracer is told.
        allocator.set_object_flags(gst::ObjectFlags::MAY_BE_LEAKED);
        allocator
    });
    let allocator = ALLOCATOR.upcast_ref::<gst::Allocator>().as_ptr();
    let mut buffer = gst::Buffer::new();
    if let (Some(writable), size @ 1..) = (buffer.get_mut(), results.bytes(part)) {
        // SAFETY: the allocator lives on; the new memory is handed over.
        let memory = unsafe {
            let memory = make(allocator, results, part, std::ptr::null_mut(), 0, size);
            glib::translate::from_glib_full(memory)
        };
        writable.append_memory(memory);
    }
    buffer
}

/// A label buffer whose labels come down when it is mapped: GRAY16_LE with a video meta.
pub(super) fn label_buffer(
    results: &Arc<Results>,
    geometry: Geometry,
) -> Result<gst::Buffer, gst::ErrorMessage> {
    let mut buffer = buffer(results, Part::Labels);
    let failed = |reason: String| {
        gst::error_msg!(gst::LibraryError::Failed, ("Cannot describe the label map: {reason}"))
    };
    let stride = [i32::try_from(results.label_stride()).map_err(|e| failed(e.to_string()))?];
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), gst_video::VideoFormat::Gray16Le);
    let writable = buffer.get_mut().ok_or_else(|| failed("a new buffer is shared".into()))?;
    gst_video::VideoMeta::add_full(writable, flags, format, geometry.width, geometry.height, &[0], &stride)
        .map_err(|e| failed(e.to_string()))?;
    Ok(buffer)
}
