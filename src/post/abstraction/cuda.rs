// SPDX-License-Identifier: MPL-2.0
//! Abstraction on a CUDA device: sums of samples, paints of regions, and one launch that draws them.

use super::Params;
use super::moments::sample_step;
use super::paint::PlaneScale;
use super::palette::{self, MOST_COLORS};
use super::rule::{PX, Rule};
use super::{steady, still};
use crate::buffers::cuda::FrameBuffers;
use crate::color::{ColorSpace, ColorTables, Yuv};
use crate::cuda::abi::{AbstractionArgs, Address, Moments, Paint, PaletteArgs, SpaceArgs, SteadyArgs};
use crate::cuda::kernels::{abstraction_draw, abstraction_measure, abstraction_paint, abstraction_palette};
use crate::cuda::memory::Memory;
use crate::cuda::tuning::{PALETTE_THREADS, TABLE_THREADS, TILE_THREADS};
use crate::cuda::{Cuda, DeviceFrame};
use crate::error::Result;
use crate::image::{FrameInfo, Geometry};
use crate::plan::Plan;

const STAGE: &str = "overlay/abstraction";

/// What one frame leaves for the next.
struct Drawn {
    paints: Memory<Paint>,
    /// A table of track ids, and the label of each.
    keys: Memory<u32>,
    values: Memory<u32>,
    cells: Memory<u16>,
    /// The color of each region in the palette.
    colors: Memory<u32>,
}

impl Drawn {
    fn new(cuda: &Cuda, max_regions: usize, geometry: Geometry) -> Result<Self> {
        let slots = (2 * max_regions).next_power_of_two();
        let [columns, rows] = steady::cells(geometry);
        Ok(Self {
            paints: Memory::new(cuda, STAGE, max_regions)?,
            keys: Memory::new(cuda, STAGE, slots)?,
            values: Memory::new(cuda, STAGE, slots)?,
            cells: Memory::new(cuda, STAGE, columns * rows)?,
            colors: Memory::new(cuda, STAGE, max_regions)?,
        })
    }
}

/// State of still pixels.
struct Still {
    seen: Memory<u64>,
    calm: Memory<u64>,
    drawn: Memory<u64>,
}

impl Still {
    fn new(cuda: &Cuda, geometry: Geometry) -> Result<Self> {
        let cells = still::cells(geometry).iter().product();
        Ok(Self {
            seen: Memory::new(cuda, STAGE, cells)?,
            calm: Memory::new(cuda, STAGE, cells)?,
            drawn: Memory::new(cuda, STAGE, geometry.pixels())?,
        })
    }
}

/// State of a palette, and what one frame needs for it.
struct Palette {
    colors: Memory<u64>,
    features: Memory<u32>,
    count: Memory<u32>,
    region_features: Memory<u32>,
    differences: Memory<u32>,
}

impl Palette {
    fn new(cuda: &Cuda, max_regions: usize) -> Result<Self> {
        Ok(Self {
            colors: Memory::new(cuda, STAGE, MOST_COLORS)?,
            features: Memory::new(cuda, STAGE, MOST_COLORS)?,
            count: Memory::new(cuda, STAGE, 1)?,
            region_features: Memory::new(cuda, STAGE, max_regions)?,
            differences: Memory::new(cuda, STAGE, max_regions)?,
        })
    }
}

pub(crate) struct Abstraction {
    measure: abstraction_measure::Kernel,
    choose: abstraction_palette::Kernel,
    paint: abstraction_paint::Kernel,
    draw: abstraction_draw::Kernel,
    info: FrameInfo,
    yuv: Yuv,
    params: Params,
    args: AbstractionArgs,
    tables: Memory<u16>,
    lab_tables: Memory<u32>,
    lab: SpaceArgs,
    /// Zero before each frame: the paints' launch clears what it has read.
    moments: Memory<Moments>,
    /// How many regions have an earlier paint; zero before each frame, too.
    matched: Memory<u32>,
    /// Whether the frame is no cut.
    continues: Memory<u32>,
    /// Label in the last frame of each region's track.
    earlier: Memory<u32>,
    /// True while a frame's launches are not all in the queue.
    is_unfinished: bool,
    /// This frame and the last by turns.
    drawn: [Drawn; 2],
    /// True if the other one of `drawn` is of the frame before this.
    follows: bool,
    current: usize,
    /// Set where frames follow each other, and so drawn pixels may ease.
    still: Option<Still>,
    palette: Palette,
    share: u32,
    least_share: u32,
}

