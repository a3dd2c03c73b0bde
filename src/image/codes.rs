// SPDX-License-Identifier: MPL-2.0
//! Channel codes of a row's pixels, gathered as the format's layout describes.

use super::{Channel, Family, Frame, Layout, Sample};

/// Pixels that are gathered together; an even number.
pub(crate) const PIECE: usize = 32;

/// A row of a frame as codes of its channels.
#[derive(Clone, Copy)]
pub(crate) struct RowCodes<'a> {
    layout: &'static Layout,
    /// The row of each channel, starting at its first sample.
    rows: [&'a [u8]; 3],
    width: usize,
}

impl<'a> RowCodes<'a> {
    /// Row `y` of a frame.
    #[inline(always)]
    pub fn new(frame: &Frame<'a>, y: usize) -> Self {
        let layout = frame.info().format.layout();
        let row = |c: usize| {
            let Channel { plane, offset, .. } = layout.channels[c];
            &frame.row(plane, y >> layout.shared(c)[1])[offset..]
        };
        Self { layout, rows: [row(0), row(1), row(2)], width: frame.info().geometry.width as usize }
    }

    /// Gathers the codes of up to [`PIECE`] pixels from column `first` on, which is even; for gray, only those of the
    /// first channel. Entries past the row's end do not change.
    // Not inlined: in every caller it would be most of the code, and take registers from the rest.
    #[inline(never)]
    pub fn gather(&self, first: usize, out: &mut [[u16; PIECE]; 3]) {
        let n = PIECE.min(self.width - first);
        let [a, b, c] = out;
        self.channel(0, first, &mut a[..n]);
        if self.layout.family == Family::Gray {
            return;
        }
        if self.layout.subsampling[0] == 0 {
            self.channel(1, first, &mut b[..n]);
            self.channel(2, first, &mut c[..n]);
            return;
        }
        for (channel, out) in [(1, b), (2, c)] {
            let mut shared = [0; PIECE / 2];
            self.channel(channel, first / 2, &mut shared[..n.div_ceil(2)]);
            for (pair, code) in out.as_chunks_mut::<2>().0.iter_mut().zip(shared) {
                *pair = [code; 2];
            }
        }
    }

    /// Samples of a channel, starting at sample `first`.
    #[inline(always)]
    fn channel(&self, channel: usize, first: usize, out: &mut [u16]) {
        let Channel { step, sample, .. } = self.layout.channels[channel];
        let bytes = &self.rows[channel][first * step..];
        match step {
            1 => gather::<1>(bytes, sample, out),
            2 => gather::<2>(bytes, sample, out),
            3 => gather::<3>(bytes, sample, out),
            4 => gather::<4>(bytes, sample, out),
            6 => gather::<6>(bytes, sample, out),
            _ => gather::<8>(bytes, sample, out),
        }
    }
}

/// Samples that are STEP bytes apart. The last one may have fewer bytes behind it.
#[inline(always)]
fn gather<const STEP: usize>(bytes: &[u8], sample: Sample, out: &mut [u16]) {
    let whole = bytes.as_chunks::<STEP>().0;
    match (sample.bytes, sample.big_endian) {
        (1, _) => each(whole, out, |s: &[u8; STEP]| u16::from(s[0])),
        (2, false) if STEP >= 2 && sample.bits == 16 => {
            each(whole, out, |s| u16::from_le_bytes([s[0], s[STEP.min(2) - 1]]));
        }
        (2, false) if STEP >= 2 => {
            let mask = (1 << sample.bits) - 1;
            each(whole, out, |s| u16::from_le_bytes([s[0], s[STEP.min(2) - 1]]) >> sample.shift & mask);
        }
        _ => each(whole, out, |s| sample.code(s)),
    }
    if let Some(last) = out.get_mut(whole.len()) {
        *last = sample.code(&bytes[whole.len() * STEP..]);
    }
}

#[inline(always)]
fn each<const STEP: usize>(from: &[[u8; STEP]], out: &mut [u16], code: impl Fn(&[u8; STEP]) -> u16) {
    out.iter_mut().zip(from).for_each(|(out, bytes)| *out = code(bytes));
}
