// SPDX-License-Identifier: MPL-2.0
//! A folder that appears whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fault::{Failure, Result};

/// A folder that is being filled under another name. Where it is dropped, it goes.
#[derive(Debug)]
pub struct Output {
    folder: PathBuf,
    partial: PathBuf,
}

impl Output {
    /// Makes the folder, beside the one that it becomes, under a name with this process in it.
    ///
    /// # Errors
    ///
    /// `folder` has no name, or the place cannot be written to.
    pub fn begin(folder: &Path) -> Result<Self> {
        let name =
            folder.file_name().ok_or_else(|| Failure::machine(format!("{} is no name", folder.display())))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".partial-{}", std::process::id()));
        let partial = folder.with_file_name(hidden);
        fs::create_dir_all(&partial)
            .map_err(|error| Failure::machine(format!("cannot make {}: {error}", partial.display())))?;
        Ok(Self { folder: folder.to_owned(), partial })
    }

    /// Where a file of that name is to be written.
    pub fn path(&self, name: &str) -> PathBuf {
        self.partial.join(name)
    }

    /// Gives the folder its name, in the place of an earlier one.
    ///
    /// # Errors
    ///
    /// It cannot be renamed, for instance where the name belongs to a file.
    pub fn finish(self) -> Result<()> {
        let failed = |error: std::io::Error| Failure::machine(format!("{}: {error}", self.folder.display()));
        if self.folder.is_dir() {
            let mut old = self.partial.clone().into_os_string();
            old.push("-old");
            let old = PathBuf::from(old);
            fs::rename(&self.folder, &old).map_err(failed)?;
            fs::rename(&self.partial, &self.folder).map_err(failed)?;
            return fs::remove_dir_all(&old).map_err(failed);
        }
        fs::rename(&self.partial, &self.folder).map_err(failed)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Gone already where it was finished.
        let _ = fs::remove_dir_all(&self.partial);
    }
}
