// SPDX-License-Identifier: MPL-2.0
//! Abstraction on the CPU: a pass over the frame for the paints of regions, then tiles that are drawn in parallel.

use std::ops::Range;

use super::Params;
use super::moments::BandMoments;
use super::outline::{self, HEIGHT, Tile, TopRow, WIDTH, difference};
use super::paint::{Mixer, Moments, Paint, PlaneScale, part};
use super::palette::{self, Candidate, NO_COLOR, Palette};
use super::rule::{APART, BOOST_ONE, DIFFERENCES, INKED, NARROW_WHOLE, PX, Rule, SHARP, THIN, WIDE_WHOLE};
use super::steady::Steady;
use super::still::{self, Still};
use crate::buffers::cpu::FrameBuffers;
use crate::color::{ColorSpace, ColorTables, Yuv};
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Band, Family, FrameInfo, FrameMut, Labels, Layout, NO_LABEL};
use crate::parallel::prelude::*;
use crate::plan::Plan;
use crate::post::runs::for_each_change;

/// Name of the paints in errors about memory.
const PAINTS: &str = "paints of regions";
/// Name of the last picture in errors about memory.
const DRAWN: &str = "the last picture of the abstraction";
/// Regions per task.
const TOGETHER: usize = 256;

/// Outlines of a tile that are kept for its next row.
const EDGES: usize = 16;

/// A tile's colors, by channel.
type Codes = [[[u16; WIDTH]; HEIGHT]; 3];

/// Memory of a task.
struct Scratch {
    tile: Tile,
    codes: Codes,
    /// What was drawn last, by channel, in the tiles' rows of the frame; see `settle`.
    drawn: Array<u16>,
}

pub(crate) struct Abstraction {
    cpu: Cpu,
    info: FrameInfo,
    yuv: Yuv,
    lab: &'static ColorTables,
    rule: Rule,
    params: Params,
    bands: Vec<BandMoments>,
    moments: Array<Moments>,
    paints: Array<Paint>,
    palette: Palette,
    steady: Steady,
    still: Still,
    /// One for each row of tiles.
    scratch: Vec<Scratch>,
}

impl Abstraction {
    pub fn new(cpu: &Cpu, plan: &Plan, params: &Params) -> Result<Self> {
        let yuv = Yuv::new(&plan.frame);
        let bands = cpu.threads().min(plan.frame.geometry.height() as usize);
        Ok(Self {
            cpu: cpu.clone(),
            info: plan.frame,
            rule: Rule::new(params, &plan.frame, &yuv),
            yuv,
            lab: ColorTables::shared(ColorSpace::Lab, 8)?,
            params: *params,
            bands: (0..bands).map(|_| BandMoments::default()).collect(),
            moments: Array::new(),
            paints: Array::new(),
            palette: Palette::default(),
            steady: Steady::default(),
            still: Still::default(),
            scratch: memory::collected(
                "tiles of the abstraction",
                (0..(plan.frame.geometry.height() as usize).div_ceil(HEIGHT)).map(|_| Scratch {
                    tile: Tile::new(),
                    codes: [[[0; WIDTH]; HEIGHT]; 3],
                    drawn: Array::new(),
                }),
            )?,
        })
    }

    /// Draws the regions of a frame, whose mean colors `buffers` has.
    pub fn draw(
        &mut self,
        frame: &mut FrameMut<'_>,
        buffers: &FrameBuffers,
        labels: &Labels<'_>,
        params: &Params,
    ) -> Result<()> {
        if buffers.means.is_empty() {
            return Ok(());
        }
        let is_same = *params == self.params;
        let same_palette = params.palette == self.params.palette;
        if !is_same {
            self.params = *params;
            self.rule = Rule::new(params, &self.info, &self.yuv);
        }
        self.measure(frame, labels, buffers.means.len())?;
        let eases = self.mix(buffers, labels, same_palette)?;
        if let Some(continues) = eases {
            self.still.look(&self.cpu, &frame.as_frame(), &self.rule, continues && is_same)?;
            let samples = 3 * HEIGHT * self.info.geometry.width() as usize;
            for scratch in &mut self.scratch[..] {
                memory::resize(&mut scratch.drawn, DRAWN, samples, 0)?;
            }
        }
        let Self { cpu, info, rule, paints, scratch, still, .. } = self;
        let scale = PlaneScale::new(info);
        let still = eases.map(|_| &*still);
        let layout = info.format.layout();
        let painter = Painter { rule, paints, fraction: scale.fraction, layout, info, still };
        cpu.run(|| {
            let bands = frame.bands_mut(HEIGHT).zip(scratch.par_iter_mut()).enumerate();
            bands.for_each(|(i, (mut band, scratch))| {
                for left in (0..info.geometry.width() as usize).step_by(WIDTH) {
                    painter.paint_tile(&mut band, labels, [left, i * HEIGHT], scratch);
                }
            });
        });
        Ok(())
    }

