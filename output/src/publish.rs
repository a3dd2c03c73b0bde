// SPDX-License-Identifier: MPL-2.0
//! Renames that lose nothing: to a name that must be free, and two names exchanged.

use std::fs;
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
fn rename_with(from: &Path, to: &Path, flags: rustix::fs::RenameFlags) -> io::Result<()> {
    use rustix::fs::CWD;
    rustix::fs::renameat_with(CWD, from, CWD, to, flags).map_err(Into::into)
}

/// Returns true if the file system does not support this kind of rename at all.
#[cfg(target_os = "linux")]
fn is_unknown(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let unknown = [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP].map(|code| code.raw_os_error());
    error.raw_os_error().is_some_and(|code| unknown.contains(&code))
}

/// Renames to a name that is free, or that an empty folder has.
///
/// # Errors
///
/// `AlreadyExists` where the name is taken meanwhile; what the file system says.
pub(crate) fn to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rename_with(from, to, rustix::fs::RenameFlags::NOREPLACE) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && from.is_dir() => {}
        Err(error) if is_unknown(&error) => {}
        done => return done,
    }
    if from.is_dir() {
        // Takes the place of an empty folder, and of nothing else.
        return fs::rename(from, to).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => taken(),
            _ => error,
        });
    }
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // No links there either: an empty file of our own keeps the name.
        Err(_) => {
            drop(fs::File::create_new(to)?);
            fs::rename(from, to)
        }
    }
}

fn taken() -> io::Error {
    io::Error::from(io::ErrorKind::AlreadyExists)
}

/// Gives a folder the name of another, and the other one the name `aside` or that of the first. Whoever looks sees one of the two,
/// or, where the file system cannot exchange names, none for an instant.
///
/// # Errors
///
/// Exchanges two paths. After an error both are unchanged.
pub(crate) fn exchange(new: &Path, target: &Path, aside: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match rename_with(new, target, rustix::fs::RenameFlags::EXCHANGE) {
        Err(error) if is_unknown(&error) => {}
        done => return done,
    }
    fs::rename(target, aside)?;
    fs::rename(new, target).inspect_err(|_| {
        let _ = fs::rename(aside, target);
    })
}
