// SPDX-License-Identifier: MPL-2.0
//! The library with any parameters, formats, sizes, strides and sequences of frames: no panic, no access outside, and for every
//! frame the promises of `check`, whatever the number of threads and the strides.
#![no_main]

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels};
use gstsuperpixel::params::{BOUNDARY_WIDTH, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use libfuzzer_sys::fuzz_target;
use superpixel_fuzz::draw::Areas;
use superpixel_fuzz::pictures::Buffer;
use superpixel_fuzz::{check, draw};

static CPUS: LazyLock<[Cpu; 2]> = LazyLock::new(|| [1, 2].map(|threads| Cpu::new(threads).expect("threads")));

/// A label that no frame of these sizes has.
const UNUSED: u16 = 0xfffe;

/// Planes and strides of any length: taken if and only if they hold the frame.
fn shapes(u: &mut Unstructured<'_>) -> Result<()> {
    let (width, height) = (u.arbitrary()?, u.arbitrary()?);
    assert_eq!(
        Geometry::new(width, height).is_ok(),
        (1..=16384).contains(&width) && (1..=16384).contains(&height)
    );
    let info = draw::frame_info(u, 600)?;
    let memory = vec![0u8; 4096];
    let mut holds = true;
    let (mut planes, mut strides) = (Vec::new(), Vec::new());
    for (row, rows) in info.format.planes(info.geometry) {
        let stride = match u.int_in_range(0..=3)? {
            0 => row,
            1 => u.int_in_range(0..=row + 9)?,
            2 => row + u.int_in_range(0..=9)?,
            _ => u.arbitrary()?,
        };
        let needed = stride as u128 * (rows as u128 - 1) + row as u128;
        let length = match u.int_in_range(0..=2)? {
            0 => needed.min(4096) as usize,
            1 => (needed.min(4096) as usize).saturating_sub(u.int_in_range(0..=3)?),
            _ => u.int_in_range(0..=4096)?,
        };
        holds &= stride >= row && length as u128 >= needed;
        planes.push(&memory[..length]);
        strides.push(stride);
    }
    if draw::rarely(u, 8)? {
        planes.pop();
        holds = false;
    }
    assert_eq!(Frame::new(info, &planes, &strides).is_ok(), holds, "{info} {strides:?}");
    let mut copies: Vec<Vec<u8>> = planes.iter().map(|plane| plane.to_vec()).collect();
    let frame = FrameMut::new(info, copies.iter_mut().map(Vec::as_mut_slice), &strides);
    assert_eq!(frame.is_ok(), holds, "{info} {strides:?}");
    let (row, rows) = (info.geometry.width() as usize, info.geometry.height() as u128);
    let stride = if u.arbitrary()? { u.arbitrary()? } else { u.int_in_range(0..=row + 9)? };
    let mut labels = vec![0; u.int_in_range(0..=2000)?];
    let holds = stride >= row && labels.len() as u128 >= stride as u128 * (rows - 1) + row as u128;
    assert_eq!(Labels::new(info.geometry, &mut labels, stride).is_ok(), holds);
    Ok(())
}

/// Copies the picture to rows of another length.
fn with_padding(buffer: &Buffer, padding: usize) -> Buffer {
    let info = buffer.info;
    let (mut planes, mut strides) = (Vec::new(), Vec::new());
    for (plane, (row, rows)) in info.format.planes(info.geometry).enumerate() {
        let stride = row + padding;
        let mut bytes = vec![0x5a; rows * stride];
        for y in 0..rows {
            bytes[y * stride..][..row]
                .copy_from_slice(&buffer.planes[plane][y * buffer.strides[plane]..][..row]);
        }
        planes.push(bytes);
        strides.push(stride);
    }
    Buffer { info, planes, strides, mask: buffer.mask.clone(), prior: buffer.prior.clone() }
}

/// An engine with the strides that it is given.
struct Side {
    engine: Engine<Cpu>,
    padding: usize,
    map: Vec<u16>,
}

impl Side {
    fn new(cpu: usize, plan: &Plan, padding: usize) -> Self {
        let engine = Engine::new(CPUS[cpu].clone(), plan.clone()).expect("an engine on the CPU");
        Self { engine, padding, map: Vec::new() }
    }

    /// Segments a frame and returns the labels without the padding, which has to stay.
    fn segment(&mut self, buffer: &Buffer, areas: Option<&Areas>, outputs: Outputs) -> Vec<u16> {
        let geometry = buffer.info.geometry;
        let (width, stride) = (geometry.width() as usize, geometry.width() as usize + self.padding);
        self.map = vec![UNUSED; stride * geometry.height() as usize];
        let mut labels = Labels::new(geometry, &mut self.map, stride).expect("label plane");
        let frame = buffer.frame();
        let frame = areas.map_or(frame, |areas| frame.with_prior(areas.prior()));
        self.engine.segment(&frame, &mut labels, outputs).expect("a frame of the plan");
        let mut tight = Vec::with_capacity(geometry.pixels());
        for row in self.map.chunks(stride) {
            tight.extend_from_slice(&row[..width]);
            assert!(row[width..].iter().all(|&label| label == UNUSED), "labels in the padding");
        }
        tight
    }

    fn draw(&mut self, buffer: &Buffer, drawing: &Drawing) -> Option<Vec<Vec<u8>>> {
        let geometry = buffer.info.geometry;
        let stride = geometry.width() as usize + self.padding;
        let labels = Labels::new(geometry, &mut self.map, stride).expect("label plane");
        let mut planes = buffer.planes.clone();
        let parts = planes.iter_mut().map(Vec::as_mut_slice);
        let mut frame = FrameMut::new(buffer.info, parts, &buffer.strides).expect("frame");
        self.engine.draw(&mut frame, &labels, drawing).ok().map(|()| planes)
    }
}

/// A frame that the plan is not for is refused, and changes nothing.
fn refuse(u: &mut Unstructured<'_>, engine: &mut Engine<Cpu>, planned: FrameInfo) -> Result<()> {
    let info = draw::frame_info(u, 300)?;
    if (info.geometry, info.format) == (planned.geometry, planned.format) {
        return Ok(());
    }
    let other = Buffer::new(info, superpixel_fuzz::pictures::Picture::Flat, 1, 0);
    let mut map = vec![0; info.geometry.pixels()];
    let mut labels = Labels::new(info.geometry, &mut map, info.geometry.width() as usize).expect("labels");
    let result = engine.segment(&other.frame(), &mut labels, Outputs::default());
    assert!(result.is_err(), "a frame of {info} for a plan of {planned}");
    Ok(())
}

/// Identities so far.
struct Names {
    next: u64,
    certain: bool,
}

/// Whether priors cut, and what crossing their borders costs.
type DrawnPrior = Option<(bool, Option<u8>)>;

/// Asks for priors, which cut or do not, where the other parameters allow them.
fn expect_prior(params: &mut Params, prior: DrawnPrior) {
    params.prior = prior.is_some() && params.connectivity;
    let (cuts, price) = prior.unwrap_or((true, None));
    (params.prior_cuts, params.prior_price) = (cuts, price.unwrap_or(0).into());
}

fn sequence(u: &mut Unstructured<'_>) -> Result<()> {
    let most = draw::most_pixels(u)?;
    let info = draw::frame_info(u, most)?;
    let pixels = info.geometry.pixels();
    let mut params = draw::params(u, pixels)?;
    if draw::rarely(u, 40)? {
        draw::spoil(u, &mut params)?;
        assert_eq!(Plan::new(&params, info).is_ok(), params.validate().is_ok());
        return Ok(());
    }
    let prior = if u.arbitrary()? { None } else { Some(u.arbitrary()?) };
    expect_prior(&mut params, prior);
    let plan = Plan::new(&params, info).expect("valid parameters");
    let paddings = [u.int_in_range(0..=37)?, u.int_in_range(0..=5)?];
    let mut sides = [Side::new(0, &plan, paddings[0]), Side::new(1, &plan, paddings[1])];
    let mut names = Names { next: 1, certain: true };
    let mut buffer = draw::picture(u, info, paddings[0])?;
    for frame in 0..6 {
        if frame > 0 {
            if u.is_empty() {
                break;
            }
            step(u, &mut sides, (&mut params, prior), &mut names, &mut buffer)?;
        }
        let areas = if params.prior && !draw::rarely(u, 4)? { Some(draw::areas(u)?) } else { None };
        let outputs = draw::outputs(u)?;
        let other = with_padding(&buffer, paddings[1]);
        let map = sides[0].segment(&buffer, areas.as_ref(), outputs);
        let same = sides[1].segment(&other, areas.as_ref(), outputs);
        assert!(map == same, "threads or strides change the map");
        let (first, second) = (sides[0].engine.regions(), sides[1].engine.regions());
        assert!(first.table == second.table, "threads or strides change the table");
        let differ = first.motion.iter().zip(&second.motion).find(|(one, two)| one != two);
        assert!(
            first.motion == second.motion,
            "threads or strides change the motion: {differ:?}, frame {frame}, {params:?}"
        );
        assert!(first.neighbors == second.neighbors, "threads or strides change the neighbors");
        let of_pixels = areas.map(|areas| areas.of_pixels(info.geometry));
        check::regions(&map, first, &params, outputs, &buffer, of_pixels.as_deref());
        identities(&mut sides, &mut names, &params);
        let drawing = draw::drawing(u)?;
        let drawn = sides
            .each_mut()
            .map(|side| side.draw(if side.padding == paddings[0] { &buffer } else { &other }, &drawing));
        let width = drawing.boundaries.map(|lines| lines.width);
        let measured = outputs.mean_color || drawing.fill != Fill::MeanColor;
        if measured && width.is_none_or(|width| BOUNDARY_WIDTH.check(width).is_ok()) {
            let [Some(one), Some(two)] = drawn else { panic!("{drawing:?} is not drawn") };
            check::drawn(&buffer, &one);
            let planes = two;
            let tight = with_padding(&Buffer { planes, ..other }, 0);
            let same = with_padding(
                &Buffer { info, planes: one, strides: buffer.strides.clone(), mask: None, prior: None },
                0,
            );
            assert!(tight.planes == same.planes, "threads or strides change what is drawn");
        }
    }
    Ok(())
}

/// Changes the state between two frames.
fn step(
    u: &mut Unstructured<'_>,
    sides: &mut [Side; 2],
    (params, prior): (&mut Params, DrawnPrior),
    names: &mut Names,
    buffer: &mut Buffer,
) -> Result<()> {
    let info = buffer.info;
    match u.int_in_range(0..=5)? {
        0 => *buffer = draw::picture(u, info, sides[0].padding)?,
        1..=3 => draw::shift(u, buffer)?,
        4 => draw::scribble(u, buffer)?,
        _ => {}
    }
    match u.int_in_range(0..=11)? {
        0 => sides.iter_mut().for_each(|side| side.engine.reset()),
        1 => {
            // Near the end of the numbers, or anywhere. Old identities may come again then.
            let id = if u.arbitrary()? { u32::MAX - u.int_in_range(0..=99)? } else { u.arbitrary()? };
            for side in &mut *sides {
                side.engine.set_next_id(id).expect("the CPU backend");
            }
            if params.temporal {
                // Only what starts anew has none of the old ones.
                sides.iter_mut().for_each(|side| side.engine.reset());
                *names = Names { next: id.max(1).into(), certain: true };
            }
        }
        2 => refuse(u, &mut sides[0].engine, info)?,
        3..=5 => {
            draw::change(u, params, info.geometry.pixels())?;
            expect_prior(params, prior);
            let plan = Plan::new(params, info).expect("valid parameters");
            let changed = sides.each_mut().map(|side| side.engine.change(&plan).expect("the CPU backend"));
            assert_eq!(changed[0], changed[1]);
            if !changed[0] {
                for (cpu, side) in sides.iter_mut().enumerate() {
                    let id = side.engine.next_id().expect("the CPU backend");
                    *side = Side::new(cpu, &plan, side.padding);
                    side.engine.set_next_id(id).expect("the CPU backend");
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Identities are given one after the other.
fn identities(sides: &mut [Side; 2], names: &mut Names, params: &Params) {
    let next = sides.each_mut().map(|side| side.engine.next_id().expect("the CPU backend"));
    assert_eq!(next[0], next[1]);
    if !params.temporal {
        return;
    }
    let regions = sides[0].engine.regions();
    // Past the last number it goes on with 1.
    names.certain &= names.next + u64::from(regions.count) < u64::from(u32::MAX);
    if names.certain {
        assert!(u64::from(next[0]) >= names.next, "the next identity goes back");
        assert!(regions.table.iter().all(|region| region.track_id < next[0]), "an identity from the future");
        names.next = next[0].into();
    }
}

fuzz_target!(|data: &[u8]| {
    let mut u = Unstructured::new(data);
    // A run ends early when the bytes are used up.
    let _ = if u.ratio(1, 16).unwrap_or(false) { shapes(&mut u) } else { sequence(&mut u) };
});
