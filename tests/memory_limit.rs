// SPDX-License-Identifier: MPL-2.0
//! A host without memory: engines and frames end in an error that says what for, never in an abort. The limits concern a whole
//! process, so that each case is one of its own.
#![cfg(target_os = "linux")]

mod pictures;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;

use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cpu::memory::ROOM;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::{Error, Result};
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;
use pictures::hash;

const CASE: &str = "SUPERPIXEL_MEMORY_CASE";
const ALL: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
const MIB: u64 = 1 << 20;

/// The system's allocator, which gives large blocks as far as there is room for them. Smaller ones are what ends a process, as
/// everywhere in Rust: tables of a fixed size, boxes, what the thread pool takes. They are not counted. Arrays of stages that are mappings
/// of their own share the room.
struct Limited;

/// Larger than any table of a fixed size.
const LARGE: usize = 40_000;

fn large(bytes: usize) -> i64 {
    if bytes < LARGE { 0 } else { bytes as i64 }
}

/// Takes room, or gives some back; says whether there was as much.
fn take(bytes: i64) -> bool {
    let enough = ROOM.fetch_sub(bytes, Relaxed) >= bytes || bytes <= 0;
    if !enough {
        ROOM.fetch_add(bytes, Relaxed);
    }
    enough
}

// SAFETY: everything is the system's, but for null, which any allocation may give.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to what `GlobalAlloc` asks for, here and below.
        if take(large(layout.size())) { unsafe { System.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        if take(large(layout.size())) { unsafe { System.alloc_zeroed(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !take(large(size) - large(layout.size())) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        take(-large(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// Bytes of address space that the process has.
fn taken() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split_whitespace().next().unwrap().parse().unwrap();
    // SAFETY: a plain call.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}

/// Lets the process have so many bytes of address space.
fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a plain call; the struct is the caller's.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

fn params(case: &str) -> Params {
    let name = case.split(' ').next().unwrap();
    let algorithm = match name {
        "slic" => AlgorithmParams::Slic(slic::Params { iterations: 1, ..Default::default() }),
        "lsc" => AlgorithmParams::Lsc(lsc::Params { iterations: 1, ..Default::default() }),
        _ => AlgorithmParams::QuickShift(quickshift::Params { sigma: 0.5, tau: 2.0, ..Default::default() }),
    };
    Params {
        algorithm,
        // With every second column and row sampled, so that lists of samples are long.
        superpixel_size: 8,
        // So that no run and no component is like another.
        min_region: 1.0,
        temporal: case.contains("temporal"),
        connectivity: !case.contains("loose"),
        merge: merge::Params { ratio: if case.contains("merge") { 2.0 } else { 0.0 }, ..Default::default() },
        ..Params::default()
    }
}

/// Segments frames of gray noise with limits of so many bytes, of the process or of large blocks; returns what there was no memory
/// for.
fn squeeze(case: &str, side: u32, process: bool, limits: &[u64]) -> (BTreeSet<&'static str>, usize) {
    let info = FrameInfo::new(Geometry::new(side, side).unwrap(), PixelFormat::Gray8);
    let pixels: Vec<u8> =
        (0..info.geometry.pixels()).map(|i| if i % 3 == 0 { 0 } else { hash(i as u64) as u8 }).collect();
    let mut map = vec![0; info.geometry.pixels()];
    let plan = Plan::new(&params(case), info).unwrap();
    let cpu = Cpu::new(2).unwrap();
    let before = taken();
    let (mut missing, mut enough, mut tried) = (BTreeSet::new(), 0, 0);
    for &more in limits {
        tried += 1;
        let mut engine = None;
        let mut run = || -> Result<()> {
            if process {
                limit(before + more);
            } else {
                ROOM.store(more as i64, Relaxed);
            }
            let engine = engine.insert(Engine::new(cpu.clone(), plan.clone())?);
            for _ in 0..3 {
                let mut labels = Labels::new(info.geometry, &mut map, side as usize)?;
                engine.segment(&Frame::new(info, &[&pixels], &[side as usize])?, &mut labels, ALL)?;
            }
            Ok(())
        };
        let result = run();
        limit(libc::RLIM_INFINITY);
        ROOM.store(i64::MAX / 2, Relaxed);
        match result {
            Ok(()) => {
                enough += 1;
                if enough == 2 {
                    break;
                }
            }
            Err(Error::Memory { what, bytes }) => {
                assert!(bytes > 0);
                missing.insert(what);
                // With memory again, the engine goes on.
                if let Some(engine) = &mut engine {
                    for _ in 0..2 {
                        let mut labels = Labels::new(info.geometry, &mut map, side as usize).unwrap();
                        let frame = Frame::new(info, &[&pixels], &[side as usize]).unwrap();
                        assert!(engine.segment(&frame, &mut labels, ALL).unwrap().count > 100);
                    }
                }
            }
            Err(error) => panic!("{case}, {more} bytes: {error}"),
        }
    }
    println!("{case}: enough {enough} times of {tried}, else no memory for {missing:?}");
    (missing, enough)
}

/// Runs the ignored test of this program by itself.
fn in_a_process(case: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "squeezed", "--ignored", "--nocapture"]).env(CASE, case);
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!(
        "{}",
        text.lines().filter(|line| line.contains("no memory for")).fold(String::new(), |s, l| s + l + "\n")
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{case}: {}: {text}{errors}",
        output.status
    );
}

#[test]
#[ignore = "a case of its own process"]
fn squeezed() {
    let Ok(case) = std::env::var(CASE) else { return };
    if case.ends_with("largest") {
        // All of them too little: the planes alone take more.
        let (missing, enough) = squeeze(&case, 16384, true, &[100, 600, 1100, 1700].map(|more| more * MIB));
        assert!(enough == 0 && !missing.is_empty());
    } else {
        // From too little for the first plane to enough for every list.
        let limits = std::iter::successors(Some(100_000u64), |more| Some(more + more / 12));
        let limits: Vec<u64> = limits.take_while(|&more| more < 2000 * MIB).collect();
        let (missing, enough) = squeeze(&case, 300, false, &limits);
        assert!(enough == 2 && missing.len() > 3, "{missing:?}");
    }
}

#[test]
fn the_largest_frames_without_memory_are_an_error() {
    for algorithm in ["slic", "lsc", "quickshift"] {
        in_a_process(&format!("{algorithm} temporal largest"));
    }
}

#[test]
fn frames_without_memory_are_an_error() {
    for algorithm in ["slic", "lsc", "quickshift"] {
        for kind in ["", "temporal merge", "loose"] {
            in_a_process(&format!("{algorithm} {kind}"));
        }
    }
}
