// SPDX-License-Identifier: MPL-2.0
//! Exactly as many regions as asked for: equality with the specification, counts, levels, ties, hard graphs, identities over time.

use crate::changes;
use crate::oracle;
use crate::pictures;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::oracle::temporal::Stream;
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, clip};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, NO_LABEL, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge};
use gstsuperpixel::regions::{MergeStep, Regions, cut};
use proptest::prelude::*;

static CPU: LazyLock<[Cpu; 3]> = LazyLock::new(|| [1, 2, 8].map(|n| Cpu::new(n).unwrap()));

/// No superpixel has a predecessor.
static FIRST: BTreeMap<u16, u16> = BTreeMap::new();

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

fn segment_with(engine: &mut Engine<Cpu>, buffer: &Buffer) -> (Vec<u16>, Regions) {
    segment_for(engine, buffer, EVERYTHING)
}

fn segment_for(engine: &mut Engine<Cpu>, buffer: &Buffer, outputs: Outputs) -> (Vec<u16>, Regions) {
    let g = buffer.info.geometry;
    let mut map = vec![0xfffe; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let regions = engine.segment(&buffer.frame(), &mut labels, outputs).unwrap().clone();
    (map, regions)
}

fn segment(cpu: &Cpu, params: &Params, buffer: &Buffer) -> (Vec<u16>, Regions) {
    let mut engine = Engine::new(cpu.clone(), Plan::new(params, buffer.info).unwrap()).unwrap();
    let first = segment_with(&mut engine, buffer);
    let again = segment_with(&mut engine, buffer);
    assert!(first.0 == again.0, "two runs differ");
    let labels_alone = segment_for(&mut engine, buffer, Outputs::default());
    assert!(first.0 == labels_alone.0, "labels alone differ");
    first
}

/// Changes the number of regions; the superpixels stay.
fn with_regions(params: &Params, regions: u32) -> Params {
    Params { hierarchy: hierarchy::Params { regions, ..params.hierarchy.clone() }, ..params.clone() }
}

/// Returns true if every region of `fine` lies in one of `coarse`.
fn refines(fine: &[u16], coarse: &[u16]) -> bool {
    let mut of: BTreeMap<u16, u16> = BTreeMap::new();
    fine.iter().zip(coarse).all(|(f, c)| of.entry(*f).or_insert(*c) == c)
}

fn quanta(params: &Params) -> f64 {
    if params.algorithm.color_space() == ColorSpace::Rgb { 4.0 } else { 8.0 }
}

/// Number of regions left when all that touch are merged: one for each piece of the picture.
fn pieces(map: &[u16], regions: &Regions) -> usize {
    let mut of: Vec<usize> = (0..regions.count as usize).collect();
    for pair in &regions.neighbors {
        let (a, b) = (of[pair.a as usize], of[pair.b as usize]);
        of.iter_mut().filter(|piece| **piece == b).for_each(|piece| *piece = a);
    }
    assert!(map.iter().all(|&label| label == NO_LABEL || usize::from(label) < of.len()));
    of.into_iter().collect::<BTreeSet<_>>().len()
}

/// Superpixels whose number is asked for, so that any number of regions has the same ones before.
fn any_params() -> impl Strategy<Value = Params> {
    let slic = (1.0f32..40.0, 0usize..4).prop_map(|(compactness, space)| {
        let color_space = ColorSpace::ALL[space];
        AlgorithmParams::Slic(slic::Params { compactness, color_space, ..Default::default() })
    });
    let lsc =
        (0.02f32..0.3).prop_map(|ratio| AlgorithmParams::Lsc(lsc::Params { ratio, ..Default::default() }));
    let quickshift = (0.5f32..2.0, 1.0f32..10.0).prop_map(|(sigma, tau)| {
        AlgorithmParams::QuickShift(quickshift::Params { sigma, tau, ..Default::default() })
    });
    let algorithm = prop_oneof![3 => slic, 2 => lsc, 1 => quickshift];
    let min_region = prop_oneof![Just(0.25f32), 0.0f32..1.0];
    let compactness = prop_oneof![Just(hierarchy::COMPACTNESS.default), Just(0.0f32), 0.0f32..100.0];
    (1u32..900, algorithm, prop::bool::weighted(0.8), min_region, compactness).prop_map(
        |(superpixels, algorithm, connectivity, min_region, compactness)| Params {
            superpixels,
            connectivity,
            min_region,
            hierarchy: hierarchy::Params { regions: 0, compactness, ..Default::default() },
            algorithm,
            ..Params::default()
        },
    )
}

/// Size, format, seed, and which picture.
fn any_frame() -> impl Strategy<Value = (FrameInfo, u32, Picture)> {
    let side = || prop_oneof![12 => 1u32..120, 1 => Just(1u32)];
    (side(), side(), 0usize..14, any::<u32>(), 0usize..6).prop_map(|(w, h, format, seed, picture)| {
        (FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::ALL[format]), seed, PICTURES[picture])
    })
}

