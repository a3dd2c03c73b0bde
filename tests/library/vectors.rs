// SPDX-License-Identifier: MPL-2.0
//! Vector drawings by their geometry: regions cover the picture once, neighbors have the same curves, and curves are near the pixels'
//! borders. Gradients are the best lines through the colors of regions. And smoothed label maps: straight borders without stairs, thin
//! lines, masks.

use std::collections::{BTreeMap, HashMap};

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Geometry, Labels, NO_LABEL};
use gstsuperpixel::post::abstraction::labels::LabelSmoother;
use gstsuperpixel::vectors::{
    Drawing, Gradient, Gradients, Lines, OUTSIDE, Outlines, Style, TOLERANCE, boundaries,
};

type Point = [i64; 2];

fn geometry(w: u32, h: u32) -> Geometry {
    Geometry::new(w, h).unwrap()
}

/// A lattice of points that are pseudorandom from a seed; the label of a pixel is the nearest one's, with some noise.
fn drawn_map(w: usize, h: usize, seed: usize, labels: usize) -> Vec<u32> {
    let random = |i: usize, range: usize| {
        let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed as u64) << 32;
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((x ^ x >> 32) % range as u64) as usize
    };
    let points: Vec<[usize; 2]> = (0..labels).map(|i| [random(2 * i, w), random(2 * i + 1, h)]).collect();
    let square =
        |i: usize, x: usize, y: usize| points[i][0].abs_diff(x).pow(2) + points[i][1].abs_diff(y).pow(2);
    let nearest = |x: usize, y: usize| (0..labels).min_by_key(|&i| square(i, x, y)).unwrap() as u32;
    let pixels = (0..w * h).map(|at| (at, nearest(at % w, at / w)));
    pixels
        .map(|(at, label)| if random(1000 + at, 23) == 0 { random(at, labels) as u32 } else { label })
        .collect()
}

/// Everything of a drawing that is filled: label and subpaths, each a list of quadratic curves or lines by their points.
fn paths(text: &str) -> Vec<(u32, Vec<Vec<Vec<Point>>>)> {
    let attribute = |line: &str, name: &str| {
        line.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest.split_once('"').unwrap().0.to_owned())
    };
    let filled = text.lines().filter_map(|line| attribute(line, "data-label").map(|label| (line, label)));
    filled.map(|(line, label)| (label.parse().unwrap(), subpaths(&attribute(line, "d").unwrap()))).collect()
}

fn subpaths(path: &str) -> Vec<Vec<Vec<Point>>> {
    let (mut all, mut at): (Vec<Vec<Vec<Point>>>, Point) = (Vec::new(), [0; 2]);
    for (i, command) in path.char_indices().filter(|(_, c)| c.is_alphabetic()) {
        let rest = &path[i + 1..];
        let numbers = rest.split(|c: char| c.is_alphabetic()).next().unwrap().replace('-', " -");
        let numbers: Vec<i64> = numbers.split_whitespace().map(|n| n.parse().unwrap()).collect();
        // Each step's points, from where it begins.
        let steps: Vec<Vec<Point>> = match command {
            'M' => {
                at = [numbers[0], numbers[1]];
                all.push(Vec::new());
                continue;
            }
            'h' => numbers.iter().map(|&dx| vec![[dx, 0]]).collect(),
            'v' => numbers.iter().map(|&dy| vec![[0, dy]]).collect(),
            'l' => numbers.chunks(2).map(|d| vec![[d[0], d[1]]]).collect(),
            'q' => numbers.chunks(4).map(|d| vec![[d[0], d[1]], [d[2], d[3]]]).collect(),
            // The control point mirrors that of the curve before.
            't' => {
                let last = all.last().unwrap().last().unwrap();
                let mut control = [last[2][0] - last[1][0], last[2][1] - last[1][1]];
                let mut next = |d: &[i64]| {
                    let step = vec![control, [d[0], d[1]]];
                    control = [d[0] - control[0], d[1] - control[1]];
                    step
                };
                numbers.chunks(2).map(&mut next).collect()
            }
            'z' => {
                let first = all.last().unwrap()[0][0];
                assert_eq!(at, first, "a ring ends where it begins");
                continue;
            }
            other => panic!("{other}"),
        };
        for step in steps {
            let points: Vec<Point> = step.iter().map(|d| [at[0] + d[0], at[1] + d[1]]).collect();
            all.last_mut().unwrap().push([&[at][..], &points].concat());
            at = *points.last().unwrap();
        }
    }
    all
}

