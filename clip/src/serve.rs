// SPDX-License-Identifier: MPL-2.0
//! Many runs in one process, one after the other, until one of them fails.
//!
//! A run that fails may leave threads that hang and decoders in disorder, so it is the last: the process ends as a run by itself would.

use std::ffi::OsString;
use std::io::{BufRead, Read};

use serde_json::Value;
use superpixel_output::job::{self, Job};

use crate::End;
use crate::fault::{Failure, Result};
use crate::session::Session;

/// Does the jobs of all lines, or up to one that fails.
///
/// # Errors
///
/// That of the job that failed; a line that is no job; lines that cannot be read.
pub fn run(
    mut lines: impl BufRead,
    session: &mut Session,
    mut perform: impl FnMut(Vec<OsString>, &mut Session) -> Result<End>,
) -> Result<End> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.by_ref().take(job::MOST as u64 + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::machine(format!("standard input: {error}")))? == 0 {
            return Ok(End::Served);
        }
        let read = match line.strip_suffix(b"\n").unwrap_or(&line) {
            long if long.len() >= job::MOST => Err(format!("longer than {} bytes", job::MOST)),
            line => Job::read(line),
        };
        session.begin(read.as_ref().map_or(Value::Null, |job| job.id.clone()));
        let job = read.map_err(|reason| {
            Failure::usage(format!(
                "not a job, which is {{\"id\": ANY, \"arguments\": [TEXT, ...]}}: {reason}"
            ))
        })?;
        if let End::Done(result) = perform(job.words, session)? {
            session.say_done(result);
        }
    }
}
