// SPDX-License-Identifier: MPL-2.0
//! Why nothing is written.

use std::fmt;
use std::io;
use std::path::Path;

/// Why nothing is written; says what to do.
pub enum Error {
    /// The request itself is wrong, and would be so on any machine.
    Refused(String),
    /// Another process writes the same output.
    Busy(String),
    /// The file system does not do it.
    Failed(String),
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of the file system about a path.
    pub(crate) fn of(path: &Path, error: &io::Error) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(text) | Self::Busy(text) | Self::Failed(text)) = self;
        f.write_str(text)
    }
}

/// Prints the message alone, because `main` of a small program prints errors with `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