fn point_of(curve: &[Point], t: f64) -> [f64; 2] {
    let weights: &[f64] = &match curve.len() {
        2 => vec![1.0 - t, t],
        _ => vec![(1.0 - t).powi(2), 2.0 * t * (1.0 - t), t * t],
    };
    [0, 1].map(|axis| curve.iter().zip(weights).map(|(point, w)| point[axis] as f64 * w).sum())
}

/// Twice the area to the right of a curve, of lines through 16 points of it.
fn area(curve: &[Point]) -> f64 {
    let points: Vec<[f64; 2]> = (0..=16).map(|i| point_of(curve, f64::from(i) / 16.0)).collect();
    points.windows(2).map(|p| p[0][0] * p[1][1] - p[1][0] * p[0][1]).sum()
}

fn svg(labels: &[u32], g: Geometry, tolerance: f32) -> String {
    let style = |label: u32| Style {
        label: label.into(),
        id: Some(format!("r{label}")),
        color: [1, 2, 3],
        gradient: None,
    };
    let drawing = Drawing { fill: Some(&style), seam: 0.0, lines: None };
    Outlines::new(labels, g, tolerance).unwrap().svg(&drawing)
}

/// Parts of a pixel that the numbers of a drawing are.
fn parts(text: &str, g: Geometry) -> f64 {
    let sides = text.split_once("viewBox=\"0 0 ").unwrap().1.split_once(' ').unwrap().0;
    sides.parse::<f64>().unwrap() / f64::from(g.width())
}

#[test]
fn regions_cover_the_picture_once_and_share_their_curves() {
    for (seed, (w, h, labels)) in
        [(1, 1, 1), (7, 5, 3), (40, 31, 9), (64, 64, 2), (53, 47, 20)].into_iter().enumerate()
    {
        let (g, mut map) = (geometry(w, h), drawn_map(w as usize, h as usize, seed, labels));
        // Some of one label are outside.
        map.iter_mut().filter(|label| labels > 5 && **label == 2).for_each(|label| *label = OUTSIDE);
        for tolerance in [0.0, TOLERANCE, 2.0] {
            let text = svg(&map, g, tolerance);
            let scale = 2.0 * parts(&text, g).powi(2);
            let mut directions: HashMap<Vec<Point>, i32> = HashMap::new();
            let mut areas: BTreeMap<u32, f64> = BTreeMap::new();
            for (label, rings) in paths(&text) {
                for piece in rings.into_iter().flatten() {
                    *areas.entry(label).or_default() += area(&piece) / scale;
                    // Each piece is there once in each direction, but for those along the edge and along what is outside.
                    let reversed: Vec<Point> = piece.iter().rev().copied().collect();
                    if piece == reversed {
                        continue;
                    }
                    let (key, direction) = if piece < reversed { (piece, 1) } else { (reversed, -1) };
                    *directions.entry(key).or_default() += direction;
                }
            }
            let edge = [g.width(), g.height()].map(|side| (f64::from(side) * parts(&text, g)) as i64);
            let is_on_edge = |piece: &[Point]| {
                (0..2)
                    .any(|axis| [0, edge[axis]].iter().any(|&at| piece.iter().all(|point| point[axis] == at)))
            };
            for (piece, &sum) in directions.iter().filter(|(piece, _)| !is_on_edge(piece)) {
                assert!(sum == 0 || map.contains(&OUTSIDE), "{seed} {tolerance}: {piece:?} has no partner");
            }
            let inside = map.iter().filter(|&&label| label != OUTSIDE).count() as f64;
            // What curves give to one region they take from another, but for what is outside.
            let most = if tolerance == 0.0 || !map.contains(&OUTSIDE) { 1e-6 } else { 0.2 * inside };
            assert!((areas.values().sum::<f64>() - inside).abs() < most, "{seed} {tolerance}");
            for (&label, &found) in &areas {
                let wanted = map.iter().filter(|&&other| other == label).count() as f64;
                assert!(
                    (found - wanted).abs() < if tolerance == 0.0 { 1e-9 } else { 0.5 * wanted + 2.0 },
                    "{label}: {found} {wanted}"
                );
            }
            assert_eq!(
                areas.len(),
                map.iter().filter(|&&l| l != OUTSIDE).collect::<std::collections::BTreeSet<_>>().len()
            );
        }
    }
}