/// From one region to more than there can be, few of them more often.
fn any_count() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(1u32), 4 => 1u32..40, 4 => 1u32..400, 1 => 1u32..65_536]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_number_of_regions_equals_the_specification(
        (info, seed, picture) in any_frame(), params in any_params(), count in any_count(),
        shape in prop::option::weighted(0.3, 0..SHAPES.len())
    ) {
        let geometry = info.geometry;
        let mut buffer = Buffer::new(info, picture, seed.into(), 3);
        let mut params = params;
        if let Some(shape) = shape {
            buffer = buffer.with_mask(SHAPES[shape], seed.into(), [0; 2]);
            params.masked = true;
        }
        let (before, fine) = segment(&CPU[1], &params, &buffer);
        let wanted = with_regions(&params, count);
        let (map, regions) = segment(&CPU[1], &wanted, &buffer);
        let mut features = buffer.features(params.algorithm.color_space());
        for (i, feature) in features.iter_mut().enumerate().filter(|(i, _)| !buffer.is_inside(*i)) {
            *feature = oracle::OUTSIDE;
            prop_assert_eq!(before[i], NO_LABEL);
        }
        let (want, _) = oracle::hierarchy(geometry, &before, &features, &wanted.hierarchy, quanta(&params), &FIRST);
        prop_assert!(map == want, "the hierarchy differs from the specification");

        // As many as were asked for, or as there are.
        let possible = (count as usize).max(pieces(&before, &fine)).min(fine.count as usize);
        prop_assert_eq!(regions.count as usize, possible);
        prop_assert!(refines(&before, &map), "a superpixel was cut");
        let mut area = vec![0u32; regions.count as usize];
        map.iter().filter(|label| **label != NO_LABEL).for_each(|&label| area[usize::from(label)] += 1);
        prop_assert!(area.iter().all(|&a| a > 0));
        prop_assert_eq!(regions.table.iter().map(|region| region.area).collect::<Vec<_>>(), area);
        if params.connectivity {
            let roots = oracle::components(geometry, &map);
            let first: Vec<usize> = (0..map.len()).filter(|&i| roots[i] == i && map[i] != NO_LABEL).collect();
            prop_assert_eq!(first.len(), regions.count as usize, "labels are not one region each");
            prop_assert!(first.windows(2).all(|p| map[p[0]] < map[p[1]]), "labels do not follow raster order");
        }
        for cpu in [&CPU[0], &CPU[2]] {
            let (other, other_regions) = segment(cpu, &wanted, &buffer);
            prop_assert!(map == other, "threads change the map");
            prop_assert_eq!(&regions.table, &other_regions.table);
        }
        // More than there are change nothing.
        prop_assert!(segment(&CPU[1], &with_regions(&params, 65_535), &buffer).0 == before);
    }

    #[test]
    fn a_cut_of_the_list_is_what_as_many_regions_give(
        (info, seed, picture) in any_frame(), params in any_params(),
        first in prop_oneof![Just(0), any_count()], counts in prop::collection::vec(any_count(), 1..4),
        shape in prop::option::weighted(0.3, 0..SHAPES.len())
    ) {
        let mut buffer = Buffer::new(info, picture, seed.into(), 0);
        let mut params = params;
        if let Some(shape) = shape {
            buffer = buffer.with_mask(SHAPES[shape], seed.into(), [0; 2]);
            params.masked = true;
        }
        let mut listed = with_regions(&params, first);
        listed.hierarchy.levels = true;
        let (map, regions) = segment(&CPU[1], &listed, &buffer);
        prop_assert!(map == segment(&CPU[1], &with_regions(&params, first), &buffer).0, "the list changes the map");
        prop_assert_eq!(regions.merges.len(), regions.count as usize - pieces(&map, &regions));
        prop_assert!(regions.merges.windows(2).all(|p| p[0].height <= p[1].height), "heights fall");
        prop_assert!(regions.merges.iter().all(|step| step.a != step.b && step.a.max(step.b) < regions.count));
        for count in counts.into_iter().filter(|count| first == 0 || *count <= first) {
            let mut level = map.clone();
            let left = cut(&mut level, &regions.merges, count);
            let (want, wanted) = segment(&CPU[1], &with_regions(&params, count), &buffer);
            prop_assert!(level == want, "{} of {} regions", count, regions.count);
            prop_assert_eq!(left, Some(wanted.count));
        }
        if first == 0 {
            let mut features = buffer.features(params.algorithm.color_space());
            (0..features.len()).filter(|&i| !buffer.is_inside(i)).for_each(|i| features[i] = oracle::OUTSIDE);
            let want = oracle::hierarchy(info.geometry, &map, &features, &listed.hierarchy, quanta(&params), &FIRST).1;
            prop_assert_eq!(regions.merges, want);
        }
    }

    #[test]
    fn levels_are_nested(
        (info, seed, picture) in any_frame(), params in any_params(),
        counts in prop::collection::btree_set(any_count(), 2..6)
    ) {
        let buffer = Buffer::new(info, picture, seed.into(), 0);
        let levels: Vec<_> =
            counts.iter().map(|&count| segment(&CPU[1], &with_regions(&params, count), &buffer).0).collect();
        for pair in levels.windows(2) {
            prop_assert!(refines(&pair[1], &pair[0]), "a region lies in two of a coarser level");
        }
    }
}

