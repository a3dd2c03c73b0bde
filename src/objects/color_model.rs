// SPDX-License-Identifier: MPL-2.0
//! Densities of colors as histograms with linear interpolation, and logarithms of their ratios, in integers.

/// Quarters of a Delta E in a bin.
const BIN: i32 = 32;
/// Bins of L, from 0 to 100.
const LIGHTNESSES: usize = 14;
/// Bins of a and of b, from -128 to 128.
const CHROMAS: usize = 33;
/// A density of 1, which a color alone in the middle of a bin has.
pub(super) const ONE: i64 = 1 << 20;
/// Sum of the eight weights of interpolation, divided by [`SCALE`].
const WHOLE: u64 = (BIN as u64).pow(3) / SCALE;
const SCALE: u64 = 64;

/// Weighted colors in Lab. A color counts in the eight bins around it.
#[derive(Debug, Clone)]
pub(super) struct ColorModel {
    bins: Vec<u64>,
    sum: u64,
}

/// The eight bins around a color in quarters of a Delta E, with their weights.
fn around([l, a, b]: [i32; 3]) -> impl Iterator<Item = (usize, u64)> {
    let color = [l.clamp(0, 400), (a + 512).clamp(0, 1023), (b + 512).clamp(0, 1023)];
    let [low, part] = [color.map(|c| (c / BIN) as usize), color.map(|c| (c % BIN) as usize)];
    (0..8).map(move |corner: usize| {
        let step = [corner & 1, corner >> 1 & 1, corner >> 2];
        let weight = |i: usize| if step[i] == 1 { part[i] } else { BIN as usize - part[i] };
        let [l, a, b] = [0, 1, 2].map(|i| low[i] + step[i]);
        let bin = (l * (CHROMAS + 1) + a) * (CHROMAS + 1) + b;
        (bin, (weight(0) * weight(1) * weight(2)) as u64)
    })
}

impl ColorModel {
    pub(super) fn new() -> Self {
        Self { bins: vec![0; LIGHTNESSES * (CHROMAS + 1) * (CHROMAS + 1)], sum: 0 }
    }

    /// Adds a color. The weights of a model add up to less than 2^36.
    pub(super) fn add(&mut self, color: [i32; 3], weight: u64) {
        for (bin, part) in around(color) {
            self.bins[bin] += weight * part / SCALE;
        }
        self.sum += WHOLE * weight;
    }

    /// Density at a color, 0 to [`ONE`].
    pub(super) fn density(&self, color: [i32; 3]) -> i64 {
        let sum: u64 = around(color).map(|(bin, part)| self.bins[bin] * part / SCALE).sum();
        (u128::from(sum) * ONE as u128 / (u128::from(self.sum.max(1)) * u128::from(WHOLE))).min(ONE as u128)
            as i64
    }

    /// Multiplies all weights by so many percent.
    pub(super) fn decay(&mut self, percent: u64) {
        for bin in &mut self.bins {
            *bin = *bin * percent / 100;
        }
        self.sum = self.sum * percent / 100;
    }
}

/// log2 in 1/256, linear between powers of two: at most 0.09 too low. 0 for 0.
fn log2(value: i64) -> i64 {
    let value = value.max(1) as u64;
    let power = i64::from(value.ilog2());
    let rest = if power >= 8 { value >> (power - 8) } else { value << (8 - power) };
    power * 256 + (rest & 255) as i64
}

/// log2((a + least) / (b + least)) in 1/256, at most `limit` either way.
pub(super) fn log_ratio(a: i64, b: i64, least: i64, limit: i64) -> i64 {
    (log2(a + least) - log2(b + least)).clamp(-limit, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_are_of_the_colors_added() {
        let mut model = ColorModel::new();
        assert_eq!(model.density([100, 0, 0]), 0);
        model.add([96, 0, 0], 1000);
        model.add([320, 100, -100], 3000);
        assert!((model.density([96, 0, 0]) - ONE / 4).abs() < ONE / 100);
        assert_eq!(model.density([200, 0, 0]), 0);
        let before = model.density([96, 0, 0]);
        model.decay(50);
        assert!((model.density([96, 0, 0]) - before).abs() < ONE / 100);
        // Colors out of range count at its ends.
        for color in [[i32::MIN / 2; 3], [i32::MAX / 2; 3]] {
            model.add(color, 1);
            assert!(model.density(color) >= 0);
        }
    }

    #[test]
    fn logarithms_are_exact_at_powers_of_two() {
        for power in 0..40 {
            assert_eq!(log2(1 << power), 256 * power);
        }
        assert_eq!(log_ratio(0, 0, 1, 9), 0);
        assert_eq!(log_ratio(7, 0, 1, 10_000), 3 * 256);
        assert_eq!(log_ratio(0, 7, 1, 100), -100);
    }
}
