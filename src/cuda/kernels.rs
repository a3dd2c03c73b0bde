// SPDX-License-Identifier: MPL-2.0
//! Kernels of kernels/*.cu: a module for each, with its name and with a struct of its arguments.
//!
//! build.rs reads the parameters from the sources and calls the macros below with them. A struct has a field for each parameter
//! but a last one of type `Batch`, of its name, in its order: an address for a pointer, a reference for a struct, else the value. So a call names all arguments, and
//! one that is missing or of another type does not compile.

use super::abi::*;
use super::launch::{self, Argument, Arguments};
use super::module::{Entry, ModuleCode, module_code};
use crate::regions::{Neighbor, Region};

/// A compiled file of kernels.
macro_rules! file {
    ($file:ident = $name:literal) => {
        static $file: ModuleCode = module_code!($name);
    };
}

/// A kernel and its arguments, but for the batch, which the launch adds where `batched` is 1. The second lifetime is `'static`, where
/// there is a first one.
macro_rules! kernel {
    ($name:ident of $file:ident, batched $batched:literal $([$borrow:lifetime, $long:lifetime])? {
        $($(#[$about:meta])* $field:ident: $kind:ty,)*
    }) => {
        #[doc = concat!("`", stringify!($name), "`")]
        pub(crate) mod $name {
            use super::*;

            /// Its arguments.
            pub(crate) struct Args $(<$borrow>)? {
                $($(#[$about])* pub $field: $kind,)*
            }

            // SAFETY: the build has read the parameters from the kernel's source, and the fields are these in their order.
            unsafe impl $(<$borrow>)? Arguments for Args $(<$borrow>)? {
                type Pointers = [*mut std::ffi::c_void; [$(stringify!($field)),*].len() + $batched];
                type Static = Args $(<$long>)?;
                const IS_BATCHED: bool = $batched == 1;

                fn pointers(&self, batch: &Batch) -> Self::Pointers {
                    let own = [$(self.$field.pointer()),*];
                    // The batch, where there is one more.
                    let mut all = [batch.pointer(); [$(stringify!($field)),*].len() + $batched];
                    all[..own.len()].copy_from_slice(&own);
                    all
                }
            }

            /// The kernel, loaded. Methods that cluster name it by a trait instead.
            #[allow(dead_code)]
            pub(crate) type Kernel = launch::Kernel<Args $(<$long>)?>;
            /// The kernel, or one with the same parameters, by its file and name. One of them only the element takes.
            #[cfg_attr(not(feature = "gst"), allow(dead_code))]
            pub(crate) type KernelEntry = Entry<Args $(<$long>)?>;

            // SAFETY: the build has read the arguments from the source of this kernel.
            #[cfg_attr(not(feature = "gst"), allow(dead_code))]
            pub(crate) const KERNEL: KernelEntry = unsafe { Entry::new(&$file, stringify!($name)) };

            #[cfg(test)]
            impl $(<$borrow>)? Args $(<$borrow>)? {
                pub(super) fn parameters() -> Vec<tests::Parameter> {
                    let own = [$(tests::Parameter {
                        name: stringify!($field),
                        kind: stringify!($kind),
                        bytes: <$kind as Argument>::BYTES,
                    }),*];
                    let batch = tests::Parameter { name: "batch", kind: "&'a Batch", bytes: Batch::BYTES };
                    own.into_iter().chain([batch].into_iter().take($batched)).collect()
                }
            }
        }
    };
}

/// A kernel with the arguments of another.
macro_rules! variant {
    ($name:ident of $file:ident, like $first:ident) => {
        #[doc = concat!("`", stringify!($name), "`, with the arguments of `", stringify!($first), "`")]
        pub(crate) mod $name {
            use super::*;

            // SAFETY: the build has compared the parameters of both.
            pub(crate) const KERNEL: $first::KernelEntry = unsafe { Entry::new(&$file, stringify!($name)) };

            #[cfg(test)]
            pub(super) use super::$first::Args;
        }
    };
}

/// All kernels, for the tests.
#[cfg(test)]
macro_rules! list {
    ($($name:ident of $file:ident,)*) => {
        fn list() -> Vec<(&'static str, &'static ModuleCode, Vec<tests::Parameter>)> {
            vec![$((stringify!($name), &$file, $name::Args::parameters())),*]
        }
    };
}

/// All sources and headers, for the tests, which also run where there are none.
#[cfg(test)]
macro_rules! sources {
    ([$($name:literal),*]) => {
        const SOURCES: &[&str] = &[$(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $name))),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::c_void;

    use super::*;
    use crate::cuda::launch::Frames;

    /// A parameter as the arguments have it.
    #[derive(Debug, PartialEq)]
    pub struct Parameter {
        pub name: &'static str,
        /// Its type in Rust.
        pub kind: &'static str,
        pub bytes: usize,
    }

    /// Names and parameters of the kernels in kernels/*.cu and kernels/*.cuh, as they stand there.
    fn sources() -> BTreeMap<String, Vec<String>> {
        let mut found = BTreeMap::new();
        for text in SOURCES {
            for part in text.split("\nKERNEL ").skip(1) {
                let (head, list) = part.split_once('{').unwrap().0.rsplit_once('(').unwrap();
                let name = head.split_whitespace().next_back().unwrap().to_string();
                let list = list.rsplit_once(')').unwrap().0.split(',');
                let list = list.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
                let before = found.insert(name, list.collect());
                assert!(before.is_none(), "{before:?} is there twice");
            }
        }
        found
    }

    /// The type in Rust for one of a source; that of a struct may be a typedef, whose name is the end of the struct's.
    fn is_of(kind: &str, source: &str) -> bool {
        let element = source.split_whitespace().filter(|word| !["const", "volatile", "*"].contains(word));
        let element = match element.collect::<Vec<_>>()[..] {
            ["float"] => "f32",
            ["double"] => "f64",
            ["float2"] => "[f32; 2]",
            ["uint2"] => "[u32; 2]",
            ["uint4"] => "[u32; 4]",
            [other] => other,
            _ => return false,
        };
        let is_struct = element.starts_with(char::is_uppercase);
        let kind = match (source.contains('*'), is_struct) {
            (true, _) => kind.strip_prefix("Address<").and_then(|rest| rest.strip_suffix('>')),
            (false, true) => kind.strip_prefix("&'a "),
            (false, false) => Some(kind),
        };
        kind.is_some_and(|kind| if is_struct { kind.ends_with(element) } else { kind == element })
    }

    #[test]
    fn arguments_are_the_parameters_of_the_sources() {
        let (sources, list) = (sources(), list());
        assert_eq!(list.len(), sources.len());
        for (kernel, _, parameters) in list {
            let source = &sources[kernel];
            assert_eq!(parameters.len(), source.len(), "{kernel}");
            for (parameter, text) in parameters.iter().zip(source) {
                let text = text.replace("__restrict__", " ").replace('*', " * ");
                let (kind, name) = text.rsplit_once(' ').unwrap();
                assert_eq!(parameter.name, name, "{kernel}");
                assert!(is_of(parameter.kind, kind), "{kernel}: {name} is of {kind}, not {}", parameter.kind);
            }
        }
    }

    /// Bytes of the parameters of a kernel in PTX.
    fn compiled(ptx: &str, kernel: &str) -> Vec<usize> {
        let (_, rest) = ptx.split_once(&format!(".entry {kernel}(")).unwrap();
        let list = rest.split_once("\n)").unwrap().0.split(',');
        let bytes = |text: &str| {
            let mut words = text.split_whitespace().skip_while(|word| *word != ".param").skip(1);
            match words.next().unwrap() {
                ".u64" | ".f64" => 8,
                ".u32" => 4,
                // A struct: `.align 8 .b8 NAME[BYTES]`.
                ".align" => {
                    let name = words.last().unwrap();
                    name.split_once('[').unwrap().1.trim_end_matches(']').parse().unwrap()
                }
                other => panic!("{kernel} has a parameter of {other}"),
            }
        };
        list.map(bytes).collect()
    }

    #[test]
    fn arguments_are_as_large_as_the_compiled_parameters() {
        for (kernel, file, parameters) in list() {
            let bytes: Vec<_> = parameters.iter().map(|parameter| parameter.bytes).collect();
            assert_eq!(bytes, compiled(file.base, kernel), "{kernel}");
            assert_eq!(bytes, compiled(file.sm90, kernel), "{kernel}");
        }
    }

    #[test]
    fn pointers_are_of_the_fields_in_their_order() {
        fn at<T>(value: &T) -> *mut c_void {
            std::ptr::from_ref(value).cast_mut().cast()
        }
        let (selections, late) =
            (Selections { at: Address::new(1) }, Late { pairs: Address::NULL, selectors: Address::NULL });
        let marks = Marks { groups: Address::new(2) };
        // SAFETY: numbers and addresses, for which zeros are values.
        let (c, shape): (Components, ConnectArgs) = unsafe { std::mem::zeroed() };
        let args = connect_select_late::Args {
            args: &shape,
            round: 3,
            marks: &marks,
            late: &late,
            small: Address::new(4),
            selections: &selections,
            c: &c,
        };
        let wanted =
            [at(&c), at(&selections), at(&args.small), at(&late), at(&marks), at(&args.round), at(&shape)];
        let batch = Frames::ONE.batch;
        let with_batch: Vec<_> = wanted.into_iter().chain([at(&batch)]).collect();
        assert_eq!(args.pointers(&batch)[..], with_batch);
    }
}