fn info(w: u32, h: u32) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgb)
}

/// Exactly so many of each, and as the specification has it; returns the last map.
fn check_counts(params: &Params, buffer: &Buffer, counts: &[u32]) -> Vec<u16> {
    let (before, fine) = segment(&CPU[1], params, buffer);
    let features = buffer.features(params.algorithm.color_space());
    let mut last = before.clone();
    for &count in counts {
        let wanted = with_regions(params, count);
        let (map, regions) = segment(&CPU[1], &wanted, buffer);
        assert_eq!(regions.count, count.min(fine.count), "{count} of {}", fine.count);
        let want = oracle::hierarchy(
            buffer.info.geometry,
            &before,
            &features,
            &wanted.hierarchy,
            quanta(params),
            &FIRST,
        );
        assert!(map == want.0, "{count} regions differ from the specification");
        last = map;
    }
    last
}

#[test]
fn hard_pictures_have_exact_counts() {
    let fine = Params { superpixels: 1500, ..Params::default() };
    for (w, h) in [(160, 120), (1, 500), (500, 1), (13, 7)] {
        for picture in PICTURES {
            let buffer = Buffer::new(info(w, h), picture, 7, 0);
            check_counts(&fine, &buffer, &[60_000, 700, 200, 60, 10, 2, 1]);
        }
    }
}

#[test]
fn equal_regions_join_the_lower_name_first() {
    // Four equal stripes: all costs between neighbors are the same, so the first two join, and then the last two.
    let params = |regions| Params {
        superpixel_size: 16,
        superpixels: 4,
        connectivity: true,
        hierarchy: hierarchy::Params { regions, ..Default::default() },
        algorithm: AlgorithmParams::Slic(slic::Params { compactness: 40.0, ..Default::default() }),
        ..Params::default()
    };
    let mut buffer = Buffer::new(info(64, 16), Picture::Flat, 0, 0);
    let gray = [60, 100, 60, 100];
    for row in buffer.planes[0].chunks_exact_mut(buffer.strides[0]).take(16) {
        for (x, pixel) in row.chunks_exact_mut(3).enumerate().take(64) {
            pixel.fill(gray[x / 16]);
        }
    }
    let stripes = |regions| {
        let (map, _) = segment(&CPU[1], &params(regions), &buffer);
        [0, 16, 32, 48].map(|x| map[x])
    };
    assert_eq!([4, 3, 2, 1].map(stripes), [[0, 1, 2, 3], [0, 0, 1, 2], [0, 0, 1, 1], [0; 4]]);
}

