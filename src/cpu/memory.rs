// SPDX-License-Identifier: MPL-2.0
//! Arrays whose size follows from the stream or the plan. Failing to allocate one is an error instead of the end of the
//! process, and large ones return to the system when they are dropped.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::AtomicI64;
#[cfg(unix)]
use std::sync::atomic::Ordering;

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec;
use bytemuck::Zeroable;

use crate::error::{Error, Result};

/// A growing array of a stage.
#[derive(Debug)]
pub(crate) struct Array<T>(vec::Vec<T, Pages>);

impl<T> Array<T> {
    pub(crate) const fn new() -> Self {
        Self(vec::Vec::new_in(Pages))
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Array<T> {
    type Target = vec::Vec<T, Pages>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for Array<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<T> AsRef<[T]> for Array<T> {
    #[inline(always)]
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> AsMut<[T]> for Array<T> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T> Array<T> {
    /// Like [`Vec::push`], with the growing path out of line, so that loops stay small.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        let len = self.0.len();
        if len == self.0.capacity() {
            self.grow();
        }
        // SAFETY: there is room behind the items: `grow` has made some where there was none.
        unsafe {
            self.0.as_mut_ptr().add(len).write(item);
            self.0.set_len(len + 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.0.reserve(1);
    }
}

impl<T: Copy> Array<T> {
    /// Like [`Vec::extend_from_slice`], but as one copy: the vector below copies item by item.
    pub(crate) fn extend_from_slice(&mut self, others: &[T]) {
        self.0.reserve(others.len());
        let len = self.0.len();
        // SAFETY: `reserve` has made room for the items, which are copied to behind those there are; `others` is not part of the
        // array, which is borrowed mutably.
        unsafe {
            others.as_ptr().copy_to_nonoverlapping(self.0.as_mut_ptr().add(len), others.len());
            self.0.set_len(len + others.len());
        }
    }
}

impl<T> Extend<T> for Array<T> {
    /// Checks the capacity once instead of once per item.
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        let mut items = items.into_iter();
        let mut taken = 0;
        for (place, item) in self.0.spare_capacity_mut().iter_mut().zip(&mut items) {
            place.write(item);
            taken += 1;
        }
        // SAFETY: so many places behind the items that there were have been written.
        unsafe { self.0.set_len(self.0.len() + taken) };
        self.0.extend(items);
    }
}

/// Uninitialized space behind the items of an array, written in order. Its length is a local of the writing loop, while
/// an array's own length would be stored to memory with every item.
pub(crate) struct Room<'a, T> {
    places: &'a mut [MaybeUninit<T>],
    written: usize,
}

impl<T> Room<'_, T> {
    /// Appends an item.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        self.push_if(true, item);
    }

    /// Appends an item if the condition holds, without a branch.
    #[inline(always)]
    pub(crate) fn push_if(&mut self, condition: bool, item: T) {
        self.places[self.written].write(item);
        self.written += usize::from(condition);
    }
}

impl<'a, T> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Array<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

/// Allocates small blocks on the heap and large ones as mappings of their own. glibc keeps freed blocks in the arena of
/// the thread that took them, and there are eight arenas a core: in a process that changes its streams for hours, each
/// would grow to an engine's size.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pages;

/// Bytes from which an array is a mapping of its own. Fuzzers get none, because their address sanitizer guards the heap
/// only.
const LARGE: usize = if cfg!(all(unix, not(fuzzing))) { 64 << 10 } else { usize::MAX };
/// Least page size of any supported system; mappings begin at a page.
const LEAST_PAGE: usize = 4096;

/// Bytes from which a mapping asks for huge pages: rows of a plane are far apart, and the processor caches few page
/// translations.
#[cfg(target_os = "linux")]
const HUGE: usize = 4 << 20;

impl Pages {
    // Where nothing is mapped, no size is that large.
    #[allow(clippy::absurd_extreme_comparisons)]
    fn maps(layout: Layout) -> bool {
        layout.size() >= LARGE && layout.align() <= LEAST_PAGE
    }
}

// SAFETY: a block is a private mapping or one of the global allocator's, and which follows from its layout: every block is exactly
// as long as asked for, so that it is given back with the layout that it was taken with. Copies of `Pages` are alike.
unsafe impl Allocator for Pages {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if Self::maps(layout) { map(layout.size()) } else { Global.allocate(layout) }
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if Self::maps(layout) { map(layout.size()) } else { Global.allocate_zeroed(layout) }
    }

    unsafe fn deallocate(&self, at: NonNull<u8>, layout: Layout) {
        if Self::maps(layout) {
            // SAFETY: `map` returned it for this size, as the trait demands of the caller.
            unsafe { unmap(at, layout.size()) }
        } else {
            // SAFETY: `Global` returned it for this layout, as the trait demands of the caller.
            unsafe { Global.deallocate(at, layout) }
        }
    }
}

