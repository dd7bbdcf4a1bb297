//! Drives, alone and in arrays.

use gpuio_record::Towards;
use gpuio_record::facts::{BlockDevice, BlockKind};

use super::{Layer, Source};
use crate::flow::drive::{Request, lay_drive};
use crate::flow::expectation::Laid;
use crate::flow::{Level, Load, Stream, link};

/// Deeper stacks than anybody builds.
const DEEPEST: u32 = 16;

impl Layer<'_> {
    /// Lays a load over a device and what it is made of.
    pub(super) fn device(
        &mut self,
        name: &str,
        load: Load,
        stream: &Stream,
        laid: &mut Laid,
    ) -> Vec<Source> {
        let mut sources = Vec::new();
        self.stack(name, load, (stream, DEEPEST), laid, &mut sources);
        sources
    }

    fn stack(
        &mut self,
        name: &str,
        load: Load,
        (stream, depth): (&Stream, u32),
        laid: &mut Laid,
        sources: &mut Vec<Source>,
    ) {
        let machine = self.machine;
        let found = machine.block.iter().find(|device| device.facts.name == name);
        let Some(device) = found.filter(|_| depth > 0) else {
            laid.missing.push(format!("nothing is known of device {name}"));
            return;
        };
        self.group_limits(name, load, laid);
        let below = (stream, depth - 1);
        if device.facts.kind == BlockKind::Disk || device.made_of.is_empty() {
            sources.extend(self.drive(device, load, stream, laid));
            return;
        }
        let array = device.array.as_ref();
        if let [only] = device.made_of.as_slice()
            && array.is_none()
        {
            if device.mapper.as_deref() == Some("CRYPT") {
                laid.notes.push(format!("{name}: encryption by the processor is not counted."));
            }
            self.stack(only, load, below, laid, sources);
            return;
        }
        let members = device.made_of.len() as u64;
        let level = array.and_then(|array| array.level.as_deref());
        let each = match level.and_then(Level::parse) {
            Some(level) => {
                let chunk = array.and_then(|array| array.chunk_bytes);
                level.member(load, members, chunk, stream.pattern)
            }
            None => {
                let what = level.unwrap_or("joined devices");
                laid.missing
                    .push(format!("{name} ({what}): which member serves an I/O is not known"));
                let share = 1.0 / members as f64;
                load.times(share)
            }
        };
        if array.and_then(|array| array.degraded).is_some_and(|lacks| lacks > 0) {
            laid.notes.push(format!("{name} lacks members: what that costs is not counted."));
        }
        for member in device.made_of.clone() {
            self.stack(&member, each, below, laid, sources);
        }
    }

    fn drive(
        &mut self,
        device: &BlockDevice,
        load: Load,
        stream: &Stream,
        laid: &mut Laid,
    ) -> Option<Source> {
        let name = &device.facts.name;
        let model = device.facts.model.as_deref().map(str::trim);
        // A text of lspci has no model, and names the controller's series.
        let pci_name = device.pci.first().filter(|_| model.is_none() && device.pci.len() == 1);
        let pci_name = pci_name.and_then(|pci| self.machine.function(pci)?.name.as_deref());
        let by_series = || self.figures.drive_by_pci_name(pci_name?);
        let figures = self.figures.drive(name, model);
        match figures.or_else(by_series) {
            Some(found) => {
                if figures.is_none() {
                    let series = pci_name.unwrap_or_default();
                    laid.note(&format!("{name} counts as any drive of its series ({series})."));
                }
                let figures = found;
                let request = Request {
                    towards: stream.towards,
                    pattern: stream.pattern,
                    block_bytes: stream.block_bytes,
                };
                lay_drive(&mut self.network, name, figures, (load, request), laid);
            }
            None => {
                let model = model.or(pci_name).unwrap_or("a drive whose model is not known");
                laid.missing.push(format!(
                    "no figures for {model} ({name}): give them with --spec FILE, or measure"
                ));
            }
        }
        self.drive_link(device, load, laid);
        Some(Source {
            pci: device.pci.first().cloned(),
            out: load.reads.bytes,
            into: load.writes.bytes,
        })
    }

    /// The limits of this process's control group on the device.
    fn group_limits(&mut self, name: &str, load: Load, laid: &mut Laid) {
        let machine = self.machine;
        for limit in machine.host.io_limits.iter().flat_map(|limits| limits.on(name)) {
            let io = match limit.towards {
                Towards::Read => load.reads,
                Towards::Write => load.writes,
            };
            let part = format!("limit of this process's cgroup on {} of {name}", limit.verb());
            let figure = format!("{} ({})", limit.most(), limit.path);
            let rates = [("bytes", io.bytes, limit.bytes_per_s), ("ios", io.ios, limit.ios_per_s)];
            for (what, amount, rate) in rates {
                let Some(rate) = rate.filter(|rate| *rate > 0) else { continue };
                let key = format!("cgroup:{}:{name}:{}:{what}", limit.path, limit.verb());
                let busy = amount / rate as f64;
                laid.uses(&mut self.network, (&key, &part), busy, figure.clone());
            }
        }
    }

    /// The link of a SATA or SAS drive.
    fn drive_link(&mut self, device: &BlockDevice, load: Load, laid: &mut Laid) {
        let Some(own) = &device.link else { return };
        let name = &device.facts.name;
        let Some(megabits) = own.now_megabits else {
            laid.notes.push(format!("The link of {name} is not counted: its rate is not known."));
            return;
        };
        let gigabits = format!("{}.{} Gb/s", megabits / 1000, megabits % 1000 / 100);
        if own.port.starts_with("ata") {
            let rate = link::sata(megabits);
            let text = gpuio_base::units::human_decimal_rate(rate);
            let figure = format!("SATA at {gigabits}, {text} of data in one direction at a time");
            let bytes = load.reads.bytes + load.writes.bytes;
            let part = format!("link of {name}");
            laid.uses(&mut self.network, (&format!("sata:{name}"), &part), bytes / rate, figure);
            return;
        }
        let lanes = own.lanes.max(1);
        let rate = link::sas(megabits) * f64::from(lanes);
        let text = gpuio_base::units::human_decimal_rate(rate);
        let figure = format!("SAS at {gigabits} x{lanes}, {text} of data");
        let part = format!("link of {name}");
        for (bytes, direction) in [(load.reads.bytes, "in"), (load.writes.bytes, "out")] {
            let key = format!("sas:{}:{direction}", own.port);
            laid.uses(&mut self.network, (&key, &part), bytes / rate, figure.clone());
        }
    }
}
