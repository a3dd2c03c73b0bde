// SPDX-License-Identifier: MPL-2.0
//! Lists in the documents are those of the code: formats, files with `unsafe`, tests, fuzz targets, packages, pipelines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gst::prelude::*;
use gstsuperpixel::image::PixelFormat;

use crate::documents::{documents, links, root};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

type Names = BTreeSet<String>;

fn names<T: Into<String>>(all: impl IntoIterator<Item = T>) -> Names {
    all.into_iter().map(Into::into).collect()
}

/// Says what only one of both has.
fn same(what: &str, said: &Names, real: &Names) {
    let only = |a: &Names, b: &Names| a.difference(b).cloned().collect::<Vec<_>>();
    assert!(said == real, "{what}: not so: {:?}; missing: {:?}", only(said, real), only(real, said));
    assert!(!real.is_empty(), "{what}: nothing to compare");
}

/// Text below a heading, up to the next.
fn section(document: &str, heading: &str) -> String {
    let text = read(document);
    let below = text.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<_> = below.take_while(|line| !line.starts_with('#')).collect();
    assert!(!lines.is_empty(), "{document} has no {heading}");
    lines.join("\n")
}

/// Members of the workspace, which are folders.
fn members() -> Names {
    let manifest = read("Cargo.toml");
    let list = manifest.lines().find_map(|line| line.strip_prefix("members = [")?.strip_suffix(']'));
    names(list.expect("a list").split(", ").map(|name| name.trim_matches('"')))
}

/// Paths of the tree that a test is about, with `/`.
fn tree() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let is_ours = !name.starts_with('.') && !["target", "node_modules"].contains(&&*name);
                if is_ours && !path.is_symlink() {
                    walk(&path, found);
                }
            } else {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let ours = ["benches", "docs", "examples", "fuzz", "kernels", "media", "packaging", "pipelines", "src"];
    let folders = names(ours.into_iter().chain(["tests", "tools"])).into_iter().chain(members());
    let mut found = Vec::new();
    folders.for_each(|folder| walk(&root().join(folder), &mut found));
    found
}

/// Names without the ending of the files of a folder.
fn files(folder: &str, ending: &str) -> Names {
    let all = std::fs::read_dir(root().join(folder)).unwrap();
    let all =
        all.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(ending)?.to_owned()));
    all.collect()
}

/// Texts between backticks.
fn marked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expanded(text: &str) -> Vec<String> {
    match text.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (all, after))) => all.split(',').map(|one| format!("{before}{one}{after}")).collect(),
        None => vec![text.to_owned()],
    }
}

/// The first cells of the rows of a table, without its head.
fn first_cells(text: &str) -> Names {
    let rows = text.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| marked(row.split('|').nth(1)?).next()).map(str::to_owned).collect()
}

/// Formats that stand in a text.
fn formats_in(text: &str) -> Names {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    // Also a name that this GStreamer is too old to know.
    let is_format = |word: &&str| {
        word.parse::<gst_video::VideoFormat>().is_ok_and(|format| format != gst_video::VideoFormat::Unknown)
            || PixelFormat::ALL.iter().any(|format| format.name() == *word)
    };
    names(words.filter(is_format))
}

/// Formats of the caps of a pad that have no features.
fn offered(caps: &gst::CapsRef) -> Names {
    let of_system =
        caps.iter_with_features().filter(|(_, features)| features.contains("memory:SystemMemory"));
    let of = |value: &gst::glib::SendValue| match value.get::<gst::List>() {
        Ok(list) => list.iter().map(|item| item.get::<String>().unwrap()).collect(),
        Err(_) => vec![value.get::<String>().unwrap()],
    };
    of_system.flat_map(|(structure, _)| of(structure.value("format").unwrap())).collect()
}

#[test]
fn formats_of_system_memory_are_those_of_the_element() {
    crate::common::init();
    let element = gst::ElementFactory::make("superpixel").build().unwrap();
    let caps = element.static_pad("sink").unwrap().pad_template_caps();
    let known = |name: &String| gst_video::VideoFormat::from_string(name) != gst_video::VideoFormat::Unknown;
    let table = section("docs/formats.md", "## System memory");
    let table: String = table.lines().filter(|line| line.starts_with('|')).collect();
    let said = formats_in(&table);
    same(
        "docs/formats.md, system memory",
        &said.iter().filter(|name| known(name)).cloned().collect(),
        &offered(&caps),
    );
    // The library has those and some that GStreamer has no name for.
    let more = section("docs/formats.md", "## The library alone");
    let more = names(marked(&more).filter_map(|text| {
        let name = text.strip_prefix("PixelFormat::").unwrap_or(text);
        PixelFormat::ALL.into_iter().find(|format| format!("{format:?}") == name).map(PixelFormat::name)
    }));
    let mut all = names(PixelFormat::ALL.map(PixelFormat::name));
    // Its own order of bytes has another name.
    all.insert("ARGB64".into());
    same("docs/formats.md, all formats", &said.union(&more).cloned().collect(), &all);
}