/// Bytes that may still be mapped. Tests lower it to make allocations fail.
#[doc(hidden)]
pub static ROOM: AtomicI64 = AtomicI64::new(i64::MAX / 2);

/// Maps zeroed pages.
#[cfg(unix)]
fn map(bytes: usize) -> Result<NonNull<[u8]>, AllocError> {
    if ROOM.fetch_sub(bytes as i64, Ordering::Relaxed) < bytes as i64 {
        ROOM.fetch_add(bytes as i64, Ordering::Relaxed);
        return Err(AllocError);
    }
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, at a place that the system chooses, touches nothing that there is.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if at == libc::MAP_FAILED {
        ROOM.fetch_add(bytes as i64, Ordering::Relaxed);
        return Err(AllocError);
    }
    #[cfg(target_os = "linux")]
    if bytes >= HUGE {
        // SAFETY: the mapping is this one, of as many bytes; the advice changes nothing that can be read in it.
        unsafe { libc::madvise(at, bytes, libc::MADV_HUGEPAGE) };
    }
    NonNull::new(at.cast()).map(|at| NonNull::slice_from_raw_parts(at, bytes)).ok_or(AllocError)
}

/// # Safety
/// `at` is what [`map`] returned for as many bytes, and nobody uses it any more.
#[cfg(unix)]
unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the mapping is `map`'s, of as many bytes, and the caller says that nobody uses it any more.
    unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
    ROOM.fetch_add(bytes as i64, Ordering::Relaxed);
}

#[cfg(not(unix))]
fn map(_: usize) -> Result<NonNull<[u8]>, AllocError> {
    Err(AllocError)
}

#[cfg(not(unix))]
unsafe fn unmap(_: NonNull<u8>, _: usize) {}

fn refused<T>(what: &'static str, count: usize) -> Error {
    Error::Memory { what, bytes: count.saturating_mul(size_of::<T>()) }
}

/// Allocates items of zero bytes. The system provides pages as they are first touched.
pub(crate) fn zeroed<T: Zeroable>(what: &'static str, count: usize) -> Result<Array<T>> {
    let refused = |_| refused::<T>(what, count);
    const { assert!(size_of::<T>() > 0) };
    if count == 0 {
        return Ok(Array::new());
    }
    let layout = Layout::array::<T>(count).map_err(|_| refused(AllocError))?;
    let block = Pages.allocate_zeroed(layout).map_err(refused)?;
    // SAFETY: a block of `Pages` with the layout of `count` items, which may be zero bytes.
    Ok(Array(unsafe { vec::Vec::from_raw_parts_in(block.as_ptr().cast(), count, count, Pages) }))
}

/// Allocates `count` copies of a value.
pub(crate) fn filled<T: Clone>(what: &'static str, count: usize, value: T) -> Result<Array<T>> {
    let mut values = Array::default();
    refill(&mut values, what, count, value)?;
    Ok(values)
}

/// Collects items whose number is known.
pub(crate) fn collected<T>(what: &'static str, items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    try_collected(what, items.map(Ok))
}

/// Collects items whose number is known, up to the first error.
pub(crate) fn try_collected<T>(
    what: &'static str,
    items: impl ExactSizeIterator<Item = Result<T>>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    reserve(&mut all, what, items.len())?;
    for item in items {
        all.push(item?);
    }
    Ok(all)
}

/// Sets an array to `count` copies of a value, reusing its memory.
pub(crate) fn refill<T: Clone>(
    values: &mut Array<T>,
    what: &'static str,
    count: usize,
    value: T,
) -> Result<()> {
    values.clear();
    resize(values, what, count, value)
}

/// Extends an array to `count` items, if it is shorter.
pub(crate) fn lengthen<T: Default>(values: &mut Array<T>, what: &'static str, count: usize) -> Result<()> {
    let more = count.saturating_sub(values.len());
    reserve(values, what, more)?;
    values.extend(std::iter::repeat_with(T::default).take(more));
    Ok(())
}

/// Like [`Vec::resize`].
pub(crate) fn resize<T: Clone>(
    values: &mut Array<T>,
    what: &'static str,
    count: usize,
    value: T,
) -> Result<()> {
    let more = count.saturating_sub(values.len());
    reserve(values, what, more)?;
    values.truncate(count);
    values.extend(std::iter::repeat_n(value, more));
    Ok(())
}

/// A collection whose capacity can grow.
pub(crate) trait Grow {
    /// Type of the items.
    type Item;

    /// Number of items, and capacity.
    fn extent(&self) -> (usize, usize);

