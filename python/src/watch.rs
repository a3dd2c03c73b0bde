// SPDX-License-Identifier: MPL-2.0
//! What a long call looks after between images: signals, and whoever wants to know how far it is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::error::Failure;

/// Milliseconds between two looks: people find less than 200 immediate.
const APART: u64 = 50;

/// Images of a call that are done, of all.
pub struct Watch {
    /// Called with both numbers.
    report: Option<Py<PyAny>>,
    done: AtomicUsize,
    all: usize,
    start: Instant,
    /// Milliseconds from the start to the last look.
    looked: AtomicU64,
}

impl Watch {
    /// `progress` is true for a bar, or what is called with the number of images that are done and of all; `all` is 0 where nobody
    /// knows it.
    pub fn new(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>, all: usize) -> PyResult<Self> {
        let report = match progress {
            None => None,
            Some(flag) if flag.cast::<PyBool>().is_ok_and(|flag| !flag.is_true()) => None,
            Some(flag) if flag.cast::<PyBool>().is_ok() => {
                let module = py.import(intern!(py, "superpixels._progress"))?;
                Some(module.getattr(intern!(py, "Bar"))?.call1((all,))?.unbind())
            }
            Some(call) if call.is_callable() => Some(call.clone().unbind()),
            Some(other) => {
                let name = other.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "progress must be True, False or callable with two numbers, got {name}"
                )));
            }
        };
        Ok(Self { report, done: AtomicUsize::new(0), all, start: Instant::now(), looked: AtomicU64::new(0) })
    }

    /// Counts an image, on any thread.
    pub fn note(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn milliseconds(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// Returns true if it is time for a look.
    pub fn is_due(&self) -> bool {
        self.milliseconds() - self.looked.load(Ordering::Relaxed) >= APART
    }

    /// Looks where it is time for it.
    pub fn look_if_due(&self) -> Result<(), Failure> {
        if self.is_due() { self.look() } else { Ok(()) }
    }

    /// Lets Python handle signals, and reports. To be called by the thread that the call came on, which alone handles them.
    pub fn look(&self) -> Result<(), Failure> {
        let looked = Python::attach(|py| {
            py.check_signals()?;
            self.tell(py, self.done.load(Ordering::Relaxed), self.all)
        });
        self.looked.store(self.milliseconds(), Ordering::Relaxed);
        looked.map_err(Failure::Python)
    }

    fn tell(&self, py: Python<'_>, done: usize, all: usize) -> PyResult<()> {
        self.report.as_ref().map_or(Ok(()), |report| report.call1(py, (done, all)).map(drop))
    }

    /// The last report.
    pub fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.end_of(py, self.all)
    }

    /// The last report, of so many images.
    pub fn end_of(&self, py: Python<'_>, all: usize) -> PyResult<()> {
        self.tell(py, all, all)
    }
}
