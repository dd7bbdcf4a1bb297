//! A GPU's NVLinks.
#![allow(unsafe_code)]

use nvml_wrapper::structs::device::FieldId;

use crate::nvml::gpu::{Gpu, address, read};
use crate::nvml::{ReadingAbsent, counter};

/// Field: links of the GPU, up or not (`NVML_FI_DEV_NVLINK_LINK_COUNT`).
const COUNT: u32 = 91;
/// Field: speed of links that are up, in MB/s (`NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON`).
const SPEED: u32 = 90;
/// Field: speed of the first link in MB/s (`NVML_FI_DEV_NVLINK_GET_SPEED`), for GPUs that report
/// nothing in the former: H100, driver 580.159.
const SPEED_OF_FIRST: u32 = 164;
// `nvmlIntNvLinkDeviceType_t`.
const TYPE_GPU: u32 = 0;
const TYPE_NPU: u32 = 1;
const TYPE_SWITCH: u32 = 2;
const TYPE_UNKNOWN: u32 = 255;
/// No GPU has more: `NVML_NVLINK_MAX_LINKS` is 18.
const MOST: u64 = 64;

/// NVLinks that are up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NvLinks {
    /// Each link, by its number on the GPU.
    pub up: Vec<NvLink>,
    /// Bytes per second of one link in one direction; `None` when it is not known.
    pub bytes_per_second: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvLink {
    /// PCI address of what is at the other end, as sysfs has it; `None` when it is not known.
    pub peer: Option<String>,
    /// The device at the other end.
    pub end: NvLinkEnd,
    /// Generation of NVLink; `None` when it is not known.
    pub version: Option<u32>,
}

/// The device at the other end of an NVLink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvLinkEnd {
    Gpu,
    Switch,
    Cpu,
    Unknown,
}

impl Gpu<'_> {
    /// Its NVLinks that are up.
    ///
    /// # Errors
    /// When this GPU or driver does not report how many it has, as those without NVLink.
    pub fn nvlinks(&self) -> Result<NvLinks, ReadingAbsent> {
        let what = "number of NVLinks (field 91)";
        let no_answer = || ReadingAbsent { what, why: "no answer".to_owned() };
        let count = self.field(what, COUNT)?.ok_or_else(no_answer)?;
        let up = (0..count.min(MOST)).filter_map(|number| self.nvlink(u32::try_from(number).ok()?));
        let up: Vec<NvLink> = up.collect();
        let speed = |field| {
            let read = self.field("speed of NVLinks (fields 90 and 164)", field).ok().flatten();
            read.filter(|speed| *speed > 0).map(|speed| speed.saturating_mul(1_000_000))
        };
        let speed = speed(SPEED).or_else(|| speed(SPEED_OF_FIRST));
        Ok(NvLinks { bytes_per_second: speed.filter(|_| !up.is_empty()), up })
    }

    /// A link, where it is up.
    fn nvlink(&self, number: u32) -> Option<NvLink> {
        let link = self.0.link_wrapper_for(number);
        if !link.is_active().unwrap_or(false) {
            return None;
        }
        Some(NvLink {
            peer: link.remote_pci_info().ok().and_then(|info| peer(&info.bus_id)),
            end: end(self.remote_type(number)),
            version: link.version().ok(),
        })
    }

    /// The type of the device at the other end, as NVML numbers it. The wrapper's own call answers
    /// "unknown" whatever the library says (nvml-wrapper 0.13: it passes the address of a copy).
    fn remote_type(&self, number: u32) -> u32 {
        let mut found = TYPE_UNKNOWN;
        let library = self.0.nvml().lib();
        let Ok(call) = library.nvmlDeviceGetNvLinkRemoteDeviceType.as_ref() else { return found };
        // SAFETY: the handle is only passed to the library that gave it, which outlives the device.
        let device = unsafe { self.0.handle() };
        // SAFETY: the function's signature is NVML's own; the device is a handle of this library,
        // and `found` is writable for the time of the call.
        let code = unsafe { call(device, number, &raw mut found) };
        if code == 0 { found } else { TYPE_UNKNOWN }
    }

    fn field(&self, what: &'static str, field: u32) -> Result<Option<u64>, ReadingAbsent> {
        let mut answers = read(what, self.0.field_values_for(&[FieldId(field)]))?.into_iter();
        let Some(answer) = answers.next() else { return Ok(None) };
        let value = read(what, read(what, answer)?.value)?;
        Ok(counter::of(&value).map(|counter| counter.value))
    }
}

fn end(number: u32) -> NvLinkEnd {
    match number {
        TYPE_GPU => NvLinkEnd::Gpu,
        TYPE_SWITCH => NvLinkEnd::Switch,
        TYPE_NPU => NvLinkEnd::Cpu,
        _ => NvLinkEnd::Unknown,
    }
}

/// The address at the other end. A virtual machine that does not see its NVSwitches has one of ones
/// alone (H100, driver 580.159).
fn peer(nvml: &str) -> Option<String> {
    let is_one = nvml.chars().any(|digit| digit.is_ascii_hexdigit() && !"fF0".contains(digit));
    let is_none = !is_one && nvml.to_ascii_lowercase().contains("ff:ff");
    (!is_none).then(|| address(nvml))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_named_by_number_and_an_address_of_ones_is_none() {
        let ends = [0, 1, 2, 255, 7].map(end);
        let [gpu, npu, switch, unknown, other] = ends;
        assert_eq!((gpu, npu, switch), (NvLinkEnd::Gpu, NvLinkEnd::Cpu, NvLinkEnd::Switch));
        assert_eq!((unknown, other), (NvLinkEnd::Unknown, NvLinkEnd::Unknown));
        assert_eq!(peer("FFFFFFFF:FF:FF.0"), None);
        assert_eq!(peer("00000000:3B:00.0"), Some("0000:3b:00.0".to_owned()));
        assert_eq!(peer("0000FFFF:F0:00.0"), Some("ffff:f0:00.0".to_owned()));
    }
}
