//! Chooses and loads the CUDA driver, and collects facts about its GPUs for the plan.

use std::path::PathBuf;

use gpuio_gpu::{Driver, Which};
use gpuio_guard::objects::environment;
use gpuio_host::{Root, numa};
use gpuio_job::plan::{AUTO, Gpus, path_names};
use gpuio_job::spec::{GpuDriver, GpuWhich, JobSpec, Spec};
use gpuio_record::{Gpu, MemoryKind};

use crate::failure::Failure;

/// Path of another driver library than the system's, for tests and unusual installations.
const LIBRARY_VARIABLE: &str = "GPUIO_LIBCUDA";

/// The driver, if the jobs need one and it is installed, and the facts about its GPUs.
pub(crate) struct Loaded {
    pub(crate) driver: Option<Driver>,
    pub(crate) gpus: Gpus,
}

/// Loads the driver that the jobs request. Jobs that only use host memory load none: starting a
/// driver takes a second, and memory.
pub(crate) fn load(spec: &Spec) -> Result<Loaded, Failure> {
    let software = needs_driver(spec, GpuDriver::Software);
    if software && needs_driver(spec, GpuDriver::System) {
        let what = "software and real GPUs can't be mixed in one run, because their results are \
            not comparable; use two runs";
        return Err(Failure::Usage(what.into()));
    }
    if !spec.jobs.iter().any(wants_gpu) {
        let why = "no job requested one".to_owned();
        return Ok(Loaded { driver: None, gpus: Gpus::Absent { why } });
    }
    let which = match environment::variable(LIBRARY_VARIABLE) {
        Some(path) if !software => Which::Library(PathBuf::from(path)),
        _ if software => Which::Software,
        _ => Which::System,
    };
    let driver = match Driver::load(&which) {
        Ok(driver) => driver,
        Err(absent) if software => return Err(Failure::Unavailable(absent.to_string())),
        Err(absent) => {
            let gpus = Gpus::Absent { why: absent.to_string() };
            return Ok(Loaded { driver: None, gpus });
        }
    };
    let gpus = match driver.devices() {
        Ok(devices) if devices.is_empty() => {
            Gpus::Absent { why: "the CUDA driver found no GPU on this machine".into() }
        }
        Ok(devices) => Gpus::Present(devices.iter().map(|device| facts(&driver, device)).collect()),
        Err(error) => Gpus::Absent { why: error.to_string() },
    };
    Ok(Loaded { driver: Some(driver), gpus })
}

fn needs_driver(spec: &Spec, wanted: GpuDriver) -> bool {
    let driver = |job: &JobSpec| job.gpu.as_ref().and_then(|gpu| gpu.driver);
    spec.jobs.iter().any(|job| driver(job) == Some(wanted))
}

fn wants_gpu(job: &JobSpec) -> bool {
    let named = job.gpu.as_ref().is_some_and(|gpu| gpu.which != GpuWhich::None);
    let forbidden = job.gpu.as_ref().is_some_and(|gpu| gpu.which == GpuWhich::None);
    let path_needs = |name: &str| match name {
        "all" => true,
        AUTO => !forbidden,
        name => gpuio_io::path::find(name).is_some_and(|row| row.info.needs_gpu),
    };
    let paths = path_names(job).0.into_iter().any(path_needs);
    named || paths || job.memory == Some(MemoryKind::Pinned)
}

fn facts(driver: &Driver, device: &gpuio_gpu::DeviceFacts) -> Gpu {
    let software = driver.is_software();
    let near = numa::pci_locality(&Root::live(), &device.pci).ok().flatten();
    Gpu {
        index: device.index,
        name: device.name.clone(),
        uuid: device.uuid.clone(),
        pci: device.pci.clone(),
        // The PCI address of a software GPU is made up, so sysfs would describe another device.
        numa_node: near.and_then(|near| near.node).filter(|_| !software),
        memory_bytes: device.total_memory,
        software,
        managed_hints: Some(device.managed_hints),
        read_only_register: Some(device.read_only_register),
    }
}
