// SPDX-License-Identifier: MPL-2.0
//! Independent images beside each other: as many at once as there are threads, each on threads of its own, which wait for each
//! other less than all threads at one image.

use std::sync::{Mutex, PoisonError};

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Labels};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;

use crate::arrays::{Converted, PixelSource};
use crate::error::Failure;
use crate::plane::Plane;
use crate::prior::{PriorOf, with_prior};
use crate::watch::Watch;

/// Engines that a worker keeps, each for images of another size or format.
const MOST_ENGINES: usize = 4;
/// Pixels of the engines that it keeps beside the one at work: small ones, which take as long to make as an image takes.
const MOST_PIXELS: usize = 1 << 20;

/// An image and the place for its labels.
pub struct Job<'a> {
    /// Its number in the call.
    pub index: usize,
    pub source: &'a PixelSource<'a>,
    /// One byte a pixel, where there is a mask.
    pub mask: Option<&'a [u8]>,
    pub prior: PriorOf<'a>,
    pub plane: Plane<'a>,
    /// Labels from one row of it to the next.
    pub stride: usize,
    /// Where tables go, if they are asked for.
    pub found: Option<&'a mut Regions>,
}

/// Why a call ended early.
pub struct Stopped {
    /// The image that is to blame: all before it are done. `None` where none is, and nobody knows which are done.
    pub index: Option<usize>,
    pub failure: Failure,
}

impl Stopped {
    /// The failure of no image.
    pub fn by(failure: impl Into<Failure>) -> Self {
        Self { index: None, failure: failure.into() }
    }

    /// Of two the one that counts: what Python has raised before what is wrong with an image, and of images the first.
    fn first(self, other: Self) -> Self {
        // None is less than any number.
        if other.index < self.index { other } else { self }
    }
}

/// Those who segment images that have nothing to do with each other, with all that they keep from call to call.
pub struct Crew {
    params: Params,
    outputs: Outputs,
    cpu: Cpu,
    idle: Mutex<Vec<Worker>>,
}

impl Crew {
    pub fn new(params: Params, outputs: Outputs, cpu: Cpu) -> Self {
        Self { params, outputs, cpu, idle: Mutex::default() }
    }

    pub fn params(&self) -> &Params {
        &self.params
    }

    pub fn outputs(&self) -> Outputs {
        self.outputs
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.cpu.threads()
    }

    /// Segments images, which are begun in their order. After an error the labels of some are there.
    pub fn run(&self, mut jobs: Vec<Job<'_>>, watch: &Watch) -> Result<(), Stopped> {
        let at_once = self.threads().min(jobs.len());
        // The last ones, where most threads would have none.
        let rest = if at_once < 2 { jobs.len() } else { jobs.len() % at_once };
        let rest = if 2 * rest <= at_once || at_once < 2 { rest } else { 0 };
        let last = jobs.split_off(jobs.len() - rest);
        if !jobs.is_empty() {
            self.run_beside(self.threads() / at_once, at_once, jobs, watch)?;
        }
        let mut last = last.into_iter().peekable();
        if last.peek().is_none() {
            return Ok(());
        }
        let mut worker = self.take(self.threads()).unwrap_or_else(|| Worker::new(self.cpu.clone()));
        while last.peek().is_some() {
            // Engines are made there, too: a thread that waits for that would fall asleep, and has to be woken.
            self.cpu.run(|| worker.work_until(|| watch.is_due(), self, &mut last, watch))?;
            if watch.is_due() {
                watch.look().map_err(Stopped::by)?;
            }
        }
        self.put(worker);
        Ok(())
    }

