// SPDX-License-Identifier: MPL-2.0
//! Memory whose size follows from the stream or the plan: an error where there is none, not the end of the process.

use bytemuck::Zeroable;

use crate::error::{Error, Result};

fn refused<T>(what: &'static str, count: usize) -> Error {
    Error::Memory { what, bytes: count.saturating_mul(size_of::<T>()) }
}

/// Items that are all zero bytes; the system gives pages as they are touched.
pub(crate) fn zeroed<T: Zeroable>(what: &'static str, count: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| refused::<T>(what, count))
}

/// As many of one value.
pub(crate) fn filled<T: Clone>(what: &'static str, count: usize, value: T) -> Result<Vec<T>> {
    let mut values = Vec::new();
    refill(&mut values, what, count, value)?;
    Ok(values)
}

/// The same in the memory that is there, as far as it goes.
pub(crate) fn refill<T: Clone>(
    values: &mut Vec<T>,
    what: &'static str,
    count: usize,
    value: T,
) -> Result<()> {
    values.clear();
    resize(values, what, count, value)
}

/// As [`Vec::resize`].
pub(crate) fn resize<T: Clone>(
    values: &mut Vec<T>,
    what: &'static str,
    count: usize,
    value: T,
) -> Result<()> {
    reserve(values, what, count.saturating_sub(values.len()))?;
    values.resize(count, value);
    Ok(())
}

/// Makes room for so many more, with some to spare where there is memory: what follows takes none.
#[inline]
pub(crate) fn reserve<T>(values: &mut Vec<T>, what: &'static str, more: usize) -> Result<()> {
    if values.capacity() - values.len() >= more {
        return Ok(());
    }
    grow(values, what, more)
}

#[cold]
fn grow<T>(values: &mut Vec<T>, what: &'static str, more: usize) -> Result<()> {
    let grown = values.try_reserve(more).or_else(|_| values.try_reserve_exact(more));
    grown.map_err(|_| refused::<T>(what, values.len().saturating_add(more)))
}

/// As [`Vec::extend_from_slice`].
pub(crate) fn append<T: Clone>(values: &mut Vec<T>, what: &'static str, others: &[T]) -> Result<()> {
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
        let mut values = vec![1u64];
        assert!(
            reserve(&mut values, "tests", usize::MAX).is_err()
                && append(&mut values, "tests", &[2, 3]).is_ok()
        );
        assert_eq!(values, [1, 2, 3]);
    }
}
