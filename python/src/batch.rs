// SPDX-License-Identifier: MPL-2.0
//! Independent images beside each other: as many at once as there are threads, each on threads of its own, which wait for each
//! other less than all threads at one image.

use std::sync::{Mutex, PoisonError};

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, Labels};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

use crate::arrays::{Converted, PixelSource};
use crate::error::Failure;
use crate::plane::Plane;
use crate::watch::Watch;

/// An image and the place for its labels.
pub struct Job<'a> {
    pub source: &'a PixelSource<'a>,
    /// One byte a pixel, where there is a mask.
    pub mask: Option<&'a [u8]>,
    pub plane: Plane<'a>,
    /// Labels from one row of it to the next.
    pub stride: usize,
}

/// Segments images that have nothing to do with each other. After an error the labels of some are there.
pub fn run(params: &Params, cpu: &Cpu, jobs: Vec<Job<'_>>, watch: &Watch) -> Result<(), Failure> {
    let at_once = cpu.threads().min(jobs.len());
    // The last ones, where most threads would have none.
    let rest = if at_once < 2 { jobs.len() } else { jobs.len() % at_once };
    let rest = if 2 * rest <= at_once || at_once < 2 { rest } else { 0 };
    let mut jobs = jobs;
    let last = jobs.split_off(jobs.len() - rest);
    if !jobs.is_empty() {
        beside(params, cpu.threads() / at_once, at_once, jobs, watch)?;
    }
    let (mut worker, mut last) = (Worker::new(params, cpu.clone()), last.into_iter().peekable());
    while last.peek().is_some() {
        // Engines are made there, too: a thread that waits for that would fall asleep, and has to be woken.
        cpu.run(|| worker.work_until(|| watch.is_due(), &mut last, watch))?;
        if watch.is_due() {
            watch.look()?;
        }
    }
    Ok(())
}

/// Jobs by `workers`, with some threads each.
fn beside(
    params: &Params,
    threads: usize,
    workers: usize,
    jobs: Vec<Job<'_>>,
    watch: &Watch,
) -> Result<(), Failure> {
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    // This thread alone looks: signals are handled there.
    let work = |looks: bool| {
        let done = Cpu::new(threads as u32).map_err(Failure::from).and_then(|cpu| {
            let mut worker = Worker::new(params, cpu);
            while let Some(job) = next() {
                worker.work(job, watch)?;
                if looks && watch.is_due() {
                    watch.look()?;
                }
            }
            Ok(())
        });
        if done.is_err() {
            // Nobody waits for the others.
            *jobs.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new().into_iter();
        }
        done
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, || work(false));
        let others: Vec<_> = (1..workers).map(spawn).collect();
        let mut done = work(true);
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

    /// Does jobs until `is_due`, and one at least.
    fn work_until<'a>(
        &mut self,
        is_due: impl Fn() -> bool,
        jobs: &mut impl Iterator<Item = Job<'a>>,
        watch: &Watch,
    ) -> Result<(), Failure> {
        for job in jobs {
            self.work(job, watch)?;
            if is_due() {
                break;
            }
        }
        Ok(())
    }

    fn work(&mut self, job: Job<'_>, watch: &Watch) -> Result<(), Failure> {
        let Job { source, mask, mut plane, stride } = job;
        let Self { params, cpu, engine, converted, map } = self;
        source.with(cpu, mask, converted, |frame| {
            let geometry = frame.info().geometry;
            plane.fill(geometry, stride, map, |labels, stride| {
                let mut labels = Labels::new(geometry, labels, stride)?;
                engine_for(engine, params, cpu, frame)?.segment(frame, &mut labels, Outputs::default())?;
                Ok::<_, Error>(())
            })
        })?;
        watch.note();
        Ok(())
    }
}

/// The engine for a frame: the one that is there, or another where that is for other images.
fn engine_for<'e>(
    kept: &'e mut Option<Engine<Cpu>>,
    params: &Params,
    cpu: &Cpu,
    frame: &Frame<'_>,
) -> Result<&'e mut Engine<Cpu>, Error> {
    let info = *frame.info();
    let engine = match kept.take().filter(|engine| engine.plan().frame() == info) {
        Some(engine) => engine,
        None => Engine::new(cpu.clone(), Plan::new(params, info)?)?,
    };
    Ok(kept.insert(engine))
}
