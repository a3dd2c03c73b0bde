// SPDX-License-Identifier: MPL-2.0
//! Moves fixed numbers of values from and to slices that may be shorter at their ends.
//!
//! A full chunk is one vector move. The path for shorter slices is not inlined: in one function the compiler would
//! merge both into a call of `memcpy`.

/// The first N values, padded with `fill` if there are fewer.
#[inline(always)]
pub(crate) fn first<T: Copy, const N: usize>(values: &[T], fill: T) -> [T; N] {
    match values.first_chunk() {
        Some(all) => *all,
        None => few(values, fill),
    }
}

#[inline(never)]
fn few<T: Copy, const N: usize>(values: &[T], fill: T) -> [T; N] {
    let mut all = [fill; N];
    all[..values.len()].copy_from_slice(values);
    all
}

/// Writes as many of the values as fit.
#[inline(always)]
pub(crate) fn write<T: Copy, const N: usize>(values: &[T; N], out: &mut [T]) {
    match out.first_chunk_mut() {
        Some(out) => *out = *values,
        None => write_few(values, out),
    }
}

#[inline(never)]
fn write_few<T: Copy>(values: &[T], out: &mut [T]) {
    out.copy_from_slice(&values[..out.len()]);
}