    /// Jobs by `workers`, with some threads each.
    fn run_beside(
        &self,
        threads: usize,
        workers: usize,
        jobs: Vec<Job<'_>>,
        watch: &Watch,
    ) -> Result<(), Stopped> {
        let jobs = Mutex::new(jobs.into_iter());
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        // This thread alone looks: signals are handled there.
        let work = |looks: bool| {
            let done = self.worker(threads).and_then(|mut worker| {
                while let Some(job) = next() {
                    worker.work(self, job, watch)?;
                    if looks && watch.is_due() {
                        watch.look().map_err(Stopped::by)?;
                    }
                }
                self.put(worker);
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
                    Err(error) => Err(Stopped::by(Error::Backend {
                        backend: "cpu",
                        reason: format!("{error}; set fewer threads"),
                    })),
                };
                done = match (done, result) {
                    (Err(one), Err(other)) => Err(one.first(other)),
                    (one, other) => one.and(other),
                };
            }
            done
        })
    }

    /// A worker with so many threads: one that has worked before, or a new one.
    fn worker(&self, threads: usize) -> Result<Worker, Stopped> {
        match self.take(threads) {
            Some(worker) => Ok(worker),
            None => Cpu::new(threads as u32).map(Worker::new).map_err(Stopped::by),
        }
    }

    fn take(&self, threads: usize) -> Option<Worker> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|worker| worker.cpu.threads() == threads)?;
        Some(idle.remove(at))
    }

    /// Keeps a worker for the next call; one that has been idle for longest ends where there are more than can be at work.
    fn put(&self, worker: Worker) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(worker);
        let ended = (idle.len() > self.threads() + 1).then(|| idle.remove(0));
        drop((idle, ended));
    }
}

/// Engines for images one after another, and memory that lasts.
struct Worker {
    cpu: Cpu,
    engines: Engines,
    converted: Converted,
    map: Vec<u16>,
}

impl Worker {
    fn new(cpu: Cpu) -> Self {
        Self { cpu, engines: Engines::default(), converted: Converted::default(), map: Vec::new() }
    }

    /// Does jobs until `is_due`, and one at least.
    fn work_until<'a>(
        &mut self,
        is_due: impl Fn() -> bool,
        crew: &Crew,
        jobs: &mut impl Iterator<Item = Job<'a>>,
        watch: &Watch,
    ) -> Result<(), Stopped> {
        for job in jobs {
            self.work(crew, job, watch)?;
            if is_due() {
                break;
            }
        }
        Ok(())
    }

    fn work(&mut self, crew: &Crew, job: Job<'_>, watch: &Watch) -> Result<(), Stopped> {
        let Job { index, source, mask, prior, mut plane, stride, found } = job;
        let Self { cpu, engines, converted, map } = self;
        let done = source.with(cpu, mask, converted, |frame| {
            let geometry = frame.info().geometry;
            plane.fill(geometry, stride, map, |labels, stride| {
                let mut labels = Labels::new(geometry, labels, stride)?;
                let engine = engines.get(*frame.info(), &crew.params, cpu)?;
                engine.segment(&with_prior(frame, prior)?, &mut labels, crew.outputs)?;
                if let Some(found) = found {
                    found.clone_from(engine.regions());
                }
                Ok::<_, Error>(())
            })
        });
        done.map_err(|failure| Stopped { index: Some(index), failure })?;
        watch.note();
        Ok(())
    }
}

/// Engines of a worker, the one used last at the end.
#[derive(Default)]
struct Engines(Vec<Engine<Cpu>>);

impl Engines {
    /// The engine for such frames: one that is there, or a new one, for which others may end.
    fn get(&mut self, info: FrameInfo, params: &Params, cpu: &Cpu) -> Result<&mut Engine<Cpu>, Error> {
        let Self(engines) = self;
        let engine = match engines.iter().rposition(|engine| engine.plan().frame() == info) {
            Some(at) => engines.remove(at),
            None => {
                let pixels = |engine: &Engine<Cpu>| engine.plan().frame().geometry.pixels();
                while engines.len() >= MOST_ENGINES || engines.iter().map(pixels).sum::<usize>() > MOST_PIXELS
                {
                    engines.remove(0);
                }
                Engine::new(cpu.clone(), Plan::new(params, info)?)?
            }
        };
        let last = engines.len();
        engines.push(engine);
        Ok(&mut engines[last])
    }
}
