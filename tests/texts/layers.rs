// SPDX-License-Identifier: MPL-2.0
//! Imports run one way. In `src` a layer imports from itself and from those above it in the table of docs/architecture.md, which says
//! what each layer is for, and no circle has more than two files. Files of the Python package and of superpixel-clip form none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Modules at the top of `src` that reach each other, by circle. A plan is made of the data of `algo`, `post` and `temporal`, whose
/// stages read plans and buffers; an error names the frame that it is about.
const CIRCLES: &[&[&str]] =
    &[&["algo", "backend", "buffers", "params", "plan", "post", "temporal"], &["error", "image"]];

/// A row of the table: its name, and files of `src` without their ending, where `*` is any name without a slash, or folders with one.
struct Layer {
    name: String,
    files: Vec<String>,
}

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

/// How closely an entry of the table names a file: in full, by a pattern, or by its folder.
fn closeness(entry: &str, name: &str) -> Option<u32> {
    match entry.strip_suffix('/') {
        Some(_) => name.starts_with(entry).then_some(0),
        None => fits(&format!("{entry}.rs"), name).then_some(if entry.contains('*') { 1 } else { 2 }),
    }
}

/// The layer of a file: the one that names it most closely.
fn layer(layers: &[Layer], name: &str) -> Option<usize> {
    let of = |layer: &Layer| layer.files.iter().filter_map(|entry| closeness(entry, name)).max();
    let (_, index) = layers.iter().enumerate().filter_map(|(i, layer)| Some((of(layer)?, i))).max()?;
    Some(index)
}

/// The rows of the table in docs/architecture.md.
fn layers() -> Vec<Layer> {
    let document = include_str!("../../docs/architecture.md");
    let table = document.lines().skip_while(|line| *line != "| layer | files | knows |").skip(2);
    let expanded = |name: &str| match name.split_once('{').and_then(|(a, b)| Some((a, b.split_once('}')?.0)))
    {
        Some((before, all)) => all.split(',').map(|one| format!("{before}{one}")).collect(),
        None => vec![name.to_owned()],
    };
    let row = |line: &str| {
        let mut cells = line.split('|').skip(1);
        let (name, files) = (cells.next().unwrap().trim().to_owned(), cells.next().unwrap());
        Layer { name, files: files.split('`').skip(1).step_by(2).flat_map(expanded).collect() }
    };
    table.take_while(|line| line.starts_with('|')).map(row).collect()
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
    if stem == "lib" || stem == "main" { Vec::new() } else { stem.split('/').map(String::from).collect() }
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

/// Nodes that reach each other, circle by circle.
fn circles<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<BTreeSet<&'a str>> {
    let reach: BTreeMap<_, _> = imports.keys().map(|&name| (name, reached(imports, name))).collect();
    let circle = |name, to: &BTreeSet<&'a str>| {
        to.iter().copied().filter(|other| reach[other].contains(name)).collect::<BTreeSet<_>>()
    };
    reach.iter().map(|(name, to)| circle(*name, to)).filter(|circle| circle.len() > 1).collect()
}

fn listed(circle: &BTreeSet<&str>) -> String {
    circle.iter().copied().collect::<Vec<_>>().join(", ")
}

/// All that breaks the rule.
fn faults(files: &Files) -> Vec<String> {
    let (imports, layers) = (imports(files), layers());
    let layer = |name| layer(&layers, name);
    let mut faults: Vec<_> = files
        .keys()
        .filter(|name| layer(name).is_none())
        .map(|name| format!("{name} is in no layer: say in docs/architecture.md where it belongs"))
        .collect();
    for (&name, others) in &imports {
        for &other in others {
            if let (Some(own), Some(from)) = (layer(name), layer(other))
                && from > own
            {
                faults.push(format!("{name} ({}) imports {other} ({})", layers[own].name, layers[from].name));
            }
        }
    }
    let large = circles(&imports).into_iter().filter(|circle| circle.len() > 2);
    faults.extend(large.map(|circle| format!("a circle: {}", listed(&circle))));
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

fn sources_of(folder: &str) -> Files {
    let mut files = Files::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), "", &mut files);
    files
}

fn source() -> Files {
    sources_of("src")
}

/// The module at the top that a file is in: `algo` of `algo/slic/mod.rs`.
fn top(name: &str) -> &str {
    name.split('/').next().unwrap_or_default().trim_end_matches(".rs")
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
        "image/mod.rs (pixels and errors) imports plan.rs (plan)"
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
        upward.contains("post/merge/mod.rs (plans of stages) imports post/connectivity/cpu.rs"),
        "{upward}"
    );
    let homeless = planted("helpers.rs", "");
    assert!(homeless.starts_with("helpers.rs is in no layer"), "{homeless}");
    // Comments contain no imports.
    assert_eq!(planted("image/mod.rs", "// use crate::plan::Plan;\n"), "");
}

/// The table has no name of what is not there, and no two entries that name one file as closely.
#[test]
fn the_table_names_files_that_are_there() {
    let (layers, files) = (layers(), source());
    assert!(layers.len() > 15, "{} rows", layers.len());
    let entries: Vec<_> = layers.iter().flat_map(|layer| &layer.files).collect();
    for entry in &entries {
        assert!(files.keys().any(|name| closeness(entry, name).is_some()), "there is no {entry}");
    }
    for name in files.keys() {
        let mut close: Vec<_> = entries.iter().filter_map(|entry| closeness(entry, name)).collect();
        close.sort_unstable_by_key(|&close| std::cmp::Reverse(close));
        assert!(close.get(1).is_none_or(|&second| second < close[0]), "two rows name {name}");
    }
}

#[test]
fn circles_of_folders_are_those_that_are_known() {
    let files = source();
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, others) in imports(&files) {
        let others = others.into_iter().map(top).filter(|other| *other != top(name));
        folders.entry(top(name)).or_default().extend(others);
    }
    let known: BTreeSet<BTreeSet<_>> =
        CIRCLES.iter().map(|circle| circle.iter().copied().collect()).collect();
    assert_eq!(circles(&folders), known);
}

#[test]
fn the_python_package_and_the_clip_program_have_no_circle() {
    for (folder, name) in [("python/src", "records.rs"), ("clip/src", "fault.rs")] {
        let mut files = sources_of(folder);
        assert!(files.len() > 10, "{folder}");
        let found = |files: &Files| circles(&imports(files)).iter().map(listed).collect::<Vec<_>>();
        assert_eq!(found(&files), Vec::<String>::new(), "{folder}");
        // An import back from what imports it is found.
        let importer =
            imports(&files).iter().find(|(_, others)| others.contains(name)).unwrap().0.to_string();
        let back = format!("use crate::{};\n", importer.trim_end_matches(".rs"));
        files.get_mut(name).unwrap().insert_str(0, &back);
        assert_eq!(found(&files).len(), 1, "{folder}: {importer} and {name}");
    }
}
