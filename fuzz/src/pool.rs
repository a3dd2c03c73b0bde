// SPDX-License-Identifier: MPL-2.0
//! A buffer pool of a downstream element whose buffers may be shorter than they claim, and described wrongly.

use std::sync::Mutex;

use arbitrary::Unstructured;
use gst::glib;
use gst::subclass::prelude::*;

use crate::stream;

mod imp {
    use super::*;

    /// The pool.
    #[derive(Default)]
    pub struct Pool {
        pub script: Mutex<Vec<u8>>,
        pub caps: Mutex<Option<gst::Caps>>,
    }

    #[glib::object_subclass]
    impl ObjectSubclass for Pool {
        const NAME: &'static str = "SuperpixelFuzzPool";
        type Type = super::Pool;
        type ParentType = gst::BufferPool;
    }

    impl ObjectImpl for Pool {}
    impl GstObjectImpl for Pool {}

    impl BufferPoolImpl for Pool {
        fn set_config(&self, config: &mut gst::BufferPoolConfigRef) -> bool {
            *self.caps.lock().unwrap() = config.params().and_then(|params| params.0);
            self.parent_set_config(config)
        }

        fn alloc_buffer(
            &self,
            _params: Option<&gst::BufferPoolAcquireParams>,
        ) -> Result<gst::Buffer, gst::FlowError> {
            let caps = self.caps.lock().unwrap().clone();
            let info = caps.and_then(|caps| gst_video::VideoInfo::from_caps(&caps).ok());
            let info = info.filter(|info| info.size() < 1 << 17).ok_or(gst::FlowError::Error)?;
            let script = self.script.lock().unwrap().clone();
            let mut u = Unstructured::new(&script);
            let buffer = || -> arbitrary::Result<gst::Buffer> {
                let mut buffer = stream::bytes(&mut u, info.size())?;
                if u.arbitrary()? {
                    stream::add_video_meta(&mut u, buffer.get_mut().expect("a new buffer"), &info)?;
                }
                Ok(buffer)
            };
            let mut buffer = { buffer }().map_err(|_| gst::FlowError::Error)?;
            buffer.get_mut().expect("a new buffer").unset_flags(gst::BufferFlags::TAG_MEMORY);
            Ok(buffer)
        }
    }
}

glib::wrapper! {
    /// The pool.
    pub struct Pool(ObjectSubclass<imp::Pool>) @extends gst::BufferPool, gst::Object;
}

impl Pool {
    /// A pool that makes buffers as the bytes say.
    pub fn new(script: &[u8]) -> Self {
        let pool: Self = glib::Object::new();
        *pool.imp().script.lock().unwrap() = script.to_vec();
        pool
    }

    /// The size that it announces.
    pub fn claimed_size(&self) -> u32 {
        let script = self.imp().script.lock().unwrap();
        [64, 960, 4096, 0][usize::from(script.first().copied().unwrap_or(0) % 4)]
    }
}
