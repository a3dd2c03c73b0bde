// SPDX-License-Identifier: MPL-2.0
//! A device that refuses or breaks: every failure is an error that says what to do, and the next start works.
//!
//! Runs on the emulated device, which fails on demand: `tests/emulator/build.py FOLDER`, then these tests with
//! `LD_LIBRARY_PATH=FOLDER SUPERPIXEL_EMULATED=1`. Without it each test prints that it was skipped. Faults concern a
//! whole process, so that each case is one of its own.

use crate::common;
use std::error::Error as _;
use std::process::Command;

use crate::common::{error_on, launch, play_to_end};
use gst::prelude::*;
use gstsuperpixel::cuda::Cuda;
use gstsuperpixel::error::DeviceFailure;

/// Runs an ignored test of this program by itself, with a fault.
fn with_fault(case: &str, variable: &str, value: &str) {
    if std::env::var_os("SUPERPIXEL_EMULATED").is_none_or(|v| v != "1") {
        println!("{case}: skipped: SUPERPIXEL_EMULATED=1 is not set");
        return;
    }
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &format!("{module}::{case}"), "--ignored", "--nocapture"]).env(variable, value);
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let ran = text.contains("1 passed");
    assert!(output.status.success() && ran, "{case}: {text}{}", String::from_utf8_lossy(&output.stderr));
}

fn line(backend: &str, size: (u32, u32), frames: u32) -> String {
    let (width, height) = size;
    format!(
        "videotestsrc num-buffers={frames} pattern=ball ! video/x-raw,format=NV12,width={width},height={height} ! \
         superpixel name=s backend={backend} overlay=boundaries neighbors=true ! fakesink"
    )
}

#[test]
fn kernels_that_the_driver_rejects() {
    with_fault("rejected_kernels", "EMULATOR_REJECT", "ingest");
}

#[test]
fn kernels_of_an_algorithm_that_the_driver_rejects() {
    with_fault("rejected_algorithm", "EMULATOR_REJECT", "slic_assign");
}

#[test]
fn machine_code_that_the_driver_does_not_take() {
    with_fault("no_machine_code", "EMULATOR_NO_CODE", "1");
    // None is there for it.
    with_fault("no_machine_code", "EMULATOR_CAPABILITY", "120");
    with_fault("no_machine_code", "CUDA_FORCE_PTX_JIT", "1");
}

#[test]
#[ignore = "a case of its own process"]
fn no_machine_code() {
    for algorithm in ["slic temporal=true merge=2", "lsc", "quickshift"] {
        play_to_end(&launch(&line(&format!("cuda algo={algorithm}"), (64, 48), 2))).unwrap();
    }
}

#[test]
#[ignore = "a case of its own process"]
fn rejected_algorithm() {
    for backend in ["cuda", "auto"] {
        let error = play_to_end(&launch(&line(backend, (64, 48), 2))).unwrap_err();
        assert!(error.contains("load kernels") && error.contains("backend=cpu"), "{error}");
    }
    // The others run.
    play_to_end(&launch(&line("cuda algo=lsc", (64, 48), 2))).unwrap();
}

#[test]
#[ignore = "a case of its own process"]
fn rejected_kernels() {
    // The library says what the driver and its compiler have said, and knows no pipelines.
    let error = Cuda::new(-1).err().expect("the driver rejects kernels");
    let source = error.source().expect("an error of the driver").to_string();
    assert!(source.contains("CUDA_ERROR_INVALID_PTX"), "{source}");
    assert_eq!(error.device_failure(), Some(DeviceFailure::Kernels));
    let text = error.to_string();
    assert!(text.contains("load kernels") && text.contains(&source), "{text}");
    assert!(text.ends_with("; ptxas error: rejected by EMULATOR_REJECT"), "{text}");
    // The element says what to do.
    let error = play_to_end(&launch(&line("cuda", (64, 48), 2))).unwrap_err();
    assert!(
        error.contains(&text) && error.contains("update the driver (525 or newer) or use backend=cpu"),
        "{error}"
    );
    let pipeline = launch(&line("auto", (64, 48), 2));
    pipeline.set_state(gst::State::Paused).unwrap();
    let active = pipeline.by_name("s").unwrap().property::<String>("active-backend");
    assert!(active.starts_with("cpu "), "{active}");
    play_to_end(&pipeline).unwrap();
}

