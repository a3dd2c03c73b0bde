// SPDX-License-Identifier: MPL-2.0
//! Puts commit, release date and origin, which GStreamer shows for a plugin, into the environment of the build, and gives
//! src/cuda/kernels.rs the parameters of all kernels.

fn main() {
    // Else any file of the package, a document as well, would compile all again. Release builds do, and so name the last commit.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        println!("cargo:rerun-if-changed=build.rs");
        println!("cargo:rerun-if-changed=kernels");
    }
    #[cfg(feature = "gst")]
    {
        gst_plugin_version_helper::info();
        // GStreamer refuses a plugin without one; these are its own words for none.
        let repository = std::env::var("CARGO_PKG_REPOSITORY").unwrap_or_default();
        let origin = if repository.is_empty() { "Unknown package origin" } else { &repository };
        println!("cargo:rustc-env=PACKAGE_ORIGIN={origin}");
    }
    #[cfg(feature = "cuda")]
    kernels::write();
}

/// Reads the parameters of kernels from kernels/*.cu.
///
/// Every build reads them anew, without Python or a toolkit. A committed copy could be older than the sources; so a parameter
/// that is new, gone or of another type does not compile where the kernel is launched.
#[cfg(feature = "cuda")]
mod kernels {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    /// Kernels that take the parameters of another, beside those that have its name and a suffix.
    const VARIANTS: &[(&str, &str)] = &[("pack_words", "pack_bytes")];

    /// Types of the kernels that are no structs of kernels/abi.cuh.
    const TYPES: &[(&str, &str)] = &[
        ("u8", "u8"),
        ("u16", "u16"),
        ("u32", "u32"),
        ("u64", "u64"),
        ("i32", "i32"),
        ("i64", "i64"),
        ("float", "f32"),
        ("double", "f64"),
        ("float2", "[f32; 2]"),
        ("uint2", "[u32; 2]"),
        ("uint4", "[u32; 4]"),
    ];

    #[derive(PartialEq)]
    struct Parameter {
        name: String,
        /// In the kernel's source, without `const`, qualifiers and typedefs.
        element: String,
        is_pointer: bool,
        is_const: bool,
    }

    #[derive(PartialEq)]
    struct Parameters {
        own: Vec<Parameter>,
        /// Whether behind these stands `Batch batch`, which the launch gives.
        is_batched: bool,
    }

    struct Kernel {
        name: String,
        parameters: Parameters,
    }

