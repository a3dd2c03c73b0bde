// SPDX-License-Identifier: MPL-2.0
//! The passes in which stage `hierarchy` works: it merges before boundaries are refined, and lists merges of the final regions.

use crate::backend::{Pass, Work};
use crate::params::Outputs;
use crate::plan::Plan;

#[derive(Debug, Clone, Copy)]
pub(super) struct Passes {
    merges: bool,
    lists: bool,
    refines: bool,
}

impl Passes {
    pub fn new(plan: &Plan) -> Self {
        Self {
            merges: plan.has_hierarchy_before_refine(),
            lists: plan.lists_refined(),
            refines: plan.refine.is_some(),
        }
    }

    /// See [`Stage::work`](crate::backend::Stage::work).
    pub fn work(self, pass: Pass, outputs: Outputs) -> Option<Work> {
        let (works, measured) = match pass {
            // Refining changes the regions that table and means are about.
            Pass::Labels => (self.merges, if self.refines { Outputs::default() } else { outputs }),
            Pass::Lists => (self.lists, outputs),
        };
        works.then_some(Work { measured: Some(measured) })
    }
}
