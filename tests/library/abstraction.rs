// SPDX-License-Identifier: MPL-2.0
//! The drawing `abstraction` by what it promises: coverage of straight borders, lines and corners that survive, shading that is nearer
//! to the picture, ink where colors differ, colors that ease, and nothing outside of a mask.

use std::f64::consts::FRAC_1_SQRT_2;

use crate::pictures::{Buffer, Picture, Shape};
use gstsuperpixel::algo::{AlgorithmParams, quickshift};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::abstraction::Params as Abstraction;
use gstsuperpixel::post::hierarchy;

const PLAIN: Abstraction = Abstraction {
    outline_smoothness: 2.0,
    shading: false,
    ink: 0.0,
    ink_color: 0xff00_0000,
    palette: 0,
    steadiness: 0.0,
};
const MEANS: Outputs = Outputs { table: true, neighbors: false, mean_color: true, linear_light: false };

fn geometry(w: u32, h: u32) -> Geometry {
    Geometry::new(w, h).unwrap()
}

/// A gray picture of three equal channels.
fn picture(g: Geometry, code: impl Fn(usize, usize) -> u8) -> Buffer {
    let mut buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), Picture::Flat, 0, 0);
    for y in 0..g.height() as usize {
        for x in 0..g.width() as usize {
            buffer.planes[0][y * buffer.strides[0] + 3 * x..][..3].fill(code(x, y));
        }
    }
    buffer
}

fn engine(regions: u32, temporal: bool, info: FrameInfo) -> Engine<Cpu> {
    let hierarchy = hierarchy::Params { regions, ..Default::default() };
    // Quick shift finds lines, which have no seed of their own.
    let algorithm =
        AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, tau: 5.0, ..Default::default() });
    let params =
        Params { superpixel_size: 8, min_region: 0.0, temporal, hierarchy, algorithm, ..Params::default() };
    Engine::new(Cpu::new(2).unwrap(), Plan::new(&params, info).unwrap()).unwrap()
}

