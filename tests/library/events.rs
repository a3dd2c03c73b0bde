// SPDX-License-Identifier: MPL-2.0
//! Births, splits, deaths, merges and cuts: of maps drawn by hand, and of clips by the specification written down once more.

use std::collections::BTreeMap;

use crate::pictures::clip;
use gstsuperpixel::algo::{AlgorithmParams, quickshift, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::events::{EventKind, Events};
use gstsuperpixel::image::{Geometry, Labels, NO_LABEL, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::hierarchy;
use gstsuperpixel::regions::{Event, Motion, Region};

const TABLE: Outputs = Outputs { table: true, neighbors: false, mean_color: false, linear_light: false };

/// A frame: its map, and track id, age and velocity of each region.
struct Given {
    map: Vec<u16>,
    table: Vec<Region>,
    motion: Vec<Motion>,
}

/// Side of the square that a letter stands for.
const SIDE: usize = 4;

/// A frame from rows of letters, where `.` is outside of all regions, and from the track id, age and velocity of each letter, in letters.
fn drawn(rows: &[&str], regions: &[(char, u32, u32, [f32; 2])]) -> Given {
    let label = |c: char| regions.iter().position(|(own, ..)| *own == c).map_or(NO_LABEL, |at| at as u16);
    let map: Vec<u16> = rows
        .iter()
        .flat_map(|row| [row; SIDE])
        .flat_map(|row| row.chars().flat_map(|letter| [letter; SIDE]).map(label))
        .collect();
    let area = |label: usize| map.iter().filter(|own| usize::from(**own) == label).count() as u32;
    let region = |(label, (_, track_id, ..)): (usize, &(char, u32, u32, [f32; 2]))| Region {
        track_id: *track_id,
        area: area(label),
        ..bytemuck::Zeroable::zeroed()
    };
    let table = regions.iter().enumerate().map(region).collect();
    let motion = regions
        .iter()
        .map(|&(_, _, age, velocity)| Motion { velocity: velocity.map(|v| SIDE as f32 * v), age })
        .collect();
    Given { map, table, motion }
}

fn next(events: &mut Events, geometry: Geometry, frame: &Given) -> Vec<Event> {
    let width = geometry.width() as usize;
    events.next(geometry, |y| &frame.map[y * width..], &frame.table, &frame.motion).unwrap().to_vec()
}

fn event(kind: EventKind, track_id: u32, other: u32, area: u32) -> Event {
    Event { kind: kind as u32, track_id, other, area }
}

const STILL: [f32; 2] = [0.0; 2];

#[test]
fn regions_that_split_merge_come_and_go() {
    let g = Geometry::new(32, 16).unwrap();
    let mut events = Events::default();
    let first = drawn(
        &["aaaabbbb", "aaaabbbb", "ccccdddd", "ccccdddd"],
        &[('a', 1, 0, STILL), ('b', 2, 0, STILL), ('c', 3, 0, STILL), ('d', 4, 0, STILL)],
    );
    assert_eq!(next(&mut events, g, &first), [], "the first frame has none");
    // 5 split off from 1 and 6 from 4; 3 went into 1.
    let second = drawn(
        &["aaeebbbb", "aaeebbbb", "aaaaddff", "aaaaddff"],
        &[('a', 1, 1, STILL), ('b', 2, 1, STILL), ('e', 5, 0, STILL), ('d', 4, 1, STILL), ('f', 6, 0, STILL)],
    );
    use EventKind::{Birth, Cut, Death, Merge, Split};
    let expected = [event(Split, 5, 1, 64), event(Split, 6, 4, 64), event(Merge, 3, 1, 128)];
    assert_eq!(next(&mut events, g, &second), expected);
    // 7 has half of its pixels from 1, not more; half of 5 is in 1, the others in a new one.
    let third = drawn(
        &["aaagbbbb", "aaagbbbb", "aaagddff", "aaagddff"],
        &[('a', 1, 2, STILL), ('b', 2, 2, STILL), ('g', 7, 0, STILL), ('d', 4, 2, STILL), ('f', 6, 1, STILL)],
    );
    assert_eq!(next(&mut events, g, &third), [event(Birth, 7, 0, 64), event(Death, 5, 0, 64)]);
    assert_eq!(next(&mut events, g, &third), []);
    let other = drawn(&["hhhhhhhh"; 4], &[('h', 8, 0, STILL)]);
    let gone = [1, 2, 7, 4, 6].map(|id| {
        let region = third.table.iter().find(|region| region.track_id == id).unwrap();
        event(Death, id, 0, region.area)
    });
    let mut expected = vec![event(Cut, 0, 0, 0), event(Birth, 8, 0, 512)];
    expected.extend(gone);
    assert_eq!(next(&mut events, g, &other), expected);
    // Behind a reset and in another size nothing is compared.
    events.forget();
    assert_eq!(next(&mut events, g, &first), []);
    assert_eq!(next(&mut events, Geometry::new(16, 32).unwrap(), &first), []);
}

/// A pixel comes from where its region was; what comes from outside of the picture or of the mask has no origin.
#[test]
fn overlaps_follow_the_motion_of_regions() {
    let g = Geometry::new(32, 16).unwrap();
    let right = [2.0, 0.0];
    let before = drawn(&["aabb...."; 4], &[('a', 1, 0, STILL), ('b', 2, 0, STILL)]);
    // 3 lies where 2 was, but comes from 1.
    let after = |velocity| drawn(&["..ccbb.."; 4], &[('c', 3, 0, velocity), ('b', 2, 1, right)]);
    for (velocity, other) in [(right, 0), (STILL, 2), ([-2.1, 0.0], 0)] {
        let mut events = Events::default();
        next(&mut events, g, &before);
        let found = next(&mut events, g, &after(velocity));
        // 1 is gone: it is no region to split off from.
        assert_eq!((found[0].track_id, found[0].other, found[1].track_id), (3, other, 1), "{velocity:?}");
    }
    let mut events = Events::default();
    next(&mut events, g, &drawn(&["aabbbbbb"; 4], &[('a', 1, 0, STILL), ('b', 2, 0, STILL)]));
    let after = drawn(&["aaaabbcc"; 4], &[('a', 1, 1, STILL), ('b', 2, 1, STILL), ('c', 3, 0, [-4.0, 0.0])]);
    assert_eq!(next(&mut events, g, &after)[0], event(EventKind::Birth, 3, 0, 128), "from outside");
}

/// The specification, as loops over pixels and maps of track ids.
fn specified(g: Geometry, before: &Given, now: &Given) -> Vec<Event> {
    let ids = |given: &Given| given.table.iter().map(|region| region.track_id).collect::<Vec<_>>();
    let (old, new) = (ids(before), ids(now));
    let is_new = |label: usize| !old.contains(&new[label]);
    let is_cut = !old.is_empty() && (0..new.len()).all(is_new);
    let (w, h) = (g.width() as usize, g.height() as usize);
    // From the id of what is new or gone: pixels by the id of the other.
    let mut split: BTreeMap<u32, BTreeMap<usize, u64>> = BTreeMap::new();
    let mut merged: BTreeMap<u32, BTreeMap<usize, u64>> = BTreeMap::new();
    for (y, x) in (0..h).step_by(2).flat_map(|y| (0..w).step_by(2).map(move |x| (y, x))) {
        let label = now.map[y * w + x];
        if is_cut || label == NO_LABEL {
            continue;
        }
        let label = usize::from(label);
        let [from_x, from_y] = [(x, 0), (y, 1)]
            .map(|(at, i)| at as i64 - (f64::from(now.motion[label].velocity[i]) + 0.5).floor() as i64);
        if from_x < 0 || from_y < 0 || from_x >= w as i64 || from_y >= h as i64 {
            continue;
        }
        let earlier = before.map[from_y as usize * w + from_x as usize];
        if earlier == NO_LABEL {
            continue;
        }
        let earlier = usize::from(earlier);
        match (is_new(label), new.contains(&old[earlier])) {
            (true, true) => *split.entry(new[label]).or_default().entry(earlier).or_default() += 1,
            (false, false) => *merged.entry(old[earlier]).or_default().entry(label).or_default() += 1,
            _ => {}
        }
    }
    let other = |of: Option<&BTreeMap<usize, u64>>, area: u32, names: &[u32]| {
        let best = of.and_then(|of| of.iter().max_by_key(|&(label, n)| (*n, usize::MAX - label)));
        best.filter(|&(_, n)| 4 * n * 2 > u64::from(area)).map_or(0, |(&label, _)| names[label])
    };
    let mut all = Vec::new();
    all.extend((is_cut && !new.is_empty()).then_some(event(EventKind::Cut, 0, 0, 0)));
    for label in (0..new.len()).filter(|&label| is_new(label)) {
        let area = now.table[label].area;
        let other = other(split.get(&new[label]), area, &old);
        let kind = if other == 0 { EventKind::Birth } else { EventKind::Split };
        all.push(event(kind, new[label], other, area));
    }
    for label in (0..old.len()).filter(|&label| !new.contains(&old[label])) {
        let area = before.table[label].area;
        let other = other(merged.get(&old[label]), area, &new);
        let kind = if other == 0 { EventKind::Death } else { EventKind::Merge };
        all.push(event(kind, old[label], other, area));
    }
    all
}

#[test]
fn events_of_clips_equal_the_specification() {
    let g = Geometry::new(160, 112).unwrap();
    let base = Params { superpixel_size: 10, temporal: true, ..Params::default() };
    let own = |hierarchy| Params { hierarchy, ..base.clone() };
    let all = [
        base.clone(),
        own(hierarchy::Params { regions: 40, ..hierarchy::Params::default() }),
        Params { algorithm: AlgorithmParams::QuickShift(quickshift::Params::default()), ..base.clone() },
        Params {
            algorithm: AlgorithmParams::Slic(slic::Params {
                adaptive_compactness: true,
                ..Default::default()
            }),
            ..base.clone()
        },
    ];
    for params in &all {
        let mut seen = [0_usize; 5];
        for (motion, cut) in [([0, 0], None), ([3, -2], Some(6)), ([9, 4], None)] {
            let clip = clip(g, PixelFormat::Rgb, 5, 12, motion, cut);
            let plan = Plan::new(params, clip[0].info).unwrap();
            let mut engine = Engine::new(Cpu::new(1).unwrap(), plan).unwrap();
            let (mut events, mut last) = (Events::default(), None::<Given>);
            for (number, buffer) in clip.iter().enumerate() {
                let mut map = vec![0; g.pixels()];
                let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
                let regions = engine.segment(&buffer.frame(), &mut labels, TABLE).unwrap();
                let (table, motion) = (regions.table.clone(), regions.motion.clone());
                let now = Given { map, table, motion };
                let found = next(&mut events, g, &now);
                let expected = last.map_or(Vec::new(), |last| specified(g, &last, &now));
                assert_eq!(found, expected, "{motion:?}, frame {number}", motion = params.algorithm.nick());
                for event in &found {
                    seen[event.kind as usize - 1] += 1;
                    assert!(EventKind::of(event).is_some());
                }
                last = Some(now);
            }
        }
        assert!(seen.iter().all(|&n| n > 0), "{}: {seen:?} of the kinds", params.algorithm.nick());
    }
}
