// SPDX-License-Identifier: MPL-2.0
//! The one rule of every program in Rust that writes: what it writes is new, or replaces what it wrote itself, or replaces files of
//! the same names after `--force`. Inputs that overlap the output are refused before anything is touched, even then.
//!
//! [`Folder`] and [`NewFile`] write aside, in `.NAME.partial` beside the output, under a lock that ends with the process, and rename
//! at the end. A later run for the same output removes what a killed one has left there. [`abandon`] removes it where a signal ends
//! the process. The modules [`clip`], [`parts`] and [`job`] read what comes back from outside.

pub mod clip;
mod error;
mod file;
mod folder;
pub mod job;
mod lock;
pub mod parts;
pub mod place;
mod publish;
mod stage;

pub use error::{Error, Result};
pub use file::NewFile;
pub use folder::{Folder, IsMarker, Layout};
pub use lock::owner;
pub use stage::abandon;

/// The request for an output.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The path as the user named it.
    pub path: &'a std::path::Path,
    /// Everything that the run reads.
    pub inputs: &'a [&'a std::path::Path],
    /// True if files of the same names may be replaced even if this program did not write them.
    pub force: bool,
}
