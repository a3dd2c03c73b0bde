// SPDX-License-Identifier: MPL-2.0
//! The list of a clip's parts, which `superpixel-clip cuts` writes and `--cuts` reads.

use serde_json::{Value, json};

/// Longest list that is read, in bytes.
pub const MOST: u64 = 64 << 20;

/// Frames that follow each other, from a cut on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Number of frames, above 0.
    pub frames: u64,
    /// Time of the first in ns; `None` is the start of the clip.
    pub from: Option<u64>,
    /// Time of the next part's first in ns; `None` is the end of the clip.
    pub to: Option<u64>,
}

/// The parts of a clip in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// At least one.
    pub parts: Vec<Part>,
}

impl Parts {
    /// Number of frames of the whole clip.
    pub fn frames(&self) -> u64 {
        self.parts.iter().map(|part| part.frames).fold(0, u64::saturating_add)
    }

    /// Number of the first frame of a part.
    pub fn first_of(&self, number: usize) -> u32 {
        let before = self.parts.iter().take(number).map(|part| part.frames).fold(0, u64::saturating_add);
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// As a file holds them.
    pub fn to_json(&self) -> Value {
        let part = |part: &Part| json!({"frames": part.frames, "from_ns": part.from, "to_ns": part.to});
        json!({"frames": self.frames(), "parts": self.parts.iter().map(part).collect::<Vec<_>>()})
    }

    /// Reads what [`Self::to_json`] gave; `None` where it is not that: parts that are empty, that do not join, or of more frames than
    /// tables can number.
    pub fn read(text: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let time = |value: &Value| if value.is_null() { Some(None) } else { value.as_u64().map(Some) };
        let part = |value: &Value| {
            let frames = value["frames"].as_u64().filter(|frames| *frames > 0)?;
            Some(Part { frames, from: time(&value["from_ns"])?, to: time(&value["to_ns"])? })
        };
        let parts = Self { parts: value["parts"].as_array()?.iter().map(part).collect::<Option<_>>()? };
        let (first, last) = (parts.parts.first()?, parts.parts.last()?);
        let joins = |pair: &[Part]| pair[0].to.is_some() && pair[0].to == pair[1].from;
        let rises = |part: &Part| part.from.zip(part.to).is_none_or(|(from, to)| from < to);
        let is_whole = first.from.is_none()
            && last.to.is_none()
            && parts.parts.windows(2).all(joins)
            && parts.parts.iter().all(rises)
            && u32::try_from(parts.frames()).is_ok()
            && value["frames"].as_u64() == Some(parts.frames());
        is_whole.then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_do_not_join_are_refused() {
        let part = |frames, from, to| Part { frames, from, to };
        let of = |parts: Vec<Part>| Parts::read(Parts { parts }.to_json().to_string().as_bytes());
        let good = vec![part(3, None, Some(7)), part(2, Some(7), Some(9)), part(5, Some(9), None)];
        assert_eq!(of(good.clone()).unwrap().parts, good);
        assert_eq!(Parts { parts: good }.first_of(2), 5);
        for wrong in [
            vec![],
            vec![part(0, None, None)],
            vec![part(3, Some(1), None)],
            vec![part(3, None, Some(7))],
            vec![part(3, None, Some(7)), part(3, Some(8), None)],
            vec![part(3, None, None), part(3, None, None)],
            vec![part(3, None, Some(7)), part(1, Some(7), Some(7)), part(3, Some(7), None)],
            vec![part(u64::MAX, None, Some(7)), part(3, Some(7), None)],
        ] {
            assert_eq!(of(wrong.clone()), None, "{wrong:?}");
        }
        assert_eq!(
            Parts::read(br#"{"frames": 4, "parts": [{"frames": 3, "from_ns": null, "to_ns": null}]}"#),
            None
        );
        assert_eq!(
            Parts::read(br#"{"frames": 3, "parts": [{"frames": 3, "from_ns": "a", "to_ns": null}]}"#),
            None
        );
    }
}