#[test]
fn a_device_without_enough_memory() {
    with_fault("too_little_memory", "EMULATOR_MEMORY", "20000000");
}

#[test]
#[ignore = "a case of its own process"]
fn too_little_memory() {
    let cuda = Cuda::new(-1).unwrap();
    let free = cuda.free_memory().unwrap();
    for _ in 0..3 {
        let error = play_to_end(&launch(&line("cuda", (1280, 720), 2))).unwrap_err();
        assert!(error.contains("memory") && error.contains("smaller frames"), "{error}");
        assert_eq!(cuda.free_memory().unwrap(), free, "memory is lost after an error");
    }
    // One element, stopped after the error and started with frames that fit.
    let pipeline =
        launch("videotestsrc num-buffers=3 ! capsfilter name=c ! superpixel name=s backend=cuda ! fakesink");
    let filter = pipeline.by_name("c").unwrap();
    filter.set_property("caps", common::caps("RGB", 1280, 720));
    assert!(play_to_end(&pipeline).is_err());
    filter.set_property("caps", common::caps("RGB", 160, 120));
    play_to_end(&pipeline).unwrap();
    assert_eq!(cuda.free_memory().unwrap(), free);
}

#[test]
fn a_device_without_memory_for_frames_that_take_turns() {
    with_fault("too_little_memory_to_take_turns", "EMULATOR_MEMORY", "80000000");
}

#[test]
#[ignore = "a case of its own process"]
fn too_little_memory_to_take_turns() {
    // There is memory for one lane, and for two if nothing else were needed.
    play_to_end(&launch(&line("cuda", (320, 240), 8).replace("name=s", "name=s async-depth=4"))).unwrap();
}

/// The first start ends with the error that says what to do, the next two play to the end.
fn breaks_once(pipeline: &gst::Pipeline) {
    for start in 0..3 {
        match play_to_end(pipeline) {
            Err(error) => {
                assert_eq!(start, 0, "{error}");
                assert!(error.contains("CUDA failed in") && error.contains("NULL"), "{error}");
            }
            Ok(()) => assert!(start > 0, "the device did not break"),
        }
    }
}

#[test]
fn a_device_that_breaks_under_way() {
    // The first launch, one in a frame's first recording, one in a replayed frame, one near the end.
    for launches in ["1", "9", "100", "333"] {
        with_fault("broken_device", "EMULATOR_FAIL_AFTER", launches);
    }
}

#[test]
#[ignore = "a case of its own process"]
fn broken_device() {
    breaks_once(&launch(&line("cuda", (64, 48), 16)));
}

fn on_device(frames: u32) -> String {
    format!(
        "videotestsrc num-buffers={frames} pattern=ball ! video/x-raw,format=NV12,width=64,height=48 ! cudaupload ! \
         video/x-raw(memory:CUDAMemory) ! superpixel name=s backend=cuda overlay=boundaries neighbors=true ! \
         superpixel overlay=none ! fakesink"
    )
}

#[test]
fn a_device_that_breaks_under_frames_of_its_own() {
    for launches in ["1", "9", "100", "333"] {
        with_fault("broken_under_its_frames", "EMULATOR_FAIL_AFTER", launches);
    }
}

#[test]
#[ignore = "a case of its own process"]
fn broken_under_its_frames() {
    // Succeeds again and again only if GStreamer forgets the pipeline's context, which it keeps from start to start.
    breaks_once(&launch(&on_device(10)));
}