#[test]
fn formats_of_device_memory_are_those_of_the_element() {
    crate::common::init();
    let source = read("src/element/cuda/memory.rs");
    let (_, list) = source.split_once("let formats = [").unwrap();
    let list = list.split_once("];").unwrap().0;
    let words = list.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let real = words.map(|word| {
        let found = PixelFormat::ALL.into_iter().find(|format| format!("{format:?}") == word);
        found.unwrap_or_else(|| panic!("{word} is no format")).name()
    });
    let said = section("docs/formats.md", "## CUDA memory");
    let said = said.split_once(", of which").expect("a list").0;
    same("docs/formats.md, CUDA memory", &formats_in(said), &names(real));
}

/// The page of limits names what is not taken.
#[test]
fn formats_of_the_limits_are_not_offered() {
    crate::common::init();
    let element = gst::ElementFactory::make("superpixel").build().unwrap();
    let taken = offered(&element.static_pad("sink").unwrap().pad_template_caps());
    let said = formats_in(&read("docs/limits.md"));
    assert!(said.is_disjoint(&taken), "docs/limits.md: {:?}", said.intersection(&taken).collect::<Vec<_>>());
    assert!(said.contains("v210"), "{said:?}");
}

#[test]
fn algorithms_of_the_readme_are_those_of_the_element() {
    crate::common::init();
    let readme = read("README.md");
    let row = readme.lines().find(|line| line.starts_with("| algorithms |")).unwrap();
    let words: String =
        row.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "(,;".contains(*c)).collect();
    for value in values("algo") {
        assert!(words.contains(&value), "README.md does not name {value}");
    }
}

/// Nicks of a property's values.
fn values(property: &str) -> Names {
    let element = gst::ElementFactory::make("superpixel").build().unwrap();
    let spec = element.find_property(property).unwrap();
    let class = spec.downcast_ref::<gst::glib::ParamSpecEnum>().unwrap().enum_class();
    names(class.values().iter().map(|value| value.nick()))
}

#[test]
fn fields_of_the_metadata_are_those_of_a_frame() {
    let element = crate::common::superpixel();
    for switch in ["temporal", "neighbors", "hierarchy", "events"] {
        element.set_property(switch, true);
    }
    let (mut harness, _bus) = crate::common::harness(&element);
    harness.set_src_caps(crate::common::caps("GRAY8", 64, 48));
    let frame = crate::common::picture(&crate::common::info("GRAY8", 64, 48), 1, 0);
    let frame = harness.push_and_pull(frame).unwrap();
    let objects =
        gst::ElementFactory::make("superpixelobjects").property("objects", "8,8,24,24").build().unwrap();
    let (mut harness, _bus) = crate::common::harness(&objects);
    harness.set_src_caps(crate::common::caps("GRAY8", 64, 48));
    let frame = harness.push_and_pull(frame).unwrap();
    let meta = gst::meta::CustomMeta::from_buffer(&frame, gstsuperpixel::meta::NAME).unwrap();
    let table = section("docs/metadata.md", "## Fields");
    let cells =
        table.lines().filter(|line| line.starts_with('|')).skip(2).map(|row| row.split('|').nth(1).unwrap());
    let real = names(meta.structure().fields().map(|field| field.as_str()));
    same("docs/metadata.md, fields", &names(cells.flat_map(marked)), &real);
    let row = table.lines().find(|line| line.starts_with("| `algo`")).unwrap();
    same("docs/metadata.md, algo", &names(marked(row).skip(1)), &values("algo"));
    let table = section("docs/metadata.md", "## Standard analytics metadata");
    let table: Vec<_> = table.lines().filter(|line| line.starts_with('|')).collect();
    same("docs/metadata.md, analytics", &first_cells(&table.join("\n")), &values("analytics"));
}

#[test]
fn names_of_the_python_package_are_in_its_page() {
    let source = read("python/superpixels/__init__.py");
    let list = source.split_once("__all__ = [").unwrap().1.split_once(']').unwrap().0;
    let page = read("docs/python.md");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let said = names(marked(&page).map(|text| text.split(|c| !is_name(c)).next().unwrap()));
    let real = names(list.split('"').skip(1).step_by(2));
    assert!(real.len() > 10, "{real:?}");
    let missing: Vec<_> = real.difference(&said).collect();
    assert!(missing.is_empty(), "docs/python.md lacks {missing:?}");
}

