// SPDX-License-Identifier: MPL-2.0
//! The class `DeviceArray`: results in memory of ours on a device, for libraries other than torch and CuPy.

use std::sync::Arc;

use gstsuperpixel::cuda::DeviceMemory;
use numpy::PyArray1;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dlpack::{self, DataType, Exported};
use crate::error::exception;
use crate::library::Dtype;
use crate::streams;

/// Device memory that arrays show. A child process leaves what it inherited alone: the driver does not serve it.
pub struct Shared {
    memory: Option<DeviceMemory>,
    process: u32,
}

impl Shared {
    /// Memory that all has been put on the stream for.
    pub fn new(memory: DeviceMemory) -> Arc<Self> {
        Arc::new(Self { memory: Some(memory), process: std::process::id() })
    }

    fn get(&self) -> PyResult<&DeviceMemory> {
        self.memory.as_ref().filter(|_| self.process == std::process::id()).ok_or_else(|| {
            PyRuntimeError::new_err(
                "this DeviceArray is of the process that this one was forked from; CUDA does not serve a child of a fork",
            )
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.memory.take());
        }
    }
}

/// An array on a CUDA device: what comes out where a frame came in that is neither numpy's, torch's nor CuPy's.
///
/// It has `__dlpack__` (versions 0 and 1) and `__cuda_array_interface__` (version 3), so that any library takes it without a
/// copy: `jax.dlpack.from_dlpack(labels)`, `numba.cuda.as_cuda_array(labels)`. It owns its memory, whatever becomes of the
/// Segmenter; do not write to it. The end of the last array of some memory waits for the device.
///
/// Attributes
/// ----------
/// shape : tuple of int
/// dtype : str
///     Name of the type, for instance "int32".
/// device : str
///     For instance "cuda:0".
///
/// See Also
/// --------
/// Segmenter : Gives it, as the functions do.
///
/// Examples
/// --------
/// >>> sp.slic(jax_array).numpy().dtype  # doctest: +SKIP
/// dtype('int32')
#[pyclass(frozen, module = "superpixels")]
pub struct DeviceArray {
    memory: Option<Arc<Shared>>,
    /// Bytes from the start of the memory.
    offset: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    /// In items.
    strides: Vec<usize>,
}

impl DeviceArray {
    /// An array of `shape` from byte `offset` on, with `strides` in items.
    pub fn new(
        memory: Arc<Shared>,
        offset: usize,
        dtype: Dtype,
        shape: Vec<usize>,
        strides: Vec<usize>,
    ) -> Self {
        Self { memory: Some(memory), offset, dtype, shape, strides }
    }

    /// An array without gaps.
    pub fn whole(memory: Arc<Shared>, dtype: Dtype, shape: &[usize]) -> Self {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Self::new(memory, 0, dtype, shape.to_vec(), strides)
    }

    fn memory(&self) -> PyResult<&DeviceMemory> {
        let ended = || PyRuntimeError::new_err("this DeviceArray has ended");
        self.memory.as_ref().ok_or_else(ended)?.get()
    }

    fn data_type(&self) -> DataType {
        let code = match self.dtype {
            Dtype::U8 | Dtype::U16 => 1,
            Dtype::I16 | Dtype::I32 | Dtype::I64 => 0,
            Dtype::F32 => 2,
            Dtype::Bool => 6,
        };
        DataType { code, bits: 8 * self.dtype.bytes() as u8, lanes: 1 }
    }
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        let memory = self.memory.take();
        // The end of the memory waits for the device.
        Python::attach(|py| py.detach(|| drop(memory)));
    }
}

#[pymethods]
impl DeviceArray {
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    #[getter]
    fn device(&self) -> PyResult<String> {
        Ok(format!("cuda:{}", self.memory()?.cuda().ordinal()))
    }

    /// ndarray: a copy in the host's memory. Waits for it.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let memory = self.memory()?;
        let item = self.dtype.bytes();
        let last: usize =
            self.shape.iter().zip(&self.strides).map(|(n, stride)| n.saturating_sub(1) * stride).sum();
        let bytes = if self.shape.contains(&0) { 0 } else { (last + 1) * item };
        let mut span = vec![0; bytes];
        py.detach(|| memory.read(self.offset, &mut span)).map_err(exception)?;
        let strides: Vec<usize> = self.strides.iter().map(|stride| stride * item).collect();
        let numpy = py.import("numpy")?;
        let arguments = PyDict::new(py);
        arguments.set_item("buffer", PyArray1::from_vec(py, span))?;
        arguments.set_item("dtype", self.dtype.typestr())?;
        arguments.set_item("strides", PyTuple::new(py, strides)?)?;
        let view = numpy.call_method("ndarray", (self.shape(py)?,), Some(&arguments))?;
        // Without the gaps, and writeable.
        view.call_method0("copy")
    }

    /// tuple of int: kind of the device (2 is CUDA) and its number.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        Ok((dlpack::CUDA, self.memory()?.cuda().ordinal() as i32))
    }

    /// A capsule, as DLPack has it; the stream of the consumer waits for the array, the host does not.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(i64, i64)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let memory = self.memory()?;
        let (kind, id) = self.__dlpack_device__()?;
        if copy == Some(true) || dl_device.is_some_and(|wanted| wanted != (kind, id)) {
            return Err(PyBufferError::new_err(
                "a DeviceArray is handed out where it is; copy it with the library that takes it",
            ));
        }
        match stream.unwrap_or(1) {
            // The consumer sees to the order.
            -1 => {}
            stream => {
                let stream = usize::try_from(stream)
                    .map_err(|_| PyValueError::new_err("stream must be -1, 1, 2 or a handle"))?;
                // 0 is not to be passed, but who does means the same as with 1.
                let stream = if stream == 1 { streams::DEFAULT } else { stream };
                // SAFETY: the consumer says that it is a stream of this device, and keeps it while it is in this call.
                py.detach(|| unsafe { memory.precede(stream) }).map_err(exception)?;
            }
        }
        let numbers = |values: &[usize]| values.iter().map(|&value| value as i64).collect();
        let exported = Exported {
            address: memory.address() + self.offset as u64,
            device: dlpack::Device { kind, id },
            dtype: self.data_type(),
            shape: numbers(&self.shape),
            strides: numbers(&self.strides),
        };
        exported.capsule(py, self.memory.clone(), max_version.is_some_and(|(major, _)| major >= 1))
    }

    /// dict: the interface of numba, version 3.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let memory = self.memory()?;
        let strides: Vec<usize> = self.strides.iter().map(|stride| stride * self.dtype.bytes()).collect();
        let interface = PyDict::new(py);
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", self.dtype.typestr())?;
        interface.set_item("data", (memory.address() + self.offset as u64, false))?;
        interface.set_item("strides", PyTuple::new(py, strides)?)?;
        // It lives as long as the memory.
        interface.set_item("stream", memory.cuda().stream_handle())?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    fn __len__(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "DeviceArray(shape={}, dtype={}, device={})",
            self.shape(py)?,
            self.dtype.name(),
            self.device()?
        ))
    }
}
