// SPDX-License-Identifier: MPL-2.0
//! Device memory stays what it was over many engines.

use crate::device::{device, short};
use gstsuperpixel::cuda::Staging;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

#[test]
fn changing_sizes_leak_no_device_memory() {
    let _turn = crate::turn();
    let Some(cuda) = device("changing_sizes_leak_no_device_memory") else { return };
    let frames = if short() { 20 } else { 1000 };
    let pixels = vec![90u8; 4 * 200 * 200];
    let outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
    let mut free = Vec::new();
    for i in 0..frames {
        let (w, h) = (64 + i % 137, 64 + i % 123);
        let info = FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgba);
        let mut engine = Engine::new(cuda.clone(), Plan::new(&Params::default(), info).unwrap()).unwrap();
        let mut staging = Staging::new(&cuda, info).unwrap();
        let frame = staging.upload(&Frame::new(info, &[&pixels], &[4 * w as usize]).unwrap()).unwrap();
        engine.segment(&frame, &mut None, outputs).unwrap();
        drop((engine, staging));
        cuda.synchronize().unwrap();
        free.push(cuda.free_memory().unwrap());
    }
    // The first frames fill the driver's own pools.
    let (early, late) = (free[free.len() / 4], free[free.len() - 1]);
    assert!(late + (4 << 20) >= early, "device memory shrinks: {early} bytes free, then {late}");
}