    /// Adds up the samples and boundaries of `count` regions.
    fn measure(&mut self, frame: &FrameMut<'_>, labels: &Labels<'_>, count: usize) -> Result<()> {
        let Self { cpu, info, rule, bands, moments, yuv, .. } = self;
        let height = info.geometry.height() as usize;
        let rows = height.div_ceil(bands.len());
        let used = height.div_ceil(rows);
        let (frame, samples, neutral) = (frame.as_frame(), rule.shading, yuv.neutral());
        cpu.run(|| {
            bands[..used].par_iter_mut().enumerate().try_for_each(|(i, band)| {
                let rows = i * rows..((i + 1) * rows).min(height);
                band.measure(&frame, labels, rows, samples, neutral)
            })
        })?;
        memory::refill(moments, PAINTS, count, Moments::default())?;
        bands[..used].iter().for_each(|band| band.add_to(moments));
        Ok(())
    }

    /// Makes the paints. Returns whether the frame continues the last one where paints ease, and else `None`. `same_palette` says that the
    /// palette of the last frame is as large.
    fn mix(
        &mut self,
        buffers: &FrameBuffers,
        labels: &Labels<'_>,
        same_palette: bool,
    ) -> Result<Option<bool>> {
        let Self { cpu, info, rule, moments, paints, yuv, lab, steady, palette, .. } = self;
        memory::resize(paints, PAINTS, moments.len(), Paint::default())?;
        let mixer = Mixer { rule, info, yuv, lab, scale: PlaneScale::new(info) };
        let tracks = buffers.temporal.as_ref().map_or(&[][..], |state| state.named());
        let eases = rule.share < PX as u32 && tracks.len() == paints.len();
        let continues = eases && steady.continues(tracks);
        if rule.palette > 0 {
            let candidates = palette.candidates(paints.len())?;
            let regions = candidates.iter_mut().zip(&buffers.sums[..]).zip(&buffers.means[..]).enumerate();
            for (label, ((candidate, sums), &code)) in regions {
                let last = if continues { steady.named(&tracks[label]) } else { None };
                let color = last.map_or(NO_COLOR, |paint| paint.color);
                *candidate = Candidate { code, feature: mixer.feature(code), area: sums.area, color };
            }
            palette.choose(&mixer, rule.palette, palette::step(info), continues && same_palette);
        }
        cpu.run(|| {
            let regions = buffers.sums.par_iter().zip(&buffers.means[..]).zip(&moments[..]).enumerate();
            paints.par_iter_mut().zip(regions).with_min_len(TOGETHER).for_each(
                |(paint, (label, ((sums, &mean), moments)))| {
                    let (number, color, feature) = match rule.palette {
                        0 => (NO_COLOR, mean, mixer.feature(mean)),
                        _ => palette.of(label),
                    };
                    *paint = mixer.paint(sums, moments, (color, feature));
                    paint.color = number;
                },
            );
        });
        if !eases {
            steady.forget();
            return Ok(None);
        }
        paints.iter_mut().zip(tracks).for_each(|(paint, track)| paint.age = track.age);
        if continues {
            steady.ease(paints, tracks, info.geometry, rule, mixer.scale.fraction);
        }
        cpu.run(|| {
            paints.par_iter_mut().with_min_len(TOGETHER).for_each(|paint| mixer.refresh(paint));
        });
        steady.keep(paints, tracks, labels)?;
        Ok(Some(continues))
    }

    /// Forgets the last frame: the next does not follow it.
    pub fn forget(&mut self) {
        self.steady.forget();
    }
}

/// The outline of two regions.
#[derive(Clone, Copy)]
struct Edge<'a> {
    labels: [u16; 2],
    paints: [&'a Paint; 2],
    /// Part of 256 to which the narrow Gaussian may count.
    contrasts: i32,
    /// Part of 256 of the ink, and its width in 1/256 px.
    strength: u32,
    ink_width: u32,
    /// Relative difference of two weights from which on nothing of the other region shows, unless the narrow Gaussian counts.
    reach: u32,
}

