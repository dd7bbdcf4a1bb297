//! What the library says that it can do.

use crate::api::{Answer, answer};
use crate::machine::code;

/// What `cuFileDriverGetProperties` fills: 56 bytes, as two pairs of numbers and what follows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Properties {
    nvidia_fs: [u32; 2],
    poll_threshold: usize,
    max_direct_io: usize,
    status: u32,
    control: u32,
    features: u32,
    limits: [u32; 5],
}

/// As of a machine without nvidia-fs: compatibility mode is allowed and the only way.
const PROPERTIES: Properties = Properties {
    nvidia_fs: [0, 0],
    poll_threshold: 4,
    max_direct_io: 16 << 10,
    status: 0,
    control: 1 << 1,
    features: 0,
    limits: [128 << 10, 1 << 10, 32 << 20, 128, 5],
};

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFileDriverGetProperties(properties: *mut Properties) -> Answer {
    answer("cuFileDriverGetProperties", |_| {
        if properties.is_null() {
            return Err(code::INVALID_VALUE.into());
        }
        // SAFETY: not null, and the caller's promise by the guide.
        unsafe { properties.write(PROPERTIES) };
        Ok(())
    })
}

const _: () = {
    assert!(size_of::<Properties>() == 56);
    assert!(std::mem::offset_of!(Properties, control) == 28);
};
