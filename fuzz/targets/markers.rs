// SPDX-License-Identifier: MPL-2.0
//! The readers of files and lines that come back from outside: `clip.json`, lists of parts, locks, jobs of `serve`. No panic, and
//! what is read says the same when it is written and read again.
#![no_main]

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use libfuzzer_sys::fuzz_target;
use superpixel_output::job::Job;
use superpixel_output::parts::Parts;
use superpixel_output::{clip, owner};

/// A word as Python's `json.dumps(os.fsdecode(word))` has it.
fn escape(word: &[u8]) -> String {
    let mut text = String::new();
    for chunk in word.utf8_chunks() {
        let valid = serde_json::to_string(chunk.valid()).unwrap();
        text.push_str(&valid[1..valid.len() - 1]);
        for byte in chunk.invalid() {
            write!(text, "\\udc{byte:02x}").unwrap();
        }
    }
    text
}

fuzz_target!(|data: &[u8]| {
    if let Some(summary) = clip::read(data) {
        let text = serde_json::to_vec(&summary).unwrap();
        assert!(clip::read(&text).is_some());
    }
    if let Some(parts) = Parts::read(data) {
        assert!(!parts.parts.is_empty() && parts.frames() <= u32::MAX.into());
        assert!(u64::from(parts.first_of(parts.parts.len())) == parts.frames());
        assert_eq!(Parts::read(parts.to_json().to_string().as_bytes()), Some(parts));
    }
    if let Ok(job) = Job::read(data) {
        assert!(job.words.iter().all(|word| !word.as_bytes().contains(&0)));
        let words: Vec<_> = job.words.iter().map(|word| format!("\"{}\"", escape(word.as_bytes()))).collect();
        let line = format!("{{\"id\": {}, \"arguments\": [{}]}}", job.id, words.join(", "));
        // Not the id: floats of JSON may change in their last bit.
        assert_eq!(Job::read(line.as_bytes()).map(|again| again.words), Ok(job.words));
    }
    let _ = owner(data);
});
