// SPDX-License-Identifier: MPL-2.0
//! The library that an array is of: results are arrays of the same. Only what the caller has imported is looked at.

use numpy::PyUntypedArray;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};

/// Library of an array.
#[derive(Default)]
pub enum Library {
    /// torch, and its module.
    Torch(Py<PyAny>),
    /// CuPy, and its module.
    CuPy(Py<PyAny>),
    /// Any other with one of the protocols; results are `DeviceArray`.
    #[default]
    Other,
}

/// Type of an array's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    Bool,
    U8,
    U16,
    I16,
    I32,
    I64,
    F32,
}

impl Dtype {
    /// Its name, as all libraries have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F32 => "float32",
        }
    }

    /// As `__cuda_array_interface__` has it.
    pub fn typestr(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::F32 => "<f4",
        }
    }

    /// Bytes of an item.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }
}

impl Library {
    /// Finds the library of an array.
    pub fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        let modules = modules.cast::<PyDict>()?;
        for (name, class) in [("torch", "Tensor"), ("cupy", "ndarray")] {
            let Some(module) = modules.get_item(name)? else { continue };
            // One that is being imported may have none yet.
            let Some(class) = module.getattr_opt(class)? else { continue };
            if array.is_instance(&class)? {
                return Ok(if name == "torch" {
                    Self::Torch(module.unbind())
                } else {
                    Self::CuPy(module.unbind())
                });
            }
        }
        Ok(Self::Other)
    }

    /// Clones the reference.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Torch(module) => Self::Torch(module.clone_ref(py)),
            Self::CuPy(module) => Self::CuPy(module.clone_ref(py)),
            Self::Other => Self::Other,
        }
    }

    /// A new array without gaps and its address, in the library's own memory; nothing where that is for us to take.
    pub fn empty<'py>(
        &self,
        py: Python<'py>,
        ordinal: i32,
        dtype: Dtype,
        shape: &[usize],
    ) -> PyResult<Option<(Bound<'py, PyAny>, u64)>> {
        let shape = PyTuple::new(py, shape)?;
        match self {
            Self::Torch(module) => {
                let module = module.bind(py);
                let arguments = PyDict::new(py);
                arguments.set_item("dtype", module.getattr(dtype.name())?)?;
                arguments.set_item("device", format!("cuda:{ordinal}"))?;
                let array = module.call_method("empty", (shape,), Some(&arguments))?;
                let address = array.call_method0("data_ptr")?.extract()?;
                Ok(Some((array, address)))
            }
            Self::CuPy(module) => {
                let module = module.bind(py);
                // It takes memory of the device that is current.
                let device = module.getattr("cuda")?.getattr("Device")?.call1((ordinal,))?;
                device.call_method0("__enter__")?;
                let array = module.call_method1("empty", (shape, dtype.name()));
                device.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
                let array = array?;
                let address = array.getattr("data")?.getattr("ptr")?.extract()?;
                Ok(Some((array, address)))
            }
            Self::Other => Ok(None),
        }
    }

    /// An array of torch or CuPy with its bytes taken as another type.
    pub fn view<'py>(&self, array: &Bound<'py, PyAny>, dtype: Dtype) -> PyResult<Bound<'py, PyAny>> {
        let py = array.py();
        match self {
            Self::Torch(module) | Self::CuPy(module) => {
                array.call_method1("view", (module.bind(py).getattr(dtype.name())?,))
            }
            Self::Other => Ok(array.clone()),
        }
    }
}

/// Labels in an array of the library that the image is of, where that is not numpy: of torch int32, as on a device; of others that
/// follow the array API what their `asarray` makes.
pub fn as_given<'py>(image: &Bound<'py, PyAny>, labels: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = image.py();
    if image.cast::<PyUntypedArray>().is_ok() {
        return Ok(labels);
    }
    if let Library::Torch(module) = Library::of(image)? {
        let (dtype, without_copy) = (("int32",), [("copy", false)].into_py_dict(py)?);
        let labels = labels.call_method(intern!(py, "astype"), dtype, Some(&without_copy))?;
        return module.bind(py).call_method1(intern!(py, "from_numpy"), (labels,));
    }
    match image.getattr_opt(intern!(py, "__array_namespace__"))? {
        Some(namespace) => namespace.call0()?.call_method1(intern!(py, "asarray"), (labels,)),
        None => Ok(labels),
    }
}