#[test]
fn curves_are_near_the_borders_of_pixels() {
    for (seed, (w, h, labels)) in [(61, 47, 12), (90, 33, 5), (30, 80, 40)].into_iter().enumerate() {
        let (g, map) = (geometry(w, h), drawn_map(w as usize, h as usize, 10 + seed, labels));
        let text = svg(&map, g, TOLERANCE);
        let scale = parts(&text, g);
        let at = |x: i64, y: i64| {
            let is_in = (0..i64::from(w)).contains(&x) && (0..i64::from(h)).contains(&y);
            if is_in { map[(y * i64::from(w) + x) as usize] } else { OUTSIDE }
        };
        // Within 1 px of a border, a square around a point has two labels.
        let is_near = |[x, y]: [f64; 2], reach: f64| {
            let span = |v: f64| (v - reach).floor() as i64..=(v + reach - 1e-9).floor() as i64;
            let mut seen = span(y).flat_map(|y| span(x).map(move |x| (x, y))).map(|(x, y)| at(x, y));
            let first = seen.next();
            seen.any(|label| Some(label) != first)
        };
        let (mut points, mut off) = (0, 0);
        for curve in paths(&text).into_iter().flat_map(|(_, rings)| rings).flatten() {
            for i in 0..=32 {
                let point = point_of(&curve, f64::from(i) / 32.0).map(|v| v / scale);
                assert!(is_near(point, 1.5), "{seed}: {point:?} of {curve:?}");
                (points, off) = (points + 1, off + i32::from(!is_near(point, 1.0)));
            }
        }
        assert!(points > 2000 && 200 * off < points, "{off} of {points}");
    }
}

#[test]
fn a_slanted_border_becomes_a_line_and_a_disk_few_curves() {
    let g = geometry(200, 200);
    let map: Vec<u32> = (0..200 * 200).map(|at| u32::from(at % 200 > at / 200 / 3 + 40)).collect();
    let pieces = |text: &str| paths(text)[0].1.iter().map(Vec::len).sum::<usize>();
    let (exact, smooth) = (svg(&map, g, 0.0), svg(&map, g, TOLERANCE));
    assert!(pieces(&exact) > 100 && pieces(&smooth) < 8, "{} {}", pieces(&exact), pieces(&smooth));
    let disk = |at: usize| (at % 200).abs_diff(100).pow(2) + (at / 200).abs_diff(100).pow(2) < 3600;
    let map: Vec<u32> = (0..200 * 200).map(|at| u32::from(disk(at))).collect();
    let smooth = svg(&map, g, TOLERANCE);
    let of_disk = &paths(&smooth)[1].1;
    assert!(of_disk.len() == 1 && of_disk[0].len() <= 40, "{} rings, {}", of_disk.len(), of_disk[0].len());
    // The hole of the other region is the same ring.
    assert_eq!(paths(&smooth)[0].1.len(), 2);
}

