// SPDX-License-Identifier: MPL-2.0
//! DLPack: arrays of other libraries in, arrays of ours out. Source: dlpack.h of <https://github.com/dmlc/dlpack>, versions 0 and 1.

use std::ffi::{CStr, c_void};

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Memory of the host, and such as the driver has locked.
pub const CPU: i32 = 1;
/// As [`CPU`].
pub const CUDA_HOST: i32 = 3;
/// Memory of a CUDA device, and memory that the driver moves to where it is used.
pub const CUDA: i32 = 2;
/// As [`CUDA`]: any device reaches it.
pub const CUDA_MANAGED: i32 = 13;

const READ_ONLY: u64 = 1;
const MAJOR: u32 = 1;

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Device {
    /// Kind of memory.
    pub kind: i32,
    /// Number of the device.
    pub id: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DataType {
    /// 0 is int, 1 uint, 2 float, 6 bool.
    pub code: u8,
    /// Bits of a number.
    pub bits: u8,
    /// Numbers of an item.
    pub lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    /// In items; null where there are no gaps.
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

/// Another library's description of an array.
pub struct Imported<'py> {
    /// Address of the first item; 0 where there is none.
    pub address: u64,
    pub device: Device,
    pub dtype: DataType,
    pub shape: Vec<i64>,
    /// In items; `None` where there are no gaps.
    pub strides: Option<Vec<i64>>,
    pub read_only: bool,
    /// Not consumed: its end gives the array back to its library.
    pub capsule: Bound<'py, PyAny>,
}

/// Asks an array for its capsule. `stream` is as DLPack has it: 1 is the legacy default stream, -1 asks for no order.
pub fn import<'py>(array: &Bound<'py, PyAny>, stream: i64) -> PyResult<Imported<'py>> {
    let py = array.py();
    let export = array.getattr(intern!(py, "__dlpack__"))?;
    let arguments = PyDict::new(py);
    arguments.set_item(intern!(py, "stream"), stream)?;
    arguments.set_item(intern!(py, "max_version"), (MAJOR, 0))?;
    let capsule = match export.call((), Some(&arguments)) {
        // Libraries of before version 1 know no versions.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            arguments.del_item(intern!(py, "max_version"))?;
            export.call((), Some(&arguments))?
        }
        capsule => capsule?,
    };
    if !capsule.is_instance_of::<PyCapsule>() {
        return Err(PyTypeError::new_err("__dlpack__() must return a capsule"));
    }
    if let Some(pointer) = contents(&capsule, NAME_VERSIONED) {
        // SAFETY: a capsule of this name holds a `DLManagedTensorVersioned` until it is consumed, says the protocol; the version
        // stands first in all versions, and is looked at before the rest.
        let major = unsafe { (*pointer.cast::<[u32; 2]>())[0] };
        if major != MAJOR {
            return Err(PyBufferError::new_err(format!(
                "the array comes as DLPack version {major}; this package reads 0 and 1"
            )));
        }
        // SAFETY: of version 1, and the capsule is held.
        let versioned = unsafe { &*pointer.cast::<Versioned>() };
        return read(&versioned.tensor, versioned.flags & READ_ONLY != 0, capsule);
    }
    match contents(&capsule, NAME) {
        // SAFETY: a capsule of this name holds a `DLManagedTensor` until it is consumed, says the protocol; it is held.
        Some(pointer) => read(unsafe { &(*pointer.cast::<Managed>()).tensor }, false, capsule),
        None => Err(PyValueError::new_err("__dlpack__() returned a capsule that has been used before")),
    }
}

/// Contents of a capsule of this name.
fn contents(capsule: &Bound<'_, PyAny>, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: `capsule` is an object that is held, and `name` ends with a zero; the interpreter's lock is held.
    unsafe {
        let is_valid = ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1;
        is_valid.then(|| ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()))
    }
}

