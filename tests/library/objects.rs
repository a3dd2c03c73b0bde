// SPDX-License-Identifier: MPL-2.0
//! Objects from the tables of a frame: of drawn worlds whose regions are squares, and whatever is given in their place.

use gstsuperpixel::error::Error;
use gstsuperpixel::image::Geometry;
use gstsuperpixel::objects::{Detection, Evidence, Object, Objects, Tables};
use gstsuperpixel::regions::{Motion, Neighbor, Region};
use proptest::prelude::*;

const COLUMNS: usize = 16;
const ROWS: usize = 10;
/// Side of a region.
const SIDE: usize = 20;

/// A frame of square regions.
#[derive(Debug, Clone)]
struct World {
    regions: Vec<Region>,
    motion: Vec<Motion>,
    neighbors: Vec<Neighbor>,
}

impl World {
    /// `kind` says for each column and row the color and the first of a hundred track ids, as something that moves has its own.
    fn new(kind: impl Fn(usize, usize) -> ([f32; 3], u32)) -> Self {
        let cell = |label: usize| {
            let (x, y) = (label % COLUMNS, label / COLUMNS);
            let (mean_lab, track_id) = kind(x, y);
            let bounds = [x * SIDE, y * SIDE, (x + 1) * SIDE, (y + 1) * SIDE].map(|v| v as u16);
            let centroid = [x, y].map(|v| (v * SIDE) as f32 + 9.5);
            Region { track_id, area: (SIDE * SIDE) as u32, centroid, mean_rgb: [0; 4], mean_lab, bounds }
        };
        let regions: Vec<Region> = (0..COLUMNS * ROWS).map(cell).collect();
        let pair = |a: usize, b: usize| Neighbor { a: a as u32, b: b as u32, length: SIDE as u32 };
        let mut neighbors = Vec::new();
        for label in 0..regions.len() {
            if label % COLUMNS + 1 < COLUMNS {
                neighbors.push(pair(label, label + 1));
            }
            if label / COLUMNS + 1 < ROWS {
                neighbors.push(pair(label, label + COLUMNS));
            }
        }
        let motion = vec![Motion::default(); regions.len()];
        Self { regions, motion, neighbors }
    }

    /// A red block of 4x3 regions from column `at` on, before grass that varies a little; it carries its track ids along.
    fn block(at: isize) -> Self {
        let own =
            move |x: usize, y: usize| x as isize - at >= 0 && x as isize - at < 4 && (3..6).contains(&y);
        let mut world = Self::new(|x, y| {
            let grass = [50.0 + ((3 * x + 5 * y) % 7) as f32, -30.0, 30.0];
            let block = [45.0 + ((x as isize - at) % 3) as f32, 60.0, 40.0];
            match own(x, y) {
                true => (block, 1000 + (10 * (x as isize - at) + y as isize) as u32),
                false => (grass, 1 + (COLUMNS * y + x) as u32),
            }
        });
        for label in 0..world.regions.len() {
            if own(label % COLUMNS, label / COLUMNS) {
                world.motion[label].velocity = [SIDE as f32, 0.0];
            }
        }
        world
    }

    fn tables(&self) -> Tables<'_> {
        let geometry = Geometry::new((COLUMNS * SIDE) as u32, (ROWS * SIDE) as u32).unwrap();
        Tables { geometry, regions: &self.regions, motion: &self.motion, neighbors: &self.neighbors }
    }

    fn labels(&self, from: u32) -> Vec<u32> {
        (0..self.regions.len() as u32)
            .filter(|&label| self.regions[label as usize].track_id >= from)
            .collect()
    }
}

fn new(evidence: Evidence) -> Detection {
    Detection { object: None, evidence }
}

/// A box around the block, with half a region to spare.
fn around(at: isize) -> [i32; 4] {
    let left = (at * SIDE as isize) as i32;
    [left - 10, 50, left + 90, 130]
}

fn labels(objects: &[Object]) -> Vec<Vec<u32>> {
    objects.iter().map(|object| object.labels.clone()).collect()
}

#[test]
fn boxes_masks_and_seeds_give_the_block() {
    let world = World::block(5);
    let block = world.labels(1000);
    let counts: Vec<u32> =
        world.regions.iter().map(|region| if region.track_id >= 1000 { 250 } else { 200 }).collect();
    let all = [
        Evidence::Box(around(5)),
        Evidence::Mask(&counts),
        Evidence::Seeds { inside: &block[..1], outside: &[] },
        Evidence::Seeds { inside: &block[5..6], outside: &[0] },
    ];
    for evidence in all {
        let mut objects = Objects::default();
        let found = objects.update(&world.tables(), &[new(evidence)]).unwrap();
        assert_eq!(labels(found), std::slice::from_ref(&block), "{evidence:?}");
        assert_eq!((found[0].id, found[0].area, found[0].bounds), (1, 12 * 400, [100, 60, 180, 120]));
    }
}

