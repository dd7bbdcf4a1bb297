//! The facts of one GPU from NVML.

use std::fmt;

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::structs::device::FieldId;

use crate::nvml::ReadingAbsent;
use crate::nvml::counter::{self, Counter};

/// Field: bytes that the GPU sent over PCIe (`NVML_FI_DEV_PCIE_COUNT_TX_BYTES`).
const SENT: u32 = 197;
/// Field: bytes that it received (`NVML_FI_DEV_PCIE_COUNT_RX_BYTES`).
const RECEIVED: u32 = 198;
/// Field: links to a CPU other than PCIe (`NVML_FI_DEV_C2C_LINK_COUNT`).
const C2C_LINKS: u32 = 170;

/// Field: temperature of memory (`NVML_FI_DEV_MEMORY_TEMP`).
const MEMORY_TEMP: u32 = 82;

const NO_COUNT: &str = "the answer is no count";

pub struct Gpu<'library>(pub(crate) Device<'library>);

impl fmt::Debug for Gpu<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gpu").field(&self.0.uuid().ok()).finish()
    }
}

/// The window through which other devices reach GPU memory (BAR1), in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar1 {
    pub total: u64,
    pub used: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// PCIe generation, from 1.
    pub generation: u32,
    pub lanes: u32,
}

impl Link {
    /// Bytes that it carries per second and direction at most, before the packets' own headers.
    /// `None` for a generation that is not known here.
    pub fn bytes_per_second(self) -> Option<u64> {
        let speed = gpuio_base::units::pcie_mega_transfers(self.generation)?;
        gpuio_base::units::pcie_bytes_per_second(speed, u64::from(self.lanes))
    }
}

/// A process with a compute context on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number in the system's first PID namespace.
    pub pid: u32,
    /// Its GPU memory, in bytes; `None` where the driver does not report it.
    pub memory: Option<u64>,
}

/// How busy a GPU is, each reading on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Share of the last sampling period (1/6 to 1 s, by product) in which kernels ran, and in
    /// which its memory was read or written, in percent (`nvmlDeviceGetUtilizationRates`). Copy
    /// engines are in neither.
    pub busy_percent: Result<[u32; 2], ReadingAbsent>,
    /// Memory in use, the driver's own included, in bytes.
    pub memory_used: Result<u64, ReadingAbsent>,
    pub bar1: Result<Bar1, ReadingAbsent>,
    /// Power that it draws, in milliwatts (`nvmlDeviceGetPowerUsage`; some generations average over
    /// a second).
    pub power_milliwatts: Result<u32, ReadingAbsent>,
    /// Temperature of the chip, in degrees Celsius.
    pub celsius: Result<u32, ReadingAbsent>,
    /// Clock of the multiprocessors and of memory, in Hz.
    pub clocks_hz: Result<[u64; 2], ReadingAbsent>,
    /// Share of the last sampling period in which the video encoder and the decoder were busy, in
    /// percent.
    pub video_percent: Result<[u32; 2], ReadingAbsent>,
}

/// Everything of a GPU that does not move while a load runs, each reading on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings {
    /// Number by which the driver and nvidia-smi call it.
    pub index: Result<u32, ReadingAbsent>,
    /// Number of its node `/dev/nvidiaN`.
    pub minor: Result<u32, ReadingAbsent>,
    /// Its product's name.
    pub name: Result<String, ReadingAbsent>,
    /// Its UUID (`GPU-…`).
    pub uuid: Result<String, ReadingAbsent>,
    /// Its PCI address, domain of 4 digits and lower case, as sysfs has it.
    pub pci: Result<String, ReadingAbsent>,
    pub bar1: Result<Bar1, ReadingAbsent>,
    /// The link as it is now: idle GPUs save power at a lower generation.
    pub link_now: Result<Link, ReadingAbsent>,
    /// The most that GPU and slot can do together.
    pub link_most: Result<Link, ReadingAbsent>,
    /// Whether the driver stays awake without a user.
    pub persistence: Result<bool, ReadingAbsent>,
}

