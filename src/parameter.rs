// SPDX-License-Identifier: MPL-2.0
//! A parameter as data: name, unit, range, text, and how the struct that has it reads and writes it.
//!
//! Properties of the element, arguments in Python, options of programs, the tables of the documents and the draws of the fuzz
//! targets are made from these lists. None of them knows a parameter by its name, but for a few that mean more to it.

use std::fmt;

use crate::error::{Error, Result};

/// Name and texts of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Name of the element's property; other faces write `_` for `-`.
    pub name: &'static str,
    /// Title.
    pub nick: &'static str,
    /// Unit of a number; empty where it has none.
    pub unit: &'static str,
    /// One sentence: the effect, and the direction of a number. Other parameters stand in braces, `{name}` or `{name=value}`, for
    /// [`About::text_with`].
    pub text: &'static str,
    /// True if it may change between two frames; else only before the start.
    pub hot: bool,
}

impl About {
    /// A parameter that may change between two frames.
    pub const fn new(name: &'static str, nick: &'static str, unit: &'static str, text: &'static str) -> Self {
        Self { name, nick, unit, text, hot: true }
    }

    /// Makes it one that is read at the start.
    pub const fn at_start(self) -> Self {
        Self { hot: false, ..self }
    }

    /// The text, with other parameters, and their values if there are any, as `render` writes them.
    pub fn text_with(&self, render: impl Fn(&str, Option<&str>) -> String) -> String {
        let mut parts = self.text.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (marked, rest) = part.split_once('}').unwrap_or((part, ""));
            text += &match marked.split_once('=') {
                Some((name, value)) => render(name, Some(value)),
                None => render(marked, None),
            };
            text += rest;
        }
        text
    }
}

/// Another parameter in a text as a person types it: `name`, or `name=value`. For [`About::text_with`].
pub fn as_typed(name: &str, value: Option<&str>) -> String {
    value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}"))
}

/// A number that a user may set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range<T> {
    /// Name and texts.
    pub about: About,
    /// Smallest value.
    pub min: T,
    /// Largest value.
    pub max: T,
    /// Default of the library.
    pub default: T,
}

impl<T: Copy + PartialOrd + Into<f64>> Range<T> {
    /// Returns the value if it is in range; NaN is not.
    ///
    /// # Errors
    ///
    /// [`Error::Param`].
    pub fn check(&self, value: T) -> Result<T> {
        if value >= self.min && value <= self.max {
            Ok(value)
        } else {
            Err(Error::Param { name: self.about.name, value: value.into(), allowed: self.allowed().into() })
        }
    }

    /// The range in words.
    pub fn allowed(&self) -> String {
        let (min, max) = (self.min.into(), self.max.into());
        if max >= f64::from(u32::MAX) {
            format!("{} or more", shortest(min))
        } else {
            format!("{} to {}", shortest(min), shortest(max))
        }
    }
}

/// A number as the single that it was: 0.1 and not 0.10000000149.
fn shortest(value: f64) -> String {
    (value as f32).to_string()
}

/// One of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// As it is written.
    pub nick: &'static str,
    /// Its meaning.
    pub text: &'static str,
}

/// All values of an enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    /// Name of the enum; its type in GObject is called so, behind "GstSuperpixel".
    pub name: &'static str,
    /// In the order of the enum.
    pub all: &'static [Choice],
}

impl Choices {
    /// Index of a nick.
    pub fn find(&self, nick: &str) -> Option<usize> {
        self.all.iter().position(|choice| choice.nick == nick)
    }

    /// All nicks, with commas.
    pub fn nicks(&self) -> String {
        self.all.iter().map(|choice| choice.nick).collect::<Vec<_>>().join(", ")
    }
}

/// An enum that a user may choose from; the macro `choices` writes it.
pub trait Choose: Copy + PartialEq + 'static {
    /// Its values in their order.
    const ALL: &'static [Self];
    /// Their descriptions, in the same order.
    const CHOICES: Choices;

    /// Place in [`Choose::ALL`].
    fn index(self) -> usize {
        Self::ALL.iter().position(|&value| value == self).unwrap_or(0)
    }

    /// As it is written.
    fn nick(self) -> &'static str {
        Self::CHOICES.all[self.index()].nick
    }
}

/// Implements [`Choose`] for an enum: `choices!("MergeRule", Rule { Mutual, "mutual", "Mutual: ..."; });`.
macro_rules! choices {
    ($title:literal, $name:ident { $($variant:ident, $nick:literal, $text:literal;)* }) => {
        impl $crate::parameter::Choose for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];
            const CHOICES: $crate::parameter::Choices = $crate::parameter::Choices {
                name: $title,
                all: &[$($crate::parameter::Choice { nick: $nick, text: $text }),*],
            };
        }
    };
}
pub(crate) use choices;

/// Kinds of values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Whole numbers.
    Whole(Range<u32>),
    /// Whole numbers, also below 0.
    Signed(Range<i32>),
    /// Numbers.
    Real(Range<f32>),
    /// On or off.
    Switch(About),
    /// One of several.
    Choice(About, Choices),
}