#[test]
fn a_block_is_followed_until_it_has_left() {
    let mut objects = Objects::default();
    objects.update(&World::block(5).tables(), &[new(Evidence::Box(around(5)))]).unwrap();
    for at in 6..16 {
        let world = World::block(at);
        let found = objects.update(&world.tables(), &[]).unwrap();
        assert_eq!((found[0].id, &found[0].labels), (1, &world.labels(1000)), "column {at}");
    }
    let gone = World::block(16);
    let frames = (0..20).take_while(|_| !objects.update(&gone.tables(), &[]).unwrap().is_empty()).count();
    assert!(frames < 10, "{frames}");
    let again = objects.update(&World::block(5).tables(), &[new(Evidence::Box(around(5)))]).unwrap();
    assert_eq!(again[0].id, 2, "ids are not given again");
}

#[test]
fn reserved_ids_begin_objects_and_detections_are_assigned() {
    let mut objects = Objects::default();
    let (early, late) = (objects.reserve(), objects.reserve());
    let named = |id| Detection { object: Some(id), evidence: Evidence::Box(around(5)) };
    let world = World::block(5);
    objects.update(&world.tables(), &[named(late)]).unwrap();
    assert_eq!((objects.current()[0].id, objects.assigned()), (late, &[late][..]));
    // By a name that waits, whatever it overlaps with; and by where it is.
    objects.update(&World::block(6).tables(), &[new(Evidence::Box(around(6))), named(early)]).unwrap();
    assert_eq!(objects.assigned(), [late, early]);
    let followed = objects.current().iter().find(|object| object.id == late).unwrap();
    assert_eq!(followed.velocity, [SIDE as i32, 0]);
    // Each begins one object.
    objects.end(early);
    let refused = objects.update(&World::block(7).tables(), &[named(early)]);
    assert!(matches!(refused, Err(Error::Value { name: "object", .. })), "{refused:?}");
}

#[test]
fn a_block_behind_a_post_is_found_again() {
    let mut objects = Objects::default();
    objects.update(&World::block(2).tables(), &[new(Evidence::Box(around(2)))]).unwrap();
    for at in 3..8 {
        let mut world = World::block(at);
        // What comes out from behind the post has other track ids than what went in.
        for (label, region) in world.regions.iter_mut().enumerate() {
            match label % COLUMNS {
                8 => (region.mean_lab, region.track_id) = ([90.0, 0.0, 0.0], 500 + label as u32),
                9.. if region.track_id >= 1000 => region.track_id += 100,
                _ => {}
            }
        }
        let found = objects.update(&world.tables(), &[]).unwrap();
        assert_eq!(found[0].labels, world.labels(1000), "column {at}");
    }
}

#[test]
fn a_later_box_corrects_its_object_or_begins_another() {
    let world = World::block(5);
    let block = world.labels(1000);
    let mut objects = Objects::default();
    let wrong: Vec<u32> = (0..world.regions.len())
        .map(|label| if block[..6].contains(&(label as u32)) { 400 } else { 0 })
        .collect();
    assert_eq!(
        objects.update(&world.tables(), &[new(Evidence::Mask(&wrong))]).unwrap()[0].labels,
        block[..6]
    );
    let found = objects.update(&world.tables(), &[new(Evidence::Box(around(5)))]).unwrap();
    assert_eq!((found.len(), found[0].id), (1, 1));
    assert_eq!(found[0].labels, block);
    let found =
        objects.update(&world.tables(), &[new(Evidence::Seeds { inside: &[0], outside: &block })]).unwrap();
    assert_eq!(found.iter().map(|object| object.id).collect::<Vec<_>>(), [1, 2]);
    assert!(found[0].labels.iter().all(|label| !found[1].labels.contains(label)), "no region is in two");
    assert!(objects.end(2) && !objects.end(2));
    assert_eq!(objects.update(&world.tables(), &[]).unwrap().len(), 1);
}

#[test]
fn cuts_other_sizes_and_empty_frames() {
    let world = World::block(5);
    let begin = || {
        let mut objects = Objects::default();
        objects.update(&world.tables(), &[new(Evidence::Box(around(5)))]).unwrap();
        objects
    };
    let mut cut = World::block(5);
    cut.regions.iter_mut().for_each(|region| region.track_id += 5000);
    assert!(begin().update(&cut.tables(), &[]).unwrap().is_empty());
    let larger = Tables { geometry: Geometry::new(330, 210).unwrap(), ..world.tables() };
    assert!(begin().update(&larger, &[]).unwrap().is_empty());
    let empty = Tables { regions: &[], motion: &[], neighbors: &[], ..world.tables() };
    let mut objects = begin();
    let found = objects.update(&empty, &[]).unwrap();
    assert_eq!((found[0].id, found[0].area, found[0].bounds), (1, 0, [0; 4]), "hidden");
    let mut objects = Objects::default();
    assert!(objects.update(&empty, &[]).unwrap().is_empty());
    assert!(objects.update(&empty, &[new(Evidence::Box([0, 0, 9, 9]))]).unwrap().is_empty());
}