#[test]
fn lines_are_drawn_once_and_elements_have_names() {
    let g = geometry(4, 2);
    let map = [0, 0, 7, 7, 0, 0, 7, 7];
    let style = |label: u32| Style {
        label: -3,
        id: Some(format!("a\"<&{label}")),
        color: [255, 0, 16],
        gradient: None,
    };
    let lines = Some(Lines { width: 1.5, color: [0, 0, 255] });
    let outlines = Outlines::new(&map, g, TOLERANCE).unwrap();
    let text = outlines.svg(&Drawing { fill: Some(&style), seam: 0.5, lines });
    assert!(text.contains("id=\"a&quot;&lt;&amp;7\" data-label=\"-3\" color=\"#ff0010\""), "{text}");
    assert_eq!(text.matches("<path").count(), 3);
    let line = text.lines().find(|line| line.contains("fill=\"none\"")).unwrap();
    assert!(line.contains("stroke=\"#0000ff\"") && line.contains("stroke-width=\"12\""), "{line}");
    // Two arcs along the edge, one between the regions.
    assert_eq!(line.matches('M').count(), 3 + 4, "{line}");
    assert!(!outlines.svg(&Drawing { fill: None, seam: 0.0, lines: None }).contains("<path"));
}

/// A picture in which each region of a map has planes of color of its own, with noise.
fn shaded_picture(map: &[u32], w: usize) -> Vec<u8> {
    let pixels = map.iter().enumerate().flat_map(|(at, &label)| {
        let (x, y, l) = ((at % w) as i64, (at / w) as i64, i64::from(label));
        let noise = (at as i64).wrapping_mul(7919) % 11;
        let planes = [(l % 3 - 1) * x + y, x - (l % 2) * y, (l % 5 - 2) * y].map(|plane| 110 + plane + noise);
        planes.map(|code| u8::try_from(code).unwrap())
    });
    pixels.collect()
}

/// The pixels of a region.
fn pixels_of<'a>(map: &'a [u32], w: usize, rgb: &'a [u8], label: u32) -> Vec<([f64; 2], [f64; 3])> {
    let of_label = map.iter().enumerate().filter(|&(_, &other)| other == label);
    let place = |at: usize| [(at % w) as f64 + 0.5, (at / w) as f64 + 0.5];
    of_label.map(|(at, _)| (place(at), [0, 1, 2].map(|c| f64::from(rgb[3 * at + c])))).collect()
}

fn mean(pixels: &[([f64; 2], [f64; 3])]) -> [f64; 3] {
    [0, 1, 2].map(|c| pixels.iter().map(|(_, rgb)| rgb[c]).sum::<f64>() / pixels.len() as f64)
}

/// Sum of squared differences from what a renderer makes of a gradient.
fn error_of(gradient: &Gradient, pixels: &[([f64; 2], [f64; 3])]) -> f64 {
    let [from, to] = gradient.ends;
    let along = [to[0] - from[0], to[1] - from[1]];
    let square = along[0] * along[0] + along[1] * along[1];
    let errors = pixels.iter().flat_map(|(at, rgb)| {
        let share = ((at[0] - from[0]) * along[0] + (at[1] - from[1]) * along[1]) / square;
        let [first, last] = gradient.colors.map(|color| color.map(f64::from));
        [0, 1, 2].map(|c| (first[c] + (last[c] - first[c]) * share.clamp(0.0, 1.0) - rgb[c]).powi(2))
    });
    errors.sum()
}