#[test]
fn a_device_that_breaks_with_frames_under_way() {
    for launches in ["9", "100", "333"] {
        with_fault("broken_with_frames_under_way", "EMULATOR_FAIL_AFTER", launches);
    }
}

#[test]
#[ignore = "a case of its own process"]
fn broken_with_frames_under_way() {
    breaks_once(&launch(&line("cuda", (64, 48), 16).replace("name=s", "name=s async-depth=3")));
}

#[test]
fn results_of_a_device_that_has_broken() {
    with_fault("unreadable_results", "EMULATOR_FAIL_AFTER", "150");
}

#[test]
#[ignore = "a case of its own process"]
fn unreadable_results() {
    let pipeline = launch(&on_device(0).replace("num-buffers=0", "is-live=false"));
    let kept = std::sync::Arc::<std::sync::Mutex<Option<gst::Buffer>>>::default();
    let to = kept.clone();
    let pad = pipeline.by_name("s").unwrap().static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        *to.lock().unwrap() = info.buffer().cloned();
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Playing).unwrap();
    let bus = pipeline.bus().unwrap();
    assert!(bus.timed_pop_filtered(common::PATIENCE, &[gst::MessageType::Error]).is_some());
    let buffer = kept.lock().unwrap().take().unwrap();
    // An error for who reads it, then and after the stop; not an end of the process.
    for _ in 0..2 {
        let meta = gstsuperpixel::meta::SuperpixelMeta::from_buffer(&buffer).unwrap();
        assert!(meta.labels().is_err() && meta.table().is_err() && meta.neighbors().is_err());
        pipeline.set_state(gst::State::Null).unwrap();
    }
}

#[test]
fn a_machine_without_gstreamers_cuda_library() {
    let folder = std::env::temp_dir().join(format!("superpixel-no-library-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A file of that name that is no library hides the one behind it in the path.
    std::fs::write(folder.join("libgstcuda-1.0.so.0"), "").unwrap();
    let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    with_fault("no_library", "LD_LIBRARY_PATH", &format!("{}:{path}", folder.display()));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
#[ignore = "a case of its own process"]
fn no_library() {
    let pipeline = launch(&line("cuda", (64, 48), 2));
    pipeline.set_state(gst::State::Paused).unwrap();
    let element = pipeline.by_name("s").unwrap();
    assert!(element.property::<String>("active-backend").starts_with("cuda:"));
    let caps = element.static_pad("sink").unwrap().query_caps(None).to_string();
    assert!(caps.contains("video/x-raw") && !caps.contains("CUDAMemory"), "{caps}");
    play_to_end(&pipeline).unwrap();
}

#[test]
fn a_device_that_breaks_under_two_pipelines() {
    with_fault("broken_for_two", "EMULATOR_FAIL_AFTER", "150");
}

#[test]
#[ignore = "a case of its own process"]
fn broken_for_two() {
    // Endless, so that both see the break whoever comes first.
    let pipelines =
        [0, 1].map(|_| launch(&line("cuda", (160, 120), 0).replace("num-buffers=0", "is-live=false")));
    for pipeline in &pipelines {
        pipeline.set_state(gst::State::Playing).unwrap();
    }
    for pipeline in &pipelines {
        let bus = pipeline.bus().unwrap();
        let message = bus.timed_pop_filtered(common::PATIENCE, &[gst::MessageType::Error]);
        assert!(message.is_some(), "no error on a broken device");
    }
    // While one still holds the broken device the other cannot start, and says so.
    pipelines[0].set_state(gst::State::Null).unwrap();
    assert!(pipelines[0].set_state(gst::State::Paused).is_err());
    let error = error_on(&pipelines[0].bus().unwrap()).unwrap();
    assert!(error.contains("every pipeline") && error.contains("NULL"), "{error}");
    for pipeline in &pipelines {
        pipeline.set_state(gst::State::Null).unwrap();
    }
    for _ in 0..2 {
        play_to_end(&launch(&line("cuda", (160, 120), 3))).unwrap();
    }
}
