// SPDX-License-Identifier: MPL-2.0
//! Elements of a process with the same `batch-group`: one engine segments their frames side by side.

use std::sync::{Mutex, PoisonError, Weak};

use super::settings::DeviceSettings;
use crate::batcher::{Batcher, Member};
use crate::cuda::Cuda;
use crate::error::{Error, Result};
use crate::plan::Plan;

/// Groups by their number, as long as an element is in them.
static GROUPS: Mutex<Vec<(u32, Weak<Batcher>)>> = Mutex::new(Vec::new());

/// Joins the group that the settings name, on this device and for this plan, or begins it. None where they name none.
pub(super) fn join(cuda: &Cuda, plan: &Plan, settings: &DeviceSettings) -> Result<Option<Member>> {
    let number = settings.batch_group;
    if number == 0 {
        return Ok(None);
    }
    let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.retain(|(_, batcher)| batcher.strong_count() > 0);
    let fits = |batcher: &Batcher| {
        batcher.cuda().context_handle() == cuda.context_handle()
            && batcher.plan() == plan
            && batcher.wait() == settings.wait()
    };
    let found = groups
        .iter()
        .filter(|(other, _)| *other == number)
        .filter_map(|(_, batcher)| batcher.upgrade())
        .filter(|batcher| fits(batcher))
        .find_map(|batcher| batcher.join());
    if found.is_some() {
        return Ok(found);
    }
    let batcher = Batcher::new(&cuda.lane()?, plan, settings.batch_size, settings.wait())?;
    groups.push((number, std::sync::Arc::downgrade(&batcher)));
    let reason = "a new group has no room; this is a fault of the element".into();
    batcher.join().map(Some).ok_or(Error::Batch(reason))
}