#[test]
fn wrong_evidence_is_refused_and_changes_nothing() {
    let world = World::block(5);
    let tables = world.tables();
    let mut objects = Objects::default();
    objects.update(&tables, &[new(Evidence::Box(around(5)))]).unwrap();
    let refused = [
        new(Evidence::Box([320, 0, 400, 20])),
        new(Evidence::Box([0, -9, 20, 0])),
        new(Evidence::Box([20, 20, 20, 40])),
        new(Evidence::Mask(&[1])),
        new(Evidence::Seeds { inside: &[], outside: &[] }),
        new(Evidence::Seeds { inside: &[160], outside: &[] }),
        new(Evidence::Seeds { inside: &[3], outside: &[2, 3] }),
        Detection { object: Some(2), evidence: Evidence::Box(around(5)) },
    ];
    for detection in refused {
        let error = objects.update(&tables, &[detection]).unwrap_err();
        assert!(matches!(error, Error::Value { .. }), "{error}");
    }
    let other = Tables { motion: &world.motion[1..], ..tables };
    objects.update(&other, &[]).unwrap_err();
    let pair = [Neighbor { a: 0, b: 160, length: 1 }];
    objects.update(&Tables { neighbors: &pair, ..tables }, &[]).unwrap_err();
    let mut large = world.clone();
    large.regions[0].area = 401;
    objects.update(&large.tables(), &[]).unwrap_err();
    assert_eq!(objects.update(&tables, &[]).unwrap()[0].labels, world.labels(1000));
}

/// Any values in tables are taken, and give the same once more and in another order of the labels.
fn hostile() -> impl Strategy<Value = World> {
    let value = prop_oneof![
        3 => -200.0_f32..200.0,
        1 => prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::MIN, f32::MAX])
    ];
    let region =
        (any::<u32>(), 0_u32..3200, prop::array::uniform8(value), prop::array::uniform4(any::<u16>()));
    let made = |(track_id, area, values, bounds): (u32, u32, [f32; 8], [u16; 4])| {
        let [x, y, l, a, b, vx, vy, _] = values;
        let region = Region {
            track_id: track_id % 50,
            area,
            centroid: [x, y],
            mean_rgb: [0; 4],
            mean_lab: [l, a, b],
            bounds,
        };
        (region, Motion { velocity: [vx, vy], age: 0 })
    };
    (
        prop::collection::vec(region.prop_map(made), 1..20),
        prop::collection::vec((0_u32..20, 0_u32..20, 0_u32..3200), 0..40),
    )
        .prop_map(|(regions, pairs)| {
            let n = regions.len() as u32;
            let (regions, motion) = regions.into_iter().unzip();
            let neighbors = pairs.iter().map(|&(a, b, length)| Neighbor { a: a % n, b: b % n, length });
            World { regions, motion, neighbors: neighbors.filter(|pair| pair.a != pair.b).collect() }
        })
}

proptest! {
    #[test]
    fn any_tables_are_taken(
        worlds in prop::collection::vec(hostile(), 1..4),
        bounds in prop::array::uniform4(any::<i32>()),
    ) {
        let mut objects = Objects::default();
        for world in &worlds {
            let _ = objects.update(&world.tables(), &[new(Evidence::Seeds { inside: &[0], outside: &[] })]);
            let _ = objects.update(&world.tables(), &[new(Evidence::Box(bounds))]);
            objects.update(&world.tables(), &[]).unwrap();
        }
    }

    /// What is found depends neither on the order of labels nor on that of the pairs.
    #[test]
    fn labels_may_be_in_any_order(order in Just((0..COLUMNS * ROWS).collect::<Vec<_>>()).prop_shuffle()) {
        let shuffled = |world: &World| {
            let mut place = vec![0; order.len()];
            order.iter().enumerate().for_each(|(new, &old)| place[old] = new as u32);
            let pair = |pair: &Neighbor| {
                let [a, b] = [pair.a, pair.b].map(|label| place[label as usize]);
                Neighbor { a: a.min(b), b: a.max(b), length: pair.length }
            };
            let mut neighbors: Vec<Neighbor> = world.neighbors.iter().map(pair).collect();
            neighbors.sort_unstable();
            World {
                regions: order.iter().map(|&old| world.regions[old]).collect(),
                motion: order.iter().map(|&old| world.motion[old]).collect(),
                neighbors,
            }
        };
        let mut both = [Objects::default(), Objects::default()];
        for at in 5..9 {
            let world = World::block(at);
            let detections = [new(Evidence::Box(around(at)))];
            let detections = if at == 5 { &detections[..] } else { &[] };
            let tracks = |objects: &mut Objects, world: &World| {
                let found = objects.update(&world.tables(), detections).unwrap();
                let mut ids: Vec<u32> =
                    found[0].labels.iter().map(|&label| world.regions[label as usize].track_id).collect();
                ids.sort_unstable();
                ids
            };
            let [plain, other] = &mut both;
            prop_assert_eq!(tracks(plain, &world), tracks(other, &shuffled(&world)));
        }
    }
}