/// What is drawn of a frame, and its label map.
fn draw(engine: &mut Engine<Cpu>, buffer: &Buffer, fill: Fill) -> (Vec<Vec<u8>>, Vec<u16>) {
    let g = buffer.info.geometry;
    let mut map = vec![0; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    engine.segment(&buffer.frame(), &mut labels, MEANS).unwrap();
    let mut planes = buffer.planes.clone();
    let parts = planes.iter_mut().map(Vec::as_mut_slice);
    let mut frame = FrameMut::new(buffer.info, parts, &buffer.strides).unwrap();
    engine.draw(&mut frame, &labels, &Drawing { fill, boundaries: None }).unwrap();
    (planes, map)
}

/// The first channel of what is drawn of a picture in so many regions, or with 0 in superpixels.
fn drawn(buffer: &Buffer, regions: u32, abstraction: Abstraction) -> Vec<Vec<u8>> {
    let mut engine = engine(regions, false, buffer.info);
    let (planes, map) = draw(&mut engine, buffer, Fill::Abstraction(abstraction));
    assert!(regions == 0 || u32::from(*map.iter().max().unwrap()) + 1 == regions);
    planes[0].chunks(buffer.strides[0]).map(|row| row.chunks(3).map(|pixel| pixel[0]).collect()).collect()
}

#[test]
fn straight_borders_are_covered_as_much_as_they_pass() {
    // Slopes from level to steep, with a dark and a bright side.
    for (dx, dy) in [(1.0, 0.0), (0.8, 0.6), (0.6, 0.8), (0.31623, 0.94868), (FRAC_1_SQRT_2, FRAC_1_SQRT_2)] {
        let side = |x: f64, y: f64| (x - 40.0) * dx + (y - 36.0) * dy;
        let buffer = picture(geometry(80, 72), |x, y| if side(x as f64, y as f64) > 0.0 { 180 } else { 60 });
        for outline_smoothness in [1.0, 2.0, 4.0] {
            let drawn = drawn(&buffer, 2, Abstraction { outline_smoothness, ..PLAIN });
            let mut worst: f64 = 0.0;
            for (y, row) in drawn.iter().enumerate().skip(14).take(44) {
                for (x, &code) in row.iter().enumerate().skip(14).take(52) {
                    // The border of the pixels lies half a step inside of the dark side.
                    let part = |i: i32| f64::from(2 * i + 1 - 8) / 16.0;
                    let points = (0..64).map(|i| side(x as f64 + part(i % 8), y as f64 + part(i / 8)));
                    let covered = points.filter(|&side| side > 0.0).count() as f64 / 64.0;
                    worst = worst.max((f64::from(code) - (60.0 + 120.0 * covered)).abs());
                }
            }
            // A level border lies on pixels' sides, half a px from where the formula has it.
            let allowed = if dy == 0.0 { 66.0 } else { 44.0 };
            assert!(worst <= allowed, "{dx} {dy}, {outline_smoothness}: {worst}");
        }
    }
}

#[test]
fn stairs_of_a_slope_become_an_even_ramp() {
    // One row down every 8 columns: each column has passed an eighth of a row more than the last.
    let buffer = picture(geometry(96, 64), |x, y| if y > 20 + x / 8 { 200 } else { 40 });
    let drawn = drawn(&buffer, 2, Abstraction { outline_smoothness: 4.0, ..PLAIN });
    let height = |x: usize| drawn.iter().map(|row| (200.0 - f64::from(row[x])) / 160.0).sum::<f64>();
    for x in 20..76 {
        let step = height(x + 1) - height(x);
        assert!((0.06..=0.19).contains(&step), "column {x}: {step}");
    }
    // Without, heights go by whole rows.
    let plain: Vec<u8> = (20..76).map(|x| buffer.planes[0][25 * buffer.strides[0] + 3 * x]).collect();
    assert!(plain.iter().all(|&code| code == 200 || code == 40));
}

#[test]
fn lines_of_one_pixel_and_corners_survive_where_contrast_is_high() {
    for outline_smoothness in [2.0, 4.0] {
        let abstraction = Abstraction { outline_smoothness, ..PLAIN };
        let line = picture(geometry(90, 60), |x, y| if y == 30 && (5..85).contains(&x) { 20 } else { 220 });
        // Superpixels: of two regions neither would be the line alone.
        let drawn_line = drawn(&line, 0, abstraction);
        for x in 12..78 {
            let ink: f64 = drawn_line.iter().map(|row| (220.0 - f64::from(row[x])) / 200.0).sum();
            assert!((0.6..=1.6).contains(&ink), "{outline_smoothness}, column {x}: {ink}");
            assert!(drawn_line[30][x] < 120, "{outline_smoothness}, column {x}: {}", drawn_line[30][x]);
        }
        let square =
            |low: u8, high: u8| {
                picture(geometry(90, 60), move |x, y| {
                    if (20..60).contains(&x) && (15..45).contains(&y) { low } else { high }
                })
            };
        // Code that has crossed the middle, around one corner.
        let lost = |buffer: &Buffer, low: u8, high: u8| {
            let drawn = drawn(buffer, 2, abstraction);
            let middle = (u16::from(low) + u16::from(high)).div_ceil(2) as u8;
            let inside = (15..25).flat_map(|y| (20..30).map(move |x| (x, y)));
            inside.filter(|&(x, y): &(usize, usize)| drawn[y][x] > middle).count()
        };
        let strong = lost(&square(20, 220), 20, 220);
        assert!(strong <= 1, "{outline_smoothness}: {strong} pixels of a corner are lost");
        if outline_smoothness == 4.0 {
            let weak = lost(&square(110, 140), 110, 140);
            assert!(weak > 3, "a corner of little contrast is rounded: {weak}");
        }
    }
}

#[test]
fn shading_follows_a_gradient_and_stays_in_the_range_of_the_region() {
    let slope = |x: usize, y: usize| (30 + x + y / 2) as u8;
    let buffer = picture(geometry(120, 80), slope);
    let shaded = drawn(&buffer, 2, Abstraction { shading: true, ..PLAIN });
    let flat = drawn(&buffer, 4, PLAIN);
    let error = |drawn: &[Vec<u8>]| {
        let pixels = drawn
            .iter()
            .enumerate()
            .flat_map(|(y, row)| row.iter().enumerate().map(move |(x, c)| (x, y, *c)));
        pixels.map(|(x, y, code)| f64::from(code.abs_diff(slope(x, y))).powi(2)).sum::<f64>()
    };
    assert!(20.0 * error(&shaded) < error(&flat), "{} {}", error(&shaded), error(&flat));
    // A region of two colors has a slope, and no color outside of its own.
    let two = picture(geometry(64, 64), |x, _| if x < 32 { 100 } else { 104 });
    let shaded = drawn(&two, 1, Abstraction { shading: true, ..PLAIN });
    assert!(shaded.iter().flatten().all(|code| (100..=104).contains(code)));
    assert!(shaded[20][2] < shaded[20][61]);
}

#[test]
fn ink_is_drawn_where_colors_differ_and_nowhere_else() {
    let halves = |a: u8, b: u8| picture(geometry(64, 48), move |x, _| if x < 32 { a } else { b });
    let inked = Abstraction { ink: 3.0, ..PLAIN };
    // 8 Delta E are about 20 codes of gray.
    let alike = halves(120, 132);
    assert_eq!(drawn(&alike, 2, inked), drawn(&alike, 2, PLAIN));
    let dark = |a: u8, b: u8, width: f32| {
        let row = &drawn(&halves(a, b), 2, Abstraction { ink: width, ..PLAIN })[24];
        let plain = &drawn(&halves(a, b), 2, PLAIN)[24];
        row.iter().zip(plain).map(|(&drawn, &plain)| 1.0 - f64::from(drawn) / f64::from(plain)).sum::<f64>()
    };
    // The line's opacity, added up, is its width.
    for width in [1.0, 2.0, 4.0] {
        let ink = dark(240, 40, width);
        assert!((ink - f64::from(width)).abs() < 0.45 * f64::from(width).sqrt(), "{width}: {ink}");
    }
    let (strong, weak) = (dark(240, 40, 3.0), dark(150, 100, 3.0));
    assert!(weak > 0.2 && weak < 0.7 * strong, "{weak} {strong}");
    // Of another color, and of none.
    let white = Abstraction { ink: 3.0, ink_color: 0xffff_ffff, ..PLAIN };
    assert!(drawn(&halves(200, 40), 2, white)[24].iter().any(|&code| code > 240));
    let unseen = Abstraction { ink: 3.0, ink_color: 0x00ff_ffff, ..PLAIN };
    assert_eq!(drawn(&halves(200, 40), 2, unseen), drawn(&halves(200, 40), 2, PLAIN));
}

#[test]
fn colors_ease_over_frames_and_jump_at_a_cut_and_after_a_gap() {
    let g = geometry(64, 48);
    let frame = |dark: u8, bright: u8| picture(g, move |x, _| if x < 32 { dark } else { bright });
    let steady = Fill::Abstraction(Abstraction { steadiness: 3.0, ..PLAIN });
    let at = |planes: &[Vec<u8>]| [planes[0][64 * 3 * 20 + 3 * 8], planes[0][64 * 3 * 20 + 3 * 56]];
    let mut engine = engine(2, true, frame(60, 160).info);
    assert_eq!(at(&draw(&mut engine, &frame(60, 160), steady).0), [60, 160]);
    // A quarter of the way a frame, where pixels change by as much as moving things do.
    assert_eq!(at(&draw(&mut engine, &frame(84, 160), steady).0), [66, 160]);
    let next = at(&draw(&mut engine, &frame(84, 160), steady).0)[0];
    assert!((67..=72).contains(&next), "{next}");
    for _ in 0..60 {
        draw(&mut engine, &frame(84, 160), steady);
    }
    let rested = at(&draw(&mut engine, &frame(84, 160), steady).0)[0];
    assert!((82..=84).contains(&rested), "{rested}");
    // Frames that are drawn otherwise come between.
    draw(&mut engine, &frame(84, 160), Fill::MeanColor);
    assert_eq!(at(&draw(&mut engine, &frame(60, 160), steady).0), [60, 160]);
    // Other identities: nothing that eases is left.
    engine.reset();
    assert_eq!(at(&draw(&mut engine, &frame(64, 150), steady).0), [64, 150]);
}

#[test]
fn drawn_pixels_rest_where_the_picture_does_and_follow_where_it_moves() {
    let g = geometry(96, 64);
    // Noise of two codes all over, and a dark square that moves through the middle.
    let frame = |t: usize| {
        picture(g, move |x, y| {
            let noise = (x * 7 + y * 13 + t * 29) % 5;
            let dark = (24..40).contains(&y) && (8 + 2 * t..24 + 2 * t).contains(&x);
            (if dark { 40 } else { 150 + 10 * (x / 24) as u8 }) + noise as u8
        })
    };
    let code = |planes: &[Vec<u8>], x: usize, y: usize| i32::from(planes[0][96 * 3 * y + 3 * x]);
    let change = |steadiness: f32| {
        let mut engine = engine(8, true, frame(0).info);
        let fill = Fill::Abstraction(Abstraction { steadiness, ..PLAIN });
        let drawn: Vec<_> = (0..30).map(|t| draw(&mut engine, &frame(t), fill).0).collect();
        // The square's middle is dark, what it has left is not.
        for (t, planes) in drawn.iter().enumerate() {
            assert!(code(planes, 16 + 2 * t, 32) < 70, "{steadiness}: frame {t}");
            assert!(t < 12 || code(planes, 2 * t - 4, 32) > 120, "{steadiness}: frame {t}");
        }
        let still = (0..96).flat_map(|x| (0..12).chain(52..64).map(move |y| (x, y)));
        let pairs = drawn[12..].windows(2);
        let changes = pairs.map(|pair| {
            still.clone().map(|(x, y)| (code(&pair[1], x, y) - code(&pair[0], x, y)).abs()).sum::<i32>()
        });
        changes.sum::<i32>()
    };
    let (rough, steady) = (change(0.0), change(6.0));
    assert!(rough > 0 && 4 * steady <= rough, "{steady} of {rough}");
}

#[test]
fn a_palette_has_so_many_colors_and_moves_by_a_code_a_frame_but_at_a_cut() {
    let g = geometry(96, 64);
    let colors = |planes: &[Vec<u8>]| {
        let mut colors: Vec<[u8; 3]> = planes[0].as_chunks::<3>().0.to_vec();
        colors.sort_unstable();
        colors.dedup();
        colors
    };
    // Four groups of three areas of nearly the same gray, that get brighter.
    let frame = |by: u8| picture(g, move |x, y| 20 + by + 50 * (y / 16) as u8 + 3 * (x / 32) as u8);
    let fill = |palette: u32| {
        Fill::Abstraction(Abstraction { palette, outline_smoothness: 0.5, steadiness: 1.0, ..PLAIN })
    };
    let of = |palette: u32| colors(&draw(&mut engine(12, false, frame(0).info), &frame(0), fill(palette)).0);
    // Outlines of 0.5 px mix no colors along pixels' sides.
    assert_eq!([1, 4, 64].map(|palette| of(palette).len()), [1, 4, 12]);
    let mut engine = engine(12, true, frame(0).info);
    let first = colors(&draw(&mut engine, &frame(0), fill(4)).0);
    assert_eq!(first, [23, 73, 123, 173].map(|gray| [gray; 3]));
    let mut last = first.clone();
    for t in 1..12 {
        let now = colors(&draw(&mut engine, &frame(2 * t), fill(4)).0);
        assert_eq!(now.len(), 4, "frame {t}: {now:?}");
        for (color, before) in now.iter().zip(&last) {
            assert!((0..=1).contains(&(color[0] - before[0])), "frame {t}: {last:?} to {now:?}");
        }
        last = now;
    }
    assert!(last[0][0] > first[0][0] + 5, "{last:?}");
    engine.reset();
    let cut = colors(&draw(&mut engine, &frame(22), fill(4)).0);
    assert_eq!(cut, [45, 95, 145, 195].map(|gray| [gray; 3]));
}

#[test]
fn nothing_outside_of_a_mask_changes_and_no_alpha() {
    let info = FrameInfo::new(geometry(90, 70), PixelFormat::Rgba);
    let buffer = Buffer::new(info, Picture::Natural, 3, 4).with_mask(Shape::Disk, 1, [0, 0]);
    let params = Params { superpixel_size: 9, masked: true, ..Params::default() };
    let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(&params, info).unwrap()).unwrap();
    let (planes, map) = draw(&mut engine, &buffer, Fill::Abstraction(Abstraction::default()));
    let mut changed = 0;
    for (i, &label) in map.iter().enumerate() {
        let at = i / 90 * buffer.strides[0] + 4 * (i % 90);
        let (pixel, before) = (&planes[0][at..at + 4], &buffer.planes[0][at..at + 4]);
        assert_eq!(pixel[3], before[3]);
        if label == u16::MAX {
            assert_eq!(pixel, before);
        }
        changed += usize::from(pixel != before);
    }
    assert!(changed > 1000, "{changed}");
}

