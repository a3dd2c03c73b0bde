// SPDX-License-Identifier: MPL-2.0
//! The device that tests run on. Without one a test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a
//! failure. `SUPERPIXEL_SHORT=1` takes the small cases only, for runs under a checker or on an emulated device.
#![allow(dead_code)]

use gstsuperpixel::cuda::Cuda;

/// Returns true if an environment variable is 1.
pub fn flag(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value == "1")
}

/// Returns true if only small cases are wanted.
pub fn short() -> bool {
    flag("SUPERPIXEL_SHORT")
}

/// Returns the value that a test needs, or prints that it is skipped and returns `None`.
pub fn or_skip<T>(test: &str, needed: Result<T, String>) -> Option<T> {
    let reason = match needed {
        Ok(needed) => return Some(needed),
        Err(reason) => reason,
    };
    assert!(!flag("SUPERPIXEL_REQUIRE_CUDA"), "{test}: SUPERPIXEL_REQUIRE_CUDA is set, and {reason}");
    println!("{test}: skipped: {reason}");
    None
}

/// The first device that works.
pub fn device(test: &str) -> Option<Cuda> {
    or_skip(test, Cuda::new(-1).map_err(|error| error.to_string()))
}
