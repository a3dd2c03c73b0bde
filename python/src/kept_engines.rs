// SPDX-License-Identifier: MPL-2.0
//! Engines on devices that functions have used, kept for the next call with the same parameters and size.

use std::sync::Mutex;

use gstsuperpixel::any_engine::Continuity;
use gstsuperpixel::cuda::Cuda;
use gstsuperpixel::plan::Plan;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::engines::DeviceEngine;

struct Kept {
    process: u32,
    ordinal: usize,
    engine: DeviceEngine,
}

/// Engines that are kept in all: each holds memory of its device.
const MOST: usize = 2;

/// The one used last comes last. Nobody lets go of the interpreter's lock while holding this one: a child of a fork never finds it
/// locked. Engines of a parent process stay where they are, as the driver does not serve them.
static ENGINES: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn with<R>(py: Python<'_>, work: impl FnOnce(&mut Vec<Kept>) -> R) -> R {
    work(&mut ENGINES.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// An engine for this plan in the context of `cuda`, if one is kept; it is the caller's then.
pub fn take(py: Python<'_>, cuda: &Cuda, plan: &Plan) -> Option<DeviceEngine> {
    let (process, context) = (std::process::id(), cuda.context_handle());
    let fits = |kept: &Kept| {
        kept.process == process
            && kept.ordinal == cuda.ordinal()
            && kept.engine.context() == context
            && kept.engine.plan() == plan
    };
    with(py, |engines| engines.iter().rposition(fits).map(|at| engines.remove(at).engine))
}

/// Keeps an engine after a call that went well. The one that has not been used for longest may end, which waits for its device.
pub fn keep(py: Python<'_>, cuda: &Cuda, engine: DeviceEngine) {
    let (process, ordinal) = (std::process::id(), cuda.ordinal());
    let ended = with(py, |engines| {
        engines.push(Kept { process, ordinal, engine });
        let own = || engines.iter().filter(|kept| kept.process == process);
        let oldest = engines.iter().position(|kept| kept.process == process).filter(|_| own().count() > MOST);
        oldest.map(|oldest| engines.remove(oldest))
    });
    py.detach(|| drop(ended));
}

/// Ends the engines of a device that has failed: what is left of its context is of no use.
pub fn forget(py: Python<'_>, ordinal: i32) {
    let process = std::process::id();
    let of_device = |kept: &mut Kept| kept.process == process && kept.ordinal as i32 == ordinal;
    let ended: Vec<_> = with(py, |engines| engines.extract_if(.., of_device).collect());
    py.detach(|| drop(ended));
}
