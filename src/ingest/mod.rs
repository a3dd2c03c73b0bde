// SPDX-License-Identifier: MPL-2.0
//! Stage `ingest`: converts a frame of any format to one plane of packed colors, see [`crate::color`], and finds the
//! range of 16-bit gray.
//!
//! Thermal and medical cameras use a small part of 65,536 codes. With [`Params::stretch_gray16`] the codes that a frame uses
//! become black to white before anything is compared. Its own range leaves out a 1,024th of the pixels at either end, whole groups
//! of 16 codes, and is wider by a 16th at either end, so that noise does not move it. A warm start keeps the range of the frame
//! before while that holds all of this frame's and is at most twice as wide; so colors do not flicker.
//!
//! [`Params::stretch_gray16`]: crate::params::Params::stretch_gray16

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;

/// log2 of the codes per histogram bin; kernels/gray.cu has the same number.
pub(crate) const BIN_SHIFT: u32 = 4;
/// Bins of the histogram of codes.
pub(crate) const BINS: usize = 1 << (16 - BIN_SHIFT);
/// One in so many pixels at either end is an outlier.
const OUTLIERS: u32 = 1024;
/// Least difference of the codes of black and white: a range that 8 bits resolve is not stretched further.
const LEAST: i32 = 255;

/// The codes that become black and white.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrayRange {
    pub low: i32,
    pub high: i32,
}

impl GrayRange {
    /// Finds the range of a frame from the histogram of its codes. `last` is the range of the frame before, for a warm
    /// start.
    pub fn find(pixels: &[u32; BINS], last: Option<Self>) -> Self {
        let count: u32 = pixels.iter().sum();
        // The first bin behind which there are more pixels than outliers.
        fn end<'a>(count: u32, bins: impl Iterator<Item = (usize, &'a u32)>) -> Option<i32> {
            let mut sum = 0;
            let mut beyond = bins.skip_while(|(_, pixels)| {
                sum += **pixels;
                sum <= count / OUTLIERS
            });
            beyond.next().map(|(bin, _)| (bin as i32) << BIN_SHIFT)
        }
        let bins = || pixels.iter().enumerate();
        let (Some(low), Some(high)) = (end(count, bins()), end(count, bins().rev())) else {
            // All pixels are outside of the mask.
            return last.unwrap_or(Self { low: 0, high: 65_535 });
        };
        let used = Self { low, high: high + (1 << BIN_SHIFT) - 1 };
        let own = used.widened();
        last.filter(|last| last.low <= used.low && used.high <= last.high && last.width() <= 2 * own.width())
            .unwrap_or(own)
    }

    fn width(self) -> i32 {
        self.high - self.low
    }

    fn widened(self) -> Self {
        let margin = (self.width() >> 4).max((LEAST - self.width() + 1) >> 1);
        let low = (self.low - margin).max(0);
        // A range at the upper end of the codes is extended downwards.
        let high = (self.high + margin).max(low + LEAST).min(65_535);
        Self { low: low.min(high - LEAST), high }
    }

    /// Factor from a code above black to 16 bits, in 65536ths.
    pub fn scale(self) -> i32 {
        (65_535 * 65_536 / i64::from(self.width())) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(codes: &[u16], last: Option<GrayRange>) -> (i32, i32) {
        let mut pixels = [0; BINS];
        codes.iter().for_each(|code| pixels[usize::from(code >> BIN_SHIFT)] += 1);
        let GrayRange { low, high } = GrayRange::find(&pixels, last);
        (low, high)
    }

    #[test]
    fn a_range_is_that_of_the_codes_that_are_used() {
        let span: Vec<u16> = (29_312..30_320).collect();
        // 1008 codes and a 16th of 1007 at either end.
        assert_eq!(range(&span, None), (29_312 - 62, 30_319 + 62));
        // Two bad pixels among many are outliers; one in a hundred is none.
        let mut many = span.repeat(3);
        many.extend([0, 65_535]);
        assert_eq!(range(&many, None), range(&span, None));
        many.extend([0; 30]);
        assert_eq!(range(&many, None).0, 0);
        // Flat pictures have a range of 256 codes, also at the ends.
        for (code, wanted) in [(0, (0, 255)), (65_535, (65_280, 65_535)), (1000, (872, 1127))] {
            assert_eq!(range(&[code; 50], None), wanted, "{code}");
        }
        assert_eq!(range(&[], None), (0, 65_535));
    }

    #[test]
    fn a_warm_start_keeps_a_range_that_holds_and_is_not_far_too_wide() {
        let of = |low: u16, high: u16| (low..high).collect::<Vec<_>>();
        let first = range(&of(20_000, 21_008), None);
        let last = Some(GrayRange { low: first.0, high: first.1 });
        assert_eq!(range(&of(20_016, 20_992), last), first);
        assert_eq!(range(&of(19_952, 21_040), last), first);
        assert_eq!(range(&of(20_000, 21_200), last), range(&of(20_000, 21_200), None));
        assert_eq!(range(&of(20_400, 20_800), last), range(&of(20_400, 20_800), None));
        assert_eq!(range(&[], last), first);
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn the_kernels_have_the_same_constants() {
        let source = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/gray.cu"));
        for (name, value) in
            [("BIN_SHIFT", BIN_SHIFT as i32), ("OUTLIERS", OUTLIERS as i32), ("LEAST", LEAST)]
        {
            assert!(source.contains(&format!("#define {name} {value}\n")), "{name}");
        }
    }
}
