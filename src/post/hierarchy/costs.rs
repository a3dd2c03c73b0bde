// SPDX-License-Identifier: MPL-2.0
//! Costs of many pairs at once, in 64-bit floating point: its integers are exact below 2^52, and vectors can divide
//! them. Pairs with larger numbers are left to [`Plan::cost`], which defines all costs.

use super::pairs::Pair;
use super::{CONTRAST_ONE, HELD, MEAN_ONE, Mean, Plan, root};
use crate::cpu::level::by_level;

/// Pairs that are worked on together.
const LANES: usize = 16;
/// Integers from here on are not all exact.
const EXACT: f64 = (1u64 << 52) as f64;
/// Bits that the mantissa of a 64-bit float has beyond a 32-bit one's.
const MORE_BITS: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;

by_level! {
    /// Computes the costs of pairs by the means of their regions.
    pub(super) fn list_costs(pairs: &mut [Pair], means: &[Mean], plan: &Plan) = list_costs_body
}

#[inline(always)]
fn list_costs_body(pairs: &mut [Pair], means: &[Mean], plan: &Plan) {
    let (pieces, rest) = pairs.as_chunks_mut::<LANES>();
    for pairs in pieces {
        let (terms, mut costs, mut exact) = (Terms::of(pairs, means), [0; LANES], [false; LANES]);
        terms.list_costs(plan, &mut costs, &mut exact);
        for (pair, cost) in pairs.iter_mut().zip(costs) {
            pair.cost = cost;
        }
        if exact != [true; LANES] {
            add_costs(pairs, means, plan);
        }
    }
    add_costs(rest, means, plan);
}

/// Computes costs pair by pair.
#[inline(never)]
fn add_costs(pairs: &mut [Pair], means: &[Mean], plan: &Plan) {
    for pair in pairs {
        let [a, b] = [pair.a, pair.b].map(|region| &means[usize::from(region)]);
        pair.cost = plan.cost(a, b, &pair.boundary);
    }
}

/// Inputs of the cost. None is above 2^31 except for contrasts, which stay below 2^44.
struct Terms {
    color: [i32; LANES],
    apart: [[i32; LANES]; 2],
    pixels: [[i32; LANES]; 2],
    length: [i32; LANES],
    held: [i32; LANES],
    root: [i32; LANES],
    contrast: [f64; LANES],
}

impl Terms {
    #[inline(always)]
    fn of(pairs: &[Pair; LANES], means: &[Mean]) -> Self {
        let none = [0; LANES];
        let mut all = Self {
            color: none,
            apart: [none; 2],
            pixels: [none; 2],
            length: none,
            held: none,
            root: none,
            contrast: [0.0; LANES],
        };
        for (i, pair) in pairs.iter().enumerate() {
            let [a, b] = [pair.a, pair.b].map(|region| &means[usize::from(region)]);
            let apart = |one: &[u32], other: &[u32], j: usize| one[j].abs_diff(other[j]) as i32;
            all.color[i] = (0..3).map(|j| apart(&a.color, &b.color, j)).sum();
            all.apart[0][i] = apart(&a.position, &b.position, 0);
            all.apart[1][i] = apart(&a.position, &b.position, 1);
            (all.pixels[0][i], all.pixels[1][i]) = (a.count as i32, b.count as i32);
            (all.length[i], all.held[i]) = (pair.boundary.length as i32, pair.boundary.held as i32);
            all.root[i] = root(pair.boundary.length) as i32;
            all.contrast[i] = pair.boundary.contrast as i64 as f64;
        }
        all
    }

