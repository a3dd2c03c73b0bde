// SPDX-License-Identifier: MPL-2.0
//! The order in which streams access the memory of a frame: whoever reads waits for the last write, whoever writes for
//! all accesses before, on the device. Accesses of one stream are in order anyway and cost one event.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaEvent, CudaStream};

use super::handle::Cuda;
use super::launch::check;
use crate::error::Result;

const STAGE: &str = "order accesses";

/// Streams that are remembered although nothing has to wait for them any more, so that their events serve again.
const IDLE: usize = 8;

/// What a stream does with the memory.
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

/// The accesses that a later one may have to wait for.
pub(crate) struct Accesses {
    list: Mutex<Vec<Access>>,
    /// The context of the memory, to tell it from others.
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

    /// Lets a stream wait for what has to come first. What is put on it until the guard is dropped is one access; other
    /// threads wait that long to begin theirs.
    pub fn begin(&self, cuda: &Cuda, kind: Kind) -> Result<Guard<'_>> {
        let stream = &cuda.stream;
        let mut list = self.list.lock().unwrap();
        for other in list.iter_mut().filter(|other| !Arc::ptr_eq(&other.stream, stream)) {
            if other.kind.is_some_and(|earlier| kind == Kind::Write || earlier == Kind::Write) {
                check(STAGE, stream.wait(&other.done))?;
                // Whoever waits for this write waits for that one, too.
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

    /// Lets a stream wait for all accesses: the memory may then be freed in its order.
    pub fn synchronize(&mut self, stream: &CudaStream) {
        let list = self.list.get_mut().unwrap_or_else(PoisonError::into_inner);
        for access in list.drain(..).filter(|access| access.kind.is_some()) {
            // A context that is broken runs nothing any more.
            let _ = stream.wait(&access.done);
        }
    }
}

/// An access that is being put on its stream.
pub(crate) struct Guard<'a> {
    list: MutexGuard<'a, Vec<Access>>,
    own: usize,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Access { stream, done, .. } = &self.list[self.own];
        if done.record(stream).is_err() {
            // Without a mark, later accesses find the stream idle instead; a broken context runs nothing any more.
            let _ = stream.synchronize();
        }
    }
}
