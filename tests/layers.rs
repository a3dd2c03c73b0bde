// SPDX-License-Identifier: MPL-2.0
//! Imports of `src` run one way: a layer imports from itself and from those before it, and no circle has more than two files.
//! docs/architecture.md says what each layer is for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The layers from below; names of files in `src`, where `*` is any name without a slash.
const LAYERS: &[(&str, &[&str])] = &[
    ("numbers, pixels, errors", &["parameter.rs", "error.rs", "record.rs", "image/*.rs"]),
    ("colors, regions", &["color.rs", "regions.rs"]),
    ("grid and methods", &["algo/grid.rs", "algo/method.rs"]),
    ("temporal plan", &["temporal/mod.rs"]),
    ("parameters and plans of stages", &["algo/*/mod.rs", "post/*/mod.rs", "ingest/mod.rs", "post/mod.rs"]),
    ("all algorithms", &["algo/mod.rs"]),
    ("parameters", &["params.rs"]),
    ("plan", &["plan.rs"]),
    ("seam", &["backend.rs", "engine.rs"]),
    ("resources", &["cpu/*.rs", "cuda/*.rs"]),
    (
        "temporal state",
        &[
            "temporal/state.rs",
            "temporal/device.rs",
            "temporal/identify.rs",
            "temporal/predict.rs",
            "temporal/matching.rs",
            "temporal/merged.rs",
            "temporal/motion.rs",
            "temporal/picture.rs",
            "temporal/reassign.rs",
            "temporal/samples.rs",
        ],
    ),
    ("shared buffers", &["buffers/*.rs"]),
    (
        "stages",
        &[
            "algo/*/*.rs",
            "ingest/*.rs",
            "post/runs.rs",
            "post/color_sums.rs",
            "post/*/*.rs",
            "temporal/cpu.rs",
            "temporal/cuda.rs",
        ],
    ),
    ("composition root", &["stages/*.rs"]),
    ("buffers of GStreamer", &["video_map.rs", "lazy_memory.rs", "run_time.rs", "bad_buffers.rs"]),
    ("metadata", &["meta.rs", "analytics/*.rs"]),
    ("element", &["element/*.rs", "element/cuda/*.rs"]),
    ("label element", &["label_element/*.rs"]),
    ("library and plugin", &["lib.rs"]),
];

/// Names of files and what is in them.
type Files = BTreeMap<String, String>;

fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), name.split('/').collect());
    pattern.len() == name.len()
        && pattern.iter().zip(&name).all(|(pattern, name)| match pattern.split_once('*') {
            Some((before, after)) => name.starts_with(before) && name.ends_with(after),
            None => pattern == name,
        })
}

/// The layer of a file: where several patterns fit, the first that names it in full, or else the first.
fn layer(name: &str) -> Option<usize> {
    let fitting = |exact: bool| {
        LAYERS.iter().position(|(_, patterns)| {
            patterns.iter().any(|pattern| fits(pattern, name) && (!exact || !pattern.contains('*')))
        })
    };
    fitting(true).or_else(|| fitting(false))
}

/// Rust without comments, strings and tests.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Module of a file: `algo/slic/mod.rs` is `algo::slic`.
fn module(name: &str) -> Vec<String> {
    let stem = name.trim_end_matches(".rs");
    let stem = stem.trim_end_matches("mod").trim_end_matches('/');
    if stem == "lib" { Vec::new() } else { stem.split('/').map(String::from).collect() }
}

/// The paths of `use` trees: `a::{b, c::{d}}` gives `a::b` and `a::c::d`.
fn spread(tree: &str, before: &str, out: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        out.push(format!("{before}{path}"));
        return;
    };
    let before = format!("{before}{}", tree[..open].trim());
    let (mut depth, mut start) = (0, open + 1);
    for (at, c) in tree.char_indices().skip(open) {
        match c {
            '{' => depth += 1,
            '}' | ',' if depth == 1 => {
                if !tree[start..at].trim().is_empty() {
                    spread(&tree[start..at], &before, out);
                }
                start = at + 1;
                if c == '}' {
                    return;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

/// All paths of a file that begin with `crate` or `super`.
fn paths(code: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let begins = rest[..at].chars().next_back().is_none_or(|c| c.is_whitespace());
        let tree = &rest[at + 4..];
        let end = tree.find(';').unwrap_or(tree.len());
        if begins {
            spread(&tree[..end], "", &mut out);
        }
        rest = &tree[end..];
    }
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let inside =
                code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == ':' || c == '_');
            let path = code[at..].split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).next();
            if !inside {
                out.extend(path.map(|path| path.trim_end_matches(':').to_string()));
            }
        }
    }
    out.retain(|path| ["crate", "super", "self"].contains(&path.split("::").next().unwrap_or_default()));
    out
}

