// SPDX-License-Identifier: MPL-2.0
//! Opens optional libraries at run time, so that one build serves machines with and without them.

use std::ffi::CStr;

/// Opens a library by its name. The caller must never unload it: types that a library registers with GObject stay, and so do
/// functions of [`symbol`].
pub(crate) fn open(name: &str) -> Result<libloading::Library, String> {
    // SAFETY: a library of GStreamer or the driver, whose initialisers are those of any program that links it.
    unsafe { libloading::Library::new(name) }.map_err(|e| e.to_string())
}

/// Looks up a function.
///
/// # Safety
/// `F` is its signature; the library stays loaded while it is called.
pub(crate) unsafe fn symbol<F: Copy>(library: &libloading::Library, name: &CStr) -> Result<F, String> {
    // SAFETY: the caller gives the function's signature, and never closes the library.
    unsafe { library.get::<F>(name) }.map(|found| *found).map_err(|e| e.to_string())
}
