// SPDX-License-Identifier: MPL-2.0
//! Time that each stage of a frame takes.

use std::time::{Duration, Instant};

/// Whether there is a clock: WebAssembly without a system has none, and stages take no time there.
const HAS_CLOCK: bool = !cfg!(all(target_family = "wasm", target_os = "unknown"));

/// How long each stage of the last frame took. A stage that runs several times in a frame adds up.
#[derive(Debug, Default, Clone)]
pub struct StageTimes {
    stages: Vec<(&'static str, Duration)>,
}

impl StageTimes {
    /// Forgets the last frame.
    pub(crate) fn clear(&mut self) {
        self.stages.clear();
    }

    /// Adds `time` to a stage.
    pub(crate) fn add(&mut self, stage: &'static str, time: Duration) {
        match self.stages.iter_mut().find(|(name, _)| *name == stage) {
            Some((_, sum)) => *sum += time,
            None => self.stages.push((stage, time)),
        }
    }

    /// Runs host work and adds its time to a stage.
    pub(crate) fn time<R>(&mut self, stage: &'static str, run: impl FnOnce() -> R) -> R {
        let start = HAS_CLOCK.then(Instant::now);
        let result = run();
        self.add(stage, start.map_or(Duration::ZERO, |start| start.elapsed()));
        result
    }

    /// Stage names and times in the order in which the stages first ran.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Duration)> + '_ {
        self.stages.iter().copied()
    }
}
