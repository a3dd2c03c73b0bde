// SPDX-License-Identifier: MPL-2.0
//! The examples as programs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

const NAMES: [&str; 3] = ["read_labels", "segment_image", "track_video"];

/// Returns the path of an example.
///
/// All are built first, since tests that are chosen by name come without them. Where `SUPERPIXEL_EXAMPLES_BUILT` is set they have been,
/// with other packages: Cargo would choose other features for them alone and put another library in the place of the tests' one.
pub fn example(name: &str) -> PathBuf {
    assert!(NAMES.contains(&name), "{name}");
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let folder = own.ancestors().nth(2).unwrap();
        if std::env::var_os("SUPERPIXEL_EXAMPLES_BUILT").is_none() {
            let features = if cfg!(feature = "cuda") { "gst,cuda" } else { "gst" };
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--locked", "--no-default-features", "--features", features]);
            cargo.args(NAMES.iter().flat_map(|name| ["--example", name]));
            if folder.ends_with("release") {
                cargo.arg("--release");
            }
            // Beside this test, whatever folder that is.
            cargo.arg("--target-dir").arg(folder.parent().unwrap());
            assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
        }
        folder.join("examples")
    });
    folder.join(name)
}