/// A value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Of [`Kind::Whole`].
    Whole(u32),
    /// Of [`Kind::Signed`].
    Signed(i32),
    /// Of [`Kind::Real`].
    Real(f32),
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Index of one of [`Kind::Choice`].
    Choice(usize),
}

impl Kind {
    /// Name and texts.
    pub fn about(&self) -> &About {
        match self {
            Self::Whole(range) => &range.about,
            Self::Signed(range) => &range.about,
            Self::Real(range) => &range.about,
            Self::Switch(about) | Self::Choice(about, _) => about,
        }
    }

    /// The values in words.
    pub fn allowed(&self) -> String {
        match self {
            Self::Whole(range) => range.allowed(),
            Self::Signed(range) => range.allowed(),
            Self::Real(range) => range.allowed(),
            Self::Switch(_) => "true or false".into(),
            Self::Choice(_, choices) => format!("one of {}", choices.nicks()),
        }
    }

    /// Returns the value if it is one of these.
    ///
    /// # Errors
    ///
    /// [`Error::Param`] for a number out of its range, [`Error::Value`] for a value of another kind.
    pub fn check(&self, value: Value) -> Result<Value> {
        match (self, value) {
            (Self::Whole(range), Value::Whole(number)) => range.check(number).map(Value::Whole),
            (Self::Signed(range), Value::Signed(number)) => range.check(number).map(Value::Signed),
            (Self::Real(range), Value::Real(number)) => range.check(number).map(Value::Real),
            (Self::Switch(_), Value::Switch(_)) => Ok(value),
            (Self::Choice(_, choices), Value::Choice(index)) if index < choices.all.len() => Ok(value),
            _ => Err(self.refuse(&self.text(value))),
        }
    }

    /// Reads a value as a person types it.
    ///
    /// # Errors
    ///
    /// As [`Kind::check`]; [`Error::Value`] for a text that is no value of this kind.
    pub fn parse(&self, text: &str) -> Result<Value> {
        let value = match self {
            Self::Whole(_) => text.parse().ok().map(Value::Whole),
            Self::Signed(_) => text.parse().ok().map(Value::Signed),
            Self::Real(_) => text.parse().ok().map(Value::Real),
            Self::Switch(_) => text.parse().ok().map(Value::Switch),
            Self::Choice(_, choices) => choices.find(text).map(Value::Choice),
        };
        self.check(value.ok_or_else(|| self.refuse(text))?)
    }

    /// A value as [`Kind::parse`] reads it.
    pub fn text(&self, value: Value) -> String {
        match (self, value) {
            (Self::Choice(_, choices), Value::Choice(index)) => {
                choices.all.get(index).map_or_else(|| index.to_string(), |choice| choice.nick.into())
            }
            _ => value.to_string(),
        }
    }

    fn refuse(&self, got: &str) -> Error {
        Error::Value { name: self.about().name, got: got.into(), allowed: self.allowed() }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
            Self::Switch(on) => on.fmt(f),
            Self::Choice(index) => index.fmt(f),
        }
    }
}

/// A parameter of `P`, written by the macro `parameters`.
pub struct Parameter<P: 'static> {
    /// Kind of its values.
    pub kind: Kind,
    /// Reads it.
    pub(crate) get: fn(&P) -> Value,
    /// Writes a value of the kind, unchecked.
    pub(crate) put: fn(&mut P, Value),
}

impl<P> Parameter<P> {
    /// Name of the element's property.
    pub fn name(&self) -> &'static str {
        self.kind.about().name
    }
}

/// A struct of parameters with the list of them; the macro `parameters` writes it.
pub trait Parameters: Default + 'static {
    /// Each once.
    const LIST: &'static [Parameter<Self>];

    /// A parameter by its name.
    fn find(name: &str) -> Option<&'static Parameter<Self>> {
        Self::LIST.iter().find(|parameter| parameter.name() == name)
    }

    /// Value of a parameter; nothing where there is none of that name.
    fn get(&self, name: &str) -> Option<Value> {
        Self::find(name).map(|parameter| (parameter.get)(self))
    }

    /// Sets a parameter; nothing where there is none of that name.
    ///
    /// # Errors
    ///
    /// As [`Kind::check`]; the old value stays.
    fn set(&mut self, name: &str, value: Value) -> Option<Result<()>> {
        let parameter = Self::find(name)?;
        Some(parameter.kind.check(value).map(|value| (parameter.put)(self, value)))
    }

    /// Writes a value unchecked, for tests of what checks; false where there is no parameter of that name.
    #[doc(hidden)]
    fn put(&mut self, name: &str, value: Value) -> bool {
        Self::find(name).map(|parameter| (parameter.put)(self, value)).is_some()
    }

    /// Checks every value by itself.
    ///
    /// # Errors
    ///
    /// [`Error::Param`] for the first that is out of its range.
    fn check_each(&self) -> Result<()> {
        Self::LIST.iter().try_for_each(|parameter| parameter.kind.check((parameter.get)(self)).map(drop))
    }
}

