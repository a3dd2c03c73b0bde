// SPDX-License-Identifier: MPL-2.0
//! Files of kernels as they are embedded, what a device takes of them, and the driver's log where it takes none.

use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaModule, DriverError, sys};
use cudarc::nvrtc::Ptx;

use super::launch::{Kernel, guarded};
use crate::error::{Error, Result};

const STAGE: &str = "load kernels";

/// One file of kernels, compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModuleCode {
    /// Name of its source in `kernels`, without the ending.
    pub name: &'static str,
    /// PTX for compute capability 7.5 and above.
    pub base: &'static str,
    /// PTX for 9.0 and above.
    pub sm90: &'static str,
    /// Machine code for 7.5, 8.x but 8.7, and 9.0.
    pub cubins: [&'static [u8]; 3],
}

impl ModuleCode {
    /// Loads machine code, or PTX where there is none that the driver takes or where the driver is to compile. Where it refuses PTX, the
    /// error has the log of its compiler.
    pub fn load(
        &self,
        context: &Arc<CudaContext>,
        capability: (i32, i32),
        compiles: bool,
    ) -> Result<Arc<CudaModule>> {
        let image = self.for_capability(capability);
        let code = image.code.filter(|_| !compiles);
        let loaded = guarded(STAGE, || {
            if let Some(code) = code {
                match context.load_module(Ptx::from_binary(code.to_vec())) {
                    // A format that this driver does not know, or a device that is not what its number says.
                    Err(DriverError(
                        sys::CUresult::CUDA_ERROR_INVALID_IMAGE | sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
                    )) => {}
                    result => return result,
                }
            }
            context.load_module(Ptx::from_src(image.text))
        });
        loaded.map_err(|error| match error {
            Error::Cuda { stage, source, .. } => Error::Cuda { stage, source, log: compiler_log(image.text) },
            other => other,
        })
    }

    fn for_capability(&self, capability: (i32, i32)) -> Image {
        let text = if capability >= (9, 0) { self.sm90 } else { self.base };
        // Code runs on the later ones of its generation, and on no other generation. 8.7 is Tegra's, for which NVIDIA promises nothing of
        // code for other devices.
        let [sm75, sm80, sm90] = self.cubins;
        let code = match capability {
            (8, 7) => None,
            (7, _) => Some(sm75),
            (8, _) => Some(sm80),
            (9, _) => Some(sm90),
            _ => None,
        };
        Image { text, code }
    }
}

/// A compiled kernel file.
macro_rules! module_code {
    ($name:literal) => {
        $crate::cuda::module::ModuleCode {
            name: $name,
            base: $crate::cuda::module::built!(include_str, $name, ".ptx"),
            sm90: $crate::cuda::module::built!(include_str, $name, ".sm90.ptx"),
            cubins: [
                $crate::cuda::module::built!(include_bytes, $name, ".sm75.cubin"),
                $crate::cuda::module::built!(include_bytes, $name, ".sm80.cubin"),
                $crate::cuda::module::built!(include_bytes, $name, ".sm90.cubin"),
            ],
        }
    };
}
pub(crate) use module_code;

/// A file in `kernels/built`.
macro_rules! built {
    ($include:ident, $name:literal, $ending:literal) => {
        $include!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/built/", $name, $ending))
    };
}
pub(crate) use built;

/// The part of a file of kernels that a device can load.
#[derive(Debug, Clone, Copy)]
struct Image {
    /// PTX, which the driver compiles.
    text: &'static str,
    /// Machine code.
    code: Option<&'static [u8]>,
}

/// A kernel by its file and name; `A` as of [`Kernel`].
pub(crate) struct Entry<A> {
    pub file: &'static ModuleCode,
    name: &'static str,
    arguments: PhantomData<fn() -> A>,
}

impl<A> Entry<A> {
    /// # Safety
    /// The file has a kernel of this name, whose parameters are those of `A`.
    pub const unsafe fn new(file: &'static ModuleCode, name: &'static str) -> Self {
        Self { file, name, arguments: PhantomData }
    }

    /// The kernel, from its file.
    pub fn load(self, module: &Arc<CudaModule>, stage: &'static str, overlaps: bool) -> Result<Kernel<A>> {
        let function = guarded(stage, || module.load_function(self.name))?;
        // SAFETY: who made `self` says that the kernel's parameters are those of `A`.
        Ok(unsafe { Kernel::new(function, stage, overlaps) })
    }
}

/// Log of the driver's compiler for PTX in the current context; empty where it takes the PTX or says nothing.
fn compiler_log(text: &str) -> String {
    use sys::CUjit_option::{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    /// Bytes for the log, of which the first lines are what matters.
    const BYTES: usize = 4096;
    let Ok(text) = CString::new(text) else { return String::new() };
    let mut log = vec![0u8; BYTES];
    let mut options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(BYTES)];
    let asked = guarded(STAGE, || {
        let mut module = std::ptr::null_mut();
        let (image, options) = (text.as_ptr().cast(), options.as_mut_ptr());
        // SAFETY: `image` is a string with its end; the two options have a value each, a buffer and how many bytes it has, which holds
        // while the call lasts.
        let refused = unsafe { sys::cuModuleLoadDataEx(&mut module, image, 2, options, values.as_mut_ptr()) };
        if refused == sys::CUresult::CUDA_SUCCESS {
            // SAFETY: the module is new, and nobody else has it.
            unsafe { sys::cuModuleUnload(module) }.result()?;
        }
        Ok(())
    });
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(BYTES);
    match asked {
        Ok(()) => String::from_utf8_lossy(&log[..end]).trim().to_string(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_takes_the_code_of_its_generation() {
        let code = ModuleCode { name: "k", base: "75", sm90: "90", cubins: [b"c75", b"c80", b"c90"] };
        let taken = |capability| {
            let Image { text, code } = code.for_capability(capability);
            (text, code.map_or("", |code| std::str::from_utf8(code).unwrap()))
        };
        assert_eq!(taken((7, 5)), ("75", "c75"));
        assert_eq!(taken((8, 0)), ("75", "c80"));
        assert_eq!(taken((8, 7)), ("75", ""));
        assert_eq!(taken((8, 9)), ("75", "c80"));
        assert_eq!(taken((9, 0)), ("90", "c90"));
        assert_eq!(taken((10, 0)), ("90", ""));
        assert_eq!(taken((12, 1)), ("90", ""));
    }
}