    /// Tries to reserve memory for `more` items: with spare capacity, else exactly.
    fn try_grow(&mut self, more: usize) -> bool;
}

impl<T> Grow for Array<T> {
    type Item = T;

    #[inline(always)]
    fn extent(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }

    fn try_grow(&mut self, more: usize) -> bool {
        self.try_reserve(more).is_ok() || self.try_reserve_exact(more).is_ok()
    }
}

impl<T> Grow for Vec<T> {
    type Item = T;

    #[inline(always)]
    fn extent(&self) -> (usize, usize) {
        (self.len(), self.capacity())
    }

    fn try_grow(&mut self, more: usize) -> bool {
        self.try_reserve(more).is_ok() || self.try_reserve_exact(more).is_ok()
    }
}

/// Reserves memory for `more` items, with spare capacity if there is memory. Pushing them then does not allocate.
#[inline]
pub(crate) fn reserve<A: Grow>(values: &mut A, what: &'static str, more: usize) -> Result<()> {
    let (len, capacity) = values.extent();
    if capacity - len >= more {
        return Ok(());
    }
    grow(values, what, more)
}

#[cold]
fn grow<A: Grow>(values: &mut A, what: &'static str, more: usize) -> Result<()> {
    if values.try_grow(more) {
        return Ok(());
    }
    Err(refused::<A::Item>(what, values.extent().0.saturating_add(more)))
}

/// Lets `write` append up to `most` items.
#[inline(always)]
pub(crate) fn write<T>(
    values: &mut Array<T>,
    what: &'static str,
    most: usize,
    write: impl FnOnce(&mut Room<'_, T>),
) -> Result<()> {
    reserve(values, what, most)?;
    let (len, mut room) = (values.len(), Room { places: values.spare_capacity_mut(), written: 0 });
    write(&mut room);
    let len = len + room.written;
    // SAFETY: `Room::push_if` has written the places up to there, one after another.
    unsafe { values.set_len(len) };
    Ok(())
}

/// Prefetches the cache lines of some items, which are about to be read in random order.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    /// Bytes of a cache line.
    const LINE: usize = 64;
    const { assert!(size_of::<T>() > 0) };
    for line in items.chunks(LINE / size_of::<T>()) {
        // SAFETY: reads nothing, whatever the address is.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

/// Other processors are not asked: Rust has no such instruction for all of them.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn prefetch<T>(_: &[T]) {}

/// Like [`Vec::extend_from_slice`].
pub(crate) fn append<T: Copy>(values: &mut Array<T>, what: &'static str, others: &[T]) -> Result<()> {
    reserve(values, what, others.len())?;
    values.extend_from_slice(others);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error_with_its_bytes() {
        let too_many = isize::MAX as usize / 8;
        let wanted = Error::Memory { what: "tests", bytes: 8 * too_many };
        assert_eq!(zeroed::<u64>("tests", too_many).unwrap_err(), wanted);
        assert_eq!(filled("tests", too_many, 1u64).unwrap_err(), wanted);
        let mut values = filled("tests", 1, 1u64).unwrap();
        assert!(
            reserve(&mut values, "tests", usize::MAX).is_err()
                && append(&mut values, "tests", &[2, 3]).is_ok()
        );
        assert_eq!(values[..], [1, 2, 3]);
    }

    #[test]
    fn arrays_keep_their_items_as_they_grow_into_pages_of_their_own() {
        let large = LARGE.min(1 << 20);
        // Numbers of 4 bytes; Miri is slow and gets the fewest that are a mapping.
        let many = if cfg!(miri) { large / 4 + 100 } else { 3 * large } as u32;
        let mut values = Array::default();
        for i in 0..many {
            append(&mut values, "tests", &[i]).unwrap();
        }
        assert!(values.iter().enumerate().all(|(i, &value)| i as u32 == value));
        values.truncate(10);
        values.shrink_to_fit();
        assert_eq!(values[..], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Extends within the capacity, and past it.
        reserve(&mut values, "tests", 3).unwrap();
        values.extend(10..many);
        values.extend_from_slice(&[7, 7]);
        values.push(7);
        let (counted, last) = values.split_at(values.len() - 3);
        assert!(counted.iter().enumerate().all(|(i, &value)| i as u32 == value) && last == [7, 7, 7]);
        write(&mut values, "tests", 3, |room| [8, 9].into_iter().for_each(|item| room.push(item))).unwrap();
        assert_eq!(values[values.len() - 3..], [7, 8, 9]);
        for count in [0, 1, large - 1, large, if cfg!(miri) { large + 1 } else { 1 << 20 }] {
            assert!(zeroed::<u8>("tests", count).unwrap()[..] == *std::vec![0; count]);
        }
    }
}
