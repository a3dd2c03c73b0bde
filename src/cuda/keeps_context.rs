// SPDX-License-Identifier: MPL-2.0
//! Leaves the current CUDA context of a thread as it was: others on the thread, such as the elements before and after ours, may
//! have made one current.

use std::mem::{self, ManuallyDrop};

use super::device::CurrentContext;

/// A value whose use and end may make another context current on the thread. Each method puts back what was current.
pub struct KeepsContext<T>(ManuallyDrop<T>);

impl<T> KeepsContext<T> {
    /// Makes a value.
    pub fn make<E>(make: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let _current = CurrentContext::keep();
        make().map(Self::of)
    }

    /// Takes a value.
    pub fn of(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// The value, for what touches no context.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// The same, to change it.
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

    /// Ends the value with what is left of it.
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