/// Single dots of many colors, far apart in a flat picture.
fn dots(w: u32, h: u32) -> Buffer {
    let mut buffer = Buffer::new(info(w, h), Picture::Flat, 0, 0);
    let stride = buffer.strides[0];
    for (i, y) in (6..h as usize - 6).step_by(12).enumerate() {
        for (j, x) in (6..w as usize - 6).step_by(12).enumerate() {
            for (dx, dy) in [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (0, 2), (1, 2), (2, 2)] {
                let code = pictures::hash((i * 1000 + j) as u64).to_le_bytes();
                buffer.planes[0][(y + dy) * stride + 3 * (x + dx)..][..3].copy_from_slice(&code[..3]);
            }
        }
    }
    buffer
}

#[test]
fn a_region_that_touches_hundreds_takes_few_rounds() {
    // All but one are dots on one background: a round of mutual choices joins a single dot.
    let buffer = dots(240, 180);
    let fine = Params { superpixels: 675, min_region: 0.1, ..Params::default() };
    let (_, regions) = segment(&CPU[1], &fine, &buffer);
    assert!(regions.count > 400, "{} superpixels", regions.count);
    check_counts(&fine, &buffer, &[250, 100, 30, 7, 2, 1]);
    let (_, merges) = {
        let (before, _) = segment(&CPU[1], &fine, &buffer);
        let features = buffer.features(ColorSpace::Lab);
        oracle::hierarchy(
            buffer.info.geometry,
            &before,
            &features,
            &hierarchy::Params::default(),
            8.0,
            &FIRST,
        )
    };
    assert_eq!(merges.len(), regions.count as usize - 1);
}

#[test]
fn the_grid_is_as_fine_as_the_regions_need_and_no_coarser_than_asked_for() {
    let g = info(1920, 1080);
    let step = |params: &Params| Plan::new(params, g).unwrap().grid().step();
    let with = |regions, superpixel_size, superpixels| {
        let hierarchy = hierarchy::Params { regions, ..Default::default() };
        Params { superpixel_size, superpixels, hierarchy, ..Params::default() }
    };
    assert_eq!(step(&with(0, 16, 0)), 16);
    assert_eq!(step(&with(100, 16, 0)), 16, "the step that is set suffices");
    assert_eq!(step(&with(100, 64, 0)), 34, "few superpixels give coarse regions");
    let small =
        Params { hierarchy: hierarchy::Params { regions: 10, ..Default::default() }, ..Params::default() };
    assert_eq!(Plan::new(&small, info(64, 48)).unwrap().grid().step(), 4);
    assert!(step(&with(5000, 16, 0)) < 16, "a finer one is needed");
    assert_eq!(step(&with(5000, 16, 500)), step(&with(0, 16, 500)), "superpixels decides where it is set");
    let (fine, same) = (Plan::new(&with(100, 16, 0), g).unwrap(), Plan::new(&with(900, 16, 0), g).unwrap());
    assert!(same.follows(&fine), "another count of the same superpixels needs another engine");
    assert!(!Plan::new(&with(0, 16, 0), g).unwrap().follows(&fine));
}

#[test]
fn parameters_out_of_range_are_errors() {
    let with = |regions, compactness| Params {
        hierarchy: hierarchy::Params { regions, compactness, ..Default::default() },
        ..Params::default()
    };
    for (bad, message) in [
        (with(65_536, 8.0), "regions must be 0 to 65535"),
        (with(10, -1.0), "regions-compactness must be 0 to 100"),
        (with(10, f32::NAN), "regions-compactness must be 0 to 100"),
        (
            Params { merge: merge::Params { ratio: 2.0, ..Default::default() }, ..with(10, 8.0) },
            "regions must be 0 while merge is above 0",
        ),
    ] {
        let error = Plan::new(&bad, info(20, 10)).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert_eq!(Plan::new(&Params::default(), info(20, 10)).unwrap().hierarchy(), None);
}

#[test]
fn a_list_of_another_map_changes_nothing() {
    let step = |a, b| MergeStep { a, b, height: 1.0, area: 2 };
    for bad in [step(0, 3), step(u32::MAX, 1)] {
        let mut labels = [0, 1, 2, NO_LABEL];
        assert_eq!(cut(&mut labels, &[step(0, 1), bad], 1), None);
        assert_eq!(labels, [0, 1, 2, NO_LABEL]);
    }
    // Two that are one already, and a map without any label.
    let mut labels = [2, 1, 0, NO_LABEL];
    assert_eq!(cut(&mut labels, &[step(2, 1), step(1, 2)], 1), Some(2));
    assert_eq!(labels, [1, 1, 0, NO_LABEL]);
    assert_eq!(cut(&mut [NO_LABEL; 2], &[step(0, 1)], 0), Some(0));
}

/// A map with its list, and levels of it.
fn levels_of_a_picture(counts: [u32; 3]) -> (Vec<u16>, Vec<MergeStep>, [Vec<u16>; 3]) {
    let mut params = Params { superpixels: 400, ..Params::default() };
    params.hierarchy.levels = true;
    let buffer = Buffer::new(info(120, 90), Picture::Natural, 4, 0);
    let (map, regions) = segment(&CPU[1], &params, &buffer);
    let levels = counts.map(|count| segment(&CPU[1], &with_regions(&params, count), &buffer).0);
    (map, regions.merges, levels)
}

fn bytes(labels: &[u16]) -> Vec<u8> {
    labels.iter().flat_map(|label| label.to_le_bytes()).collect()
}

/// Output of a program for an input.
fn output_of(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}");
    output.stdout
}

