// SPDX-License-Identifier: MPL-2.0
//! Restores the current CUDA context of a thread: other code on it, such as the neighboring elements, may have made one
//! current.

use std::mem::{self, ManuallyDrop};

use super::device::CurrentContext;

/// A value that may make another context current on the thread when it is used or dropped. Each method restores the
/// thread's context.
pub struct KeepsContext<T>(ManuallyDrop<T>);

impl<T> KeepsContext<T> {
    /// Wraps the value that `make` returns.
    pub fn make<E>(make: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let _current = CurrentContext::keep();
        make().map(Self::of)
    }

    /// Wraps a value.
    pub fn of(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// Borrows the value, for uses that touch no context.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// Borrows the value mutably, for uses that touch no context.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }

    /// Uses the value.
    pub fn with<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        let _current = CurrentContext::keep();
        work(&self.0)
    }

    /// Uses and changes the value.
    pub fn with_mut<R>(&mut self, work: impl FnOnce(&mut T) -> R) -> R {
        let _current = CurrentContext::keep();
        work(&mut self.0)
    }

    /// Consumes the value.
    pub fn end<R>(mut self, work: impl FnOnce(T) -> R) -> R {
        let _current = CurrentContext::keep();
        // SAFETY: `self` is forgotten at once, so that nobody uses or drops the value again.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        mem::forget(self);
        work(value)
    }
}

impl<T> Drop for KeepsContext<T> {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        // SAFETY: here it is dropped once; `end`, which takes it, forgets `self`.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