/// The module that a path in `name` leads to, and what is left of the path.
fn follow<'p>(
    modules: &BTreeMap<Vec<String>, &str>,
    mut at: Vec<String>,
    path: &'p str,
) -> (Vec<String>, Vec<&'p str>) {
    let parts: Vec<_> = path.split("::").collect();
    for (i, &part) in parts.iter().enumerate() {
        match part {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            part => {
                at.push(part.to_string());
                if !modules.contains_key(&at) {
                    at.pop();
                    return (at, parts[i..].to_vec());
                }
            }
        }
    }
    (at, Vec::new())
}

/// For each file those that it imports from, through paths from the root or from a module that it has imported.
fn imports(files: &Files) -> BTreeMap<&str, BTreeSet<&str>> {
    let modules: BTreeMap<Vec<String>, &str> = files.keys().map(|name| (module(name), &name[..])).collect();
    let mut all = BTreeMap::new();
    for (name, text) in files {
        let code = code(text);
        let (mut found, mut reach) = (BTreeSet::new(), Vec::new());
        for path in paths(&code) {
            let (at, rest) = follow(&modules, module(name), &path);
            // `merge::cpu::Merge` after `use crate::post::merge`.
            if let (true, Some(last)) = (rest.is_empty(), at.last()) {
                reach.push((last.clone(), at.clone()));
            }
            found.insert(at);
        }
        for (short, at) in reach {
            for (place, _) in code.match_indices(&format!("{short}::")) {
                let inside = code[..place]
                    .chars()
                    .next_back()
                    .is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
                let path = code[place + short.len() + 2..]
                    .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
                if !inside {
                    found.insert(follow(&modules, at.clone(), path.into_iter().next().unwrap_or_default()).0);
                }
            }
        }
        // A path to the root names a macro, whichever file defines it.
        found.remove(&Vec::new());
        all.insert(&name[..], found.iter().map(|at| modules[at]).filter(|other| other != name).collect());
    }
    all
}

/// Files that `from` imports, directly or not.
fn reached<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(name) = next.pop() {
        for &other in imports.get(name).into_iter().flatten() {
            if seen.insert(other) {
                next.push(other);
            }
        }
    }
    seen
}

