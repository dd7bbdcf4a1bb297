//! A GPU's NVLinks.

use nvml_wrapper::enum_wrappers::nv_link::IntDeviceType;
use nvml_wrapper::structs::device::FieldId;

use crate::nvml::gpu::{Gpu, address, read};
use crate::nvml::{Unread, counter};

/// Field: links of the GPU, up or not (`NVML_FI_DEV_NVLINK_LINK_COUNT`).
const COUNT: u32 = 91;
/// Field: speed of links that are up, in MB/s (`NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON`).
const SPEED: u32 = 90;
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
    pub fn nvlinks(&self) -> Result<NvLinks, Unread> {
        let what = "number of NVLinks (field 91)";
        let no_answer = || Unread { what, why: "no answer".to_owned() };
        let count = self.field(what, COUNT)?.ok_or_else(no_answer)?;
        let up = (0..count.min(MOST)).filter_map(|number| self.nvlink(u32::try_from(number).ok()?));
        let up: Vec<NvLink> = up.collect();
        let speed = self.field("speed of NVLinks (field 90)", SPEED).ok().flatten();
        let speed = speed.filter(|speed| *speed > 0).map(|speed| speed.saturating_mul(1_000_000));
        Ok(NvLinks { bytes_per_second: speed.filter(|_| !up.is_empty()), up })
    }

    /// A link, where it is up.
    fn nvlink(&self, number: u32) -> Option<NvLink> {
        let link = self.0.link_wrapper_for(number);
        if !link.is_active().unwrap_or(false) {
            return None;
        }
        Some(NvLink {
            peer: link.remote_pci_info().ok().map(|info| address(&info.bus_id)),
            end: match link.remote_device_type(number) {
                Ok(IntDeviceType::Gpu) => NvLinkEnd::Gpu,
                Ok(IntDeviceType::Switch) => NvLinkEnd::Switch,
                Ok(IntDeviceType::Ibmnpu) => NvLinkEnd::Cpu,
                _ => NvLinkEnd::Unknown,
            },
            version: link.version().ok(),
        })
    }

    fn field(&self, what: &'static str, field: u32) -> Result<Option<u64>, Unread> {
        let mut answers = read(what, self.0.field_values_for(&[FieldId(field)]))?.into_iter();
        let Some(answer) = answers.next() else { return Ok(None) };
        let value = read(what, read(what, answer)?.value)?;
        Ok(counter::of(&value).map(|counter| counter.value))
    }
}
