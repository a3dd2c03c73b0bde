// SPDX-License-Identifier: MPL-2.0
//! The files of the page, within the program.

/// Name, type and text of a file.
pub struct Asset {
    /// Path below the address of the server.
    pub path: &'static str,
    /// Content type.
    pub kind: &'static str,
    /// Content.
    pub text: &'static str,
}

macro_rules! assets {
    ($($path:literal: $kind:literal,)*) => {
        /// Every file of the page.
        pub const ASSETS: &[Asset] =
            &[$(Asset { path: concat!("/", $path), kind: $kind, text: include_str!(concat!("../../page/", $path)) },)*];
    };
}

assets! {
    "index.html": "text/html; charset=utf-8",
    "studio.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "app.js": "text/javascript; charset=utf-8",
    "boundary.js": "text/javascript; charset=utf-8",
    "controls.js": "text/javascript; charset=utf-8",
    "divider.js": "text/javascript; charset=utf-8",
    "exports.js": "text/javascript; charset=utf-8",
    "frame.js": "text/javascript; charset=utf-8",
    "inspect.js": "text/javascript; charset=utf-8",
    "labels.js": "text/javascript; charset=utf-8",
    "link.js": "text/javascript; charset=utf-8",
    "messages.js": "text/javascript; charset=utf-8",
    "objects.js": "text/javascript; charset=utf-8",
    "painter.js": "text/javascript; charset=utf-8",
    "pins.js": "text/javascript; charset=utf-8",
    "plots.js": "text/javascript; charset=utf-8",
    "png.js": "text/javascript; charset=utf-8",
    "presets.js": "text/javascript; charset=utf-8",
    "scale.js": "text/javascript; charset=utf-8",
    "segments.js": "text/javascript; charset=utf-8",
    "transport.js": "text/javascript; charset=utf-8",
    "zoom.js": "text/javascript; charset=utf-8",
}