#[test]
fn c_and_python_cut_as_we_do() {
    let counts = [150, 20, 1];
    let (map, merges, levels) = levels_of_a_picture(counts);
    let input =
        [bytes(&map), merges.iter().flat_map(|step| bytemuck::bytes_of(step).to_vec()).collect()].concat();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut_labels");
    let source = format!(
        r#"#include "{}"
        #include <stdio.h>
        int main(int argc, char **argv) {{
          static uint16_t labels[{pixels}];
          static unsigned char merges[16 * {steps}];
          if (argc != 2 || fread(labels, 2, {pixels}, stdin) != {pixels} || fread(merges, 16, {steps}, stdin) != {steps}) return 1;
          if (cut_labels(labels, {pixels}, merges, sizeof merges, (uint32_t)atoi(argv[1])) != atoi(argv[1])) return 2;
          return fwrite(labels, 2, {pixels}, stdout) != {pixels};
        }}"#,
        root.join("examples/cut_labels.h").display(),
        pixels = map.len(),
        steps = merges.len(),
    );
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-x", "c", "-", "-o"];
    output_of(Command::new("cc").args(flags).arg(&program), source.as_bytes());
    let script = format!(
        r"
import sys, numpy as np
from cut_labels import MERGE, cut
data = sys.stdin.buffer.read()
labels, merges = np.frombuffer(data, '<u2', {0}), np.frombuffer(data, MERGE, offset=2 * {0})
sys.stdout.buffer.write(cut(labels, merges, int(sys.argv[1])).astype('<u2').tobytes())",
        map.len()
    );
    let python = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        Command::new(python).args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success())
    });
    if python.is_none() {
        eprintln!("skipped: no python3 with numpy");
    }
    for (count, level) in counts.into_iter().zip(levels) {
        assert!(
            output_of(Command::new(&program).arg(count.to_string()), &input) == bytes(&level),
            "C: {count}"
        );
        if let Some(python) = python {
            let mut command = Command::new(python);
            command.env("PYTHONPATH", root.join("examples")).env("PYTHONDONTWRITEBYTECODE", "1");
            command.args(["-c", &script, &count.to_string()]);
            assert!(output_of(&mut command, &input) == bytes(&level), "Python: {count}");
        }
    }
}

fn temporal(regions: u32) -> Params {
    let hierarchy = hierarchy::Params { regions, ..Default::default() };
    Params { superpixels: 300, temporal: true, hierarchy, ..Params::default() }
}

fn ids(frame: &(Vec<u16>, Regions)) -> BTreeSet<u32> {
    frame.1.table.iter().map(|region| region.track_id).collect()
}

/// The identity of each pixel.
fn names(frame: &(Vec<u16>, Regions)) -> Vec<u32> {
    frame.0.iter().map(|&label| frame.1.table[usize::from(label)].track_id).collect()
}

