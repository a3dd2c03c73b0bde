// SPDX-License-Identifier: MPL-2.0
//! Fixed numbers of values from and to slices that may be shorter at their ends.
//!
//! Where there are enough, a vector is moved. What does the rest is not inlined: as one function the compiler would make a call of
//! `memcpy` with either length.

/// The first N values; behind fewer, `fill`.
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

/// Writes as many of the values as there is room for.
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
