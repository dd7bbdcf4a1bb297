//! Drives, alone and in arrays.

use gpuio_record::Towards;
use gpuio_record::facts::{BlockDevice, BlockKind};

use super::{Layer, Source};
use crate::expectation::{IOS, Laid};
use crate::{DriveFigures, Io, Level, Load, Pattern, Stream, link};

/// Below this a drive's I/Os per second may bound it, in bytes.
const SMALL: u64 = 128 << 10;

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
        #[expect(clippy::cast_possible_truncation, reason = "members of an array are few")]
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
                    .push(format!("{name} ({what}): which member an I/O asks is not known"));
                #[expect(clippy::cast_precision_loss, reason = "members of an array are few")]
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
        match self.figures.drive(name, model) {
            Some(figures) => self.flash(name, figures, load, stream, laid),
            None => {
                let model = model.unwrap_or("a drive whose model is not known");
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

    /// The drive's own limits by bytes and by commands.
    fn flash(
        &mut self,
        name: &str,
        figures: &DriveFigures,
        load: Load,
        stream: &Stream,
        laid: &mut Laid,
    ) {
        let source = &figures.source;
        let mut rates = |io: Io, rate: Option<f64>, what: &str, laid: &mut Laid| {
            if io.bytes <= 0.0 {
                return;
            }
            match rate {
                Some(rate) => {
                    let text = gpuio_units::human_decimal_rate(rate);
                    let figure = format!("{text} {what} ({source})");
                    self.uses(laid, (&format!("drive:{name}"), name), io.bytes / rate, figure);
                }
                None => laid.missing.push(format!("{source} has no {what} rate for {name}")),
            }
        };
        rates(load.reads, figures.read, "read", laid);
        rates(load.writes, figures.write, "write", laid);
        // A drive gathers sequential writes in its cache, so that its figure for random ones does
        // not bind them; its commands per second still do.
        let write_iops = match stream.pattern {
            Pattern::Random => figures.write_iops,
            Pattern::Sequential => {
                let both = [figures.write_iops, figures.read_iops];
                both.into_iter().flatten().max_by(f64::total_cmp)
            }
        };
        let commands = format!("{name}{IOS}");
        let key = format!("drive-ios:{name}");
        for (io, iops, what) in
            [(load.reads, figures.read_iops, "reads"), (load.writes, write_iops, "writes")]
        {
            match iops.filter(|_| io.ios > 0.0) {
                Some(iops) => {
                    let text = gpuio_units::human_count(iops);
                    let figure = format!("{text} {what} per second ({source})");
                    self.uses(laid, (&key, &commands), io.ios / iops, figure);
                }
                None if io.ios > 0.0 && stream.block_bytes < SMALL => {
                    laid.missing
                        .push(format!("{source} has no figure for {what} per second of {name}"));
                }
                None => {}
            }
        }
        let access = match stream.towards {
            Towards::Read => figures.read_latency_ns,
            Towards::Write => figures.write_latency_ns,
        };
        laid.access(access.ok_or_else(|| format!("{source} has no access time for {name}")));
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
            let text = gpuio_units::human_decimal_rate(rate);
            let figure = format!("SATA at {gigabits}, {text} of data one way at a time");
            let bytes = load.reads.bytes + load.writes.bytes;
            let part = format!("link of {name}");
            self.uses(laid, (&format!("sata:{name}"), &part), bytes / rate, figure);
            return;
        }
        let lanes = own.lanes.max(1);
        let rate = link::sas(megabits) * f64::from(lanes);
        let text = gpuio_units::human_decimal_rate(rate);
        let figure = format!("SAS at {gigabits} x{lanes}, {text} of data");
        let part = format!("link of {name}");
        for (bytes, way) in [(load.reads.bytes, "in"), (load.writes.bytes, "out")] {
            let key = format!("sas:{}:{way}", own.port);
            self.uses(laid, (&key, &part), bytes / rate, figure.clone());
        }
    }
}

impl Laid {
    /// Adds a device's access time: an I/O waits for the slowest of the devices that it may ask.
    pub(crate) fn access(&mut self, access: Result<f64, String>) {
        self.access_ns = Some(match (self.access_ns.take(), access) {
            (Some(Err(why)), _) | (_, Err(why)) => Err(why),
            (Some(Ok(before)), Ok(access)) => Ok(before.max(access)),
            (None, Ok(access)) => Ok(access),
        });
    }
}
