// SPDX-License-Identifier: MPL-2.0
//! A line of `superpixel-clip serve`: JSON whose texts may hold any name that a file system takes.
//!
//! A byte that is not UTF-8 is written as Python writes it, as the lone surrogate `\udc80` to `\udcff` (`os.fsdecode`, PEP 383), so
//! `json.dumps` of a path gives a line that means the same file.

use std::ffi::OsString;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Longest line, in bytes.
pub const MOST: usize = 1 << 20;

/// A job of one line.
#[derive(Debug, PartialEq)]
pub struct Job {
    /// The caller's name for it.
    pub id: Value,
    /// Its command line.
    pub words: Vec<OsString>,
}

impl Job {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// Words that say why it is no job.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        // Raw bytes would pass as names, too, and could be taken for escaped ones.
        let line = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Job;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"{"id": ANY, "arguments": [TEXT, ...]}"#)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Job, A::Error> {
                let (mut id, mut words) = (None, None);
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "id" => id = Some(map.next_value()?),
                        "arguments" => words = Some(map.next_value::<Vec<Word>>()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                let id = id.ok_or_else(|| A::Error::missing_field("id"))?;
                let words = words.ok_or_else(|| A::Error::missing_field("arguments"))?;
                Ok(Job { id, words: words.into_iter().map(|word| word.0).collect() })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// A word of a command line.
struct Word(OsString);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Word, E> {
                self.visit_bytes(text.as_bytes())
            }

            fn visit_bytes<E: serde::de::Error>(self, text: &[u8]) -> Result<Word, E> {
                let bytes = unescape(text).ok_or_else(|| E::custom("a surrogate that stands for no byte"))?;
                if bytes.contains(&0) {
                    return Err(E::custom("a text with a zero"));
                }
                to_word(bytes).map(Word).ok_or_else(|| E::custom("a name that this system does not have"))
            }
        }

        // As text, lone surrogates are an error; as bytes, they come as three bytes each.
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Takes U+DC80 to U+DCFF, in UTF-8's scheme, for the bytes that they stand for; `None` for any other surrogate.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        if first == 0xed && behind.first().is_some_and(|second| *second >= 0xa0) {
            let [second @ 0xb2..=0xb3, third] = *behind.get(..2)? else { return None };
            // The low byte of the code point: two bits, then six.
            bytes.push((second & 3) << 6 | (third & 0x3f));
            rest = &behind[2..];
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    Some(bytes)
}

#[cfg(unix)]
fn to_word(bytes: Vec<u8>) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn to_word(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn word(escaped: &str) -> Result<Vec<u8>, String> {
        let job = Job::read(format!(r#"{{"arguments": ["{escaped}"], "id": [1]}}"#).as_bytes())?;
        Ok(job.words[0].as_bytes().to_owned())
    }

    #[test]
    fn names_of_any_bytes_come_as_python_sends_them() {
        // json.dumps(os.fsdecode(b"caf\xe9.mp4")), and of a byte order that looks like a surrogate's.
        assert_eq!(word(r"caf\udce9.mp4").unwrap(), b"caf\xe9.mp4");
        assert_eq!(word(r"\udced\udcb2\udc80").unwrap(), b"\xed\xb2\x80");
        assert_eq!(
            word(r"\udc80\udcff\ud83d\ude00").unwrap(),
            [b"\x80\xff".as_slice(), "😀".as_bytes()].concat()
        );
        assert_eq!(word(r"\u00e9 é \n").unwrap(), "é é \n".as_bytes());
        assert_eq!(word("퟿").unwrap(), "\u{d7ff}".as_bytes());
        for wrong in [r"\ud800", r"\udc7f", r"\udd00", r"\udfff", r"a\u0000b", r"\udc80\ud83d"] {
            assert!(word(wrong).is_err(), "{wrong}");
        }
        assert!(Job::read(b"{\"id\": 1, \"arguments\": [\"caf\xe9\"]}").is_err());
        for wrong in ["", "{}", r#"{"id": 1}"#, r#"{"arguments": []}"#, r#"{"id": 1, "arguments": [1]}"#] {
            assert!(Job::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let job = Job::read(br#"{"id": null, "arguments": [], "more": {"a": [1]}}"#).unwrap();
        assert_eq!(job, Job { id: Value::Null, words: Vec::new() });
    }
}
