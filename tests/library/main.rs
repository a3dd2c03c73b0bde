// SPDX-License-Identifier: MPL-2.0
//! The library on the CPU: algorithms, stages, clips, drawing and whatever is given to it.

#[path = "../changes/mod.rs"]
mod changes;
#[path = "../oracle/mod.rs"]
mod oracle;
#[path = "../../benches/picture/mod.rs"]
mod picture;
#[path = "../pictures/mod.rs"]
mod pictures;

mod abstraction;
mod by_hand;
mod counts;
mod drawing;
mod events;
mod hashes;
mod hierarchy;
mod hierarchy_refined;
mod hostile;
mod invariants;
mod masks;
mod merge;
mod objects;
mod priors;
mod quality;
mod refine;
mod temporal;
mod temporal_kept;
mod temporal_oracle;
mod threads;
mod vectors;
mod wide;