#[test]
fn gradients_are_nearer_to_the_picture_than_any_in_another_direction() {
    let (w, h) = (64, 48);
    let (g, map) = (geometry(64, 48), drawn_map(w, h, 3, 12));
    let rgb = shaded_picture(&map, w);
    let gradients = Gradients::new(&map, &rgb, g).unwrap();
    let mut seen = 0;
    for label in 0..12 {
        let pixels = pixels_of(&map, w, &rgb, label);
        let mean = mean(&pixels);
        let Some(gradient) = gradients.gradient(label, mean.map(|code| code.round() as u8)) else { continue };
        let found = error_of(&gradient, &pixels);
        let flat: f64 =
            pixels.iter().flat_map(|(_, rgb)| [0, 1, 2].map(|c| (rgb[c] - mean[c]).powi(2))).sum();
        assert!(found < flat, "{label}: {found} {flat}");
        // The best line of least squares in each of 90 directions, without rounding and limits.
        let n = pixels.len() as f64;
        let middle = [0, 1].map(|axis| pixels.iter().map(|(at, _)| at[axis]).sum::<f64>() / n);
        let best = (0..90)
            .map(|i| {
                let (y, x) = (f64::from(i) * std::f64::consts::PI / 90.0).sin_cos();
                let along = |at: &[f64; 2]| (at[0] - middle[0]) * x + (at[1] - middle[1]) * y;
                let variance: f64 = pixels.iter().map(|(at, _)| along(at).powi(2)).sum();
                let with =
                    |c: usize| pixels.iter().map(|(at, rgb)| along(at) * (rgb[c] - mean[c])).sum::<f64>();
                flat - (0..3).map(|c| with(c).powi(2) / variance).sum::<f64>()
            })
            .fold(f64::INFINITY, f64::min);
        assert!(found < best + 0.1 * (flat - best) + n, "{label}: {found} {best} {flat}");
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn a_gradient_goes_from_end_to_end_and_what_is_flat_or_small_has_none() {
    let g = geometry(100, 20);
    let map: Vec<u32> = (0..2000)
        .map(|at| match at % 100 {
            0..60 => 4,
            60..90 => 9,
            _ if at < 600 => OUTSIDE,
            _ => 1000 + at as u32 / 400 * 10 + at as u32 % 10,
        })
        .collect();
    // Red rises by 2 codes a column, green falls by 1; the second region has one code more at its end.
    let color =
        |x: usize| if x < 60 { [2 * x as u8, 200 - x as u8, 7] } else { [50 + u8::from(x >= 75), 60, 70] };
    let rgb: Vec<u8> = (0..2000).flat_map(|at| color(at % 100)).collect();
    let gradients = Gradients::new(&map, &rgb, g).unwrap();
    let Gradient { ends: [from, to], colors } = gradients.gradient(4, [59, 170, 7]).unwrap();
    for (found, wanted) in from.into_iter().chain(to).zip([0.5, 10.0, 59.5, 10.0]) {
        assert!((found - wanted).abs() < 1e-9, "{from:?} {to:?}");
    }
    // The variance of columns is (60² - 1) / 12, to which the ridge adds 4.
    let slope = 299.92 / (299.92 + 4.0);
    let end = |mean: f64, slope: f64| [-29.5, 29.5].map(|along| (mean + slope * along).round() as u8);
    assert_eq!(colors.map(|color| color[0]), end(59.0, 2.0 * slope));
    assert_eq!(colors.map(|color| color[1]), end(170.0, -slope));
    assert_eq!(colors.map(|color| color[2]), [7, 7]);
    // Within the codes that the region has, or its mean.
    let bright = gradients.gradient(4, [240, 170, 7]).unwrap();
    assert_eq!(bright.colors.map(|color| color[0]), [240 - 58, 240]);
    assert!((bright.ends[1][0] - 30.0).abs() < 1e-9, "{:?}", bright.ends);
    for none in [9, OUTSIDE, 5, 1020] {
        assert_eq!(gradients.gradient(none, [50, 60, 70]), None, "{none}");
    }
    let style = |label: u32| Style {
        label: label.into(),
        id: Some(format!("g{label}")),
        color: [1, 2, 3],
        gradient: gradients.gradient(label, [59, 170, 7]),
    };
    let text = Outlines::new(&map, g, TOLERANCE).unwrap().svg(&Drawing {
        fill: Some(&style),
        seam: 0.7,
        lines: None,
    });
    // Coordinates are in parts of a pixel, and the name is no region's.
    let defined = format!(
        "<linearGradient id=\"g-0\" gradientUnits=\"userSpaceOnUse\" x1=\"{}\" y1=\"80\" x2=\"{}\" y2=\"80\">",
        0.5 * parts(&text, g),
        59.5 * parts(&text, g)
    );
    assert!(text.contains(&defined), "{text}");
    assert_eq!(text.matches("<linearGradient").count(), 1);
    assert!(
        text.contains("data-label=\"4\" color=\"#010203\" fill=\"url(#g-0)\" stroke=\"url(#g-0)\" d="),
        "{text}"
    );
    for (labels, codes) in [(1999, 6000), (2000, 5999)] {
        let error = Gradients::new(&map[..labels], &rgb[..codes], g).err();
        assert!(matches!(error, Some(Error::Plane { .. })), "{labels} {codes}");
    }
}

#[test]
fn what_is_no_map_or_tolerance_is_refused() {
    let g = geometry(4, 2);
    assert!(matches!(Outlines::new(&[0; 7], g, 0.5), Err(Error::Plane { needed: 8, got: 7, .. })));
    for tolerance in [-0.1, 4.1, f32::NAN, f32::INFINITY] {
        assert!(matches!(Outlines::new(&[0; 8], g, tolerance), Err(Error::Param { name: "tolerance", .. })));
    }
    let cpu = Cpu::new(1).unwrap();
    for scale in [0.0, 6.1, f32::NAN] {
        assert!(matches!(
            LabelSmoother::new(&cpu, g, scale),
            Err(Error::Param { name: "outline-smoothness", .. })
        ));
    }
    let mut smoother = LabelSmoother::new(&cpu, g, 1.0).unwrap();
    let (mut map, mut out) = ([0; 12], [0; 8]);
    let other = Labels::new(geometry(4, 3), &mut map, 4).unwrap();
    let error = smoother.smooth(&other, &mut Labels::new(g, &mut out, 4).unwrap());
    assert!(matches!(error, Err(Error::Labels { .. })));
}

fn smoothed(map: &[u16], g: Geometry, scale: f32, threads: u32) -> Vec<u16> {
    let (mut map, mut out) = (map.to_vec(), vec![9999; map.len()]);
    let width = g.width() as usize;
    let labels = Labels::new(g, &mut map, width).unwrap();
    let mut smoother = LabelSmoother::new(&Cpu::new(threads).unwrap(), g, scale).unwrap();
    smoother.smooth(&labels, &mut Labels::new(g, &mut out, width).unwrap()).unwrap();
    out
}

#[test]
fn smoothed_labels_lose_hairs_and_keep_lines_borders_and_masks() {
    let (w, h) = (150, 100);
    let g = geometry(w, h);
    let map: Vec<u16> = (0..(w * h) as usize)
        .map(|at| {
            let (x, y) = (at % w as usize, at / w as usize);
            match (x, y) {
                (140.., _) => NO_LABEL,
                (_, 70) => 2,
                // Hairs of one px along a border.
                (_, 30) if x % 9 == 4 => 1,
                (_, ..=30) => 0,
                _ => 1,
            }
        })
        .collect();
    for threads in [1, 3] {
        let out = smoothed(&map, g, 2.0, threads);
        let at = |x: usize, y: usize| out[y * w as usize + x];
        // The end of a line recedes.
        for x in 0..130 {
            assert_eq!([at(x, 30), at(x, 31), at(x, 69), at(x, 70), at(x, 71)], [0, 1, 1, 2, 1], "{x}");
        }
        assert!((0..100).all(|y| (140..150).all(|x| at(x, y) == NO_LABEL)));
    }
    // A map that has nothing to smooth stays.
    let halves: Vec<u16> = (0..(w * h) as usize).map(|at| u16::from(at % 150 >= 77)).collect();
    assert!(smoothed(&halves, g, 6.0, 2) == halves);
}

/// True if a ring goes around the middle of a pixel.
fn surrounds(ring: &[[f32; 2]], x: usize, y: usize) -> bool {
    let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
    let sides = ring.iter().zip(ring.iter().cycle().skip(1));
    let crosses = |(a, b): &(&[f32; 2], &[f32; 2])| {
        (a[1] <= y) != (b[1] <= y) && a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]) > x
    };
    sides.filter(crosses).count() % 2 == 1
}

