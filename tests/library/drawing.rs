// SPDX-License-Identifier: MPL-2.0
//! Drawing against a second implementation of its definition, byte by byte: fills and lines on every format, also on
//! shared chroma, means of codes and of light, colors of identities.

use crate::pictures::places::{place, sharing};
use crate::pictures::{Buffer, PICTURES, Picture, channels, clip};
use gstsuperpixel::color::{Yuv, widen};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, PixelFormat, YuvMatrix};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;
use gstsuperpixel::post::overlay::false_color;
use gstsuperpixel::regions::Regions;
use proptest::prelude::*;

/// Segments a frame and draws on a copy.
fn draw(
    engine: &mut Engine<Cpu>,
    buffer: &Buffer,
    drawing: &Drawing,
    linear_light: bool,
) -> (Vec<u16>, Regions, Vec<Vec<u8>>) {
    let g = buffer.info.geometry;
    let mut map = vec![0; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let outputs = Outputs { table: true, neighbors: false, mean_color: true, linear_light };
    let regions = engine.segment(&buffer.frame(), &mut labels, outputs).unwrap().clone();
    let mut planes = buffer.planes.clone();
    let parts = planes.iter_mut().map(Vec::as_mut_slice);
    let mut frame = FrameMut::new(buffer.info, parts, &buffer.strides).unwrap();
    engine.draw(&mut frame, &labels, drawing).unwrap();
    (map, regions, planes)
}

/// Light of a code by the formula of sRGB, 65535 at white.
fn light(code: u16, bits: u32) -> u64 {
    let v = f64::from(code) / f64::from((1u32 << bits) - 1);
    let linear = if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
    (65_535.0 * linear).round() as u64
}

/// The mean R'G'B' of each label in the frame's bits, and in its own channels.
fn means(buffer: &Buffer, map: &[u16], count: usize, linear_light: bool) -> Vec<([u16; 3], [u16; 3])> {
    let (bits, width) = (buffer.info.format.bits(), buffer.info.geometry.width() as usize);
    let yuv = Yuv::new(&buffer.info);
    let rgb_frame = buffer.info.format.is_rgb();
    let mut sums = vec![([0u64; 3], 0u64); count];
    let samples = buffer.samples();
    for (i, &label) in map.iter().enumerate() {
        let (native, rgb) = samples(i % width, i / width);
        let (sum, n) = &mut sums[usize::from(label)];
        *n += 1;
        for j in 0..3 {
            sum[j] += if linear_light { light(rgb[j], bits) } else { u64::from(native[j]) };
        }
    }
    let codes: Vec<u64> = (0..1u32 << bits).map(|code| light(code as u16, bits)).collect();
    let code_of =
        |value: u64| codes.iter().enumerate().min_by_key(|(i, l)| (l.abs_diff(value), *i)).unwrap().0 as u16;
    sums.into_iter()
        .map(|(sum, n)| {
            let mean = sum.map(|s| (s as f64 / n as f64 + 0.5).floor() as u64);
            if linear_light {
                let rgb = mean.map(code_of);
                (rgb, if rgb_frame { rgb } else { yuv.yuv_wide(rgb) })
            } else {
                let native = mean.map(|m| m as u16);
                (if rgb_frame { native } else { yuv.rgb_wide(native) }, native)
            }
        })
        .collect()
}

fn blend(below: u16, color: u16, alpha: u32) -> u16 {
    ((alpha * u32::from(color) + (255 - alpha) * u32::from(below) + 127) / 255) as u16
}

/// Every plane as it has to be, from a color for each label.
fn drawn(buffer: &Buffer, map: &[u16], fill: Option<&[[u16; 3]]>, lines: Option<Boundaries>) -> Vec<Vec<u8>> {
    let info = &buffer.info;
    let (w, h) = (info.geometry.width() as usize, info.geometry.height() as usize);
    let at = |x: usize, y: usize| map[y * w + x];
    let thin = |x: usize, y: usize| {
        (x + 1 < w && at(x + 1, y) != at(x, y)) || (y + 1 < h && at(x, y + 1) != at(x, y))
    };
    let width = lines.map_or(0, |lines| lines.width as usize);
    let reach = |v: usize, side: usize| v.saturating_sub(width / 2)..(v + width.div_ceil(2)).min(side);
    let on: Vec<bool> = (0..w * h)
        .map(|i| width > 0 && reach(i / w, h).any(|y| reach(i % w, w).any(|x| thin(x, y))))
        .collect();
    let [alpha, r, g, b] = lines.map_or(0, |lines| lines.color).to_be_bytes();
    let rgb = [r, g, b].map(|code| widen(code, info.format.bits()));
    let line = native_of(info, rgb);
    let mut planes = buffer.planes.clone();
    // Columns and rows that share a sample, of each channel: its color is the mean of those, and a line is on it where it is on one.
    let shared = sharing(info.format);
    let samples = buffer.samples();
    for (c, channel) in channels(info.format).into_iter().enumerate() {
        let [wide, high] = if c == 0 { [1, 1] } else { shared };
        for (y, x) in (0..h).step_by(high).flat_map(|y| (0..w).step_by(wide).map(move |x| (y, x))) {
            let pixels: Vec<usize> =
                (y..(y + high).min(h)).flat_map(|y| (x..(x + wide).min(w)).map(move |x| y * w + x)).collect();
            let any = pixels.iter().any(|&i| on[i]);
            let below = match fill {
                None => samples(x, y).0[c],
                Some(fill) => {
                    let sum: f64 = pixels.iter().map(|&i| f64::from(fill[usize::from(map[i])][c])).sum();
                    (sum / pixels.len() as f64 + 0.5).floor() as u16
                }
            };
            if fill.is_some() || any {
                let code = if any { blend(below, line[c], alpha.into()) } else { below };
                channel.at(x, y).put(&mut planes, &buffer.strides, code, 0);
            }
        }
    }
    planes
}

fn native_of(info: &FrameInfo, rgb: [u16; 3]) -> [u16; 3] {
    if info.format.is_rgb() { rgb } else { Yuv::new(info).yuv_wide(rgb) }
}

fn native(info: &FrameInfo, rgb: [u8; 3]) -> [u16; 3] {
    native_of(info, rgb.map(|code| widen(code, info.format.bits())))
}

fn check(
    engine: &mut Engine<Cpu>,
    buffer: &Buffer,
    drawing: &Drawing,
    linear_light: bool,
) -> Result<(), TestCaseError> {
    let (map, regions, planes) = draw(engine, buffer, drawing, linear_light);
    let means = means(buffer, &map, regions.count as usize, linear_light);
    let white = f64::from((1u32 << buffer.info.format.bits()) - 1);
    for (region, (rgb, _)) in regions.table.iter().zip(&means) {
        let rgb = rgb.map(|code| (f64::from(code) * 255.0 / white + 0.5).floor() as u8);
        prop_assert_eq!(&region.mean_rgb[..3], &rgb[..], "mean color in the table");
    }
    let fill: Option<Vec<[u16; 3]>> = match drawing.fill {
        Fill::None => None,
        Fill::MeanColor => Some(means.iter().map(|(_, native)| *native).collect()),
        Fill::Labels => {
            let names = regions.table.iter().map(|region| region.track_id);
            Some(names.map(|id| native(&buffer.info, false_color(id))).collect())
        }
        Fill::Abstraction(_) => unreachable!("tests of its own"),
    };
    let want = drawn(buffer, &map, fill.as_deref(), drawing.boundaries);
    for (plane, (want, got)) in want.iter().zip(&planes).enumerate() {
        let first = want.iter().zip(got).position(|(a, b)| a != b);
        prop_assert_eq!(first, None, "plane {} is drawn differently", plane);
    }
    Ok(())
}

fn any_drawing() -> impl Strategy<Value = Drawing> {
    let lines = prop::option::weighted(0.8, (any::<u32>(), 1u32..9));
    (0usize..3, lines).prop_map(|(fill, lines)| Drawing {
        fill: [Fill::None, Fill::MeanColor, Fill::Labels][fill],
        boundaries: lines.map(|(color, width)| Boundaries { color, width }),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_drawn_as_defined(
        (w, h, format, seed, picture) in (1u32..70, 1u32..50, 0..PixelFormat::ALL.len(), any::<u32>(), 0usize..6),
        (matrix, full_range, size) in (0usize..3, any::<bool>(), 4u32..20),
        (drawing, linear_light, merged) in (any_drawing(), any::<bool>(), any::<bool>()),
    ) {
        let info = FrameInfo {
            geometry: Geometry::new(w, h).unwrap(),
            format: PixelFormat::ALL[format],
            matrix: [YuvMatrix::Bt601, YuvMatrix::Bt709, YuvMatrix::Bt2020][matrix],
            full_range,
        };
        let buffer = Buffer::new(info, PICTURES[picture], seed.into(), 5);
        let ratio = if merged { 2.0 } else { 0.0 };
        let merge = merge::Params { ratio, ..Default::default() };
        let params = Params { superpixel_size: size, merge, ..Params::default() };
        let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(&params, info).unwrap()).unwrap();
        check(&mut engine, &buffer, &drawing, linear_light)?;
    }
}

#[test]
fn half_light_is_more_than_half_the_code() {
    for format in PixelFormat::ALL {
        let info = FrameInfo::new(Geometry::new(8, 8).unwrap(), format);
        let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
        // Columns black and white, without chroma.
        let (white, neutral) = (((1u32 << format.bits()) - 1) as u16, 1 << (format.bits() - 1));
        for (i, c) in (0..64).flat_map(|i| (0..channels(format).len()).map(move |c| (i, c))) {
            let code = if c > 0 && !format.is_rgb() { neutral } else { white * (i % 2) };
            let (x, y) = (usize::from(i % 8), usize::from(i / 8));
            place(format, c, x, y).put(&mut buffer.planes, &buffer.strides, code, 0);
        }
        let params = Params { superpixels: 1, ..Params::default() };
        let drawing = Drawing { fill: Fill::MeanColor, boundaries: None };
        // In 10 bits it is 752 of 1023, which is 187.4, in 12 3010 of 4095, which is 187.4, and in 16 48,192 of 65,535, which is 187.5.
        let bright = if [10, 12].contains(&format.bits()) { 187 } else { 188 };
        for (linear_light, want) in [(false, [128; 3]), (true, [bright; 3])] {
            let mut engine = Engine::new(Cpu::new(1).unwrap(), Plan::new(&params, info).unwrap()).unwrap();
            let (_, regions, _) = draw(&mut engine, &buffer, &drawing, linear_light);
            assert_eq!(&regions.table[0].mean_rgb[..3], &want, "{format:?}");
        }
    }
}

#[test]
fn a_flat_region_keeps_its_color_in_light() {
    for format in PixelFormat::ALL {
        let buffer =
            Buffer::new(FrameInfo::new(Geometry::new(40, 30).unwrap(), format), Picture::Flat, 77, 0);
        let params = Params { superpixel_size: 8, ..Params::default() };
        let drawing = Drawing { fill: Fill::MeanColor, boundaries: None };
        let mut tables = Vec::new();
        for linear_light in [false, true] {
            let mut engine =
                Engine::new(Cpu::new(1).unwrap(), Plan::new(&params, buffer.info).unwrap()).unwrap();
            tables.push(draw(&mut engine, &buffer, &drawing, linear_light).1.table);
        }
        // The low bits of those pictures with more vary.
        if format.bits() == 8 {
            assert_eq!(tables[0], tables[1], "{format:?}");
        }
    }
}

/// Long rows are drawn piece by piece.
#[test]
fn long_rows_are_drawn_as_defined() {
    for (i, format) in PixelFormat::ALL.into_iter().enumerate() {
        let info = FrameInfo::new(Geometry::new(1021 + i as u32 % 5, 7).unwrap(), format);
        let buffer = Buffer::new(info, Picture::Natural, 3 + i as u64, 2);
        let params = Params { superpixel_size: 4, ..Params::default() };
        let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(&params, info).unwrap()).unwrap();
        for width in 1..=8 {
            let boundaries = Some(Boundaries { color: 0x80ff_4020, width });
            check(&mut engine, &buffer, &Drawing { fill: Fill::None, boundaries }, false).unwrap();
        }
    }
}

#[test]
fn a_width_out_of_range_is_an_error() {
    let info = FrameInfo::new(Geometry::new(40, 30).unwrap(), PixelFormat::Rgb);
    let mut buffer = Buffer::new(info, Picture::Natural, 1, 0);
    let mut engine = Engine::new(Cpu::new(1).unwrap(), Plan::new(&Params::default(), info).unwrap()).unwrap();
    let mut map = vec![0; 40 * 30];
    let mut labels = Labels::new(info.geometry, &mut map, 40).unwrap();
    engine.segment(&buffer.frame(), &mut labels, Outputs::default()).unwrap();
    for width in [0, 9, u32::MAX] {
        let mut frame = FrameMut::new(info, [buffer.planes[0].as_mut_slice()], &buffer.strides).unwrap();
        let drawing =
            Drawing { fill: Fill::None, boundaries: Some(Boundaries { width, ..Default::default() }) };
        let error = engine.draw(&mut frame, &labels, &drawing).unwrap_err().to_string();
        assert!(error.starts_with("boundary-width must be 1 to 8, got"), "{error}");
    }
}

/// `overlay=labels` colors identities: what is the same region in two frames has one color in both.
#[test]
fn false_colors_go_with_identities() {
    let geometry = Geometry::new(120, 90).unwrap();
    for ratio in [0.0, 1.5] {
        let clip = clip(geometry, PixelFormat::Rgb, 3, 8, [2, 1], None);
        let merge = merge::Params { ratio, ..Default::default() };
        let params = Params { superpixel_size: 12, temporal: true, merge, ..Params::default() };
        let mut engine =
            Engine::new(Cpu::new(2).unwrap(), Plan::new(&params, clip[0].info).unwrap()).unwrap();
        let drawing = Drawing { fill: Fill::Labels, boundaries: None };
        let mut renamed = 0;
        for buffer in &clip {
            let (map, regions, planes) = draw(&mut engine, buffer, &drawing, false);
            for (i, &label) in map.iter().enumerate() {
                let id = regions.table[usize::from(label)].track_id;
                renamed += u32::from(id != u32::from(label));
                let at = i / 120 * buffer.strides[0] + i % 120 * 3;
                assert_eq!(planes[0][at..at + 3], false_color(id));
            }
        }
        assert!(renamed > 1000, "identities are labels: the test says nothing");
    }
}
