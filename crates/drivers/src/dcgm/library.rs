//! Loads the library and calls it.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_ushort, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::dcgm::{Absent, FIELDS, Profile};

/// `dcgmHandle_t`, `dcgmGpuGrp_t` and `dcgmFieldGrp_t`: `uintptr_t` each.
pub(crate) type Handle = usize;

/// `DCGM_ST_OK`.
const OK: c_int = 0;
/// `DCGM_GROUP_ALL_GPUS`.
const ALL_GPUS: Handle = 0x7fff_ffff;
/// `DCGM_FI_DEV_UUID`.
const UUID: u16 = 54;
/// Seconds and samples that the engine keeps: the last values are enough.
const KEEP: (f64, c_int) = (10.0, 10);
/// `DCGM_FP64_BLANK` and `DCGM_INT64_BLANK`: from these on a number means that there is none.
const BLANK_DOUBLE: f64 = 140_737_488_355_328.0;
const BLANK_INT: u64 = 0x7fff_ffff_ffff_fff0;

/// Bytes of the union in `dcgmFieldValue_v1`, in words: `DCGM_MAX_BLOB_LENGTH` is 4096.
const WORDS: usize = 512;
/// Bytes of its text: `DCGM_MAX_STR_LENGTH`.
const TEXT: usize = 256;

/// `dcgmFieldValue_v1`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    /// Size of the structure, and its version from bit 24 on (`MAKE_DCGM_VERSION`).
    version: c_uint,
    field: c_ushort,
    /// `d`, `i`, `s`, `t` or `b` (`DCGM_FT_…`).
    kind: c_ushort,
    status: c_int,
    /// Microseconds since 1970.
    _time: i64,
    /// The union of a number, a text and bytes.
    content: [u64; WORDS],
}

/// The value of `version`: `MAKE_DCGM_VERSION(dcgmFieldValue_v1, 1)`.
const VERSION: c_uint = 4120 | (1 << 24);
const _: () = assert!(size_of::<Value>() == 4120);

/// `dcgmFieldValueEnumeration_f`: GPU, values, their number, the caller's pointer.
type Enumerate = extern "C" fn(c_uint, *const Value, c_int, *mut c_void) -> c_int;

type Plain = unsafe extern "C" fn() -> c_int;
type Connect = unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int;
type OfHandle = unsafe extern "C" fn(Handle) -> c_int;
type FieldGroup =
    unsafe extern "C" fn(Handle, c_int, *const c_ushort, *const c_char, *mut Handle) -> c_int;
/// Connection, GPUs, fields, microseconds between updates, seconds and samples to keep.
type Watch = unsafe extern "C" fn(Handle, Handle, Handle, c_longlong, f64, c_int) -> c_int;
type Latest = unsafe extern "C" fn(Handle, Handle, Handle, Enumerate, *mut c_void) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// The functions of a library, which stays loaded.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    connect: Connect,
    disconnect: OfHandle,
    field_group: FieldGroup,
    watch: Watch,
    latest: Latest,
    error_string: ErrorString,
}

/// The profiling fields, and the UUID by which GPUs are known to NVML.
pub(crate) fn all_fields() -> Vec<u16> {
    FIELDS.into_iter().chain([UUID]).collect()
}

/// Loads and starts the library. It is started once for the process and never stopped: other
/// threads may be in it.
pub(crate) fn load(name: &str) -> Result<Functions, Absent> {
    fn get<T: Copy>(library: &Library, name: &str, function: &'static str) -> Result<T, Absent> {
        // SAFETY: each type is the function's signature in dcgm_agent.h.
        let found = unsafe { library.get::<T>(function.as_bytes()) };
        found
            .map(|symbol| *symbol)
            .map_err(|_| Absent::NoFunction { library: name.to_owned(), function })
    }
    // SAFETY: the library's initialisers do not depend on the caller's state.
    let opened = unsafe { gpuio_guard::objects::load(Path::new(name), RTLD_NOW | RTLD_LOCAL) };
    let (library, _) = opened.map_err(|_| Absent::NoLibrary)?;
    let init = get::<Plain>(&library, name, "dcgmInit")?;
    let functions = Functions {
        connect: get::<Connect>(&library, name, "dcgmConnect")?,
        disconnect: get::<OfHandle>(&library, name, "dcgmDisconnect")?,
        field_group: get::<FieldGroup>(&library, name, "dcgmFieldGroupCreate")?,
        watch: get::<Watch>(&library, name, "dcgmWatchFields")?,
        latest: get::<Latest>(&library, name, "dcgmGetLatestValues")?,
        error_string: get::<ErrorString>(&library, name, "errorString")?,
    };
    // The functions' addresses outlive this value.
    std::mem::forget(library);
    // SAFETY: the signature of dcgmInit; it may be called more than once.
    let answer = unsafe { init() };
    functions.ok(answer).map_err(|why| Absent::Refused { call: "dcgmInit", why })?;
    Ok(functions)
}

impl Functions {
    fn ok(&self, answer: c_int) -> Result<(), String> {
        if answer == OK {
            return Ok(());
        }
        // SAFETY: any number may be passed; the text is static, or there is none.
        let text = unsafe { (self.error_string)(answer) };
        if text.is_null() {
            return Err(format!("error {answer}"));
        }
        // SAFETY: it is not null, and ends with a NUL.
        let text = unsafe { CStr::from_ptr(text) };
        Err(format!("{} ({answer})", text.to_string_lossy()))
    }

