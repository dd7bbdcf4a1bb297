//! `nvidia-smi --query-gpu=… --format=csv`: a heading of property names, a line per GPU.

use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{Fact, GpuFacts, Lanes};

use crate::{CaptureError, Kind, MOST_GPUS, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "nvidia-smi --query-gpu=… --format=csv",
    gives: "GPUs by address, names, links",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(is_heading),
    add: |text, captured| {
        let mut skipped = Vec::new();
        let gpus = parse(text, &mut |why| skipped.push(why))?;
        merge::gpus(captured, gpus);
        skipped.into_iter().for_each(|why| captured.skip(why));
        Ok(())
    },
};

const NOT_QUERIED: &str = "nvidia-smi was not queried for it";
const NOT_REPORTED: &str = "nvidia-smi does not report it";

/// The GPUs of the table. Properties that are not known here are passed over.
pub(crate) fn parse(
    text: &str,
    skip: &mut dyn FnMut(CaptureError),
) -> Result<Vec<GpuFacts>, CaptureError> {
    // A unit may stand behind a property: `power.draw [W]`.
    let name = |word: &str| word.split_whitespace().next().unwrap_or_default().to_owned();
    let mut columns: Vec<String> = Vec::new();
    let mut gpus = Vec::new();
    for (index, line) in lines(text) {
        if is_heading(line) {
            columns = fields(line).map(name).collect();
            continue;
        }
        let row = Row { index, line, columns: &columns, values: fields(line).collect() };
        if columns.is_empty() {
            let wanted = "a heading of properties, like index, name, pci.bus_id";
            skip(CaptureError::new(index, line, 0, wanted));
        } else if row.values.len() != columns.iter().filter(|column| !column.is_empty()).count() {
            let wanted = "as many values as the heading has names";
            skip(CaptureError::new(index, line, 0, wanted));
        } else if gpus.len() == MOST_GPUS {
            return Err(CaptureError::new(index, line, 0, "fewer GPUs"));
        } else {
            match row.gpu() {
                Ok(gpu) => gpus.push(gpu),
                Err(why) => skip(why),
            }
        }
    }
    Ok(gpus)
}

/// Properties' names, in any order.
fn is_heading(line: &str) -> bool {
    let known = ["index", "name", "uuid", "gpu_name", "gpu_uuid", "pci.bus_id", "gpu_bus_id"];
    let mut names = fields(line).map(|field| field.split_whitespace().next().unwrap_or_default());
    let plain =
        fields(line).all(|field| field.split(" [").next().is_some_and(|n| !n.contains(' ')));
    plain
        && line.contains(',')
        && names.any(|name| known.contains(&name) || name.starts_with("pci."))
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    // The guide's own heading ends in a comma: its last name is empty.
    line.trim().trim_end_matches(',').split(',').map(str::trim)
}

struct Row<'t> {
    index: usize,
    line: &'t str,
    columns: &'t [String],
    values: Vec<&'t str>,
}

impl<'t> Row<'t> {
    /// A property's value; unknown where it was not queried or not reported.
    fn value(&self, name: &str) -> Fact<&'t str> {
        let at = self.columns.iter().position(|column| column == name);
        let Some(value) = at.and_then(|at| self.values.get(at)) else {
            return Fact::unknown(NOT_QUERIED);
        };
        // `[N/A]`, `[Not Supported]`, `N/A`, `[Unknown Error]`.
        if value.is_empty() || value.starts_with('[') || *value == "N/A" {
            return Fact::unknown(NOT_REPORTED);
        }
        Fact::Known(value)
    }

    fn parsed<T>(
        &self,
        name: &str,
        wanted: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Fact<T>, CaptureError> {
        match self.value(name) {
            Fact::Unknown(why) => Ok(Fact::Unknown(why)),
            Fact::Known(value) => parse(value)
                .map(Fact::Known)
                .ok_or_else(|| CaptureError::at(self.index, self.line, value, wanted)),
        }
    }

    fn number(&self, name: &str) -> Result<Fact<u32>, CaptureError> {
        self.parsed(name, "a number", |value| value.parse().ok())
    }

    fn text(&self, name: &str) -> Fact<String> {
        match self.value(name) {
            Fact::Known(value) => Fact::Known(value.to_owned()),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// A property by its name or its older one.
    fn either(&self, name: &str, older: &str) -> Fact<String> {
        match self.text(name) {
            Fact::Known(value) => Fact::Known(value),
            Fact::Unknown(why) => match self.text(older) {
                Fact::Known(value) => Fact::Known(value),
                Fact::Unknown(_) => Fact::Unknown(why),
            },
        }
    }

    fn pci(&self) -> Result<Option<String>, CaptureError> {
        let whole = match self.parsed("pci.bus_id", "a PCI address", normalize_pci)? {
            Fact::Known(address) => Fact::Known(address),
            Fact::Unknown(_) => self.parsed("gpu_bus_id", "a PCI address", normalize_pci)?,
        };
        if let Fact::Known(address) = whole {
            return Ok(Some(address));
        }
        let hex = |value: &str| u32::from_str_radix(value.strip_prefix("0x")?, 16).ok();
        let part = |name: &str| self.parsed(name, "a number like 0x34", hex);
        let (domain, bus) = (part("pci.domain")?, part("pci.bus")?);
        let device = part("pci.device")?.known().copied().unwrap_or(0);
        let Fact::Known(bus) = bus else { return Ok(None) };
        let domain = domain.known().copied().unwrap_or(0);
        let address = normalize_pci(&format!("{domain:x}:{bus:x}:{device:x}.0"));
        let wrong = || CaptureError::new(self.index, self.line, 0, "a bus and device that PCI has");
        address.map(Some).ok_or_else(wrong)
    }

    /// A link of which speed, width or both were queried.
    fn link(&self, generation: &str, lanes: &str) -> Result<Fact<Lanes>, CaptureError> {
        let (generation, lanes) = (self.number(generation)?, self.number(lanes)?);
        Ok(match (generation, lanes) {
            (Fact::Unknown(why), Fact::Unknown(_)) => Fact::Unknown(why),
            (generation, lanes) => Fact::Known(Lanes::of_generation(
                generation.known().copied(),
                lanes.known().copied(),
            )),
        })
    }

    fn gpu(&self) -> Result<GpuFacts, CaptureError> {
        let enabled = |value: &str| match value {
            "Enabled" => Some(true),
            "Disabled" => Some(false),
            _ => None,
        };
        Ok(GpuFacts {
            pci: self.pci()?,
            index: self.number("index")?,
            minor: None,
            name: self.either("name", "gpu_name"),
            uuid: self.either("uuid", "gpu_uuid"),
            node: None,
            bar1: Fact::unknown(NOT_QUERIED),
            nvlinks: Fact::unknown(NOT_QUERIED),
            c2c: Fact::unknown(NOT_QUERIED),
            memory_node: None,
            near_nodes: Vec::new(),
            near_cpus: None,
            persistence: self.parsed("persistence_mode", "Enabled or Disabled", enabled)?,
            pcie_now: self.link("pcie.link.gen.current", "pcie.link.width.current")?,
            pcie_most: self.link("pcie.link.gen.max", "pcie.link.width.max")?,
        })
    }
}
