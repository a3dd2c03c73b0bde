// SPDX-License-Identifier: MPL-2.0
//! Instruction levels of the processor: one source of the hot loops is compiled for each, and the best available one
//! runs. Results are equal at all levels; `tests/levels.rs` compares them.

use std::sync::atomic::{AtomicU8, Ordering};

/// Pixels that are worked on together, at every level.
pub(crate) const LANES: usize = 8;

/// A set of instructions that the hot loops are compiled for, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// The build's target features: SSE2 on x86-64; on ARM64 NEON with fused multiply-add, beside which no level pays:
    /// `docs/arm64.md` has the counts.
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL, and all of the level below.
    Avx512,
}

impl Level {
    /// All levels, in ascending order.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Avx2, Self::Avx512];

    /// Returns true if this processor can run the level in this build.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let [avx2, avx512] = {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            [avx2, avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")]
        };
        #[cfg(not(target_arch = "x86_64"))]
        let [avx2, avx512] = [false; 2];
        match self {
            Self::Baseline => true,
            Self::Avx2 => avx2,
            Self::Avx512 => avx512,
        }
    }
}

/// The level in use; 0 before the first call of [`current`]. Only available levels are stored here.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Returns the level in use: the best available one, or the choice of [`set`].
#[inline]
pub fn current() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Baseline,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => detect(),
    }
}

#[cold]
fn detect() -> Level {
    let best = Level::ALL.into_iter().rev().find(|level| level.is_available()).unwrap_or(Level::Baseline);
    LEVEL.store(best as u8, Ordering::Relaxed);
    best
}

/// Chooses a level for the whole process, for tests. Returns false and changes nothing if it is not available.
pub fn set(level: Level) -> bool {
    let available = level.is_available();
    if available {
        LEVEL.store(level as u8, Ordering::Relaxed);
    }
    available
}

#[cfg(debug_assertions)]
static TAKEN: std::sync::Mutex<std::collections::BTreeSet<(&str, Level)>> =
    std::sync::Mutex::new(std::collections::BTreeSet::new());

/// Records that a function ran at a level; in builds with debug assertions only.
#[cfg(debug_assertions)]
pub(crate) fn note(function: &'static str, level: Level) {
    TAKEN.lock().unwrap().insert((function, level));
}

/// Takes the record of functions and their levels since the last call. Empty in builds without debug assertions.
pub fn taken() -> Vec<(&'static str, Level)> {
    #[cfg(debug_assertions)]
    return std::mem::take(&mut *TAKEN.lock().unwrap()).into_iter().collect();
    #[cfg(not(debug_assertions))]
    Vec::new()
}

/// Defines a function that is compiled for every level, from an `#[inline(always)]` body.
macro_rules! by_level {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $work:ident) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        $visibility fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) $(-> $result)? {
                #[cfg(debug_assertions)]
                $crate::cpu::level::note(stringify!($work), $crate::cpu::level::Level::Avx2);
                $work($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            fn avx512($($argument: $type),*) $(-> $result)? {
                #[cfg(debug_assertions)]
                $crate::cpu::level::note(stringify!($work), $crate::cpu::level::Level::Avx512);
                $work($($argument),*)
            }
            match $crate::cpu::level::current() {
                // SAFETY: the level in use is available: `current` and `set` keep to `Level::is_available`, which asks for
                // these features.
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::level::Level::Avx512 => unsafe { avx512($($argument),*) },
                // SAFETY: as for the level above.
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::level::Level::Avx2 => unsafe { avx2($($argument),*) },
                _ => {
                    #[cfg(debug_assertions)]
                    $crate::cpu::level::note(stringify!($work), $crate::cpu::level::Level::Baseline);
                    $work($($argument),*)
                }
            }
        }
    };
}
pub(crate) use by_level;