/// Violations of the rule.
fn faults(files: &Files) -> Vec<String> {
    let imports = imports(files);
    let mut faults: Vec<_> = files
        .keys()
        .filter(|name| layer(name).is_none())
        .map(|name| format!("{name} is in no layer: say in tests/layers.rs where it belongs"))
        .collect();
    for (&name, others) in &imports {
        for &other in others {
            if let (Some(own), Some(from)) = (layer(name), layer(other))
                && from > own
            {
                faults.push(format!("{name} ({}) imports {other} ({})", LAYERS[own].0, LAYERS[from].0));
            }
        }
    }
    let reach: BTreeMap<_, _> = imports.keys().map(|&name| (name, reached(&imports, name))).collect();
    let mut told = BTreeSet::new();
    for (&name, to) in &reach {
        let circle: BTreeSet<_> = to.iter().copied().filter(|other| reach[other].contains(name)).collect();
        if circle.len() > 2 && told.insert(circle.clone()) {
            faults.push(format!("a circle: {}", circle.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }
    faults
}

fn read(folder: &Path, before: &str, files: &mut Files) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{before}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            // Programs see the library from outside.
            if name != "bin" {
                read(&entry.path(), &format!("{name}/"), files);
            }
        } else if name.ends_with(".rs") {
            files.insert(name, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}

fn source() -> Files {
    let mut files = Files::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut files);
    files
}

#[test]
fn imports_run_one_way() {
    let files = source();
    assert!(files.len() > 60);
    let faults = faults(&files);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn an_import_upward_or_a_circle_is_found() {
    let planted = |name: &str, text: &str| {
        let mut files = source();
        files.entry(name.into()).or_default().insert_str(0, text);
        let mut found = faults(&files);
        found.retain(|fault| !faults(&source()).contains(fault));
        found.join("\n")
    };
    assert_eq!(
        planted("image/mod.rs", "use crate::plan::{self, Plan};\n").lines().next().unwrap(),
        "image/mod.rs (numbers, pixels, errors) imports plan.rs (plan)"
    );
    let upward = planted("algo/slic/mod.rs", "fn f() { crate::stages::cpu::f() }\n");
    assert!(upward.contains("imports stages/cpu.rs (composition root)"), "{upward}");
    let upward = planted("cpu/memory.rs", "use super::super::{buffers::{cpu::FrameBuffers}};\n");
    assert!(upward.contains("cpu/memory.rs (resources) imports buffers/cpu.rs"), "{upward}");
    let circle = planted("algo/slic/score.rs", "use super::cpu::Slic;\n");
    assert!(
        circle.contains("a circle: algo/slic/cpu.rs, algo/slic/label.rs, algo/slic/score.rs"),
        "{circle}"
    );
    let upward = planted(
        "post/merge/mod.rs",
        "use crate::post::connectivity;\nfn f() { connectivity::cpu::find() }\n",
    );
    assert!(
        upward
            .contains("post/merge/mod.rs (parameters and plans of stages) imports post/connectivity/cpu.rs"),
        "{upward}"
    );
    let homeless = planted("helpers.rs", "");
    assert!(homeless.starts_with("helpers.rs is in no layer"), "{homeless}");
    // Comments contain no imports.
    assert_eq!(planted("image/mod.rs", "// use crate::plan::Plan;\n"), "");
}

/// Names in the rows of the table in docs/architecture.md: files without their ending, and folders with a slash.
fn rows(document: &str) -> Vec<Vec<String>> {
    let table = document.lines().skip_while(|line| *line != "| layer | files | knows |").skip(2);
    let cells = table.take_while(|line| line.starts_with('|')).map(|line| line.split('|').nth(2).unwrap());
    let expanded = |name: &str| match name.split_once('{').and_then(|(a, b)| Some((a, b.split_once('}')?.0)))
    {
        Some((before, all)) => all.split(',').map(|one| format!("{before}{one}")).collect(),
        None => vec![name.to_owned()],
    };
    cells.map(|cell| cell.split('`').skip(1).step_by(2).flat_map(expanded).collect()).collect()
}

/// The table in docs/architecture.md has every file, no name of what is not there, and the order of the layers.
#[test]
fn the_table_of_the_documents_has_the_layers() {
    let document = include_str!("../docs/architecture.md");
    let (rows, files) = (rows(document), source());
    assert!(rows.len() > 5, "{rows:?}");
    let is_file = |said: &str, name: &str| fits(&format!("{said}.rs"), name);
    let is_in = |said: &str, name: &str| said.ends_with('/') && name.starts_with(said);
    let row = |name: &str| {
        let of = |fits: &dyn Fn(&str, &str) -> bool| {
            rows.iter().position(|row| row.iter().any(|said| fits(said, name)))
        };
        of(&is_file).or_else(|| of(&is_in))
    };
    let mut layers = vec![BTreeSet::new(); rows.len()];
    for name in files.keys().filter(|name| *name != "lib.rs") {
        let row = row(name).unwrap_or_else(|| panic!("docs/architecture.md does not have {name}"));
        layers[row].extend(layer(name));
    }
    for (row, names) in rows.iter().enumerate() {
        for said in names {
            let there = files.keys().any(|name| is_file(said, name) || is_in(said, name));
            assert!(there, "row {row} of docs/architecture.md: there is no {said}");
        }
    }
    for (above, below) in layers.iter().zip(&layers[1..]) {
        assert!(above.last() < below.first(), "docs/architecture.md has another order: {layers:?}");
    }
}
