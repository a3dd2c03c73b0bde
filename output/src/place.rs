// SPDX-License-Identifier: MPL-2.0
//! Resolves paths, and checks that an output does not overlap an input.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// Links that are followed before a path counts as a circle; Linux has the same limit.
const MOST_LINKS: u32 = 40;

/// A path with all links followed. Its last components need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Absolute, without links and without `..`.
    pub real: PathBuf,
    /// The links on the way, each at its own real path.
    pub links: Vec<PathBuf>,
}

impl ResolvedPath {
    /// Follows a path.
    ///
    /// # Errors
    ///
    /// A circle of links, a folder that cannot be searched, and `..` behind a folder that does not exist.
    pub fn of(path: &Path) -> Result<Self> {
        let absolute = std::path::absolute(path).map_err(|error| Error::of(path, &error))?;
        let mut waiting = reversed(&absolute);
        let mut resolved = Self { real: PathBuf::new(), links: Vec::new() };
        let mut exists = true;
        while let Some(component) = waiting.pop() {
            if component == ".." {
                if !exists {
                    return Err(Error::Refused(format!("{}: no folder before ..", path.display())));
                }
                resolved.real.pop();
                continue;
            }
            let next = resolved.real.join(&component);
            match fs::symlink_metadata(&next) {
                Ok(found) if found.is_symlink() => {
                    resolved.links.push(next.clone());
                    if resolved.links.len() > MOST_LINKS as usize {
                        return Err(Error::Refused(format!("{}: too many links", path.display())));
                    }
                    let target = fs::read_link(&next).map_err(|error| Error::of(&next, &error))?;
                    // `join` forgets all before an absolute target.
                    waiting.extend(reversed(&target));
                }
                Ok(_) => resolved.real = next,
                Err(error) if is_absence(&error) => (resolved.real, exists) = (next, false),
                Err(error) => return Err(Error::of(&next, &error)),
            }
        }
        Ok(resolved)
    }
}

/// Components from the last to the first, without those that change nothing.
fn reversed(path: &Path) -> Vec<OsString> {
    let all = path.components().filter(|component| *component != Component::CurDir);
    all.rev().map(|component| component.as_os_str().to_owned()).collect()
}

/// Returns true if nothing exists at a path, even if one of its parents is no folder.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// An output: a name in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The folder, without links.
    pub parent: PathBuf,
    /// The name in it.
    pub name: OsString,
    /// Links on the way to the folder.
    pub links: Vec<PathBuf>,
}

impl Target {
    /// From the path that the user named.
    ///
    /// # Errors
    ///
    /// A link, which a rename would replace instead of what it points to; a path without a name.
    pub fn of(path: &Path) -> Result<Self> {
        let (above, name) = match path.file_name() {
            Some(name) => (path.parent().unwrap_or(Path::new("")), Some(name.to_owned())),
            None => (path, None),
        };
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let ResolvedPath { real, links } = ResolvedPath::of(above)?;
        let target = match name {
            Some(name) => Self { parent: real, name, links },
            // `..` and the like: what they stand for has a name of its own.
            None => match (real.parent(), real.file_name()) {
                (Some(parent), Some(name)) => Self { parent: parent.into(), name: name.into(), links },
                _ => return Err(Error::Refused(format!("{} is no name for an output", path.display()))),
            },
        };
        if fs::symlink_metadata(target.path()).is_ok_and(|found| found.is_symlink()) {
            return Err(Error::Refused(format!(
                "{} is a symbolic link: name the path that it points to",
                path.display()
            )));
        }
        Ok(target)
    }

    /// The path without links.
    pub fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Path of the partial output.
    pub fn partial(&self) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(".partial");
        self.parent.join(name)
    }
}

/// Refuses an output that is an input, lies in one or holds one.
///
/// # Errors
///
/// [`Error::Refused`] with words that name both.
pub fn keep_apart(input: &Path, output: &Path) -> Result<()> {
    keep_target_apart(input, &Target::of(output)?)
}

pub(crate) fn keep_target_apart(input: &Path, target: &Target) -> Result<()> {
    let refuse = |how: &str| {
        let (output, input) = (target.path(), input.display());
        Err(Error::Refused(format!("output {} {how} input {input}: name another output", output.display())))
    };
    let from = ResolvedPath::of(input)?;
    for output in [target.path(), target.partial()] {
        if is_same(&from.real, &output) || from.links.contains(&output) {
            return refuse("is the same as");
        }
        if lies_in(&output, &from.real) {
            return refuse("lies inside");
        }
        if std::iter::once(&from.real).chain(&from.links).any(|entry| lies_in(entry, &output)) {
            return refuse("holds");
        }
        // An input in the output's folder may have another name for the same file.
        let twin = |name: &OsStr| is_same(&from.real, &output.join(name));
        if fs::read_dir(&output).is_ok_and(|entries| entries.flatten().any(|entry| twin(&entry.file_name())))
        {
            return refuse("holds");
        }
    }
    if target.links.iter().any(|link| lies_in(link, &from.real)) {
        return refuse("is reached through a link inside");
    }
    Ok(())
}

/// Returns true if two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || id(one).is_some_and(|one| Some(one) == id(other))
}

/// Returns true if `inner` lies below `outer`, at any depth.
fn lies_in(inner: &Path, outer: &Path) -> bool {
    let outer_id = id(outer);
    inner.ancestors().skip(1).any(|above| above == outer || (outer_id.is_some() && id(above) == outer_id))
}

/// Identity of a file on this machine, whatever its name.
#[cfg(unix)]
fn id(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn id(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}
