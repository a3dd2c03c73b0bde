// SPDX-License-Identifier: MPL-2.0
//! CUDA devices of this process, opened by the first who needs one: nothing loads the driver before.

use std::sync::Mutex;

use gstsuperpixel::cuda::{Cuda, KeepsContext};
use gstsuperpixel::error::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::error::{Failure, exception};
use crate::kept_engines;

struct Opened {
    process: u32,
    /// True if it was opened as the first that works.
    is_first: bool,
    cuda: Cuda,
}

static DEVICES: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

/// Device that a Segmenter works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkDevice {
    Cpu,
    /// The device of this number.
    Cuda(i32),
}

impl WorkDevice {
    /// From "cpu", "cuda" or "cuda:1", or an object that prints as one of these; nothing from `None`. A device is opened, so that what
    /// is wrong with it is found here.
    pub fn new(py: Python<'_>, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(value) = value else { return Ok(None) };
        let name = value.str()?.to_string_lossy().into_owned();
        let ordinal = match name.as_str() {
            "cpu" => return Ok(Some(Self::Cpu)),
            "cuda" => -1,
            _ => match name.strip_prefix("cuda:").map(str::parse::<u16>) {
                Some(Ok(ordinal)) => i32::from(ordinal),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "device must be 'cpu', 'cuda', 'cuda:0' and so on, or None, got '{name}'"
                    )));
                }
            },
        };
        Ok(Some(Self::Cuda(cuda(py, ordinal)?.ordinal() as i32)))
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Cpu => "cpu".into(),
            Self::Cuda(ordinal) => format!("cuda:{ordinal}"),
        }
    }
}

/// A device by its number; -1 is the first that works.
///
/// Nobody lets go of the interpreter's lock while holding the lock here: a child of a fork never finds it locked.
pub fn cuda(py: Python<'_>, ordinal: i32) -> PyResult<Cuda> {
    let process = std::process::id();
    let find = || {
        let devices = DEVICES.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner());
        let fits = |opened: &&Opened| {
            opened.process == process
                && if ordinal < 0 { opened.is_first } else { opened.cuda.ordinal() as i32 == ordinal }
        };
        devices.iter().find(fits).map(|opened| opened.cuda.clone())
    };
    if let Some(cuda) = find() {
        return Ok(cuda);
    }
    // Opening takes a while. Another thread may do the same meanwhile; both have the same device.
    let opened = py.detach(|| KeepsContext::make(|| Cuda::new(ordinal)).map(|made| made.end(|cuda| cuda)));
    let cuda = opened.map_err(exception)?;
    let mut devices = DEVICES.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner());
    devices.push(Opened { process, is_first: ordinal < 0, cuda: cuda.clone() });
    Ok(cuda)
}

/// The exception of a failure. A device that failed is forgotten: the next who asks opens it anew, which helps once all who hold it have
/// let go.
pub fn failed(py: Python<'_>, ordinal: i32, failure: impl Into<Failure>) -> PyErr {
    let failure = failure.into();
    if matches!(failure, Failure::Library(Error::Cuda { .. })) {
        kept_engines::forget(py, ordinal);
        let mut devices = DEVICES.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner());
        let process = std::process::id();
        devices.retain(|opened| opened.process != process || opened.cuda.ordinal() as i32 != ordinal);
    }
    failure.into()
}
