//! The codes that calls answer, by the driver API's numbers and names.

use std::ffi::CStr;

/// A code other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

/// The result of an operation: a value or a code.
pub(crate) type Answer<T> = Result<T, Code>;

pub(crate) const SUCCESS: i32 = 0;
pub(crate) const INVALID_VALUE: Code = Code(1);
pub(crate) const OUT_OF_MEMORY: Code = Code(2);
pub(crate) const NOT_INITIALIZED: Code = Code(3);
pub(crate) const INVALID_DEVICE: Code = Code(101);
pub(crate) const INVALID_IMAGE: Code = Code(200);
pub(crate) const INVALID_CONTEXT: Code = Code(201);
pub(crate) const NO_BINARY_FOR_GPU: Code = Code(209);
pub(crate) const INVALID_PTX: Code = Code(218);
pub(crate) const PEER_ACCESS_UNSUPPORTED: Code = Code(217);
pub(crate) const INVALID_HANDLE: Code = Code(400);
pub(crate) const NOT_FOUND: Code = Code(500);
pub(crate) const NOT_READY: Code = Code(600);
pub(crate) const ILLEGAL_ADDRESS: Code = Code(700);
pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Code = Code(704);
pub(crate) const CONTEXT_IS_DESTROYED: Code = Code(709);
pub(crate) const ALREADY_REGISTERED: Code = Code(712);
pub(crate) const NOT_REGISTERED: Code = Code(713);
pub(crate) const MISALIGNED_ADDRESS: Code = Code(716);
pub(crate) const NOT_SUPPORTED: Code = Code(801);
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Code = Code(900);
pub(crate) const STREAM_CAPTURE_INVALIDATED: Code = Code(901);
pub(crate) const UNKNOWN: Code = Code(999);

impl Code {
    /// True for the codes after which the device answers nothing else.
    pub(crate) fn is_sticky(self) -> bool {
        (700..900).contains(&self.0) || self == UNKNOWN
    }
}

/// Code, name, what it means.
const NAMES: &[(i32, &CStr, &CStr)] = &[
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"an argument is out of its range"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"the driver is not initialised"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"there is no GPU that this process may see"),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"there is no device of this number"),
    (200, c"CUDA_ERROR_INVALID_IMAGE", c"the code is no image that this driver can load"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"no live context is current on this thread"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"the image is for other devices"),
    (217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"the devices can't reach each other"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"the text is no PTX that this driver can load"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"the handle is of nothing that lives"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"nothing has this name"),
    (600, c"CUDA_ERROR_NOT_READY", c"the work is not complete"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"a kernel or copy reached memory that is not there"),
    (701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"the launch needs too many resources"),
    (702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"the kernel ran for too long"),
    (704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access was enabled before"),
    (709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"the current context was destroyed"),
    (712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"the memory is registered already"),
    (713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"the memory is not registered"),
    (716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"a kernel used an address that is not aligned"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"a kernel failed"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"the device or the driver lacks this"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY", c"a service that the GPUs need is not up"),
    (803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"driver and kernel module differ in release"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"a stream that is captured can't do this"),
    (901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"a call that it forbids ended the capture"),
    (999, c"CUDA_ERROR_UNKNOWN", c"the driver reports no reason"),
];

/// The name and the meaning of a code.
pub(crate) fn explain(code: i32) -> Option<(&'static CStr, &'static CStr)> {
    NAMES.iter().find(|(known, ..)| *known == code).map(|(_, name, text)| (*name, *text))
}