    /// Writes kernels.rs to the folder of the build.
    pub fn write() {
        let variable = |name| PathBuf::from(std::env::var_os(name).unwrap_or_default());
        let folder = variable("CARGO_MANIFEST_DIR").join("kernels");
        let entries = std::fs::read_dir(&folder).expect("the folder `kernels` can be read");
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "cu" || ending == "cuh"));
        paths.sort();
        let (mut out, mut list) = (String::new(), String::new());
        for file in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "cu")) {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let constant = stem.to_uppercase();
            let mut text = String::new();
            read(file, &mut Vec::new(), &mut text);
            let typedefs = typedefs(&text);
            let kernels: Vec<_> =
                text.split("\nKERNEL ").skip(1).map(|text| kernel(&stem, text, &typedefs)).collect();
            let _ = writeln!(out, "file!({constant} = {stem:?});");
            for (at, kernel) in kernels.iter().enumerate() {
                match first_of(kernel, &kernels[..at]) {
                    Some(first) => {
                        let (name, first) = (&kernel.name, &first.name);
                        let _ = writeln!(out, "variant!({name} of {constant}, like {first});");
                    }
                    None => write_kernel(&constant, kernel, &mut out),
                }
                let _ = writeln!(list, "    {} of {constant},", kernel.name);
            }
        }
        let _ = writeln!(out, "#[cfg(test)]\nlist!(\n{list});");
        let names = paths.iter().map(|path| path.file_name().unwrap_or_default());
        let _ = writeln!(out, "#[cfg(test)]\nsources!({:?});", names.collect::<Vec<_>>());
        std::fs::write(variable("OUT_DIR").join("kernels.rs"), out)
            .expect("the folder of the build can be written");
    }

    /// Adds a source without comments, its headers in the place of the lines that include them.
    fn read(path: &Path, seen: &mut Vec<PathBuf>, out: &mut String) {
        if seen.iter().any(|other| other == path) {
            return;
        }
        seen.push(path.to_path_buf());
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for line in text.lines() {
            let header = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
            match header {
                Some(header) => read(&path.with_file_name(header), seen, out),
                None => *out += line.split("//").next().unwrap_or_default(),
            }
            out.push('\n');
        }
    }

    /// The types that lines `typedef TYPE NAME;` name.
    fn typedefs(text: &str) -> BTreeMap<&str, &str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("typedef ")?.strip_suffix(';'));
        lines.filter_map(|line| line.rsplit_once(' ')).map(|(of, name)| (name, of)).collect()
    }

    /// A kernel from the text behind `KERNEL`: bounds of its launch, its name, its parameters.
    fn kernel(file: &str, text: &str, typedefs: &BTreeMap<&str, &str>) -> Kernel {
        let read = || {
            let head = text.trim_start().strip_prefix("__launch_bounds__(")?.split_once(')')?.1;
            let (name, rest) = head.split_once('(')?;
            let (list, _) = rest.split_once(')')?;
            let mut own: Vec<_> =
                list.split(',').map(|text| parameter(text, typedefs)).collect::<Option<_>>()?;
            let is_batched = own.last().is_some_and(|last| last.element == "Batch");
            own.truncate(own.len() - usize::from(is_batched));
            Some(Kernel { name: name.trim().to_string(), parameters: Parameters { own, is_batched } })
        };
        read().unwrap_or_else(|| {
            panic!("kernels/{file}.cu: cannot read `KERNEL {}`", text.lines().next().unwrap_or_default())
        })
    }

    fn parameter(text: &str, typedefs: &BTreeMap<&str, &str>) -> Option<Parameter> {
        let words = |text: &str| -> Vec<String> {
            let spread = text.replace('*', " * ");
            let words = spread.split_whitespace().filter(|word| !["__restrict__", "volatile"].contains(word));
            words.map(String::from).collect()
        };
        let mut words = words(text);
        let name = words.pop()?;
        let is_const = words.first().is_some_and(|word| word == "const");
        words.drain(..usize::from(is_const));
        let is_pointer = words.last().is_some_and(|word| word == "*");
        words.truncate(words.len() - usize::from(is_pointer));
        // A pointer to a pointer, or a type of several words, is nothing that the host passes.
        let [element] = &words[..] else { return None };
        let named = typedefs.get(element.as_str()).filter(|_| rust_type(element).is_none());
        let element = named.map_or(element.clone(), |of| of.to_string());
        Some(Parameter { name, element, is_pointer, is_const })
    }

    fn rust_type(element: &str) -> Option<&'static str> {
        TYPES.iter().find(|(of, _)| *of == element).map(|(_, rust)| *rust)
    }

    /// The kernel whose arguments this one takes, too.
    fn first_of<'a>(kernel: &Kernel, before: &'a [Kernel]) -> Option<&'a Kernel> {
        let listed = VARIANTS.iter().find(|(name, _)| *name == kernel.name).map(|(_, first)| *first);
        let is_variant = |first: &&Kernel| {
            let suffix = kernel.name.strip_prefix(&first.name).is_some_and(|rest| rest.starts_with('_'));
            first.parameters == kernel.parameters && (suffix || listed == Some(first.name.as_str()))
        };
        let found = before.iter().find(is_variant);
        assert!(listed.is_none() || found.is_some(), "{} has other parameters than {listed:?}", kernel.name);
        found
    }

    fn write_kernel(constant: &str, kernel: &Kernel, out: &mut String) {
        let by_reference = |p: &Parameter| !p.is_pointer && rust_type(&p.element).is_none();
        let Parameters { own, is_batched } = &kernel.parameters;
        let borrows = own.iter().any(by_reference);
        let lifetimes = if borrows { " ['a, 'static]" } else { "" };
        let batched = u32::from(*is_batched);
        let _ = writeln!(out, "kernel!({} of {constant}, batched {batched}{lifetimes} {{", kernel.name);
        for parameter in own {
            let Parameter { name, element, is_pointer, is_const } = parameter;
            let rust = rust_type(element).unwrap_or(element);
            let (about, kind) = match (is_pointer, is_const) {
                (true, true) => {
                    (format!("`const {element} *`: the kernel reads it."), format!("Address<{rust}>"))
                }
                (true, false) => {
                    (format!("`{element} *`: the kernel writes it."), format!("Address<{rust}>"))
                }
                (false, _) if by_reference(parameter) => (format!("`{element}`"), format!("&'a {rust}")),
                (false, _) => (format!("`{element}`"), rust.to_string()),
            };
            let _ = writeln!(out, "    #[doc = {about:?}]\n    {name}: {kind},");
        }
        let _ = writeln!(out, "}});");
    }
}
