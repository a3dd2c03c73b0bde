// SPDX-License-Identifier: MPL-2.0
//! A folder that appears whole or not at all.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Request;
use crate::error::{Error, Result};
use crate::place::{self, Target};
use crate::publish;
use crate::stage::{Paths, Stage};

/// Longest file that may be a marker.
const MOST: u64 = 1 << 20;

/// Decides by its content if a file is a marker.
pub type IsMarker = fn(&[u8]) -> bool;

/// The files of an output folder.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The program, for words to its user.
    pub program: &'static str,
    /// Decides if a name is one that the layout gives. No other file is ever removed or replaced.
    pub names: fn(&OsStr) -> bool,
    /// The file that says that the folder is whole and made by the program, and whether this is one by its content.
    pub marker: Option<(&'static str, IsMarker)>,
}

/// The output before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Earlier {
    /// The path is free, or an empty folder.
    Free,
    /// Made by the program, and nothing else in it.
    Own,
    /// Something else, of which files of our names are to be replaced.
    Forced,
}

/// A folder that is being written under another name. Where it is dropped, it goes.
#[derive(Debug)]
pub struct Folder {
    stage: Stage,
    earlier: Earlier,
    layout: Layout,
}

impl Folder {
    /// Looks whether the folder may be written, and touches nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] where it overlaps an input, is a link, or has files that this program did not write.
    pub fn check(request: &Request<'_>, layout: &Layout) -> Result<()> {
        let target = Target::of(request.path)?;
        Self::look(&target, request, layout).map(drop)
    }

    fn look(target: &Target, request: &Request<'_>, layout: &Layout) -> Result<Earlier> {
        for input in request.inputs {
            place::keep_target_apart(input, target)?;
        }
        layout.look(&target.path(), request.force)
    }

    /// Begins the folder beside the one that it becomes.
    ///
    /// # Errors
    ///
    /// As of [`Self::check`]; another process writes it; the place cannot be written to.
    pub fn begin(request: &Request<'_>, layout: Layout) -> Result<Self> {
        let target = Target::of(request.path)?;
        Self::look(&target, request, &layout)?;
        let stage = Stage::begin(&target, layout.names)?;
        // Another process may have ended since, and an earlier output may be back.
        let earlier = Self::look(&target, &Request { inputs: &[], ..*request }, &layout)?;
        let new = &stage.paths.new;
        fs::create_dir(new).map_err(|error| Error::of(new, &error))?;
        Ok(Self { stage, earlier, layout })
    }

    /// The path to write a file to; `name` is one of the layout's.
    pub fn path(&self, name: &str) -> PathBuf {
        debug_assert!((self.layout.names)(OsStr::new(name)), "{name}");
        self.stage.paths.new.join(name)
    }

    /// Gives the folder its name.
    ///
    /// # Errors
    ///
    /// The name has been taken meanwhile, or the file system refuses.
    pub fn finish(self) -> Result<()> {
        let Self { stage, earlier, layout } = self;
        stage.finish(|paths| match earlier {
            Earlier::Free => {
                publish::to_free_name(&paths.new, &paths.target).map_err(|error| appeared(paths, &error))
            }
            Earlier::Own => replace(paths),
            Earlier::Forced => fill(paths, &layout),
        })
    }
}

impl Layout {
    /// Finds what is at a path, and checks that it may be replaced.
    fn look(&self, path: &Path, force: bool) -> Result<Earlier> {
        let name = path.display();
        match fs::symlink_metadata(path) {
            Err(error) if place::is_absence(&error) => return Ok(Earlier::Free),
            Err(error) => return Err(Error::of(path, &error)),
            Ok(found) if !found.is_dir() => {
                return Err(Error::Refused(format!("{name} is no folder: name another output")));
            }
            Ok(_) => {}
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| Error::of(path, &error))?;
        if entries.is_empty() {
            return Ok(Earlier::Free);
        }
        let is_own = |entry: &fs::DirEntry| {
            (self.names)(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file())
        };
        let foreign = entries.iter().find(|entry| !is_own(entry));
        if foreign.is_none() && self.has_marker(path) {
            return Ok(Earlier::Own);
        }
        if force {
            return match entries
                .iter()
                .find(|entry| (self.names)(&entry.file_name()) && entry.path().is_dir())
            {
                Some(entry) => {
                    Err(Error::Refused(format!("{} is a folder: move it away", entry.path().display())))
                }
                None => Ok(Earlier::Forced),
            };
        }
        let program = self.program;
        let found = match foreign {
            Some(entry) => format!("has {}, which {program} did not write", entry.file_name().display()),
            None => format!("was not made by {program}, or not to its end"),
        };
        Err(Error::Refused(format!(
            "{name} {found}: name a new folder, or replace files of {program}'s names in it with --force"
        )))
    }

    fn has_marker(&self, path: &Path) -> bool {
        let Some((name, is_marker)) = self.marker else { return false };
        let mut text = Vec::new();
        let read = fs::File::open(path.join(name)).and_then(|file| file.take(MOST).read_to_end(&mut text));
        read.is_ok() && is_marker(&text)
    }
}

fn appeared(paths: &Paths, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        let target = paths.target.display();
        return Error::Refused(format!("{target} has appeared meanwhile: name another output"));
    }
    Error::of(&paths.target, error)
}

/// Puts the new folder in the place of one that the program made.
fn replace(paths: &Paths) -> Result<()> {
    let failed = |error: io::Error| Error::of(&paths.target, &error);
    if !paths.target.exists() {
        return publish::to_free_name(&paths.new, &paths.target).map_err(|error| appeared(paths, &error));
    }
    publish::exchange(&paths.new, &paths.target, &paths.old).map_err(failed)?;
    let earlier = if paths.old.exists() { &paths.old } else { &paths.new };
    // Files that others have put into the folder meanwhile go back to it.
    for entry in fs::read_dir(earlier).map_err(failed)?.flatten() {
        if !paths.is_own(&entry.file_name()) {
            publish::to_free_name(&entry.path(), &paths.target.join(entry.file_name())).map_err(failed)?;
        }
    }
    paths.clear(earlier)
}

/// Puts the new files into a folder that stays; the marker goes first and comes last.
fn fill(paths: &Paths, layout: &Layout) -> Result<()> {
    let failed = |error: io::Error| Error::of(&paths.target, &error);
    let marker = layout.marker.map(|(name, _)| OsStr::new(name));
    if let Some(marker) = marker {
        match fs::remove_file(paths.target.join(marker)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    let entries = fs::read_dir(&paths.new).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut names: Vec<_> = entries.map_err(failed)?.iter().map(fs::DirEntry::file_name).collect();
    names.sort_by_key(|name| Some(name.as_os_str()) == marker);
    names
        .iter()
        .try_for_each(|name| fs::rename(paths.new.join(name), paths.target.join(name)).map_err(failed))
}
