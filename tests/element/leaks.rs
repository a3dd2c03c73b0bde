// SPDX-License-Identifier: MPL-2.0
//! A leak made on purpose: with it, tests/run.sh proves that GStreamer's leaks tracer would report one.

#[test]
#[ignore = "leaks on purpose, only for tests/run.sh"]
fn leaks_on_purpose() {
    crate::common::init();
    std::mem::forget(gst::Pipeline::new());
}
