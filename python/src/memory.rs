// SPDX-License-Identifier: MPL-2.0
//! Memory whose size follows from the caller's arrays: where there is none, an error instead of an end.

use gstsuperpixel::error::{Error, Result};

fn error(what: &'static str, bytes: usize) -> Error {
    Error::Memory { what, bytes }
}

/// Room for so many more items.
pub fn reserve<T>(what: &'static str, items: &mut Vec<T>, more: usize) -> Result<()> {
    items.try_reserve_exact(more).map_err(|_| error(what, more.saturating_mul(size_of::<T>())))
}

/// So many equal items.
pub fn filled<T: Clone>(what: &'static str, count: usize, item: T) -> Result<Vec<T>> {
    let mut items = Vec::new();
    reserve(what, &mut items, count)?;
    items.resize(count, item);
    Ok(items)
}

/// Adds an item.
pub fn push<T>(what: &'static str, items: &mut Vec<T>, item: T) -> Result<()> {
    if items.len() == items.capacity() {
        items.try_reserve(1).map_err(|_| error(what, 2 * items.len() * size_of::<T>()))?;
    }
    items.push(item);
    Ok(())
}

/// Asks whether so many bytes could be had, for collections that cannot be asked themselves.
pub fn probe(what: &'static str, bytes: usize) -> Result<()> {
    reserve::<u8>(what, &mut Vec::new(), bytes)
}