fn read<'py>(tensor: &Tensor, read_only: bool, capsule: Bound<'py, PyAny>) -> PyResult<Imported<'py>> {
    /// More than any image has.
    const MOST: i32 = 8;
    if !(0..=MOST).contains(&tensor.ndim) || (tensor.shape.is_null() && tensor.ndim > 0) {
        return Err(PyValueError::new_err(format!("an array of {} dimensions is not taken", tensor.ndim)));
    }
    let numbers = |start: *mut i64| match tensor.ndim as usize {
        0 => Vec::new(),
        // SAFETY: not null, and of `ndim` numbers, says the protocol; the capsule keeps them.
        ndim => unsafe { std::slice::from_raw_parts(start, ndim) }.to_vec(),
    };
    let address = match tensor.data as u64 {
        0 => 0,
        start => start
            .checked_add(tensor.byte_offset)
            .ok_or_else(|| PyValueError::new_err("the array starts beyond the end of memory"))?,
    };
    Ok(Imported {
        address,
        device: tensor.device,
        dtype: tensor.dtype,
        shape: numbers(tensor.shape),
        strides: (!tensor.strides.is_null()).then(|| numbers(tensor.strides)),
        read_only,
        capsule,
    })
}

/// An array to hand out.
pub struct Exported {
    /// Address of the first item.
    pub address: u64,
    pub device: Device,
    pub dtype: DataType,
    pub shape: Vec<i64>,
    /// In items.
    pub strides: Vec<i64>,
}

/// Memory that a capsule's contents point into.
struct Holder<M, K> {
    managed: M,
    _exported: Exported,
    _keeper: K,
}

impl Exported {
    /// The capsule; of version 1 if the consumer reads that. `keeper` holds the memory.
    pub fn capsule<K: Send + 'static>(
        self,
        py: Python<'_>,
        keeper: K,
        is_versioned: bool,
    ) -> PyResult<Bound<'_, PyAny>> {
        let ndim = self.shape.len() as i32;
        let Self { address, device, dtype, .. } = self;
        // The vectors' items stay where they are when `self` is moved into the holder.
        let (shape, strides) = (self.shape.as_ptr().cast_mut(), self.strides.as_ptr().cast_mut());
        let data = address as *mut c_void;
        let tensor = Tensor { data, device, ndim, dtype, shape, strides, byte_offset: 0 };
        let context = std::ptr::null_mut();
        if is_versioned {
            let deleter = Some(delete_versioned::<K> as unsafe extern "C" fn(*mut Versioned));
            let managed = Versioned { version: [MAJOR, 0], context, deleter, flags: 0, tensor };
            let holder = Box::into_raw(Box::new(Holder { managed, _exported: self, _keeper: keeper }));
            // SAFETY: the holder has just been made, and nobody else knows it.
            let managed = unsafe {
                (*holder).managed.context = holder.cast();
                &raw mut (*holder).managed
            };
            return wrap(py, managed.cast(), NAME_VERSIONED, drop_versioned::<K>);
        }
        let deleter = Some(delete::<K> as unsafe extern "C" fn(*mut Managed));
        let managed = Managed { tensor, context, deleter };
        let holder = Box::into_raw(Box::new(Holder { managed, _exported: self, _keeper: keeper }));
        // SAFETY: the holder has just been made, and nobody else knows it.
        let managed = unsafe {
            (*holder).managed.context = holder.cast();
            &raw mut (*holder).managed
        };
        wrap(py, managed.cast(), NAME, drop_unversioned::<K>)
    }
}

fn wrap<'py>(
    py: Python<'py>,
    managed: *mut c_void,
    name: &'static CStr,
    end: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: `managed` is not null, `name` lasts, and `end` takes capsules of this name; the interpreter's lock is held.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(managed, name.as_ptr(), Some(end))) }
}

/// # Safety
/// Called once, by whoever has the array, with what `Exported::capsule` made.
unsafe extern "C" fn delete<K>(managed: *mut Managed) {
    // SAFETY: `context` is the holder that the box was, and nobody uses it any more.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Holder<Managed, K>>()) });
}

/// # Safety
/// As [`delete`].
unsafe extern "C" fn delete_versioned<K>(managed: *mut Versioned) {
    // SAFETY: `context` is the holder that the box was, and nobody uses it any more.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Holder<Versioned, K>>()) });
}

/// # Safety
/// As the interpreter calls it, with a capsule of `Exported::capsule`.
unsafe extern "C" fn drop_unversioned<K>(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is ending. Under this name nobody has consumed it, and what it holds is ours to delete.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete::<K>(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

/// # Safety
/// As [`drop_unversioned`].
unsafe extern "C" fn drop_versioned<K>(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is ending. Under this name nobody has consumed it, and what it holds is ours to delete.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) == 1 {
            delete_versioned::<K>(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}