/// Files with `unsafe` outside of comments.
fn unsafe_files() -> Names {
    let is_unsafe = |path: &String| {
        let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
        let word = |c: char| !(c.is_alphanumeric() || c == '_');
        read(path).lines().any(|line| code(line).split(word).any(|word| word == "unsafe"))
    };
    let sources = tree().into_iter().filter(|path| path.ends_with(".rs"));
    sources
        .filter(|path| path.starts_with("src/") || path.starts_with("python/src/"))
        .filter(is_unsafe)
        .collect()
}

/// CONTRIBUTING.md lists folders, files, and names of files wherever they are.
#[test]
fn unsafe_code_is_where_contributing_says() {
    let house = section("CONTRIBUTING.md", "## The house");
    let rule = house.split_once("- `unsafe` only in").expect("the rule").1;
    let rule = rule.split_once("; other members").expect("the end of the list").0;
    let said: Vec<String> = marked(rule).flat_map(expanded).collect();
    let covers = |said: &String, file: &String| match (said.contains('/'), said.ends_with(".rs")) {
        (true, true) => said == file,
        (true, false) => file.starts_with(&format!("{said}/")),
        _ => file.ends_with(&format!("/{said}")),
    };
    let real = unsafe_files();
    let homeless: Vec<_> = real.iter().filter(|file| !said.iter().any(|said| covers(said, file))).collect();
    assert!(homeless.is_empty(), "CONTRIBUTING.md does not list {homeless:?}");
    let empty: Vec<_> = said.iter().filter(|said| !real.iter().any(|file| covers(said, file))).collect();
    assert!(empty.is_empty(), "nothing there is unsafe: {empty:?}");
    for member in members().into_iter().filter(|member| member != "python") {
        assert!(read(&format!("{member}/Cargo.toml")).contains("unsafe_code = \"forbid\""), "{member}");
    }
}

/// The test program that a `main.rs` is of.
fn program(path: &str) -> String {
    path.rsplit('/').nth(1).unwrap().to_owned()
}

/// One file says what runs on the emulated device: the programs whose tests take a device.
#[test]
fn tests_of_the_device_run_on_the_emulated_one() {
    let suite = read("tests/emulator/suite");
    let said = names(suite.split_whitespace().filter(|word| *word != "--test"));
    let mains = tree().into_iter().filter(|path| path.starts_with("tests/") && path.ends_with("/main.rs"));
    let real = mains.filter(|path| read(path).contains("\nmod device;")).map(|path| program(&path));
    let real = names(real);
    same("tests/emulator/suite", &said, &real);
    for reader in ["CONTRIBUTING.md", "tests/sections/library.sh"] {
        assert!(read(reader).contains("$(cat tests/emulator/suite)"), "{reader} has a list of its own");
    }
}

