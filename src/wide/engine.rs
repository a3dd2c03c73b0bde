// SPDX-License-Identifier: MPL-2.0
//! The engine of label maps of 32 bits: colors of the whole frame, clusters window by window, regions of all.

use std::ops::Range;

use super::Plan;
use super::windows::Window;
use crate::backend::{Backend, Ingest, Internal, Segmenter};
use crate::buffers::cpu::{FrameBuffers, NO_CLUSTER};
use crate::color::OUTSIDE;
use crate::cpu::Cpu;
use crate::cpu::memory::{self, Array};
use crate::error::{Error, Result};
use crate::image::{Frame, NO_LABEL, check_rows};
use crate::parallel::prelude::*;
use crate::plan;
use crate::post::connectivity::wide::Regions;

/// Name of the planes in errors about memory.
const CLUSTERS: &str = "clusters";

/// Stages and memory for frames of one [`Plan`], whose windows are clustered on one backend.
// Fields are dropped in their order: stages live in the backend's context.
pub struct Engine<B: Backend> {
    plan: Plan,
    ingest: Box<dyn Ingest<Cpu>>,
    colors: FrameBuffers,
    /// Cell of each pixel's cluster, in the whole grid.
    clusters: Array<u32>,
    regions: Regions,
    clusterer: Option<Clusterer<B>>,
    backend: B,
    cpu: Cpu,
}

/// Stages and memory for windows of one size.
struct Clusterer<B: Backend> {
    plan: plan::Plan,
    segmenter: Box<dyn Segmenter<B>>,
    colors: Array<u32>,
    clusters: Array<u16>,
    buffers: B::Buffers,
}

impl<B: Backend> Clusterer<B> {
    fn new(backend: &B, plan: plan::Plan) -> Result<Self> {
        let pixels = plan.frame.geometry.pixels();
        let buffers = backend.buffers(&plan, Internal::CALL)?;
        Ok(Self {
            segmenter: backend.segmenter(&plan, &buffers, Internal::CALL)?,
            colors: memory::zeroed("colors of a window", pixels)?,
            clusters: memory::zeroed("clusters of a window", pixels)?,
            buffers,
            plan,
        })
    }
}

impl<B: Backend> Engine<B> {
    /// Creates the stages and their memory. Windows are clustered on `backend`, and all else is done by threads of `cpu`.
    ///
    /// # Errors
    ///
    /// Errors of the backend, for instance of memory.
    pub fn new(backend: B, cpu: Cpu, plan: Plan) -> Result<Self> {
        let colors = FrameBuffers::new(&cpu, &plan.whole)?;
        Ok(Self {
            ingest: cpu.ingest(&plan.whole, &colors, Internal::CALL)?,
            clusters: memory::zeroed(CLUSTERS, plan.whole.frame.geometry.pixels())?,
            regions: Regions::new(&cpu, &plan.whole)?,
            colors,
            clusterer: None,
            backend,
            cpu,
            plan,
        })
    }

    /// The plan that this engine runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Segments a frame: writes the label map, values 0..n-1, each used, and [`NO_LABEL`](super::NO_LABEL) outside of its mask.
    /// Returns n. Regions and their order are those of [`Engine::segment`](crate::engine::Engine::segment).
    ///
    /// `labels` are rows of `stride` labels, the last row may end at its last pixel. `look` is called before each window, on the
    /// thread of the call: what it returns as an error ends the call.
    ///
    /// # Errors
    ///
    /// A frame or plane that does not match the plan, errors of the backend, and those of `look`. They do not affect the next frame.
    pub fn segment<E: From<Error>>(
        &mut self,
        frame: &Frame<'_>,
        labels: &mut [u32],
        stride: usize,
        mut look: impl FnMut() -> Result<(), E>,
    ) -> Result<u32, E> {
        self.check(frame)?;
        let geometry = self.plan.whole.frame.geometry;
        let (width, height) = (geometry.width as usize, geometry.height as usize);
        check_rows("label plane", labels.len(), stride, width, height)?;
        let Self { cpu, ingest, colors, .. } = self;
        Cpu::run(cpu, || ingest.ingest(frame, colors))?;
        if self.plan.whole.grid.step() == 1 {
            self.name_pixels();
        }
        for i in 0..self.plan.windows.len() {
            look()?;
            self.cluster(i)?;
        }
        look()?;
        let Self { cpu, clusters, regions, colors, .. } = self;
        Ok(Cpu::run(cpu, || regions.find(clusters, colors, labels, stride))?)
    }