/// What all tiles are drawn with.
struct Painter<'a> {
    rule: &'a Rule,
    paints: &'a [Paint],
    fraction: u32,
    layout: &'static Layout,
    info: &'a FrameInfo,
    /// Set where drawn pixels ease.
    still: Option<&'a Still>,
}

impl Painter<'_> {
    /// Draws a tile.
    fn paint_tile(
        &self,
        band: &mut Band<'_>,
        labels: &Labels<'_>,
        at: [usize; 2],
        Scratch { tile, codes, drawn }: &mut Scratch,
    ) {
        match tile.load(labels, at, self.rule.radius) {
            Some(NO_LABEL) => {}
            Some(label) => {
                for y in 0..tile.height {
                    self.fill(codes, label, tile, 0..tile.width, y);
                }
            }
            None => {
                tile.find_outlines(self.rule, self.paints);
                if self.rule.keeps_corners {
                    tile.find_changes();
                }
                let mut edges = [None; EDGES];
                for y in 0..tile.height {
                    self.paint_row(tile, codes, y, &mut edges);
                }
            }
        }
        if let Some(still) = self.still {
            self.settle(still, tile, codes, drawn);
        }
        store(band, self.layout, tile, codes);
    }

    /// Lets a tile's colors follow those of the last frame where the picture is still.
    fn settle(&self, still: &Still, tile: &Tile, codes: &mut Codes, drawn: &mut [u16]) {
        let width = self.info.geometry.width() as usize;
        let fraction = 16 - self.info.format.bits();
        for (y, rows) in drawn.chunks_mut(3 * width).enumerate().take(tile.height) {
            let mut shares = [0; WIDTH];
            let of_cells = still.shares(self.info.geometry, [tile.left, tile.top + y]);
            for (shares, &share) in shares.chunks_mut(still::CELL).zip(of_cells) {
                shares.fill(share);
            }
            let labels = tile.own_row(y);
            for (codes, drawn) in codes[..self.channels()].iter_mut().zip(rows.chunks_mut(width)) {
                let drawn = &mut drawn[tile.left..][..tile.width];
                still::settle(&mut codes[y][..tile.width], drawn, &shares, fraction);
                let unlabeled = drawn.iter_mut().zip(labels).filter(|(_, label)| **label == NO_LABEL);
                unlabeled.for_each(|(drawn, _)| *drawn = 0);
            }
        }
    }

    /// Channels that are drawn.
    fn channels(&self) -> usize {
        if self.layout.family == Family::Gray { 1 } else { 3 }
    }

    /// Fills some pixels of a row with the paint of a region.
    fn fill(&self, codes: &mut Codes, label: u16, tile: &Tile, columns: Range<usize>, y: usize) {
        let Some(paint) = self.paints.get(usize::from(label)) else { return };
        let (left, top) = (tile.left + columns.start, tile.top + y);
        for (c, codes) in codes.iter_mut().enumerate().take(self.channels()) {
            let codes = &mut codes[y][columns.clone()];
            let (low, high) = (i32::from(paint.low[c]), i32::from(paint.high[c]));
            if low == high {
                codes.fill(paint.low[c]);
                continue;
            }
            let first = paint.value(c, left, top);
            for (i, code) in codes.iter_mut().enumerate() {
                *code = ((first + paint.slope_x[c] * i as i32) >> self.fraction).clamp(low, high) as u16;
            }
        }
    }

    /// Paints a row of a tile: runs of one region first, then what is near an outline.
    fn paint_row<'a>(
        &'a self,
        tile: &Tile,
        codes: &mut Codes,
        y: usize,
        edges: &mut [Option<Edge<'a>>; EDGES],
    ) {
        let TopRow { weight: [most, second], label: [own, other] } = &tile.rows[y];
        let (labels, changes) = (tile.own_row(y), &tile.changes[y]);
        let mut start = 0;
        for_each_change(&own[..tile.width], |x| {
            self.fill(codes, own[start], tile, start..x, y);
            start = x;
        });
        self.fill(codes, own[start], tile, start..tile.width, y);
        let mut last = [NO_LABEL; 2];
        let mut at = 0;
        for (i, seconds) in second.as_chunks::<8>().0.iter().enumerate() {
            // A pixel of one region alone has no second weight.
            if *seconds == [0; 8] {
                continue;
            }
            for x in (8 * i..tile.width.min(8 * i + 8)).filter(|&x| second[x] > 0) {
                let pair = [own[x], other[x]];
                if pair != last {
                    (last, at) = (pair, (2 * usize::from(pair[0]) + usize::from(pair[1])) % EDGES);
                    if edges[at].is_none_or(|edge| edge.labels != pair) {
                        edges[at] = Some(self.edge(pair));
                    }
                }
                let Some(edge) = &edges[at] else { continue };
                let weights = [most[x], second[x]].map(u32::from);
                // Beyond `reach` a pixel is its region's alone, if the narrow Gaussian says nothing else.
                let is_near =
                    DIFFERENCES as u32 * (weights[0] - weights[1]) < edge.reach * (weights[0] + weights[1]);
                if is_near || edge.contrasts > 0 && (changes[x] != 0 || labels[x] != pair[0]) {
                    self.mix(tile, codes, [x, y], weights, edge);
                }
            }
        }
    }

    /// What holds along the whole outline of two regions.
    fn edge(&self, labels: [u16; 2]) -> Edge<'_> {
        let rule = self.rule;
        let paints = labels.map(|label| &self.paints[usize::from(label)]);
        let contrast = paints[0].contrast(paints[1]);
        let contrasts = if rule.keeps_corners { part(contrast, SHARP) as i32 } else { 0 };
        let strength = part(contrast, INKED);
        let ink_width = (rule.ink * strength) >> 8;
        let is_plain = paints.iter().all(|paint| paint.boost.iter().all(|&of| u32::from(of) == BOOST_ONE));
        let reach = if is_plain {
            let distance = PX as u32 / 2 + ink_width / 2;
            rule.far.partition_point(|&far| u32::from(far) < distance) as u32
        } else {
            // Two weights differ by all at most.
            DIFFERENCES as u32 + 1
        };
        Edge { labels, paints, contrasts, strength, ink_width, reach }
    }

    /// Mixes the color of a pixel from two regions, and the line between them.
    fn mix(&self, tile: &Tile, codes: &mut Codes, [x, y]: [usize; 2], weights: [u32; 2], edge: &Edge<'_>) {
        let rule = self.rule;
        let [mut paint, mut beside] = edge.paints;
        let boosts = |scale: usize| edge.paints.map(|p| u32::from(p.boost[scale]));
        let mut distance = distance_of(&rule.far, weights, boosts(0), WIDE_WHOLE);
        if edge.contrasts > 0 {
            let narrow = tile.narrow_weights(x, y, edge.labels);
            let [a, b] = [0, 1].map(|i| (narrow[i] * boosts(1)[i]) >> 8);
            if a + b > 0 {
                let near = distance_of(&rule.near, [a, b], boosts(1), NARROW_WHOLE);
                let near = if b == 0 && near > 0 { near.max(distance) } else { near };
                let [thin, beside_thin] = boosts(1);
                let apart = part(near.abs_diff(distance), APART).max(part(thin.max(beside_thin), THIN));
                let sharp = (edge.contrasts * apart as i32) >> 8;
                distance = (distance * (PX - sharp) + near * sharp) >> 8;
            }
        }
        let is_other = distance < 0;
        if is_other {
            (paint, beside) = (beside, paint);
            distance = -distance;
        }
        let coverage = (PX / 2 + distance).min(PX) as u32;
        let ink = self.ink(edge, distance);
        if coverage == PX as u32 && ink == 0 && !is_other {
            return;
        }
        let (left, top) = (tile.left + x, tile.top + y);
        for (c, codes) in codes.iter_mut().enumerate().take(self.channels()) {
            let [paint, beside] = [paint, beside].map(|p| u32::from(p.code(c, left, top, self.fraction)));
            let color = (paint * coverage + beside * (256 - coverage) + 128) >> 8;
            let color = (color * (256 - ink) + u32::from(rule.ink_color[c]) * ink + 128) >> 8;
            codes[y][x] = color as u16;
        }
    }

    /// Opacity of a line at a distance from its middle, of 256.
    fn ink(&self, edge: &Edge<'_>, distance: i32) -> u32 {
        let Edge { strength, ink_width, .. } = *edge;
        let covered =
            ((ink_width as i32 / 2 + PX / 2 - distance).clamp(0, PX) as u32 * ink_width.min(256)) >> 8;
        let opaque = (covered * (96 + ((160 * strength) >> 8))) >> 8;
        (opaque * self.rule.ink_alpha + 127) / 255
    }
}