impl Gpu<'_> {
    /// Reads all that does not move.
    pub fn readings(&self) -> Readings {
        let device = &self.0;
        Readings {
            index: read("index", device.index()),
            minor: read("minor number", device.minor_number()),
            name: read("name", device.name()),
            uuid: read("UUID", device.uuid()),
            pci: read("PCI address", device.pci_info()).map(|info| address(&info.bus_id)),
            bar1: read("BAR1", device.bar1_memory_info())
                .map(|bar1| Bar1 { total: bar1.total, used: bar1.used }),
            link_now: link(device.current_pcie_link_gen(), device.current_pcie_link_width()),
            link_most: link(device.max_pcie_link_gen(), device.max_pcie_link_width()),
            persistence: read("persistence mode", device.is_in_persistent_mode()),
        }
    }

    /// Reads how busy it is.
    pub fn activity(&self) -> Activity {
        let device = &self.0;
        Activity {
            busy_percent: read("utilization", device.utilization_rates())
                .map(|rates| [rates.gpu, rates.memory]),
            memory_used: read("memory in use", device.memory_info()).map(|memory| memory.used),
            bar1: read("BAR1", device.bar1_memory_info())
                .map(|bar1| Bar1 { total: bar1.total, used: bar1.used }),
            power_milliwatts: read("power", device.power_usage()),
            celsius: read("temperature", device.temperature(TemperatureSensor::Gpu)),
            clocks_hz: self.clocks(),
            video_percent: self.video(),
        }
    }

    /// NVML reports MHz.
    fn clocks(&self) -> Result<[u64; 2], ReadingAbsent> {
        let of = |what, clock| read(what, self.0.clock_info(clock));
        let clocks = [of("clock", Clock::SM)?, of("memory clock", Clock::Memory)?];
        Ok(clocks.map(|megahertz| u64::from(megahertz) * 1_000_000))
    }

    fn video(&self) -> Result<[u32; 2], ReadingAbsent> {
        let encoder = read("video encoder", self.0.encoder_utilization())?;
        let decoder = read("video decoder", self.0.decoder_utilization())?;
        Ok([encoder.utilization, decoder.utilization])
    }

    /// Bytes that it sent and received over PCIe since the driver was loaded, headers of packets
    /// included: about a twelfth more than the data at packets of 256 bytes.
    ///
    /// # Errors
    /// When this GPU or driver has no such counters.
    pub fn pcie_bytes(&self) -> Result<[Counter; 2], ReadingAbsent> {
        let what = "PCIe bytes (fields 197 and 198)";
        let fields = [FieldId(SENT), FieldId(RECEIVED)];
        let mut answers = read(what, self.0.field_values_for(&fields))?.into_iter();
        let mut next = || {
            let missing = || ReadingAbsent { what, why: "no answer".to_owned() };
            let sample = read(what, answers.next().ok_or_else(missing)?)?;
            let value = read(what, sample.value)?;
            counter::of(&value).ok_or_else(|| ReadingAbsent { what, why: NO_COUNT.to_owned() })
        };
        Ok([next()?, next()?])
    }

    /// Bytes per second that it sends and receives over PCIe, each over the last 20 ms. A sample:
    /// what lies between two of them is not known, and it is no counter.
    ///
    /// # Errors
    /// When this GPU or driver does not report it.
    pub fn pcie_rates(&self) -> Result<[u64; 2], ReadingAbsent> {
        let rate = |direction| {
            let kib = read("PCIe throughput", self.0.pcie_throughput(direction))?;
            Ok(u64::from(kib) * 1000)
        };
        Ok([rate(PcieUtilCounter::Send)?, rate(PcieUtilCounter::Receive)?])
    }

    /// The processes with a compute context on it, in the system's first PID namespace.
    ///
    /// # Errors
    /// When this GPU or driver does not list them.
    pub fn processes(&self) -> Result<Vec<Process>, ReadingAbsent> {
        let all = read("processes", self.0.running_compute_processes())?;
        let one = |process: ProcessInfo| Process {
            pid: process.pid,
            memory: match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
        };
        Ok(all.into_iter().map(one).collect())
    }

    /// Temperature of its memory, as HBM has one; `nvidia-smi dmon` calls it `mtemp`.
    ///
    /// # Errors
    /// When this GPU or driver does not report it.
    pub fn memory_celsius(&self) -> Result<u64, ReadingAbsent> {
        let what = "memory temperature (field 82)";
        let mut answers = read(what, self.0.field_values_for(&[FieldId(MEMORY_TEMP)]))?.into_iter();
        let missing = || ReadingAbsent { what, why: "no answer".to_owned() };
        let value = read(what, read(what, answers.next().ok_or_else(missing)?)?.value)?;
        let found = counter::of(&value).map(|counter| counter.value);
        // 0 is the answer of GPUs without such a sensor.
        found.filter(|celsius| *celsius > 0).ok_or_else(missing)
    }

    /// Links to a CPU's memory other than PCIe (NVLink-C2C of Grace): bytes may go there and past
    /// PCIe's counters.
    ///
    /// # Errors
    /// When this GPU or driver does not report it, as those without such links.
    pub fn c2c_links(&self) -> Result<u64, ReadingAbsent> {
        let what = "C2C links (field 170)";
        let mut answers = read(what, self.0.field_values_for(&[FieldId(C2C_LINKS)]))?.into_iter();
        let missing = || ReadingAbsent { what, why: "no answer".to_owned() };
        let value = read(what, read(what, answers.next().ok_or_else(missing)?)?.value)?;
        counter::of(&value)
            .map(|counter| counter.value)
            .ok_or_else(|| ReadingAbsent { what, why: NO_COUNT.to_owned() })
    }
}

pub(crate) fn read<T>(
    what: &'static str,
    answer: Result<T, NvmlError>,
) -> Result<T, ReadingAbsent> {
    answer.map_err(|error| ReadingAbsent::new(what, &error))
}

fn link(
    generation: Result<u32, NvmlError>,
    lanes: Result<u32, NvmlError>,
) -> Result<Link, ReadingAbsent> {
    let what = "PCIe link";
    Ok(Link { generation: read(what, generation)?, lanes: read(what, lanes)? })
}

/// NVML prints a domain of 8 digits in upper case (`00000000:3B:00.0`), sysfs of 4 in lower.
pub(crate) fn address(nvml: &str) -> String {
    let lower = nvml.to_ascii_lowercase();
    match lower.split_once(':') {
        Some((domain, rest)) => {
            let domain = domain.trim_start_matches('0');
            format!("{domain:0>4}:{rest}")
        }
        None => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_sysfs() {
        assert_eq!(address("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(address("00010001:00:06.0"), "10001:00:06.0");
        assert_eq!(address("0000:06:00.0"), "0000:06:00.0");
    }

    #[test]
    fn links_carry_what_the_specification_says() {
        let rate = |generation, lanes| Link { generation, lanes }.bytes_per_second();
        assert_eq!(rate(1, 16), Some(4_000_000_000));
        assert_eq!(rate(4, 16), Some(31_507_692_307));
        assert_eq!(rate(5, 16), Some(63_015_384_615));
        assert_eq!(rate(9, 16), None);
    }

    #[test]
    fn a_link_needs_both_readings() {
        assert_eq!(link(Ok(5), Ok(16)), Ok(Link { generation: 5, lanes: 16 }));
        let unread = link(Ok(5), Err(NvmlError::NotSupported)).unwrap_err();
        assert_eq!(unread.what, "PCIe link");
    }
}
