// SPDX-License-Identifier: MPL-2.0
//! Comments start with their subject: few open with a word that stands for one, such as `What` or `Those`.

use std::collections::BTreeMap;
use std::path::Path;

/// Folders whose files are read.
const FOLDERS: &[&str] =
    &["src", "kernels", "python", "clip", "output", "studio", "web", "fuzz", "benches", "examples", "tests"];

/// Names of folders below them that hold no source of this project.
const SKIPPED: &[&str] = &["built", "node_modules", "target", "__pycache__"];

/// Openings in place of a subject, in any case.
const OPENINGS: &[&str] = &[
    "what", "where", "whether", "who", "whose", "whoever", "those", "the same", "nothing", "none of",
    "all that", "as above",
];

/// Most comments in a hundred that may open so.
const MOST: f64 = 3.0;

/// Comments of a file in C, C++, CUDA, JavaScript or Rust. A run of lines with one marker is one comment.
fn slashes(text: &str) -> Vec<String> {
    let mut comments: Vec<String> = Vec::new();
    let mut run: Option<&str> = None;
    let mut in_block = false;
    for line in text.lines().map(str::trim) {
        let (code, comment) = split(line);
        if in_block {
            let more = line.split("*/").next().unwrap_or_default();
            let last = comments.last_mut().expect("a block has begun");
            last.push(' ');
            last.push_str(more.trim_start_matches(['*', ' ']));
            in_block = !line.contains("*/");
            continue;
        }
        let marker = ["///", "//!", "//", "/*"].into_iter().find(|marker| comment.starts_with(marker));
        let Some(marker) = marker else {
            run = None;
            continue;
        };
        let body = comment[marker.len()..].trim_start_matches('*');
        if marker == "/*" {
            comments.push(body.split("*/").next().unwrap_or_default().into());
            in_block = !body.contains("*/");
        } else if run == Some(marker) && code.is_empty() {
            let last = comments.last_mut().expect("a run has begun");
            last.push(' ');
            last.push_str(body.trim());
        } else {
            comments.push(body.trim().into());
        }
        run = (code.is_empty() && marker != "/*").then_some(marker);
    }
    comments
}

/// A line's code and its comment with the marker. Markers inside of quotes are code.
fn split(line: &str) -> (&str, &str) {
    let starts = line.match_indices("//").chain(line.match_indices("/*")).map(|(at, _)| at);
    let is_code =
        |at: &usize| line[..*at].matches('"').count().is_multiple_of(2) && !line[..*at].ends_with(':');
    let at = starts.filter(is_code).min().unwrap_or(line.len());
    (line[..at].trim(), &line[at..])
}

/// Comments and docstrings of a file in Python.
fn hashes(text: &str) -> Vec<String> {
    let mut comments: Vec<String> = Vec::new();
    let (mut in_run, mut in_doc) = (false, false);
    // Docstrings are the first statement of a file, class or function.
    let mut begins = true;
    for line in text.lines().map(str::trim) {
        if let Some(body) = line.strip_prefix('#').filter(|_| !in_doc) {
            match comments.last_mut().filter(|_| in_run) {
                Some(last) => last.push_str(&format!(" {}", body.trim())),
                None => comments.push(body.trim().into()),
            }
            in_run = true;
            continue;
        }
        in_run = false;
        let quotes = line.matches("\"\"\"").count();
        if begins && !in_doc && quotes > 0 {
            let body = line.trim_start_matches('r').trim_start_matches('"');
            comments.push(body.split("\"\"\"").next().unwrap_or_default().into());
        }
        in_doc ^= quotes % 2 == 1;
        if !line.is_empty() {
            begins = line.ends_with(':');
        }
    }
    comments
}

/// Returns true for comments that say something: neither empty nor the line that names the interpreter.
fn is_text(comment: &str) -> bool {
    !comment.is_empty() && !comment.starts_with('!')
}

/// A file without the line that names its license, which would be one comment with the head below it.
fn without_license(text: &str) -> String {
    text.lines().filter(|line| !line.contains("SPDX-License-Identifier")).collect::<Vec<_>>().join("\n")
}

fn opens_badly(comment: &str) -> bool {
    let comment = comment.trim().to_lowercase();
    OPENINGS.iter().any(|opening| {
        comment
            .strip_prefix(opening)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Calls `found` with the path and the comments of every source file below a folder.
fn walk(folder: &Path, found: &mut impl FnMut(&Path, Vec<String>)) {
    for entry in std::fs::read_dir(folder).expect("folders of the repository can be read") {
        let path = entry.expect("entries of the repository can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) && !name.starts_with('.') {
                walk(&path, found);
            }
            continue;
        }
        let comments: fn(&str) -> Vec<String> = match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
            "rs" | "cu" | "cuh" | "js" | "mjs" | "c" | "cpp" | "h" => slashes,
            "py" => hashes,
            _ => continue,
        };
        let text = std::fs::read_to_string(&path).expect("sources are UTF-8");
        found(
            &path,
            comments(&without_license(&text)).into_iter().filter(|comment| is_text(comment)).collect(),
        );
    }
}

#[test]
fn comments_start_with_their_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut all, mut bad) = (0, 0);
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in FOLDERS {
        walk(&root.join(folder), &mut |path, comments| {
            all += comments.len();
            let opening: Vec<String> = comments.into_iter().filter(|comment| opens_badly(comment)).collect();
            bad += opening.len();
            if !opening.is_empty() {
                let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
                files.insert(name, opening);
            }
        });
    }
    let share = 100.0 * bad as f64 / all as f64;
    println!("{bad} of {all} comments open without a subject: {share:.1} %");
    assert!(all > 4000, "{all} comments: folders have moved");
    let mut most: Vec<_> = files.iter().collect();
    most.sort_by_key(|(_, comments)| std::cmp::Reverse(comments.len()));
    let list: Vec<String> = most
        .iter()
        .take(20)
        .map(|(name, found)| format!("{:4} {name}: {:.60}", found.len(), found[0]))
        .collect();
    assert!(share <= MOST, "{share:.1} % of the comments, more than {MOST} %; most in\n{}", list.join("\n"));
}

#[test]
fn comments_are_found() {
    let rust = "//! Head.\n//! More.\n\n/// What one is.\nfn f() { // where it ends\n    g(\"http://x // y\");\n}\n/* Those\n * two */";
    assert_eq!(slashes(rust), ["Head. More.", "What one is.", "where it ends", " Those two "]);
    let python = "#!x\n\"\"\"Head.\n\n# no comment\n\"\"\"\ndef f():\n    \"\"\"Whether so.\"\"\"\n    # Two\n    # lines.\n    x = \"\"\"What\"\"\"\n";
    assert_eq!(hashes(python), ["!x", "Head.", "Whether so.", "Two lines."]);
    for (comment, bad) in [
        ("What one is.", true),
        ("Whole frames.", false),
        ("the same: x", true),
        (" Those two", true),
        ("Nothings", false),
    ] {
        assert_eq!(opens_badly(comment), bad, "{comment}");
    }
}