/// Distance in 1/256 px from the outline between two regions by their weights; negative on the second's side. A region that weighs
/// more than 1 for its width is compared with all that it is not, since its two sides may be two regions.
#[inline(always)]
pub(super) fn distance_of(
    table: &[u16; DIFFERENCES + 1],
    [a, b]: [u32; 2],
    boosts: [u32; 2],
    whole: u32,
) -> i32 {
    let signed = |a: u32, b: u32| {
        let distance = i32::from(table[difference(a, b)]);
        if a < b { -distance } else { distance }
    };
    let is_first = boosts[0] >= boosts[1];
    let (thin, boost) = if is_first { (a, boosts[0]) } else { (b, boosts[1]) };
    if boost == BOOST_ONE {
        return signed(a, b);
    }
    let distance = signed(thin, whole - (thin * BOOST_ONE / boost).min(whole));
    if is_first { distance } else { -distance }
}

/// Writes a tile's colors where the segmentation has a label.
fn store(band: &mut Band<'_>, layout: &'static Layout, tile: &Tile, codes: &Codes) {
    let own = layout.own_channels();
    let is_packed =
        own == 3 && layout.planes == 1 && layout.channels.iter().all(|c| c.step == 4 && c.sample.bytes == 1);
    for y in 0..tile.height {
        let labels = tile.own_row(y);
        let mut start = 0;
        for run in labels.chunk_by(|a, b| (*a == NO_LABEL) == (*b == NO_LABEL)) {
            let columns = start..start + run.len();
            start = columns.end;
            if run[0] == NO_LABEL {
                continue;
            }
            if is_packed {
                store_packed(
                    &mut band.row(0, y)[4 * (tile.left + columns.start)..],
                    layout,
                    codes,
                    y,
                    columns,
                );
                continue;
            }
            for (channel, codes) in layout.channels[..own].iter().zip(codes) {
                let row = band.row(channel.plane, y);
                let samples = &mut row[channel.offset + (tile.left + columns.start) * channel.step..];
                let codes = &codes[y][columns.clone()];
                if channel.step == 1 {
                    samples.iter_mut().zip(codes).for_each(|(sample, &code)| *sample = code as u8);
                } else {
                    let last = codes.len() - 1;
                    let (whole, end) = samples.split_at_mut(last * channel.step);
                    for (bytes, &code) in whole.chunks_exact_mut(channel.step).zip(codes) {
                        channel.sample.set(bytes, code);
                    }
                    channel.sample.set(end, codes[last]);
                }
            }
        }
    }
    if layout.family != Family::Yuv || layout.is_whole() {
        return;
    }
    let [wide, high] = layout.subsampling.map(|log2| 1 << log2);
    for (i, y) in (0..tile.height).step_by(high).enumerate() {
        for x in (0..tile.width).step_by(wide) {
            let (mut sums, mut n) = ([0u32; 2], 0);
            let columns = x..tile.width.min(x + wide);
            for y in y..tile.height.min(y + high) {
                let [_, u, v] = codes.each_ref().map(|codes| &codes[y][columns.clone()]);
                for ((&label, &u), &v) in tile.own_row(y)[columns.clone()].iter().zip(u).zip(v) {
                    if label != NO_LABEL {
                        sums[0] += u32::from(u);
                        sums[1] += u32::from(v);
                        n += 1;
                    }
                }
            }
            if n == 0 {
                continue;
            }
            for (channel, sum) in layout.channels[1..].iter().zip(sums) {
                let row = band.row(channel.plane, i);
                let at = channel.offset + (tile.left + x) / wide * channel.step;
                channel.sample.set(&mut row[at..], ((2 * sum + n) / (2 * n)) as u16);
            }
        }
    }
}

/// Writes colors to pixels of four bytes, whose fourth stays.
fn store_packed(row: &mut [u8], layout: &Layout, codes: &Codes, y: usize, columns: Range<usize>) {
    let shifts = layout.channels.map(|channel| 8 * channel.offset as u32);
    let kept = !shifts.iter().fold(0, |bits, shift| bits | 0xff << shift);
    let [a, b, c] = codes.each_ref().map(|codes| &codes[y][columns.clone()]);
    for (pixel, ((&a, &b), &c)) in row.as_chunks_mut::<4>().0.iter_mut().zip(a.iter().zip(b).zip(c)) {
        let colors = u32::from(a) << shifts[0] | u32::from(b) << shifts[1] | u32::from(c) << shifts[2];
        *pixel = (u32::from_le_bytes(*pixel) & kept | colors).to_le_bytes();
    }
}

const _: () = assert!(DIFFERENCES == 1024 && outline::WIDTH.is_multiple_of(2));
