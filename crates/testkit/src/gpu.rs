//! Which driver tests use: gpuio's software GPU, or with `GPUIO_TEST_GPU=system` the system's.

use std::path::PathBuf;

/// Whether the tests run on the system's driver.
pub fn on_system() -> bool {
    std::env::var("GPUIO_TEST_GPU").is_ok_and(|value| value == "system")
}

/// The driver that tests use.
#[cfg(feature = "gpu")]
pub fn which() -> gpuio_gpu::Which {
    if on_system() { gpuio_gpu::Which::System } else { gpuio_gpu::Which::Software }
}

/// A device of the software GPU in a plan.
#[cfg(feature = "gpu")]
pub fn software_gpu(device: &gpuio_gpu::DeviceFacts) -> gpuio_record::Gpu {
    gpuio_record::Gpu {
        index: device.index,
        name: device.name.clone(),
        uuid: device.uuid.clone(),
        pci: device.pci.clone(),
        numa_node: None,
        memory_bytes: device.total_memory,
        software: true,
        managed_hints: Some(device.managed_hints),
        read_only_register: Some(device.read_only_register),
    }
}

/// True, and said so, if this case needs the software GPU and the system's is tested.
pub fn skipped(case: &str) -> bool {
    if on_system() {
        eprintln!("skipped on the system's driver: {case}");
    }
    on_system()
}

/// A shared object that cargo built beside this program.
pub fn built(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let path = program.parent().unwrap().join(name);
    assert!(path.exists(), "cargo has not built {}", path.display());
    path
}
