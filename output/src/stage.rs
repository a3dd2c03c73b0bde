// SPDX-License-Identifier: MPL-2.0
//! The folder beside an output in which it is written first: made, found after a crash, and removed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::lock::{self, LOCK, Lock};
use crate::place::Target;

/// Name of an earlier output that waits beside the new one for its removal.
pub(crate) const OLD: &str = ".superpixel-old";

/// Decides if a file in an output folder has a name that this program gives.
pub(crate) type Names = fn(&OsStr) -> bool;

/// An output that this process is writing.
struct Live {
    abandoned: bool,
    stages: Vec<Arc<Paths>>,
}

static LIVE: Mutex<Live> = Mutex::new(Live { abandoned: false, stages: Vec::new() });

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes everything that this process is writing, for one that is about to end by a signal. Outputs that are finished stay, and
/// nothing can be begun or finished from then on.
pub fn abandon() {
    let mut live = live();
    live.abandoned = true;
    for paths in std::mem::take(&mut live.stages) {
        paths.remove();
    }
}

/// Paths of an output that is being written.
#[derive(Debug)]
pub(crate) struct Paths {
    /// The output.
    pub target: PathBuf,
    /// The folder beside it.
    pub partial: PathBuf,
    /// The new output, in that folder.
    pub new: PathBuf,
    /// The earlier output on its way out.
    pub old: PathBuf,
    /// Folders above the output that were made for it, the innermost first.
    made: Vec<PathBuf>,
    names: Names,
}

/// An output that is being written. Where it is dropped, it goes.
#[derive(Debug)]
pub(crate) struct Stage {
    pub paths: Arc<Paths>,
    _lock: Lock,
}

impl Stage {
    /// Takes the place beside an output, and removes what a process that was killed has left there.
    ///
    /// # Errors
    ///
    /// Another process is at it, the place has files of others, or it cannot be written to.
    pub fn begin(target: &Target, names: Names) -> Result<Self> {
        if target.name == LOCK || target.name == OLD {
            return Err(Error::Refused(format!(
                "{} is a name of this program's own",
                target.path().display()
            )));
        }
        let mut live = live();
        if live.abandoned {
            return Err(Error::Failed("the program ends".into()));
        }
        let made = make_folders(&target.parent)?;
        let partial = target.partial();
        let paths = Arc::new(Paths {
            target: target.path(),
            new: partial.join(&target.name),
            old: partial.join(OLD),
            partial,
            made,
            names,
        });
        let lock = lock::take(&paths.partial, &paths.target).inspect_err(|_| paths.remove_made())?;
        paths.sweep()?;
        live.stages.push(paths.clone());
        Ok(Self { paths, _lock: lock })
    }

    /// Does the last step, which a signal cannot interrupt.
    ///
    /// # Errors
    ///
    /// The error of `last`, or that a signal has already ended the output.
    pub fn finish(self, last: impl FnOnce(&Paths) -> Result<()>) -> Result<()> {
        let live = live();
        if live.abandoned {
            return Err(Error::Failed("the program ends".into()));
        }
        let result = last(&self.paths);
        drop(live);
        result
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let mut live = live();
        live.stages.retain(|paths| !Arc::ptr_eq(paths, &self.paths));
        // After a signal it has gone, and another process may be there.
        if !live.abandoned {
            self.paths.remove();
        }
    }
}

impl Paths {
    /// Returns true if a file of that name in the output belongs to the program.
    pub fn is_own(&self, name: &OsStr) -> bool {
        (self.names)(name)
    }

    /// Removes what another process has left; brings an earlier output back that was about to be replaced.
    fn sweep(&self) -> Result<()> {
        for entry in fs::read_dir(&self.partial).map_err(|error| Error::of(&self.partial, &error))? {
            let path = entry.map_err(|error| Error::of(&self.partial, &error))?.path();
            let is_own = path == self.new || path == self.old || path == self.partial.join(LOCK);
            if !is_own || !self.has_own_files(&path) {
                return Err(Error::Refused(format!(
                    "{} is not of this program, but lies where it writes: move it away",
                    path.display()
                )));
            }
        }
        if self.old.exists() && !self.target.exists() {
            fs::rename(&self.old, &self.target).map_err(|error| Error::of(&self.target, &error))?;
        }
        self.clear(&self.new).and_then(|()| self.clear(&self.old))
    }

    /// Returns true if a file, or each file in a folder, has a name that this program gives.
    fn has_own_files(&self, path: &Path) -> bool {
        let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        match fs::read_dir(path) {
            Ok(entries) if !path.is_symlink() => {
                entries.flatten().all(|entry| self.is_own(&entry.file_name()) && is_file(&entry.path()))
            }
            _ => is_file(path),
        }
    }

    /// Removes a file, or the files of our names in a folder and the folder if that was all.
    pub fn clear(&self, path: &Path) -> Result<()> {
        let failed = |error: io::Error| Err(Error::of(path, &error));
        let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
        if !found.is_dir() {
            return fs::remove_file(path).or_else(failed);
        }
        for entry in fs::read_dir(path).map_err(|error| Error::of(path, &error))?.flatten() {
            if self.is_own(&entry.file_name()) {
                fs::remove_file(entry.path()).map_err(|error| Error::of(&entry.path(), &error))?;
            }
        }
        fs::remove_dir(path).or_else(failed)
    }

    /// Removes everything. The lock is held, or was until now.
    fn remove(&self) {
        if self.old.exists() && !self.target.exists() {
            let _ = fs::rename(&self.old, &self.target);
        }
        let (_, _) = (self.clear(&self.new), self.clear(&self.old));
        let _ = fs::remove_file(self.partial.join(LOCK));
        let _ = fs::remove_dir(&self.partial);
        self.remove_made();
    }

    /// Removes the folders that were made, as far as nothing is in them.
    fn remove_made(&self) {
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Makes a folder with all above it; returns those that were not there, the innermost first.
fn make_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let missing: Vec<_> =
        folder.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
    fs::create_dir_all(folder)
        .map_err(|error| Error::Failed(format!("cannot make {}: {error}", folder.display())))?;
    Ok(missing)
}
