// SPDX-License-Identifier: MPL-2.0
//! Any values of parameters, sizes and drawings: an error, or a plan whose frames are segmented. Never a panic, and nothing
//! that was not checked reaches an engine.

use crate::pictures::{Buffer, PICTURES, SHAPES};
use gstsuperpixel::algo::grid::Grid;
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, MAX_SIDE, PixelFormat};
use gstsuperpixel::params::{BOUNDARY_WIDTH, Boundaries, Drawing, Fill, Outputs, Params, Range, THREADS};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use proptest::prelude::*;

/// In range mostly, so that one bad value of many shows, else any bits.
fn number(range: Range<f32>) -> impl Strategy<Value = f32> {
    let Range { min, max, .. } = range;
    prop_oneof![
        20 => min..=max,
        4 => prop::sample::select(vec![min, max, -0.0]),
        2 => any::<u32>().prop_map(f32::from_bits),
        1 => prop::sample::select(vec![
            f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, -1.0, min.next_down(),
            max.next_up(),
        ]),
    ]
}

fn whole(range: Range<u32>) -> impl Strategy<Value = u32> {
    let Range { min, max, .. } = range;
    prop_oneof![
        20 => min..=max,
        2 => any::<u32>(),
        1 => prop::sample::select(vec![0, min.wrapping_sub(1), max.wrapping_add(1), u32::MAX]),
    ]
}

fn algorithm() -> impl Strategy<Value = AlgorithmParams> {
    let rounds = || whole(gstsuperpixel::params::ITERATIONS);
    let space = || prop::sample::select(ColorSpace::ALL.to_vec());
    prop_oneof![
        (rounds(), number(slic::COMPACTNESS), space(), any::<bool>()).prop_map(
            |(iterations, compactness, color_space, adaptive_compactness)| AlgorithmParams::Slic(
                slic::Params { iterations, compactness, color_space, adaptive_compactness }
            )
        ),
        (rounds(), number(lsc::RATIO))
            .prop_map(|(iterations, ratio)| AlgorithmParams::Lsc(lsc::Params { iterations, ratio })),
        (number(quickshift::SIGMA), number(quickshift::TAU), number(quickshift::COLOR_SCALE), space())
            .prop_map(|(sigma, tau, color_scale, color_space)| AlgorithmParams::QuickShift(
                quickshift::Params { sigma, tau, color_scale, color_space }
            )),
        (number(slic::COMPACTNESS), space()).prop_map(|(compactness, color_space)| AlgorithmParams::Snic(
            snic::Params { compactness, color_space }
        )),
    ]
}

fn params() -> impl Strategy<Value = Params> {
    let merging = || {
        (number(merge::MERGE), any::<bool>(), number(merge::MAX_DISTANCE), whole(merge::PASSES)).prop_map(
            |(ratio, either, max_distance, passes)| merge::Params {
                ratio,
                rule: if either { merge::Rule::Either } else { merge::Rule::Mutual },
                max_distance,
                passes,
            },
        )
    };
    let regions = || {
        (whole(hierarchy::REGIONS), number(hierarchy::COMPACTNESS), any::<bool>())
            .prop_map(|(regions, compactness, levels)| hierarchy::Params { regions, compactness, levels })
    };
    let sizes = (
        whole(gstsuperpixel::params::SUPERPIXEL_SIZE),
        prop_oneof![Just(0), 1u32..2000, any::<u32>()],
        number(gstsuperpixel::params::MIN_REGION),
    );
    let inertia = number(gstsuperpixel::temporal::INERTIA);
    // Seldom both, which is refused.
    let fewer = prop_oneof![
        8 => merging().prop_map(|merge| (merge, hierarchy::Params::default())),
        8 => regions().prop_map(|hierarchy| (merge::Params::default(), hierarchy)),
        1 => (merging(), regions()),
    ];
    let refining = (whole(refine::REFINE), number(refine::SMOOTHNESS))
        .prop_map(|(sweeps, smoothness)| refine::Params { sweeps, smoothness });
    (sizes, fewer, refining, algorithm(), any::<[bool; 3]>(), inertia).prop_map(
        |(
            (superpixel_size, superpixels, min_region),
            (merge, hierarchy),
            refine,
            algorithm,
            [connectivity, temporal, masked],
            temporal_inertia,
        )| {
            Params {
                superpixel_size,
                superpixels,
                holds_count: masked,
                connectivity,
                min_region,
                merge,
                hierarchy,
                refine,
                temporal,
                temporal_inertia,
                masked,
                prior: masked && temporal,
                prior_cuts: connectivity,
                prior_price: temporal_inertia,
                stretch_gray16: masked,
                algorithm,
            }
        },
    )
}