    pub(crate) fn connect(&self, address: &str) -> Result<Handle, String> {
        let text = CString::new(address).map_err(|error| error.to_string())?;
        let mut handle = 0;
        // SAFETY: the text and the place for the handle live for the call.
        let answer = unsafe { (self.connect)(text.as_ptr(), &raw mut handle) };
        self.ok(answer).map(|()| handle)
    }

    pub(crate) fn disconnect(&self, handle: Handle) {
        // SAFETY: a handle of `connect`, which nothing uses afterwards.
        let _ = unsafe { (self.disconnect)(handle) };
    }

    /// A group of fields under a name that no other process uses.
    pub(crate) fn field_group(&self, handle: Handle, fields: &[u16]) -> Result<Handle, String> {
        let name = CString::new(format!("gpuio-{}-{handle}", std::process::id()));
        let name = name.map_err(|error| error.to_string())?;
        let count = c_int::try_from(fields.len()).map_err(|error| error.to_string())?;
        let mut group = 0;
        let (pointer, place) = (fields.as_ptr(), &raw mut group);
        // SAFETY: `count` fields lie at the pointer; all arguments live for the call.
        let answer = unsafe { (self.field_group)(handle, count, pointer, name.as_ptr(), place) };
        self.ok(answer).map(|()| group)
    }

    pub(crate) fn watch(&self, handle: Handle, group: Handle, every: i64) -> Result<(), String> {
        let (age, samples) = KEEP;
        // SAFETY: numbers only.
        let answer = unsafe { (self.watch)(handle, ALL_GPUS, group, every, age, samples) };
        self.ok(answer)
    }

    pub(crate) fn latest(&self, handle: Handle, group: Handle) -> Result<Vec<Profile>, String> {
        let mut found = Found::default();
        let pointer = (&raw mut found).cast::<c_void>();
        // SAFETY: the callback casts the pointer back to `Found`, which lives for the call, and
        // which nothing else uses meanwhile; the library calls it on this thread before it
        // returns.
        let answer = unsafe { (self.latest)(handle, ALL_GPUS, group, enumerate, pointer) };
        if let Some(version) = found.foreign {
            return Err(format!(
                "its values are of version {version:#x}, {VERSION:#x} is known here"
            ));
        }
        self.ok(answer)?;
        found.gpus.sort_by_key(|gpu| gpu.id);
        Ok(found.gpus)
    }
}

/// The values that the callback collects.
#[derive(Default)]
struct Found {
    gpus: Vec<Profile>,
    /// The version of a value that is not known here.
    foreign: Option<c_uint>,
}

/// Called by the library; returns below 0 where it shall stop.
extern "C" fn enumerate(gpu: c_uint, values: *const Value, count: c_int, to: *mut c_void) -> c_int {
    let Ok(count) = usize::try_from(count) else { return -1 };
    if values.is_null() || to.is_null() {
        return -1;
    }
    // SAFETY: `to` is the `Found` of `Functions::latest`, whose thread this is.
    let found = unsafe { &mut *to.cast::<Found>() };
    // A panic must not pass through the library.
    let done = catch_unwind(AssertUnwindSafe(|| {
        for nth in 0..count {
            let at = values.wrapping_add(nth);
            // SAFETY: the version is the first field of each structure, whatever its size; the
            // loop ends before it steps over one of another size.
            let version = unsafe { (*at).version };
            if version != VERSION {
                found.foreign = Some(version);
                return false;
            }
            // SAFETY: `count` structures of this version lie there until the callback returns.
            let value = unsafe { *at };
            found.take(gpu, &value);
        }
        true
    }));
    if done.unwrap_or(false) { 0 } else { -1 }
}

impl Found {
    fn take(&mut self, id: c_uint, value: &Value) {
        let at = self.gpus.iter().position(|gpu| gpu.id == id).unwrap_or_else(|| {
            self.gpus.push(Profile { id, uuid: String::new(), values: [None; FIELDS.len()] });
            self.gpus.len() - 1
        });
        let Some(gpu) = self.gpus.get_mut(at) else { return };
        if value.field == UUID {
            gpu.uuid = text(value).unwrap_or_default();
        } else if let Some(nth) = FIELDS.iter().position(|field| *field == value.field)
            && let Some(place) = gpu.values.get_mut(nth)
        {
            *place = number(value);
        }
    }
}

/// A number; `None` where the field has none.
fn number(value: &Value) -> Option<f64> {
    if value.status != OK {
        return None;
    }
    match u8::try_from(value.kind) {
        Ok(b'd') => {
            let double = f64::from_bits(value.content[0]);
            (0.0..BLANK_DOUBLE).contains(&double).then_some(double)
        }
        Ok(b'i') => {
            let double = value.content[0] as f64;
            (value.content[0] < BLANK_INT).then_some(double)
        }
        _ => None,
    }
}

/// A text; `None` where the field has none.
fn text(value: &Value) -> Option<String> {
    if value.status != OK || u8::try_from(value.kind) != Ok(b's') {
        return None;
    }
    let bytes = value.content.iter().flat_map(|word| word.to_ne_bytes()).take(TEXT);
    let text: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8(text).ok()?;
    (!text.starts_with("<<<")).then_some(text)
}