/// Whatever follows `--test` or `--example` in a document or a script is there.
#[test]
fn tests_and_examples_that_are_named_are_there() {
    let scripts = tree()
        .into_iter()
        .filter(|path| path.ends_with(".sh"))
        .map(|path| (PathBuf::from(&path), read(&path)));
    let mut count = 0;
    for (path, text) in documents().into_iter().chain(scripts) {
        for (flag, folder) in [("--test ", "tests"), ("--example ", "examples")] {
            for rest in text.split(flag).skip(1) {
                let word = rest.split([' ', '\n', '`', ')']).next().unwrap();
                // Node's flag takes a path, and in scripts names may be variables.
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let name = if word.chars().all(is_name) { word } else { continue };
                let places =
                    ["", "clip/", "studio/", "web/"].map(|package| format!("{package}{folder}/{name}"));
                let is_there = |place: &String| {
                    ["{}.rs", "{}/main.rs"].iter().any(|file| root().join(file.replace("{}", place)).exists())
                };
                let there = places.iter().any(is_there);
                assert!(name.is_empty() || there, "{}: {flag}{name}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn tests_that_pin_results_are_there() {
    let table = section("CONTRIBUTING.md", "## What pins a result");
    let cells =
        table.lines().filter(|line| line.starts_with('|')).skip(2).map(|row| row.split('|').nth(1).unwrap());
    let said = names(cells.flat_map(marked));
    let missing: Vec<_> = said
        .iter()
        .filter(|name| !root().join(format!("tests/{}.rs", name.replace("::", "/"))).exists())
        .collect();
    assert!(said.len() > 5 && missing.is_empty(), "{missing:?}");
}

/// CONTRIBUTING.md says of each section that only `--all` runs why.
#[test]
fn long_sections_are_those_of_contributing() {
    let scripts = tree().into_iter().filter(|path| path.starts_with("tests/sections/"));
    let all = scripts.map(|path| read(&path)).collect::<String>();
    let long = all.lines().filter_map(|line| line.trim().split_once("long ")).filter_map(|(_, rest)| {
        let (command, name) = rest.split_once(" \"")?;
        let is_command = command.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        Some(name.split_once('"')?.0.replace("$target", "*")).filter(|_| is_command)
    });
    same(
        "CONTRIBUTING.md, what only --all runs",
        &first_cells(&section("CONTRIBUTING.md", "### What only `--all` runs")),
        &names(long),
    );
}

#[test]
fn fuzz_targets_are_those_of_the_folder() {
    let real = files("fuzz/targets", ".rs");
    same("CONTRIBUTING.md, fuzzing", &first_cells(&section("CONTRIBUTING.md", "## Fuzzing")), &real);
    let manifest = read("fuzz/Cargo.toml");
    let programs =
        manifest.lines().filter_map(|line| line.strip_prefix("path = \"targets/")?.strip_suffix(".rs\""));
    same("fuzz/Cargo.toml", &names(programs), &real);
    let sections = read("tests/sections/fuzz.sh");
    let run =
        sections.lines().find_map(|line| line.trim().strip_prefix("for target in ")?.strip_suffix("; do"));
    same("tests/sections/fuzz.sh", &names(run.expect("a loop").split(' ')), &real);
}

#[test]
fn packages_are_those_that_can_be_built() {
    let said = section("CONTRIBUTING.md", "## Packages");
    let table: Vec<_> = said.lines().skip_while(|line| !line.starts_with('|')).collect();
    let script = read("packaging/build.sh");
    let real = script.lines().filter_map(|line| line.strip_prefix("build_")?.strip_suffix("() {"));
    same("CONTRIBUTING.md, packages", &first_cells(&table.join("\n")), &names(real));
}

#[test]
fn pipelines_of_the_table_are_those_of_the_folder() {
    let said = first_cells(&read("pipelines/README.md"));
    let real = [".launch", ".py"]
        .map(|ending| files("pipelines", ending).into_iter().map(move |name| name + ending));
    same("pipelines/README.md", &said, &real.into_iter().flatten().collect());
}

/// Every page of `docs` can be reached from the README.
#[test]
fn every_page_is_linked() {
    let documents = documents();
    let (mut seen, mut next) = (BTreeSet::new(), vec![PathBuf::from("README.md")]);
    while let Some(page) = next.pop() {
        let Some(text) = documents.get(&page).filter(|_| seen.insert(page.clone())) else { continue };
        let folder = page.parent().unwrap();
        for link in links(text).into_iter().filter(|link| !link.contains("://")) {
            let mut target = folder.to_owned();
            for part in Path::new(link.split('#').next().unwrap()) {
                if part == ".." { assert!(target.pop(), "{link}") } else { target.push(part) }
            }
            next.push(target);
        }
    }
    let alone: Vec<_> =
        documents.keys().filter(|page| page.starts_with("docs") && !seen.contains(*page)).collect();
    assert!(alone.is_empty(), "no page leads to {alone:?}");
}

/// Files of the tree that a document names are there, below the top folder, `src`, `kernels`, or beside the document.
#[test]
fn files_that_are_named_are_there() {
    const ENDINGS: [&str; 8] = [".rs", ".sh", ".cu", ".cuh", ".mjs", ".toml", ".launch", ".supp"];
    let tree = tree();
    let (mut missing, mut count) = (Vec::new(), 0);
    for (page, text) in documents().into_iter().filter(|(page, _)| page != Path::new("CHANGELOG.md")) {
        for named in marked(&text).flat_map(|text| text.split(' ')).flat_map(expanded) {
            let is_file =
                ENDINGS.iter().any(|ending| named.strip_suffix(ending).is_some_and(|stem| !stem.is_empty()));
            let is_plain = named.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
            if is_file && is_plain {
                count += 1;
                // Files in .gpu are made by tools/gpu-pack.sh.
                let named = named.strip_prefix(".gpu/").unwrap_or(&named);
                let there = root().join(named).exists()
                    || tree.iter().any(|path| path.ends_with(&format!("/{named}")));
                if !there {
                    missing.push(format!("{}: {named}", page.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "files that are named and not there:\n{}", missing.join("\n"));
    assert!(count > 60, "{count} files");
}
