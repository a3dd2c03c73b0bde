// SPDX-License-Identifier: MPL-2.0
//! web/package/options.d.ts is what the library's parameters and records give; with SUPERPIXEL_WRITE=1 it is written.

use std::fmt::Write as _;
use std::path::Path;

use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::image::PixelFormat;
use gstsuperpixel::parameter::{Kind, Value};
use gstsuperpixel::picture_params::defaults_of;
use gstsuperpixel::record::Scalar;
use gstsuperpixel::regions::RECORDS;
use superpixels_web::names::{OWN, camel, of_algorithm, option_name};

const HEAD: &str = "\
// SPDX-License-Identifier: MPL-2.0
// Written by web/tests/types.rs from the parameters and records of the library. Change them there.
";

/// Another parameter in a text.
fn typed(name: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("`{}: {value}`", option_name(name)),
        None => format!("`{}`", option_name(name)),
    }
}

fn options(algorithm: Algorithm, out: &mut String) {
    let (params, nick) = (defaults_of(algorithm), algorithm.nick());
    let is_default = algorithm == Algorithm::default();
    writeln!(
        out,
        "\n/** Options of {}. */\nexport interface {}Options extends CommonOptions {{",
        algorithm.title(),
        pascal(nick)
    )
    .unwrap();
    writeln!(out, "  algorithm{}: {nick:?};", if is_default { "?" } else { "" }).unwrap();
    for (name, listed) in of_algorithm(algorithm) {
        let kind = &listed.kind;
        let default = params.value(listed.about().name).map(|value| match value {
            Value::Choice(_) => format!("{:?}", kind.text(value)),
            _ => kind.text(value),
        });
        let kind = match kind {
            Kind::Whole(_) | Kind::Signed(_) | Kind::Real(_) => "number".to_owned(),
            Kind::Switch(_) => "boolean".to_owned(),
            Kind::Choice(_, choices) => {
                let nicks: Vec<_> = choices.all.iter().map(|choice| format!("{:?}", choice.nick)).collect();
                nicks.join(" | ")
            }
        };
        let allowed = if kind == "number" { format!(" {}.", listed.kind.allowed()) } else { String::new() };
        let default = default.map_or_else(String::new, |default| format!(" Default: {default}."));
        let text = listed.about().text_with(typed);
        writeln!(out, "  /** {text}.{allowed}{default} */\n  {name}?: {kind};").unwrap();
    }
    out.push_str("}\n");
}

fn pascal(name: &str) -> String {
    let name = camel(name);
    name[..1].to_uppercase() + &name[1..]
}

fn generated() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n/** Options that all algorithms have. */\nexport interface CommonOptions {\n");
    for (name, kind, default, text) in OWN {
        writeln!(out, "  /** {text}. Default: {default}. */\n  {name}?: {kind};").unwrap();
    }
    out.push_str("}\n");
    Algorithm::ALL.iter().for_each(|&algorithm| options(algorithm, &mut out));
    let all: Vec<_> = Algorithm::ALL.iter().map(|one| format!("{}Options", pascal(one.nick()))).collect();
    writeln!(out, "\n/** Options of any algorithm. */\nexport type Options = {};", all.join(" | ")).unwrap();
    let formats: Vec<_> = PixelFormat::ALL.iter().map(|format| format!("{:?}", format.name())).collect();
    writeln!(out, "\n/** Pixel formats. */\nexport type PixelFormat =\n  | {};", formats.join("\n  | "))
        .unwrap();
    for record in RECORDS.iter().filter(|record| record.name != "Event") {
        let text = record.text;
        writeln!(
            out,
            "\n/** {text}; each field holds those of all records. */\nexport interface {}Table {{",
            record.name
        )
        .unwrap();
        for field in record.fields {
            let kind = match field.scalar {
                Scalar::U8 => "Uint8Array",
                Scalar::U16 => "Uint16Array",
                Scalar::U32 => "Uint32Array",
                Scalar::F32 => "Float32Array",
            };
            let unit = if field.unit.name().is_empty() {
                String::new()
            } else {
                format!(" [{}]", field.unit.name())
            };
            let several = match field.columns.len() {
                1 => String::new(),
                count => format!(", {count} numbers each"),
            };
            writeln!(out, "  /** {}{unit}{several}. */\n  {}: {kind};", field.text, camel(field.name))
                .unwrap();
        }
        out.push_str("}\n");
    }
    out
}

#[test]
fn types_are_those_of_the_library() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("package/options.d.ts");
    if std::env::var_os("SUPERPIXEL_WRITE").is_some() {
        std::fs::write(&path, generated()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == generated(),
        "web/package/options.d.ts differs; SUPERPIXEL_WRITE=1 cargo test -p superpixels-web writes it anew"
    );
}