/// Implements [`Parameters`]. A line is a kind, what is said of the parameter, and its field:
///
/// ```text
/// parameters!(Params {
///     real COMPACTNESS => compactness;
///     choice COLOR_SPACE => color_space: ColorSpace;
/// });
/// ```
macro_rules! parameters {
    ($params:ty { $($kind:ident $said:expr => $($field:ident).+ $(: $choose:ty)?;)* }) => {
        impl $crate::parameter::Parameters for $params {
            const LIST: &'static [$crate::parameter::Parameter<Self>] =
                &[$($crate::parameter::parameters!(@$kind $said, $($field).+ $(, $choose)?)),*];
        }
    };
    (@whole $said:expr, $($field:ident).+) => { $crate::parameter::parameters!(@number Whole, $said, $($field).+) };
    (@signed $said:expr, $($field:ident).+) => { $crate::parameter::parameters!(@number Signed, $said, $($field).+) };
    (@real $said:expr, $($field:ident).+) => { $crate::parameter::parameters!(@number Real, $said, $($field).+) };
    (@switch $said:expr, $($field:ident).+) => { $crate::parameter::parameters!(@number Switch, $said, $($field).+) };
    (@number $kind:ident, $said:expr, $($field:ident).+) => {
        $crate::parameter::Parameter {
            kind: $crate::parameter::Kind::$kind($said),
            get: |params| $crate::parameter::Value::$kind(params.$($field).+),
            put: |params, value| if let $crate::parameter::Value::$kind(value) = value { params.$($field).+ = value },
        }
    };
    (@choice $said:expr, $($field:ident).+, $choose:ty) => {
        $crate::parameter::Parameter {
            kind: $crate::parameter::Kind::Choice($said, <$choose as $crate::parameter::Choose>::CHOICES),
            get: |params| $crate::parameter::Value::Choice($crate::parameter::Choose::index(params.$($field).+)),
            put: |params, value| if let $crate::parameter::Value::Choice(index) = value {
                params.$($field).+ = <$choose as $crate::parameter::Choose>::ALL[index];
            },
        }
    };
}
pub(crate) use parameters;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Debug, PartialEq)]
    struct Params {
        count: u32,
        share: f32,
        id: i32,
        on: bool,
        side: Side,
    }
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    enum Side {
        #[default]
        Left,
        Right,
    }
    choices!("Side", Side { Left, "left", "On the left"; Right, "right", "On the right"; });
    const fn about(name: &'static str) -> About {
        About::new(name, "", "", "Not with {count} or {side=left}")
    }
    const COUNT: Range<u32> = Range { about: about("count"), min: 0, max: u32::MAX, default: 0 };
    const SHARE: Range<f32> = Range { about: about("share"), min: 0.0, max: 0.1, default: 0.0 };
    const ID: Range<i32> = Range { about: about("id"), min: -1, max: 7, default: 0 };
    parameters!(Params {
        whole COUNT => count;
        real SHARE => share;
        signed ID => id;
        switch about("on") => on;
        choice about("side") => side: Side;
    });

    #[test]
    fn texts_are_read_as_they_are_written() {
        let mut params = Params::default();
        for (name, text) in
            [("count", "12"), ("share", "0.05"), ("id", "-1"), ("on", "true"), ("side", "right")]
        {
            let kind = Params::find(name).unwrap().kind;
            let value = kind.parse(text).unwrap();
            params.set(name, value).unwrap().unwrap();
            assert_eq!(kind.text(params.get(name).unwrap()), text);
        }
        assert_eq!(params, Params { count: 12, share: 0.05, id: -1, on: true, side: Side::Right });
        assert_eq!(params.get("none"), None);
        assert!(params.set("none", Value::Whole(1)).is_none());
    }

    #[test]
    fn values_out_of_range_are_refused_in_words() {
        let mut params = Params::default();
        let mut refused = |name, value| params.set(name, value).unwrap().unwrap_err().to_string();
        assert_eq!(refused("share", Value::Real(0.2)), "share must be 0 to 0.1, got 0.2");
        assert_eq!(refused("share", Value::Real(f32::NAN)), "share must be 0 to 0.1, got NaN");
        assert_eq!(refused("id", Value::Signed(8)), "id must be -1 to 7, got 8");
        assert_eq!(refused("side", Value::Choice(2)), "side must be one of left, right, got 2");
        assert_eq!(refused("count", Value::Real(1.0)), "count must be 0 or more, got 1");
        assert_eq!(params, Params::default());
        let parse = |name, text| Params::find(name).unwrap().kind.parse(text).unwrap_err().to_string();
        assert_eq!(parse("on", "yes"), "on must be true or false, got yes");
        assert_eq!(parse("count", "-1"), "count must be 0 or more, got -1");
        assert!(Params { share: 1.0, ..Params::default() }.check_each().is_err());
    }

    #[test]
    fn texts_name_other_parameters_as_a_face_writes_them() {
        let python = |name: &str, value: Option<&str>| match value {
            Some(value) => format!("`{name}='{value}'`"),
            None => format!("`{name}`"),
        };
        assert_eq!(COUNT.about.text_with(python), "Not with `count` or `side='left'`");
    }
}
