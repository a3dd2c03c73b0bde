// SPDX-License-Identifier: MPL-2.0
//! Order of the streams that access a frame's memory: on the device, a reader waits for the last write, and a writer
//! for all earlier accesses. Accesses of one stream are in order anyway and cost one event.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaEvent, CudaStream};

use super::handle::Cuda;
use super::launch::check;
use crate::error::Result;

const STAGE: &str = "order accesses";

/// Finished accesses that are kept, so that their events are reused.
const IDLE: usize = 8;

/// Kind of access to the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// The last access of one stream.
struct Access {
    stream: Arc<CudaStream>,
    done: CudaEvent,
    /// `None` once a later write has waited for it.
    kind: Option<Kind>,
}

/// Accesses that a later one may have to wait for.
pub(crate) struct Accesses {
    list: Mutex<Vec<Access>>,
    /// The `CUcontext` of the memory.
    context: usize,
}

impl std::fmt::Debug for Accesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accesses").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Accesses {
    pub fn new(cuda: &Cuda) -> Self {
        Self { list: Mutex::default(), context: cuda.context_handle() }
    }

    /// The `CUcontext` of the memory.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Makes a stream wait for the accesses that have to come first. All work launched on it until the guard is dropped
    /// is one access; other threads that begin one block until then.
    pub fn begin(&self, cuda: &Cuda, kind: Kind) -> Result<Guard<'_>> {
        let stream = &cuda.stream;
        let mut list = self.list.lock().unwrap();
        for other in list.iter_mut().filter(|other| !Arc::ptr_eq(&other.stream, stream)) {
            if other.kind.is_some_and(|earlier| kind == Kind::Write || earlier == Kind::Write) {
                check(STAGE, stream.wait(&other.done))?;
                // A later access that waits for this write thereby waits for that one as well.
                if kind == Kind::Write {
                    other.kind = None;
                }
            }
        }
        if list.len() > IDLE {
            list.retain(|access| access.kind.is_some() || Arc::ptr_eq(&access.stream, stream));
        }
        let own = match list.iter().position(|access| Arc::ptr_eq(&access.stream, stream)) {
            Some(own) => own,
            None => {
                list.push(Access { stream: stream.clone(), done: cuda.event()?, kind: None });
                list.len() - 1
            }
        };
        list[own].kind = list[own].kind.max(Some(kind));
        Ok(Guard { list, own })
    }

    /// Waits until the host may access the memory in turn.
    pub fn wait(&self, kind: Kind) -> Result<()> {
        let mut list = self.list.lock().unwrap();
        for other in list.iter_mut() {
            if other.kind.is_some_and(|earlier| kind == Kind::Write || earlier == Kind::Write) {
                check(STAGE, other.done.synchronize())?;
                other.kind = None;
            }
        }
        Ok(())
    }

    /// Makes a stream wait for all accesses, so that the memory can be freed in its order.
    pub fn synchronize(&mut self, stream: &CudaStream) {
        let list = self.list.get_mut().unwrap_or_else(PoisonError::into_inner);
        for access in list.drain(..).filter(|access| access.kind.is_some()) {
            // Fails only in a broken context, which runs no work any more.
            let _ = stream.wait(&access.done);
        }
    }
}

/// An access while its work is being launched.
pub(crate) struct Guard<'a> {
    list: MutexGuard<'a, Vec<Access>>,
    own: usize,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Access { stream, done, .. } = &self.list[self.own];
        if done.record(stream).is_err() {
            // Without an event, later accesses need an idle stream. Fails only in a broken context, which runs no work
            // any more.
            let _ = stream.synchronize();
        }
    }
}