#[test]
fn identities_of_regions_last() {
    let geometry = Geometry::new(160, 120).unwrap();
    for (regions, motion) in [(40, [0, 0]), (12, [0, 0]), (40, [2, 1])] {
        let clip = clip(geometry, PixelFormat::Rgb, 3, 14, motion, None);
        let params = temporal(regions);
        let mut engine = Engine::new(CPU[1].clone(), Plan::new(&params, clip[0].info).unwrap()).unwrap();
        let frames: Vec<_> = clip.iter().map(|buffer| segment_with(&mut engine, buffer)).collect();
        // Superpixels go on as if nothing merged.
        let mut engine = Engine::new(CPU[0].clone(), Plan::new(&temporal(0), clip[0].info).unwrap()).unwrap();
        for (buffer, frame) in clip.iter().zip(&frames) {
            assert!(refines(&segment_with(&mut engine, buffer).0, &frame.0));
            assert_eq!(frame.1.count, regions);
            assert_eq!(ids(frame).len(), regions as usize, "two regions share an identity");
            assert!(!ids(frame).contains(&0));
        }
        let (w, h) = (geometry.width() as i32, geometry.height() as i32);
        let (before, after) = (names(&frames[12]), names(&frames[13]));
        let (mut kept, mut all) = (0, 0);
        for y in 0..h - motion[1] {
            for x in 0..w - motion[0] {
                all += 1;
                let to = (y + motion[1]) * w + x + motion[0];
                kept += i32::from(before[(y * w + x) as usize] == after[to as usize]);
            }
        }
        if motion == [0, 0] {
            assert_eq!(kept, all, "a settled still picture flickers");
        } else {
            assert!(10 * kept > 7 * all, "{kept} of {all} pixels keep their identity");
        }
    }
}

#[test]
fn what_was_together_is_held_as_specified() {
    // The last pan is one that flat superpixels follow only for the number of regions.
    let (small, large) = (Geometry::new(150, 110).unwrap(), Geometry::new(300, 220).unwrap());
    for (geometry, motion, contrast) in [(small, [0, 0], 1), (small, [2, 1], 1), (large, [26, 3], 3)] {
        let mut clip = clip(geometry, PixelFormat::Rgb, 9, 7, motion, Some(5));
        clip.iter_mut().flat_map(|buffer| &mut buffer.planes[0]).for_each(|code| *code /= contrast);
        let params = temporal(25);
        let plan = Plan::new(&params, clip[0].info).unwrap();
        let mut engine = Engine::new(CPU[1].clone(), plan.clone()).unwrap();
        let mut stream = Stream::new(&params, &plan);
        // The region of each superpixel in the last frame.
        let mut last: Vec<u16> = Vec::new();
        let mut differ = 0;
        for (i, buffer) in clip.iter().enumerate() {
            let (map, _) = segment_with(&mut engine, buffer);
            let features = buffer.features(ColorSpace::Lab);
            let superpixels = stream.frame(&features);
            let earlier: BTreeMap<u16, u16> = (0u16..)
                .zip(&superpixels.from)
                .filter_map(|(label, from)| from.map(|from| (label, last[from])))
                .collect();
            assert_eq!(earlier.is_empty(), i == 0 || i == 5, "frame {i}");
            let labels = &superpixels.labels;
            let want = |earlier: &BTreeMap<u16, u16>| {
                oracle::hierarchy(geometry, labels, &features, &params.hierarchy, 8.0, earlier).0
            };
            assert!(map == want(&earlier), "frame {i} differs from the specification at {motion:?}");
            differ += u32::from(want(&FIRST) != map);
            last.resize(superpixels.ids.len(), 0);
            labels.iter().zip(&map).for_each(|(&label, &region)| last[usize::from(label)] = region);
        }
        assert!(motion == [0, 0] || differ > 0, "inertia makes no difference in this clip");
        assert!(motion == [0, 0] || stream.seen.found > 0, "no superpixel is new");
    }
}

#[test]
fn no_list_stays_where_none_is_wanted() {
    let buffer = Buffer::new(info(90, 70), Picture::Natural, 6, 0);
    let plan = |levels| {
        let mut params = Params { superpixels: 200, ..Params::default() };
        params.hierarchy.levels = levels;
        Plan::new(&params, buffer.info).unwrap()
    };
    let mut engine = Engine::new(CPU[1].clone(), plan(true)).unwrap();
    assert!(!segment_with(&mut engine, &buffer).1.merges.is_empty());
    assert!(engine.change(&plan(false)).unwrap());
    assert!(segment_with(&mut engine, &buffer).1.merges.is_empty());
}