#[test]
fn values_out_of_range_are_refused() {
    let buffer = picture(geometry(20, 20), |_, _| 9);
    let mut engine = engine(1, false, buffer.info);
    let mut map = vec![0; 400];
    let mut labels = Labels::new(geometry(20, 20), &mut map, 20).unwrap();
    engine.segment(&buffer.frame(), &mut labels, MEANS).unwrap();
    for (name, abstraction) in [
        ("outline-smoothness", Abstraction { outline_smoothness: 0.2, ..PLAIN }),
        ("outline-smoothness", Abstraction { outline_smoothness: f32::NAN, ..PLAIN }),
        ("ink", Abstraction { ink: 9.0, ..PLAIN }),
        ("palette", Abstraction { palette: 65, ..PLAIN }),
        ("steadiness", Abstraction { steadiness: -1.0, ..PLAIN }),
    ] {
        let mut planes = buffer.planes.clone();
        let parts = planes.iter_mut().map(Vec::as_mut_slice);
        let mut frame = FrameMut::new(buffer.info, parts, &buffer.strides).unwrap();
        let drawing = Drawing { fill: Fill::Abstraction(abstraction), boundaries: None };
        let error = engine.draw(&mut frame, &labels, &drawing).unwrap_err();
        assert!(matches!(error, Error::Param { name: named, .. } if named == name), "{error}");
    }
}
