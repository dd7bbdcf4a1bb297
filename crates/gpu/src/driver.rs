//! Loading a driver and reading what devices it has.

use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpuio_guard::objects::SOFTWARE_GPU;

use crate::error::{Absent, GpuError};
use crate::table::{self, CUdevice, Table};

/// Which driver library to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The system's CUDA driver, as the loader finds it.
    System,
    /// gpuio's software GPU, from one of [`software_candidates`].
    Software,
    /// The library at this path (or of this name, as `dlopen(3)` reads it).
    Library(PathBuf),
}

/// Where the software GPU is looked for, in this order: where gpuio's own objects are, then where
/// the loader looks. A program under `gpuio exec` has it there (`LD_LIBRARY_PATH`).
pub fn software_candidates() -> Vec<PathBuf> {
    let mut files = gpuio_guard::objects::candidates(SOFTWARE_GPU);
    files.push(SOFTWARE_GPU.into());
    files
}

impl Which {
    /// The driver that a variable of the environment names: `system`, which is also the answer
    /// where it is not set or empty, `software`, or the library's path.
    pub fn from_variable(value: Option<OsString>) -> Self {
        match value {
            None => Self::System,
            Some(value) if value.is_empty() || value == "system" => Self::System,
            Some(value) if value == "software" => Self::Software,
            Some(value) => Self::Library(PathBuf::from(value)),
        }
    }

    fn candidates(&self) -> Vec<PathBuf> {
        match self {
            // The second place is where WSL 2 keeps the library, outside the loader's path.
            Self::System => vec!["libcuda.so.1".into(), "/usr/lib/wsl/lib/libcuda.so.1".into()],
            Self::Software => software_candidates(),
            Self::Library(path) => vec![path.clone()],
        }
    }
}

/// The properties of a device, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceFacts {
    /// The driver's number for it: 0 is the first that `CUDA_VISIBLE_DEVICES` lets through.
    pub index: u32,
    /// The product's name.
    pub name: String,
    /// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, as `nvidia-smi -L` prints it.
    pub uuid: String,
    /// The PCI address as sysfs writes it: `0000:bb:dd.f`, in lower case.
    pub pci: String,
    /// The size of its memory in bytes.
    pub total_memory: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// The number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Whether managed memory takes hints there (concurrent managed access).
    pub managed_hints: bool,
    /// Whether memory that may only be read can be registered for it, and is then pinned:
    /// `CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED` is 1, and the device does not follow
    /// the host's page tables, as those with NVLink-C2C do.
    pub read_only_register: bool,
}

/// A loaded and initialised CUDA driver. Cloning is cheap; the library is closed with the last
/// clone and the last owner made from it.
#[derive(Clone)]
pub struct Driver(Arc<Inner>);

struct Inner {
    table: Table,
    path: PathBuf,
    version: (u32, u32),
    devices: u32,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("path", &self.0.path)
            .field("version", &self.0.version)
            .field("software", &self.is_software())
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// Loads and initialises the driver. Takes tens to hundreds of milliseconds on real hardware.
    ///
    /// # Errors
    /// Why there is no driver to use; see [`Absent`].
    pub fn load(which: &Which) -> Result<Self, Absent> {
        Self::start(Table::open(&which.candidates())?)
    }

    /// As [`Driver::load`], with changes to the table of functions.
    #[cfg(test)]
    pub(crate) fn load_with(which: &Which, change: fn(&mut Table)) -> Result<Self, Absent> {
        let (mut table, opened) = Table::open(&which.candidates())?;
        change(&mut table);
        Self::start((table, opened))
    }

    fn start((table, opened): (Table, PathBuf)) -> Result<Self, Absent> {
        // SAFETY: cuInit takes no pointer and may be called from any thread, more than once.
        let code = unsafe { (table.cuInit)(0) };
        table.check("cuInit", code).map_err(Absent::init)?;

        let mut version: c_int = 0;
        // SAFETY: `version` is valid for the write of one int.
        let code = unsafe { (table.cuDriverGetVersion)(&raw mut version) };
        table.check("cuDriverGetVersion", code).map_err(Absent::init)?;

        let mut devices: c_int = 0;
        // SAFETY: `devices` is valid for the write of one int.
        let code = unsafe { (table.cuDeviceGetCount)(&raw mut devices) };
        table.check("cuDeviceGetCount", code).map_err(Absent::init)?;
        let devices = u32::try_from(devices).unwrap_or(0);
        if devices == 0 {
            return Err(Absent::NoDevice);
        }

        // The driver codes release 12.4 as 12040.
        let version = u32::try_from(version).unwrap_or(0);
        let version = (version / 1000, version % 1000 / 10);
        // SAFETY: `table` keeps the library open.
        let file = unsafe { gpuio_guard::objects::file_of(table.cuInit as *const c_void) };
        let path = file.unwrap_or(opened);
        Ok(Self(Arc::new(Inner { table, path, version, devices })))
    }

    /// True for gpuio's software GPU: its timings say nothing about hardware.
    pub fn is_software(&self) -> bool {
        self.0.table.gpuio_soft_version.is_some()
    }

    /// The release of CUDA that the driver supports, major and minor.
    pub fn version(&self) -> (u32, u32) {
        self.0.version
    }