#[test]
fn polygons_have_exactly_the_pixels_of_their_region() {
    for (seed, (w, h)) in [(40, 30), (7, 50), (1, 1), (33, 33), (2, 2)].into_iter().enumerate() {
        // Few labels and much noise: holes in holes, and pieces that touch at a corner.
        let map = drawn_map(w, h, seed, 3);
        let outlines = Outlines::new(&map, geometry(w as u32, h as u32), 0.0).unwrap();
        for label in 0..4 {
            let polygons = outlines.polygons(label);
            for (at, &own) in map.iter().enumerate() {
                let (x, y) = (at % w, at / w);
                let covers = polygons.iter().filter(|polygon| {
                    let in_hole = polygon.holes.iter().any(|hole| surrounds(hole, x, y));
                    surrounds(&polygon.outer, x, y) && !in_hole
                });
                assert_eq!(covers.count(), usize::from(own == label), "{seed}: {label} at {x}, {y}");
            }
        }
    }
}

#[test]
fn polygons_are_pieces_with_their_own_holes() {
    #[rustfmt::skip]
    let map = [
        1, 1, 1, 1, 1, 0,
        1, 0, 0, 0, 1, 0,
        1, 0, 1, 0, 1, 0,
        1, 0, 0, 0, 1, 0,
        1, 1, 1, 1, 1, 0,
        0, 0, 0, 0, 0, 1,
    ];
    let polygons = Outlines::new(&map, geometry(6, 6), 0.0).unwrap().polygons(1);
    let sizes: Vec<_> = polygons.iter().map(|polygon| (polygon.outer.len(), polygon.holes.len())).collect();
    // The frame has the hole; the pixel in it and the one at the frame's corner are pieces of their own.
    assert_eq!(polygons.len(), 3);
    assert_eq!(sizes.iter().map(|(_, holes)| holes).sum::<usize>(), 1);
    let frame = polygons.iter().find(|polygon| !polygon.holes.is_empty()).unwrap();
    let corners = |points: &[[f32; 2]]| points.iter().map(|&[x, y]| [x as u32, y as u32]).collect::<Vec<_>>();
    assert!([[0, 0], [5, 0], [5, 5], [0, 5]].iter().all(|corner| corners(&frame.outer).contains(corner)));
    assert!([[1, 1], [4, 1], [4, 4], [1, 4]].iter().all(|corner| corners(&frame.holes[0]).contains(corner)));
    assert!(Outlines::new(&map, geometry(6, 6), 0.0).unwrap().polygons(7).is_empty());
}

