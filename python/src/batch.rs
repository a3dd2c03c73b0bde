// SPDX-License-Identifier: MPL-2.0
//! Independent images beside each other: as many at once as there are threads, each on threads of its own, which wait for each
//! other less than all threads at one image.

use std::sync::{Mutex, PoisonError};

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, Labels, NO_LABEL};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

use crate::arrays::{Converted, PixelSource};
use crate::error::Failure;

/// Target for the labels of an image, in rows of the stride of its [`Job`].
pub enum Plane<'a> {
    /// As they are.
    Words(&'a mut [u16]),
    /// Each with this number added; what has no label has one less than this number.
    Shifted(&'a mut [i32], i32),
}

/// An image and the place for its labels.
pub struct Job<'a> {
    pub source: &'a PixelSource<'a>,
    /// One byte a pixel, where there is a mask.
    pub mask: Option<&'a [u8]>,
    pub plane: Plane<'a>,
    /// Labels from one row to the next.
    pub stride: usize,
}

/// Segments images that have nothing to do with each other. After an error the labels of some are there.
pub fn run(params: &Params, cpu: &Cpu, jobs: Vec<Job<'_>>) -> Result<(), Failure> {
    let at_once = cpu.threads().min(jobs.len());
    // The last ones, where most threads would have none.
    let rest = if at_once < 2 { jobs.len() } else { jobs.len() % at_once };
    let rest = if 2 * rest <= at_once || at_once < 2 { rest } else { 0 };
    let mut jobs = jobs;
    let last = jobs.split_off(jobs.len() - rest);
    if !jobs.is_empty() {
        beside(params, cpu.threads() / at_once, at_once, jobs)?;
    }
    // Engines are made there, too: a thread that waits for that would fall asleep, and has to be woken.
    cpu.run(|| Worker::new(params, cpu.clone()).work(last.into_iter()))
}

/// Jobs by `workers`, with some threads each.
fn beside(params: &Params, threads: usize, workers: usize, jobs: Vec<Job<'_>>) -> Result<(), Failure> {
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let done = Cpu::new(threads as u32)
            .map_err(Failure::from)
            .and_then(|cpu| Worker::new(params, cpu).work(std::iter::from_fn(next)));
        if done.is_err() {
            // Nobody waits for the others.
            *jobs.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new().into_iter();
        }
        done
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, work);
        let others: Vec<_> = (1..workers).map(spawn).collect();
        let mut done = work();
        for other in others {
            let result = match other {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => Err(Failure::Library(Error::Backend {
                    backend: "cpu",
                    reason: format!("{error}; set fewer threads"),
                })),
            };
            done = done.and(result);
        }
        done
    })
}

/// An engine for images of one kind after another, and memory that lasts.
struct Worker<'p> {
    params: &'p Params,
    cpu: Cpu,
    engine: Option<Engine<Cpu>>,
    converted: Converted,
    map: Vec<u16>,
}

impl<'p> Worker<'p> {
    fn new(params: &'p Params, cpu: Cpu) -> Self {
        Self { params, cpu, engine: None, converted: Converted::default(), map: Vec::new() }
    }

    fn work<'a>(&mut self, jobs: impl Iterator<Item = Job<'a>>) -> Result<(), Failure> {
        let (mut converted, cpu) = (std::mem::take(&mut self.converted), self.cpu.clone());
        for Job { source, mask, plane, stride } in jobs {
            source.with(&cpu, mask, &mut converted, |frame| match plane {
                Plane::Words(plane) => self.segment(frame, plane, stride),
                Plane::Shifted(plane, start) => self.segment_shifted(frame, plane, stride, start),
            })?;
        }
        Ok(())
    }

    fn segment(&mut self, frame: &Frame<'_>, plane: &mut [u16], stride: usize) -> Result<(), Error> {
        let info = *frame.info();
        if self.engine.as_ref().is_some_and(|engine| engine.plan().frame() != info) {
            self.engine = None;
        }
        let mut engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::new(self.cpu.clone(), Plan::new(self.params, info)?)?,
        };
        let mut labels = Labels::new(info.geometry, plane, stride)?;
        engine.segment(frame, &mut labels, Outputs::default())?;
        self.engine = Some(engine);
        Ok(())
    }

    fn segment_shifted(
        &mut self,
        frame: &Frame<'_>,
        plane: &mut [i32],
        stride: usize,
        start: i32,
    ) -> Result<(), Error> {
        let width = frame.info().geometry.width() as usize;
        let mut map = std::mem::take(&mut self.map);
        map.resize(frame.info().geometry.pixels(), 0);
        self.segment(frame, &mut map, width)?;
        for (to, from) in plane.chunks_mut(stride).zip(map.chunks(width)) {
            let label = |from: u16| if from == NO_LABEL { start - 1 } else { start + i32::from(from) };
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = label(from));
        }
        self.map = map;
        Ok(())
    }
}