impl Abstraction {
    pub fn new(cuda: &Cuda, plan: &Plan, max_regions: usize, params: &Params) -> Result<Self> {
        let yuv = Yuv::new(&plan.frame);
        let rule = Rule::new(params, &plan.frame, &yuv);
        let device = &cuda.device;
        Ok(Self {
            measure: device.kernel(abstraction_measure::KERNEL, STAGE)?,
            choose: device.kernel(abstraction_palette::KERNEL, STAGE)?,
            paint: device.kernel(abstraction_paint::KERNEL, STAGE)?,
            draw: device.kernel(abstraction_draw::KERNEL, STAGE)?,
            info: plan.frame,
            yuv,
            params: *params,
            args: args(&rule, &plan.frame),
            tables: Memory::with(cuda, STAGE, &tables(&rule))?,
            lab_tables: FrameBuffers::lab_tables(cuda)?,
            lab: SpaceArgs::new(ColorTables::shared(ColorSpace::Lab, 8)?),
            moments: Memory::new(cuda, STAGE, max_regions)?,
            matched: Memory::new(cuda, STAGE, 1)?,
            continues: Memory::new(cuda, STAGE, 1)?,
            earlier: Memory::new(cuda, STAGE, max_regions)?,
            is_unfinished: false,
            drawn: [
                Drawn::new(cuda, max_regions, plan.frame.geometry)?,
                Drawn::new(cuda, max_regions, plan.frame.geometry)?,
            ],
            follows: false,
            current: 0,
            still: plan.temporal().map(|_| Still::new(cuda, plan.frame.geometry)).transpose()?,
            palette: Palette::new(cuda, max_regions)?,
            share: rule.share,
            least_share: rule.least_share,
        })
    }

    /// Draws the regions of a frame, whose mean colors `buffers` has.
    pub fn draw(&mut self, frame: &DeviceFrame<'_>, buffers: &FrameBuffers, params: &Params) -> Result<()> {
        let queue = &buffers.queue;
        let is_same = *params == self.params;
        let same_palette = params.palette == self.params.palette;
        if !is_same {
            let rule = Rule::new(params, &self.info, &self.yuv);
            self.tables.write(&queue.cuda, STAGE, 0, &tables(&rule))?;
            (self.args, self.params) = (args(&rule, &self.info), *params);
            (self.share, self.least_share) = (rule.share, rule.least_share);
        }
        if std::mem::replace(&mut self.is_unfinished, true) {
            self.moments = Memory::new(&queue.cuda, STAGE, self.moments.len())?;
            self.matched = Memory::new(&queue.cuda, STAGE, 1)?;
            self.follows = false;
        }
        self.current = 1 - self.current;
        let (steady, palette) = (&self.steady(is_same), &self.palette(same_palette));
        let (labels, frame, args) = (buffers.labels().address(), &frame.args(), &self.args);
        let drawn = &self.drawn[self.current];
        let (moments, paints, tables) =
            (self.moments.address(), drawn.paints.address(), self.tables.address());
        let (counters, tracks, tiles) = (buffers.counters(), buffers.tracks(), buffers.tiles);
        let regions = (drawn.paints.len() as u32).div_ceil(TABLE_THREADS);
        // SAFETY: the caller has compared the frame with the plan, for which `FrameBuffers::new` has made labels, and sums and means
        // for each of the most regions; `new` has made moments, paints and tables of tracks for as many, and in temporal mode what is kept of
        // still pixels for every pixel and cell of the frame. The tables of the rule are as long
        // as `tables` makes them for any parameters.
        unsafe {
            let measured =
                abstraction_measure::Args { counters, labels, tracks, moments, frame, args, steady };
            queue.launch(&self.measure, (tiles.0.div_ceil(2), tiles.1), TILE_THREADS, &measured)?;
            if palette.size > 0 {
                let chosen = abstraction_palette::Args {
                    counters,
                    regions: buffers.regions.address(),
                    means: buffers.means.address(),
                    lab_tables: self.lab_tables.address(),
                    frame,
                    lab: &self.lab,
                    steady,
                    palette,
                };
                queue.launch(&self.choose, (1, 1), PALETTE_THREADS, &chosen)?;
            }
            let painted = abstraction_paint::Args {
                counters,
                moments,
                regions: buffers.regions.address(),
                means: buffers.means.address(),
                tracks,
                paints,
                tables,
                lab_tables: self.lab_tables.address(),
                frame,
                lab: &self.lab,
                args,
                steady,
                palette,
            };
            queue.launch(&self.paint, (regions, 1), TABLE_THREADS, &painted)?;
            let drawn = abstraction_draw::Args { labels, paints, tables, frame, args, steady };
            queue.launch(&self.draw, tiles, TILE_THREADS, &drawn)?;
        }
        self.is_unfinished = false;
        self.follows = steady.share < PX as u32;
        Ok(())
    }

