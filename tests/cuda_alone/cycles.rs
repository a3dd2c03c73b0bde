// SPDX-License-Identifier: MPL-2.0
//! Many starts and stops, and many elements at once, leave nothing behind: device memory, files, threads, the host's
//! memory.

use crate::common;
use crate::common::{launch, play_to_end};
use crate::device::{device, or_skip, short};
use gstsuperpixel::cuda::Cuda;

/// Resources of the process, and free memory of the device.
#[derive(Debug, Clone, Copy)]
struct Held {
    free_on_device: usize,
    files: usize,
    threads: usize,
    host_bytes: usize,
}

fn held(cuda: &Cuda) -> Held {
    cuda.synchronize().unwrap();
    // Threads that have been told to end need a moment.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    Held {
        free_on_device: cuda.free_memory().unwrap(),
        files: count("/proc/self/fd"),
        threads: count("/proc/self/task"),
        host_bytes: 4096 * resident,
    }
}

#[test]
fn starts_and_stops_and_many_elements_leave_nothing_behind() {
    let _turn = crate::turn();
    common::init();
    let Some(cuda) = device("starts_and_stops_and_many_elements_leave_nothing_behind") else { return };
    let (width, height, cycles, elements, frames) =
        if short() { (64, 48, 12, 6, 2) } else { (640, 360, 100, 20, 4) };
    let upload = gst::ElementFactory::find("cudaupload").ok_or("no cudaupload (plugin nvcodec)".into());
    let on_device = or_skip("memory:CUDAMemory", upload).is_some();
    let source =
        format!("videotestsrc num-buffers={frames} ! video/x-raw,format=NV12,width={width},height={height}");
    let system = "superpixel backend=cuda neighbors=true async-depth=2 overlay=boundaries ! fakesink";
    let device = "cudaupload ! video/x-raw(memory:CUDAMemory) ! superpixel backend=cuda async-depth=2 overlay=mean-color ! \
                  superpixellabels on-missing=zero ! fakesink";
    let device = device.replace("superpixellabels", "cudadownload ! video/x-raw ! superpixellabels");
    let mut lines = vec![format!("{source} ! {system}")];
    if on_device {
        lines.push(format!("{source} ! {device}"));
    }
    let branches = |branch: &str| format!(" t. ! queue ! {branch}").repeat(elements);
    lines.push(format!("{source} ! tee name=t {}", branches(system)));
    if on_device {
        let shared = device.replace("cudaupload ! video/x-raw(memory:CUDAMemory) ! ", "");
        lines.push(format!(
            "{source} ! cudaupload ! video/x-raw(memory:CUDAMemory) ! tee name=t {}",
            branches(&shared)
        ));
    }
    for (i, line) in lines.iter().enumerate() {
        // Pipelines with many elements are heavy; a few starts of them show a leak as well.
        let rounds = if line.contains("tee") { (cycles / 10 + 2).max(8) } else { cycles };
        let pipeline = launch(line);
        let mut before = None;
        for round in 0..rounds {
            play_to_end(&pipeline).unwrap();
            // The first rounds fill the driver's pools, this program's and the allocator's, of which every thread may get one.
            if round == (rounds / 4).max(3) {
                before = Some(held(&cuda));
            }
        }
        let (before, after) = (before.unwrap(), held(&cuda));
        println!("line {i}, {rounds} starts: {before:?}, then {after:?}");
        // Pools of threads keep some that are idle.
        assert!(after.threads <= before.threads + 8, "threads, line {i}");
        assert!(after.free_on_device + (4 << 20) >= before.free_on_device, "device memory, line {i}");
        assert!(after.files <= before.files, "files, line {i}");
        assert!(after.host_bytes <= before.host_bytes + (24 << 20), "memory of the host, line {i}");
    }
    // Pipelines that are made anew, each with a context of its own.
    let mut before = None;
    for round in 0..cycles {
        for line in &lines[..lines.len() / 2] {
            play_to_end(&launch(line)).unwrap();
        }
        if round == cycles / 4 {
            before = Some(held(&cuda));
        }
    }
    let (before, after) = (before.unwrap(), held(&cuda));
    println!("{cycles} new pipelines: {before:?}, then {after:?}");
    assert!(after.free_on_device + (4 << 20) >= before.free_on_device, "device memory, new pipelines");
    assert!(after.files <= before.files, "files, new pipelines");
    assert!(after.host_bytes <= before.host_bytes + (24 << 20), "memory of the host, new pipelines");
}