    fn check(&self, frame: &Frame<'_>) -> Result<()> {
        self.cpu.check_process()?;
        self.plan.whole.frame.check(frame.info())?;
        if frame.mask().is_some() && !self.plan.whole.masked {
            return Err(Error::Mask);
        }
        if frame.prior().is_some() && !self.plan.whole.prior {
            return Err(Error::Prior);
        }
        Ok(())
    }

    /// Makes every pixel a cluster.
    fn name_pixels(&mut self) {
        let (clusters, colors) = (&mut self.clusters, &self.colors.features);
        for (i, (cluster, &color)) in (0..).zip(clusters.iter_mut().zip(colors)) {
            *cluster = if color == OUTSIDE { NO_CLUSTER } else { i };
        }
    }

    /// Clusters a window, and puts the cells of its core in their places.
    fn cluster(&mut self, index: usize) -> Result<()> {
        let Self { plan, colors, clusters, clusterer, backend, cpu, .. } = self;
        let window = &plan.windows[index];
        let own = plan.of_window(window);
        let mut made = match clusterer.take().filter(|made| made.plan.frame.geometry == own.frame.geometry) {
            Some(made) if made.plan == own => made,
            // The one before goes first: a device may have no room for both.
            _ => Clusterer::new(backend, own)?,
        };
        let Clusterer { plan: own, segmenter, colors: inside, clusters: found, buffers } = &mut made;
        let (grid, width) = (&plan.whole.grid, plan.whole.frame.geometry.width as usize);
        let (left, top) = (grid.columns(window.columns.start).start, grid.rows(window.rows.start).start);
        let own_width = own.frame.geometry.width as usize;
        Cpu::run(cpu, || {
            inside.par_chunks_mut(own_width).enumerate().for_each(|(y, row)| {
                row.copy_from_slice(&colors.features[(top + y) * width + left..][..own_width]);
            });
        });
        backend.cluster(own, buffers, &mut **segmenter, inside, found, Internal::CALL)?;
        let names = names(window, grid.nx() as usize)?;
        let columns = span(&window.core_columns, |gx| grid.columns(gx));
        let rows = span(&window.core_rows, |gy| grid.rows(gy));
        let found = &found[..];
        Cpu::run(cpu, || {
            let core = clusters[rows.start * width..rows.end * width].par_chunks_mut(width).enumerate();
            core.for_each(|(y, row)| {
                let from = &found[(rows.start - top + y) * own_width + columns.start - left..];
                for (to, &cluster) in row[columns.clone()].iter_mut().zip(from) {
                    *to = names.get(usize::from(cluster)).copied().unwrap_or(NO_CLUSTER);
                }
            });
        });
        *clusterer = Some(made);
        Ok(())
    }
}

// Outside of a mask a window has this in place of a cell, which `cluster` finds no name for.
const _: () = assert!(NO_LABEL as u32 >= crate::grid::MAX_CELLS);

/// Pixels of some columns or rows of cells.
fn span(cells: &Range<usize>, of: impl Fn(usize) -> Range<usize>) -> Range<usize> {
    of(cells.start).start..of(cells.end - 1).end
}

/// Number in the whole grid of each cell of a window.
fn names(window: &Window, nx: usize) -> Result<Array<u32>> {
    let mut names = Array::new();
    memory::reserve(&mut names, CLUSTERS, window.columns.len() * window.rows.len())?;
    for gy in window.rows.clone() {
        names.extend(window.columns.clone().map(|gx| (gy * nx + gx) as u32));
    }
    Ok(names)
}
