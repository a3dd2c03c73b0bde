// SPDX-License-Identifier: MPL-2.0
//! Many runs in one process, one after the other, until one of them fails.
//!
//! Who fails may leave threads that hang and decoders in disorder, so it is the last: the process ends as a run by itself would.

use std::ffi::OsString;
use std::io::BufRead;

use serde_json::{Value, json};

use crate::End;
use crate::fault::{Failure, Result};
use crate::session::Session;

/// A job of one line: what it is called, and its command line.
struct Job {
    id: Value,
    words: Vec<OsString>,
}

impl Job {
    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let words: Option<_> =
            value["arguments"].as_array()?.iter().map(|word| word.as_str().map(OsString::from)).collect();
        Some(Self { id: value.get("id")?.clone(), words: words? })
    }
}

/// Does the jobs of all lines, or up to one that fails.
///
/// # Errors
///
/// That of the job that failed; lines that cannot be read.
pub fn run(
    lines: impl BufRead,
    session: &mut Session,
    mut perform: impl FnMut(Vec<OsString>, &mut Session) -> Result<End>,
) -> Result<End> {
    for line in lines.lines() {
        let line = line.map_err(|error| Failure::machine(format!("standard input: {error}")))?;
        let job = Job::read(&line);
        session.begin(job.as_ref().map_or(Value::Null, |job| job.id.clone()));
        let end = match job {
            Some(job) => perform(job.words, session)?,
            None => {
                End::Usage(format!("not a job, which is {{\"id\": ANY, \"arguments\": [TEXT, ...]}}: {line}"))
            }
        };
        match end {
            End::Done(result) => session.say_done(result),
            End::Usage(message) => {
                session.say(json!({"event": "failed", "fault": "usage", "stalled": false, "error": message}));
                return Ok(End::Usage(message));
            }
            End::Served => {}
        }
    }
    Ok(End::Served)
}