    /// Forgets the last frame: the next does not follow it.
    pub fn forget(&mut self) {
        self.follows = false;
    }

    fn palette(&self, same_palette: bool) -> PaletteArgs {
        let Palette { colors, features, count, region_features, differences } = &self.palette;
        PaletteArgs {
            colors: colors.address(),
            features: features.address(),
            count: count.address(),
            region_features: region_features.address(),
            differences: differences.address(),
            last: self.drawn[1 - self.current].colors.address(),
            chosen: self.drawn[self.current].colors.address(),
            size: self.params.palette,
            step: palette::step(&self.info),
            follows: u32::from(self.follows && same_palette),
            unused: 0,
        }
    }

    fn steady(&self, is_same: bool) -> SteadyArgs {
        let [columns, rows] = steady::cells(self.info.geometry).map(|cells| cells as u32);
        let [still_columns, still_rows] = still::cells(self.info.geometry).map(|cells| cells as u32);
        let still = self.still.as_ref();
        let address =
            |of: fn(&Still) -> &Memory<u64>| still.map_or(Address::NULL, |still| of(still).address());
        let (last, next) = (&self.drawn[1 - self.current], &self.drawn[self.current]);
        SteadyArgs {
            last: last.paints.address(),
            keys: last.keys.address(),
            values: last.values.address(),
            next_keys: next.keys.address(),
            next_values: next.values.address(),
            cells: last.cells.address(),
            next_cells: next.cells.address(),
            earlier: self.earlier.address(),
            matched: self.matched.address(),
            continues: self.continues.address(),
            seen: address(|still| &still.seen),
            calm: address(|still| &still.calm),
            drawn: address(|still| &still.drawn),
            mask: last.keys.len() as u32 - 1,
            columns,
            rows,
            share: if still.is_some() { self.share } else { PX as u32 },
            follows: u32::from(self.follows),
            is_same: u32::from(is_same),
            least_share: self.least_share,
            still_columns,
            still_rows,
            fraction: 16 - self.info.format.bits(),
        }
    }
}

/// Distances at the wide scale, at the narrow one, and weights by width, in one array.
fn tables(rule: &Rule) -> Vec<u16> {
    [&rule.far[..], &rule.near[..], &rule.boosts[..]].concat()
}

fn args(rule: &Rule, info: &FrameInfo) -> AbstractionArgs {
    let taps = 2 * rule.radius + 1;
    // Four pixels beside each other read the same words of four columns, with their weights a byte further on each.
    let mut weights = [[0u32; 9]; 4];
    for (first, words) in weights.iter_mut().enumerate() {
        for (tap, &weight) in rule.weights[..taps].iter().enumerate() {
            words[(first + tap) / 4] |= u32::from(weight) << (8 * ((first + tap) % 4));
        }
    }
    let scale = PlaneScale::new(info);
    AbstractionArgs {
        label_stride: info.geometry.width(),
        radius: rule.radius as u32,
        sample_step: sample_step(info.geometry.pixels()) as u32,
        shading: u32::from(rule.shading),
        fraction: scale.fraction,
        steepest: scale.steepest,
        deviation: rule.deviation,
        keeps_corners: u32::from(rule.keeps_corners),
        ink: rule.ink,
        ink_alpha: rule.ink_alpha,
        ink_color: rule.ink_color.map(u32::from),
        words: (taps as u32 + 3).div_ceil(4),
        weights,
    }
}