    /// Returns the cost by [`Plan::cost`], and true if all intermediate numbers were exact.
    #[inline(always)]
    fn list_costs(&self, plan: &Plan, costs: &mut [u32; LANES], exact: &mut [bool; LANES]) {
        let [least, contrast_weight, position] = [plan.least, plan.contrast, plan.position].map(f64::from);
        let shift = f64::from_bits(u64::from(1023 - plan.position_shift) << (f64::MANTISSA_DIGITS - 1));
        let most = f64::from(u32::MAX);
        for i in 0..LANES {
            let (length, color) = (f64::from(self.length[i]), f64::from(self.color[i]));
            let contrast = floor((2.0 * MEAN_ONE as f64 * self.contrast[i] + length) / (2.0 * length));
            let share = floor(256.0 * f64::from(self.held[i]) / length);
            let together = floor(share * (HELD as f64 / 256.0));
            let [x, y] = [0, 1].map(|axis| f64::from(self.apart[axis][i]));
            let apart = position * (x * x + y * y);
            let difference = color * color
                + least
                + floor(contrast_weight * contrast * contrast * (1.0 / CONTRAST_ONE as f64))
                + least_of(floor(apart * shift), most);
            let [n, m] = [0, 1].map(|side| f64::from(self.pixels[side][i]));
            let product = 16.0 * n * m;
            let weight = floor(product / (n + m));
            let difference = floor(least_of(difference, most) * (256.0 - together) * (1.0 / 256.0));
            let weighted = weight * difference;
            let cost = floor(weighted / f64::from(self.root[i]));
            let high_bits = cost.to_bits() >> MORE_BITS << MORE_BITS;
            costs[i] = (f64::from_bits(high_bits) as f32).to_bits();
            exact[i] = (apart < EXACT) & (product < EXACT) & (weighted < EXACT);
        }
    }
}

/// The lesser of two numbers.
#[inline(always)]
fn least_of(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Rounds down a number from 0 to [`EXACT`]. Every instruction level has vectors of these operations.
#[inline(always)]
fn floor(number: f64) -> f64 {
    let nearest = number + EXACT - EXACT;
    nearest - if nearest > number { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::{Boundary, Params};
    use super::*;
    use crate::color::ColorSpace;
    use crate::image::Geometry;
    use crate::params::PRIOR_PRICE;

    /// A generator of numbers of all magnitudes below a bound.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            let mut next = || {
                self.0 =
                    self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                self.0 >> 32
            };
            let bits = next() % (u64::from(bound.ilog2()) + 2);
            (next() << 31 ^ next()) % (1 << bits) % bound
        }
    }

    #[test]
    fn costs_are_those_of_the_plan() {
        let (mut numbers, mut all_exact) = (Numbers(1), [0; 2]);
        for (w, h) in [(64, 48), (1920, 1080), (16384, 16384)] {
            let geometry = Geometry::new(w, h).unwrap();
            for compactness in [0.0, 0.01, 4.0, 100.0] {
                let params = Params { regions: 1, compactness, ..Params::default() };
                let plan = Plan::new(&params, ColorSpace::Lab, geometry).unwrap();
                let means: Vec<Mean> = (0..400)
                    .map(|_| Mean {
                        count: 1 + numbers.below(1 << 28) as u32,
                        color: [4 * 1023, 4 * 2047, 4 * 2047].map(|most| numbers.below(most + 1) as u32),
                        position: [0; 2].map(|_| numbers.below(4 * 16383 + 1) as u32),
                    })
                    .collect();
                let most = 5117 + ColorSpace::Lab.quanta() as u64 * PRIOR_PRICE.max as u64;
                let mut pairs: Vec<Pair> = (0..3000)
                    .map(|_| {
                        let a = numbers.below(399) as u16;
                        let b = a + 1 + numbers.below(u64::from(399 - a)) as u16;
                        let length = 1 + numbers.below((1 << 30) - 1) as u32;
                        let held = numbers.below(u64::from(length) + 1) as u32;
                        let contrast = numbers.below(most * u64::from(length) + 1);
                        Pair { a, b, cost: 0, boundary: Boundary { length, held, contrast } }
                    })
                    .collect();
                for pairs in pairs.as_chunks::<LANES>().0 {
                    let (mut costs, mut exact) = ([0; LANES], [false; LANES]);
                    Terms::of(pairs, &means).list_costs(&plan, &mut costs, &mut exact);
                    for ((pair, cost), exact) in pairs.iter().zip(costs).zip(exact) {
                        let [a, b] = [pair.a, pair.b].map(|region| &means[usize::from(region)]);
                        assert!(
                            !exact || cost == plan.cost(a, b, &pair.boundary),
                            "{pair:?} {a:?} {b:?} {plan:?}"
                        );
                        all_exact[usize::from(exact)] += 1;
                    }
                }
                list_costs(&mut pairs, &means, &plan);
                for pair in &pairs {
                    let [a, b] = [pair.a, pair.b].map(|region| &means[usize::from(region)]);
                    assert_eq!(pair.cost, plan.cost(a, b, &pair.boundary), "{pair:?} {a:?} {b:?} {plan:?}");
                }
            }
        }
        // The draws have to cover both paths.
        assert!(all_exact.iter().all(|&count| count > 2000), "{all_exact:?}");
    }
}