#[test]
fn a_list_behind_stage_merge_is_of_its_regions() {
    let geometry = Geometry::new(150, 110).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 9, 8, [3, 2], Some(4));
    let merge = merge::Params { ratio: 2.0, ..Default::default() };
    let mut params = Params { merge, ..temporal(0) };
    params.hierarchy.levels = true;
    let mut engine = Engine::new(CPU[1].clone(), Plan::new(&params, clip[0].info).unwrap()).unwrap();
    for (i, buffer) in clip.iter().enumerate() {
        let (map, regions) = segment_with(&mut engine, buffer);
        let features = buffer.features(ColorSpace::Lab);
        let want = oracle::hierarchy(geometry, &map, &features, &params.hierarchy, 8.0, &FIRST).1;
        assert_eq!(regions.merges, want, "frame {i}");
    }
}

#[test]
fn a_cut_and_a_reset_end_identities() {
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 5, 8, [1, 0], Some(5));
    let mut engine = Engine::new(CPU[1].clone(), Plan::new(&temporal(30), clip[0].info).unwrap()).unwrap();
    let seen: Vec<_> = clip.iter().map(|buffer| ids(&segment_with(&mut engine, buffer))).collect();
    for i in 1..seen.len() {
        let kept = seen[i].intersection(&seen[i - 1]).count();
        assert!(if i == 5 { kept == 0 } else { 2 * kept > seen[i].len() }, "frame {i}: {kept} kept");
    }
    engine.reset();
    let first = engine.next_id().unwrap();
    let (_, regions) = segment_with(&mut engine, &clip[7]);
    assert!(regions.table.iter().all(|region| region.track_id >= first));
}

#[test]
fn another_number_while_running_keeps_identities() {
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 5, 8, [0, 0], None);
    let mut engine = Engine::new(CPU[1].clone(), Plan::new(&temporal(30), clip[0].info).unwrap()).unwrap();
    let mut last = BTreeSet::new();
    for (i, buffer) in clip.iter().enumerate() {
        if i == 5 {
            assert!(engine.change(&Plan::new(&temporal(20), buffer.info).unwrap()).unwrap());
        }
        let frame = segment_with(&mut engine, buffer);
        assert_eq!(frame.1.count, if i < 5 { 30 } else { 20 });
        if i == 5 {
            assert!(ids(&frame).is_subset(&last), "regions of fewer are unions of those before");
        }
        last = ids(&frame);
    }
}

/// A number of regions comes and goes, and with it the list, `merge` and tables: what is left is what the parameters give from the
/// start, and no identity is given twice.
#[test]
fn numbers_come_and_go() {
    let frames = changes::frames();
    for case in changes::cases() {
        let plan = |params: &Params| Plan::new(params, frames[0].info).unwrap();
        let fresh = |params: &Params| Engine::new(CPU[1].clone(), plan(params)).unwrap();
        let mut maps: Vec<Vec<u16>> = Vec::new();
        let mut alone = fresh(&case.params[0]);
        for (i, (buffer, params)) in frames.iter().zip(&case.params).enumerate() {
            if changes::is_anew(&case.params, i) {
                alone = fresh(params);
            }
            assert!(alone.change(&plan(params)).unwrap());
            maps.push(segment_with(&mut alone, buffer).0);
        }
        for (mode, outputs) in changes::MODES.into_iter().enumerate() {
            let mut engine = fresh(&case.params[0]);
            let mut identities = changes::Identities::default();
            for (i, (buffer, params)) in frames.iter().zip(&case.params).enumerate() {
                let what = format!("{}, outputs {mode}, frame {i}", case.what);
                let is_new = !engine.change(&plan(params)).unwrap() || i == 0;
                assert_eq!(is_new, changes::is_anew(&case.params, i), "{what}");
                if is_new {
                    let next_id = engine.next_id().unwrap();
                    engine = fresh(params);
                    engine.set_next_id(next_id).unwrap();
                }
                let first = is_new.then(|| engine.next_id().unwrap());
                let (map, regions) = segment_for(&mut engine, buffer, outputs(i));
                changes::check(&map, &regions, engine.plan(), params, buffer, outputs(i), &what);
                identities.check(&regions, first, &what);
                assert!(map == maps[i], "{what}: something is left of before, or outputs change the map");
            }
        }
    }
}
