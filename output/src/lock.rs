// SPDX-License-Identifier: MPL-2.0
//! The file that says who writes. Its lock ends with its process, however that ends, so nobody has to trust a process number.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};

/// Name of the file in the folder of a partial output.
pub(crate) const LOCK: &str = ".superpixel-lock";
/// Longest text that is read of it.
const MOST: u64 = 4096;
/// Length of the text in it.
const LENGTH: usize = 255;
/// Attempts where others remove the folder at the same time.
const ATTEMPTS: u32 = 100;

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Takes the lock of a folder, which is made where there is none.
///
/// # Errors
///
/// [`Error::Busy`] where another process has it, [`Error::Refused`] where the folder is not one of ours.
pub(crate) fn take(folder: &Path, output: &Path) -> Result<Lock> {
    for _ in 0..ATTEMPTS {
        let is_new = match fs::create_dir(folder) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(Error::Failed(format!("cannot make {}: {error}", folder.display()))),
        };
        if !is_new {
            check_owner(folder)?;
        }
        let path = folder.join(LOCK);
        let mut options = OpenOptions::new();
        let mut file = match no_link(&mut options).read(true).write(true).create(true).open(&path) {
            Ok(file) => file,
            // Another process has just finished there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::of(&path, &error)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(&mut file, output)),
            // A file system without locks: only a folder that was not there can be ours.
            Err(TryLockError::Error(_)) if is_new => {}
            Err(TryLockError::Error(error)) => {
                let folder = folder.display();
                return Err(Error::Failed(format!(
                    "{folder} is there and cannot be locked ({error}): remove it if no other run writes it"
                )));
            }
        }
        if !is_at(&file, &path) {
            continue;
        }
        let text = json!({"superpixel": "lock", "process": std::process::id(), "host": host()}).to_string();
        // Of one length, in one write: others may read it at any time, over what a dead process wrote.
        file.write_all(format!("{text:LENGTH$}\n").as_bytes()).map_err(|error| Error::of(&path, &error))?;
        return Ok(Lock { _file: file });
    }
    Err(Error::Busy(format!("{}: other processes come and go there", output.display())))
}

/// Opens no link.
#[cfg(unix)]
fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
}

#[cfg(not(unix))]
fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Returns true if a path still names the file that was opened there.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (own, there) = (file.metadata(), fs::symlink_metadata(path));
    own.ok().zip(there.ok()).is_some_and(|(own, there)| (own.dev(), own.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Checks that a folder of that name is a partial output: it is empty, or has the file of the lock.
fn check_owner(folder: &Path) -> Result<()> {
    let refuse = || {
        let folder = folder.display();
        Err(Error::Refused(format!("{folder} is in the way and not of this program: move it away")))
    };
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return refuse(),
        Err(_) => return Ok(()),
    }
    let path = folder.join(LOCK);
    let found = match fs::symlink_metadata(&path) {
        Ok(found) => found,
        // Either it ended before it made the file, or it is about to.
        Err(_) => return if names(folder).is_empty() { Ok(()) } else { refuse() },
    };
    // It may have been killed before it wrote into the file: nothing else is there then.
    let is_marked = found.is_file() && read(&path).is_some_and(|text| owner(&text).is_some());
    let is_begun = found.is_file() && found.len() == 0 && names(folder).len() == 1;
    if is_marked || is_begun { Ok(()) } else { refuse() }
}

fn names(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map_or_else(|_| Vec::new(), |all| all.flatten().map(|entry| entry.path()).collect())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut text).ok()?;
    Some(text)
}

fn busy(file: &mut File, output: &Path) -> Error {
    let mut text = Vec::new();
    let _ = file.rewind().and_then(|()| file.take(MOST).read_to_end(&mut text));
    let who = owner(&text).unwrap_or_else(|| "another process".into());
    let output = output.display();
    Error::Busy(format!("{output} is being written by {who}: wait for its end or name another output"))
}

/// The owner that the file of a lock names, in words; `None` where it is no such file.
pub fn owner(text: &[u8]) -> Option<String> {
    let value: Value =
        serde_json::from_slice(text).ok().filter(|value: &Value| value["superpixel"] == "lock")?;
    let process = value["process"].as_u64()?;
    Some(match value["host"].as_str() {
        Some(host) => format!("process {process} on {host}"),
        None => format!("process {process}"),
    })
}

fn host() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned())
}