    /// The file that the driver was loaded from, if the loader reports it.
    pub fn library_path_hint(&self) -> &Path {
        &self.0.path
    }

    /// How many devices the driver shows, one or more.
    pub fn device_count(&self) -> u32 {
        self.0.devices
    }

    /// The facts of every device, by index.
    ///
    /// # Errors
    /// The first call that the driver refused.
    pub fn devices(&self) -> Result<Vec<DeviceFacts>, GpuError> {
        (0..self.0.devices).map(|index| self.facts(index)).collect()
    }

    /// The compute capability of a device, major and minor.
    pub(crate) fn compute(&self, index: u32) -> Result<(u32, u32), GpuError> {
        let major = self.attribute(index, table::ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        Ok((major, self.attribute(index, table::ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?))
    }

    fn facts(&self, index: u32) -> Result<DeviceFacts, GpuError> {
        let device = self.device(index)?;
        let table = self.table();
        let name = self.text(index, "cuDeviceGetName", |to, len| {
            // SAFETY: `to` is valid for writes of `len` bytes.
            unsafe { (table.cuDeviceGetName)(to, len, device) }
        })?;
        let pci = self.text(index, "cuDeviceGetPCIBusId", |to, len| {
            // SAFETY: `to` is valid for writes of `len` bytes.
            unsafe { (table.cuDeviceGetPCIBusId)(to, len, device) }
        })?;

        let mut id = [0_u8; 16];
        let (call, get) = match table.cuDeviceGetUuid_v2 {
            Some(get) => ("cuDeviceGetUuid_v2", get),
            None => ("cuDeviceGetUuid", table.cuDeviceGetUuid),
        };
        // SAFETY: `id` is valid for the write of 16 bytes.
        let code = unsafe { get(&raw mut id, device) };
        table.check(call, code).map_err(|e| e.on(index))?;

        let mut total: usize = 0;
        // SAFETY: `total` is valid for the write of one size_t.
        let code = unsafe { (table.cuDeviceTotalMem_v2)(&raw mut total, device) };
        table.check("cuDeviceTotalMem_v2", code).map_err(|e| e.on(index))?;

        Ok(DeviceFacts {
            index,
            name,
            uuid: uuid(id),
            pci: pci.to_lowercase(),
            total_memory: total as u64,
            compute: self.compute(index)?,
            // A driver that does not know the attribute has no hints either; its GPU works all the
            // same.
            managed_hints: self.has(index, table::ATTRIBUTE_CONCURRENT_MANAGED_ACCESS),
            read_only_register: self.has(index, table::ATTRIBUTE_READ_ONLY_REGISTER)
                && !self.has(index, table::ATTRIBUTE_HOST_PAGE_TABLES),
            multiprocessors: self.attribute(index, table::ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        })
    }

    /// Whether an attribute is known to the driver and not 0.
    fn has(&self, index: u32, attribute: c_int) -> bool {
        self.attribute(index, attribute).is_ok_and(|value| value != 0)
    }

    /// The driver's handle for the device of this index.
    pub(crate) fn device(&self, index: u32) -> Result<CUdevice, GpuError> {
        let mut device: CUdevice = 0;
        // An index past i32 is past every device: the driver refuses -1 in its stead.
        let ordinal = c_int::try_from(index).unwrap_or(-1);
        // SAFETY: `device` is valid for the write of one int.
        let code = unsafe { (self.table().cuDeviceGet)(&raw mut device, ordinal) };
        self.table().check("cuDeviceGet", code).map_err(|e| {
            let last = self.0.devices.saturating_sub(1);
            e.on(index).with(format!("the devices are numbered 0 to {last}"))
        })?;
        Ok(device)
    }

    /// How many multiprocessors a device has, 1 at least.
    ///
    /// # Errors
    /// There is no such device, or the driver's refusal.
    pub fn multiprocessors(&self, index: u32) -> Result<u32, GpuError> {
        Ok(self.attribute(index, table::ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1))
    }

    /// An attribute of a device; a negative value counts as 0.
    pub(crate) fn attribute(&self, index: u32, attribute: c_int) -> Result<u32, GpuError> {
        let device = self.device(index)?;
        let mut value: c_int = 0;
        // SAFETY: `value` is valid for the write of one int.
        let code =
            unsafe { (self.table().cuDeviceGetAttribute)(&raw mut value, attribute, device) };
        self.table()
            .check("cuDeviceGetAttribute", code)
            .map_err(|e| e.on(index).with(format!("attribute {attribute}")))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// A string that `ask` writes into the buffer it is given.
    fn text(
        &self,
        index: u32,
        call: &'static str,
        query: impl FnOnce(*mut c_char, c_int) -> c_int,
    ) -> Result<String, GpuError> {
        // One byte more than the driver gets, so that the text always ends.
        let mut bytes = [0_u8; 257];
        let code = query(bytes.as_mut_ptr().cast(), 256);
        self.table().check(call, code).map_err(|e| e.on(index))?;
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    pub(crate) fn table(&self) -> &Table {
        &self.0.table
    }
}

/// The form that nvidia-smi prints.
fn uuid(id: [u8; 16]) -> String {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    format!("GPU-{a}-{b}-{c}-{d}-{e}")
}