#[test]
fn boundaries_have_each_side_between_labels_once() {
    let (w, h) = (37, 29);
    let map = drawn_map(w, h, 5, 9);
    let mut short: Vec<u16> =
        map.iter().map(|&label| if label == 3 { NO_LABEL } else { label as u16 }).collect();
    let at = |x: i64, y: i64| {
        let is_inside = x >= 0 && y >= 0 && x < w as i64 && y < h as i64;
        match is_inside.then(|| map[y as usize * w + x as usize]) {
            Some(label) if label != 3 => label,
            _ => OUTSIDE,
        }
    };
    let mut sides = HashMap::new();
    for boundary in boundaries(&Labels::new(geometry(w as u32, h as u32), &mut short, w).unwrap()).unwrap() {
        for pair in boundary.corners.windows(2) {
            let [from, to] = [pair[0], pair[1]].map(|corner| corner.map(i64::from));
            let step = [(to[0] - from[0]).signum(), (to[1] - from[1]).signum()];
            assert_eq!(step[0].abs() + step[1].abs(), 1, "along sides of pixels");
            let mut place = from;
            while place != to {
                let [x, y] = place;
                let (right, left) = match step {
                    [1, _] => (at(x, y), at(x, y - 1)),
                    [-1, _] => (at(x - 1, y - 1), at(x - 1, y)),
                    [_, 1] => (at(x - 1, y), at(x, y)),
                    _ => (at(x, y - 1), at(x - 1, y - 1)),
                };
                assert_eq!(boundary.beside, [right, left]);
                place = [x + step[0], y + step[1]];
                let side = if step[0] + step[1] > 0 { [x, y] } else { place };
                *sides.entry((side, step[0] != 0)).or_insert(0) += 1;
            }
        }
    }
    for y in 0..=h as i64 {
        for x in 0..=w as i64 {
            for (other, is_level) in [(at(x, y - 1), true), (at(x - 1, y), false)] {
                let expected = i32::from(at(x, y) != other);
                assert_eq!(sides.get(&([x, y], is_level)).copied().unwrap_or(0), expected, "{x}, {y}");
            }
        }
    }
}