/// Returns true if every number of some parameters is in its range.
fn is_valid(params: &Params) -> bool {
    fn within<T: Copy + PartialOrd>(range: Range<T>, value: T) -> bool {
        value >= range.min && value <= range.max
    }
    let own = match &params.algorithm {
        AlgorithmParams::Slic(own) => {
            within(gstsuperpixel::params::ITERATIONS, own.iterations)
                && within(slic::COMPACTNESS, own.compactness)
        }
        AlgorithmParams::Lsc(own) => {
            within(gstsuperpixel::params::ITERATIONS, own.iterations) && within(lsc::RATIO, own.ratio)
        }
        AlgorithmParams::QuickShift(own) => {
            within(quickshift::SIGMA, own.sigma)
                && within(quickshift::TAU, own.tau)
                && within(quickshift::COLOR_SCALE, own.color_scale)
        }
        AlgorithmParams::Snic(own) => within(slic::COMPACTNESS, own.compactness),
    };
    own && within(gstsuperpixel::params::SUPERPIXEL_SIZE, params.superpixel_size)
        && within(gstsuperpixel::params::MIN_REGION, params.min_region)
        && within(merge::MERGE, params.merge.ratio)
        && within(merge::MAX_DISTANCE, params.merge.max_distance)
        && within(merge::PASSES, params.merge.passes)
        && within(hierarchy::REGIONS, params.hierarchy.regions)
        && within(hierarchy::COMPACTNESS, params.hierarchy.compactness)
        && within(gstsuperpixel::params::PRIOR_PRICE, params.prior_price)
        && (params.hierarchy.regions == 0 || params.merge.ratio <= 0.0)
        && (params.connectivity || !params.prior)
        && within(refine::REFINE, params.refine.sweeps)
        && within(refine::SMOOTHNESS, params.refine.smoothness)
        && within(gstsuperpixel::temporal::INERTIA, params.temporal_inertia)
}

fn side() -> impl Strategy<Value = u32> {
    prop_oneof![1u32..64, any::<u32>(), prop::sample::select(vec![0, MAX_SIDE, MAX_SIDE + 1, u32::MAX])]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parameters_are_refused_or_segment(
        params in params(),
        size in (1u32..40, 1u32..40),
        format in prop::sample::select(PixelFormat::ALL.to_vec()),
        flags in any::<[bool; 4]>(),
        boundaries in prop::option::of((any::<u32>(), whole(BOUNDARY_WIDTH))),
        fill in prop::sample::select(vec![Fill::None, Fill::MeanColor, Fill::Labels, Fill::Abstraction(Default::default())]),
        seed in any::<u64>(),
    ) {
        let geometry = Geometry::new(size.0, size.1).unwrap();
        let info = FrameInfo::new(geometry, format);
        let plan = match Plan::new(&params, info) {
            Ok(plan) => plan,
            Err(Error::Param { .. }) => {
                prop_assert!(!is_valid(&params), "refused: {params:?}");
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(format!("{error}"))),
        };
        prop_assert!(is_valid(&params), "taken: {params:?}");
        let [table, neighbors, mean_color, linear_light] = flags;
        let outputs = Outputs { table, neighbors, mean_color, linear_light };
        let mut engine = Engine::new(Cpu::new(1).unwrap(), plan).unwrap();
        let mut map = vec![u16::MAX; geometry.pixels()];
        for frame in 0..3 {
            let mut buffer = Buffer::new(info, PICTURES[(seed % 6) as usize], seed.wrapping_add(frame), 3);
            if params.masked {
                let shape = SHAPES[(seed / 6 % 9) as usize];
                buffer = buffer.with_mask(shape, seed, [frame as i32, 0]);
            }
            let mut labels = Labels::new(geometry, &mut map, size.0 as usize).unwrap();
            let count = engine.segment(&buffer.frame(), &mut labels, outputs).unwrap().count;
            let strides = buffer.strides.clone();
            let planes = buffer.planes.iter_mut().map(Vec::as_mut_slice);
            let mut drawn = FrameMut::new(info, planes, &strides).unwrap();
            let drawing = Drawing { fill, boundaries: boundaries.map(|(color, width)| Boundaries { color, width }) };
            let refused = engine.draw(&mut drawn, &labels, &drawing).is_err();
            prop_assert_eq!(refused, boundaries.is_some_and(|(_, width)| BOUNDARY_WIDTH.check(width).is_err()));
            let is_right = |i: usize| match buffer.is_inside(i) {
                true => u32::from(map[i]) < count,
                false => map[i] == u16::MAX,
            };
            prop_assert!((0..map.len()).all(is_right));
        }
    }

    #[test]
    fn sizes_are_refused_or_planned(size in (side(), side()), step in any::<u32>(), params in params()) {
        let Ok(geometry) = Geometry::new(size.0, size.1) else {
            prop_assert!([size.0, size.1].iter().any(|side| !(1..=MAX_SIDE).contains(side)));
            return Ok(());
        };
        for step in [step, Grid::step_for_count(geometry, step)] {
            let grid = Grid::with_step(geometry, step);
            prop_assert!((1..=65_535).contains(&grid.cells()) && grid.step() > 0);
            let last = (grid.nx() as usize - 1, grid.ny() as usize - 1);
            let (x, y) = grid.seed(last.0, last.1);
            prop_assert!(x < size.0 as usize && y < size.1 as usize);
        }
        if let Ok(plan) = Plan::new(&params, FrameInfo::new(geometry, PixelFormat::Rgb)) {
            prop_assert!(plan.min_region() > 0 && (1..=65_535).contains(&plan.max_regions()));
        }
    }
}

#[test]
fn threads_have_a_range() {
    assert!(Cpu::new(THREADS.max + 1).is_err() && Cpu::new(u32::MAX).is_err());
}
