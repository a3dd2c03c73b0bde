// SPDX-License-Identifier: MPL-2.0
//! The program as a process of its own: what it opens, how much it takes, and how it ends.
#![allow(dead_code)] // Each test uses a part.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process};

/// A studio in a process of its own, with a folder for its files. Killed when this is dropped.
pub struct Program {
    child: Child,
    /// As it was printed.
    pub address: String,
    /// `TMPDIR` of it.
    pub folder: tempfile::TempDir,
}

impl Program {
    pub fn start(source: &Path, properties: &[&str]) -> Self {
        // Tests may run under `nohup` themselves, and what ignores a signal hands that down.
        let mut own_signals = Command::new("env");
        own_signals.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_superpixel-studio")]);
        Self::start_by(&mut own_signals, source, properties)
    }

    /// As `nohup` starts it.
    pub fn start_without_hangup(source: &Path) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"trap "" HUP; exec "$0" "$@""#, env!("CARGO_BIN_EXE_superpixel-studio")]);
        Self::start_by(&mut shell, source, &[])
    }

    fn start_by(command: &mut Command, source: &Path, properties: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = command
            .args(["--port", "0", "--"])
            .arg(source)
            .args(properties)
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("http://127.0.0.1:"), "no address: {address}");
        Self { child, address: address.trim_end().to_owned(), folder }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn proc(&self, name: &str) -> PathBuf {
        format!("/proc/{}/{name}", self.id()).into()
    }

    /// Resident memory in MiB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(self.proc("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Number of open files.
    pub fn files(&self) -> usize {
        std::fs::read_dir(self.proc("fd")).unwrap().count()
    }

    /// The file that holds an export, which has no name: among the open ones in its folder.
    pub fn export(&self) -> Option<PathBuf> {
        let open = std::fs::read_dir(self.proc("fd")).unwrap().map(|entry| entry.unwrap().path());
        let is_inside = |path: &PathBuf| {
            std::fs::read_link(path).is_ok_and(|target| target.starts_with(self.folder.path()))
        };
        open.into_iter().find(is_inside)
    }

    /// Names in its folder.
    pub fn left(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Sends a signal, and waits for the end.
    pub fn end(&mut self, signal: Signal) -> (ExitStatus, Duration) {
        let start = Instant::now();
        self.signal(signal);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, start.elapsed());
            }
            assert!(start.elapsed() < super::PATIENCE, "does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, or is of no use any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As many files for this process as it may have.
pub fn raise_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}
