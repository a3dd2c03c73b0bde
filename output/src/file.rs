// SPDX-License-Identifier: MPL-2.0
//! A single file that appears whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::Request;
use crate::error::{Error, Result};
use crate::place::{self, Target};
use crate::publish;
use crate::stage::Stage;

/// Decides by its content if the program wrote a file.
type IsOwn = fn(&mut File) -> io::Result<bool>;

/// A file that is being written under another name. Where it is dropped, it goes.
#[derive(Debug)]
pub struct NewFile {
    stage: Stage,
    replaces: bool,
}

impl NewFile {
    /// Looks whether the file may be written, and touches nothing. `is_own` says whether an earlier one is the program's.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] where it is an input or a link, or was not written by this program.
    pub fn check(request: &Request<'_>, is_own: IsOwn) -> Result<()> {
        look(&Target::of(request.path)?, request, is_own).map(drop)
    }

    /// Begins the file beside the one that it becomes.
    ///
    /// # Errors
    ///
    /// As of [`Self::check`]; another process writes it; the place cannot be written to.
    pub fn begin(request: &Request<'_>, is_own: IsOwn) -> Result<Self> {
        let target = Target::of(request.path)?;
        look(&target, request, is_own)?;
        let stage = Stage::begin(&target, |_| false)?;
        let replaces = look(&target, &Request { inputs: &[], ..*request }, is_own)?;
        Ok(Self { stage, replaces })
    }

    /// The path to write to: a free name, with the file's extension.
    pub fn path(&self) -> &Path {
        &self.stage.paths.new
    }

    /// Gives the file its name.
    ///
    /// # Errors
    ///
    /// The name has been taken meanwhile, or the file system refuses.
    pub fn finish(self) -> Result<()> {
        let Self { stage, replaces } = self;
        stage.finish(|paths| {
            let done = match replaces {
                true => fs::rename(&paths.new, &paths.target),
                false => publish::to_free_name(&paths.new, &paths.target),
            };
            done.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Error::Refused(format!(
                    "{} has appeared meanwhile: name another output",
                    paths.target.display()
                )),
                _ => Error::of(&paths.target, &error),
            })
        })
    }

    /// Writes a whole file.
    ///
    /// # Errors
    ///
    /// As of [`Self::begin`] and [`Self::finish`].
    pub fn write(request: &Request<'_>, is_own: IsOwn, content: &[u8]) -> Result<()> {
        let file = Self::begin(request, is_own)?;
        let write = || File::create_new(file.path())?.write_all(content);
        write().map_err(|error| Error::of(file.path(), &error))?;
        file.finish()
    }
}

/// Checks the target. Returns true if there is a file that may be replaced.
fn look(target: &Target, request: &Request<'_>, is_own: IsOwn) -> Result<bool> {
    for input in request.inputs {
        place::keep_target_apart(input, target)?;
    }
    let path = target.path();
    let name = path.display();
    match fs::symlink_metadata(&path) {
        Err(error) if place::is_absence(&error) => return Ok(false),
        Err(error) => return Err(Error::of(&path, &error)),
        Ok(found) if !found.is_file() => {
            return Err(Error::Refused(format!("{name} is no file: name another output")));
        }
        Ok(_) => {}
    }
    if request.force || File::open(&path).and_then(|mut file| is_own(&mut file)).unwrap_or(false) {
        return Ok(true);
    }
    Err(Error::Refused(format!(
        "{name} is there and was not written by this program: name another file, or replace it with --force"
    )))
}
