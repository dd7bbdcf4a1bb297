//! PCIe links: `/sys/bus/pci/devices/ADDRESS/{current,max}_link_{speed,width}`
//! (Documentation/PCI/sysfs-pci.rst, Linux 4.13) of a device and of all bridges above it, and the
//! list of all functions.

mod config_space;
mod functions;

pub use config_space::parse_config;
pub use functions::read;
pub use gpuio_record::facts::Lanes;

use crate::numa::normalize_pci;
use crate::{HostError, LineFault, Root};

/// A PCI function on the way from a device to the processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciFunction {
    /// Its address: `0000:3b:00.0`.
    pub address: String,
    /// Its link as it is now. An idle link may run slower than it will under load.
    pub now: Lanes,
    /// The most that this end of the link can do.
    pub most: Lanes,
}

/// The device at `address` and every bridge above it, the device first. `None` when there is no
/// such device. Case and a missing domain do not matter.
///
/// # Errors
/// [`HostError`] when a file is there and cannot be read or understood.
pub fn way_up(root: &Root, address: &str) -> Result<Option<Vec<PciFunction>>, HostError> {
    let Some(address) = normalize_pci(address) else {
        return Ok(None);
    };
    let Some(dir) = root.resolve(format!("sys/bus/pci/devices/{address}")) else {
        return Ok(None);
    };
    let names = dir.ancestors().filter_map(|dir| dir.file_name()?.to_str());
    let functions = names.take_while(|name| normalize_pci(name).as_deref() == Some(*name));
    functions.map(|name| function(root, name)).collect::<Result<Vec<_>, _>>().map(Some)
}

fn function(root: &Root, address: &str) -> Result<PciFunction, HostError> {
    let lanes = |when: &str| -> Result<Lanes, HostError> {
        let dir = format!("sys/bus/pci/devices/{address}");
        let speed = root.read(format!("{dir}/{when}_link_speed"))?;
        let width = root.read(format!("{dir}/{when}_link_width"))?;
        Ok(Lanes {
            mega_transfers: speed.map_or(Ok(None), |text| text.parse(parse_speed))?,
            width: width.map_or(Ok(None), |text| text.parse(parse_width))?,
        })
    };
    Ok(PciFunction { address: address.to_owned(), now: lanes("current")?, most: lanes("max")? })
}

/// A link speed in millions of transfers per second: `32.0 GT/s PCIe`, `8 GT/s`. `None` for
/// `Unknown` and for the names that kernels give to speeds they cannot put in figures.
///
/// # Errors
/// [`LineFault`] when a figure in GT/s is none.
pub fn parse_speed(text: &str) -> Result<Option<u64>, LineFault> {
    let text = text.trim();
    let Some((figure, _)) = text.split_once("GT/s") else {
        return Ok(None);
    };
    let malformed = || LineFault::new(0, text, "a speed like 32.0 GT/s PCIe");
    let speed = gpuio_base::units::parse_transfers(figure);
    speed.map(|speed| (speed > 0).then_some(speed)).ok_or_else(malformed)
}

/// A link width. `None` for 0 and for widths that PCIe does not have: 255 is the kernel's mark for
/// one that it does not know (`PCIE_LNK_WIDTH_UNKNOWN`).
///
/// # Errors
/// [`LineFault`] when it is no number.
pub fn parse_width(text: &str) -> Result<Option<u64>, LineFault> {
    let width = crate::parse::number(text)?;
    Ok((1..=32).contains(&width).then_some(width))
}
