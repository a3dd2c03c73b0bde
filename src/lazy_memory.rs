// SPDX-License-Identifier: MPL-2.0
//! Memory of GStreamer whose bytes are made on the first map, so that metadata which few readers want costs the others
//! nothing.

use std::mem::ManuallyDrop;
use std::sync::{Arc, LazyLock};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("superpixelresults", gst::DebugColorFlags::empty(), Some("Results of superpixel"))
});

/// A source of bytes that are made on demand.
///
/// # Safety
/// `address` returns one place of at least `len` bytes, which stays as long as the source, and which may be written to where the
/// source is not read-only: threads may do all this at once.
pub(crate) unsafe trait LazyBytes: Send + Sync {
    /// Number of bytes.
    fn len(&self) -> usize;

    /// Returns true if writers have to copy.
    fn is_read_only(&self) -> bool;

    /// Address of the bytes, which the first call makes.
    fn address(&self) -> Result<*mut u8, String>;
}

/// The allocator's memory: a `GstMemory` and its source.
#[repr(C)]
struct LazyMemory {
    memory: gst::ffi::GstMemory,
    source: ManuallyDrop<Arc<dyn LazyBytes>>,
}

mod imp {
    use super::*;

    #[derive(Default)]
    pub struct LazyAllocator;

    #[glib::object_subclass]
    impl ObjectSubclass for LazyAllocator {
        const NAME: &'static str = "GstSuperpixelResultAllocator";
        type Type = super::LazyAllocator;
        type ParentType = gst::Allocator;
    }

    impl ObjectImpl for LazyAllocator {
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

    impl GstObjectImpl for LazyAllocator {}

    // SAFETY: `free` releases what `make` made, once: GStreamer calls it with the last reference.
    unsafe impl AllocatorImpl for LazyAllocator {
        unsafe fn alloc(&self, _: usize, _: &gst::AllocationParams) -> *mut gst::ffi::GstMemory {
            // The allocator cannot make memory without a source.
            std::ptr::null_mut()
        }

        unsafe fn free(&self, memory: *mut gst::ffi::GstMemory) {
            // SAFETY: made by `make` from a box, and nobody refers to it any more.
            unsafe {
                let mut memory = Box::from_raw(memory.cast::<LazyMemory>());
                ManuallyDrop::drop(&mut memory.source);
            }
        }
    }
}

glib::wrapper! {
    pub struct LazyAllocator(ObjectSubclass<imp::LazyAllocator>)
        @extends gst::Allocator, gst::Object;
}

/// Makes the bytes, if this is the first map.
///
/// # Safety
/// As GStreamer calls it, with a memory of this allocator.
unsafe extern "C" fn map(
    memory: *mut gst::ffi::GstMemory,
    _maxsize: usize,
    _flags: gst::ffi::GstMapFlags,
) -> glib::ffi::gpointer {
    // SAFETY: the memory is one of `make`, and is not freed while it is mapped.
    let memory = unsafe { &*memory.cast::<LazyMemory>() };
    match memory.source.address() {
        Ok(address) => address.cast(),
        Err(error) => {
            gst::error!(CAT, "{error}");
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// As GStreamer calls it.
unsafe extern "C" fn unmap(_: *mut gst::ffi::GstMemory) {}

/// Makes a memory of a part of another.
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
        let whole = &*memory.cast::<LazyMemory>();
        let size = usize::try_from(size).unwrap_or_else(|_| {
            whole.memory.size.saturating_sub(offset.unsigned_abs().min(whole.memory.size))
        });
        let parent = if whole.memory.parent.is_null() { memory } else { whole.memory.parent };
        let offset = whole.memory.offset.wrapping_add_signed(offset);
        make(whole.memory.allocator, &whole.source, parent, offset, size)
    }
}

/// # Safety
/// `allocator` is a [`LazyAllocator`]; `parent` is null or a memory of it.
unsafe fn make(
    allocator: *mut gst::ffi::GstAllocator,
    source: &Arc<dyn LazyBytes>,
    parent: *mut gst::ffi::GstMemory,
    offset: usize,
    size: usize,
) -> *mut gst::ffi::GstMemory {
    // SAFETY: a `GstMemory` is plain data, which `gst_memory_init` fills.
    let memory = unsafe { std::mem::zeroed() };
    let made = Box::new(LazyMemory { memory, source: ManuallyDrop::new(source.clone()) });
    let raw = Box::into_raw(made).cast::<gst::ffi::GstMemory>();
    // A part shares its parent's bytes and must not write them: writers get a copy.
    let read_only = source.is_read_only() || !parent.is_null();
    let flags = if read_only { gst::ffi::GST_MINI_OBJECT_FLAG_LOCK_READONLY } else { 0 };
    // SAFETY: `raw` is ours; the call takes references to allocator and parent.
    unsafe {
        gst::ffi::gst_memory_init(raw, flags, allocator, parent, source.len(), 0, offset, size);
    }
    raw
}

/// A buffer that maps to a source's bytes; empty if the source is.
pub(crate) fn buffer(source: &Arc<dyn LazyBytes>) -> gst::Buffer {
    static ALLOCATOR: LazyLock<LazyAllocator> = LazyLock::new(|| {
        let allocator: LazyAllocator = glib::Object::new();
        // Tells the leak tracer that the allocator lives as long as the process.
        allocator.set_object_flags(gst::ObjectFlags::MAY_BE_LEAKED);
        allocator
    });
    let allocator = ALLOCATOR.upcast_ref::<gst::Allocator>().as_ptr();
    let mut buffer = gst::Buffer::new();
    if let (Some(writable), size @ 1..) = (buffer.get_mut(), source.len()) {
        // SAFETY: the allocator lives on; the new memory is handed over.
        let memory = unsafe {
            let memory = make(allocator, source, std::ptr::null_mut(), 0, size);
            glib::translate::from_glib_full(memory)
        };
        writable.append_memory(memory);
    }
    buffer
}
