// SPDX-License-Identifier: MPL-2.0
//! Puts commit, release date and origin, which GStreamer shows for a plugin, into the environment of the build.

fn main() {
    #[cfg(feature = "gst")]
    {
        gst_plugin_version_helper::info();
        // GStreamer refuses a plugin without one; these are its own words for none.
        let repository = std::env::var("CARGO_PKG_REPOSITORY").unwrap_or_default();
        let origin = if repository.is_empty() { "Unknown package origin" } else { &repository };
        println!("cargo:rustc-env=PACKAGE_ORIGIN={origin}");
    }
}
