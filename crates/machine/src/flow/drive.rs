//! The rates that a drive allows, by its figures.

use gpuio_record::Towards;

use crate::flow::expectation::{IOS, Laid};
use crate::flow::{DriveFigures, Io, Load, Network, Pattern};

/// Below this a drive's I/Os per second may bound it, in bytes.
const SMALL: u64 = 128 << 10;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) towards: Towards,
    pub(crate) pattern: Pattern,
    pub(crate) block_bytes: u64,
}

/// The drive's own limits by bytes and by commands. Reads and writes share the drive's time: what
/// a data sheet has for each is that of a drive that does nothing else.
pub(crate) fn lay_drive(
    network: &mut Network,
    name: &str,
    figures: &DriveFigures,
    (load, request): (Load, Request),
    laid: &mut Laid,
) {
    let source = &figures.source;
    for (io, rate, what) in
        [(load.reads, figures.read, "read"), (load.writes, figures.write, "write")]
    {
        match rate.filter(|_| io.bytes > 0.0) {
            Some(rate) => {
                let figure =
                    format!("{} {what} ({source})", gpuio_base::units::human_decimal_rate(rate));
                laid.uses(network, (&format!("drive:{name}"), name), io.bytes / rate, figure);
            }
            None if io.bytes > 0.0 => {
                laid.missing.push(format!("{source} has no {what} rate for {name}"));
            }
            None => {}
        }
    }
    lay_commands(network, name, figures, (load, request), laid);
    let access = match request.towards {
        Towards::Read => figures.read_latency_ns,
        Towards::Write => figures.write_latency_ns,
    };
    laid.access(access.ok_or_else(|| format!("{source} has no access time for {name}")));
}

fn lay_commands(
    network: &mut Network,
    name: &str,
    figures: &DriveFigures,
    (load, request): (Load, Request),
    laid: &mut Laid,
) {
    // A drive gathers sequential writes in its cache, so that its figure for random ones does not
    // bind them; its commands per second still do.
    let write_iops = match request.pattern {
        Pattern::Random => figures.write_iops,
        Pattern::Sequential => {
            let both = [figures.write_iops, figures.read_iops];
            both.into_iter().flatten().max_by(f64::total_cmp)
        }
    };
    let part = (format!("drive-ios:{name}"), format!("{name}{IOS}"));
    let each: [(Io, Option<f64>, &str); 2] =
        [(load.reads, figures.read_iops, "reads"), (load.writes, write_iops, "writes")];
    for (io, iops, what) in each.into_iter().filter(|(io, ..)| io.ios > 0.0) {
        let source = &figures.source;
        if let Some(iops) = iops {
            let figure =
                format!("{} {what} per second ({source})", gpuio_base::units::human_count(iops));
            laid.uses(network, (&part.0, &part.1), io.ios / iops, figure);
        } else if request.block_bytes < SMALL {
            laid.missing.push(format!("{source} has no figure for {what} per second of {name}"));
        }
    }
}

impl Laid {
    /// Adds a device's access time: an I/O waits for the slowest of the devices that may serve it.
    pub(crate) fn access(&mut self, access: Result<f64, String>) {
        self.access_ns = Some(match (self.access_ns.take(), access) {
            (Some(Err(why)), _) | (_, Err(why)) => Err(why),
            (Some(Ok(before)), Ok(access)) => Ok(before.max(access)),
            (None, Ok(access)) => Ok(access),
        });
    }
}
