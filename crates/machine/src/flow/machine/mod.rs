//! From a machine's facts to a network with flows.

mod drives;
mod pcie_path;
mod remote;

use gpuio_record::Towards;
use gpuio_record::facts::{Machine, MountKind};

use crate::flow::expectation::{IOS, Laid, expectation};
use crate::flow::processors::Processors;
use crate::flow::{End, Expectation, Figures, Io, Load, Network, Storage, Stream};

/// The expected rates on this machine of each stream while all of them run, and of all together.
///
/// Bytes go from drives, or from the card that leads to a server, over the links above them: by
/// [`crate::flow::By::Host`] up to the root and, for GPU memory, down again over the GPU's links;
/// by [`crate::flow::By::Direct`] over the switch where both meet. Links carry both directions at
/// full rate; a drive's flash, and a SATA link, shares its time between reads and writes.
///
/// Not counted, as [`gpuio_record::Expected::because`] notes: links whose speed is not known;
/// memory and the interconnect of processors, unless there are figures for them. The rate of peers
/// through a root complex is not known (makers do not report it), so such streams only have a
/// bound.
pub fn of_machine(machine: &Machine, figures: &Figures, streams: &[Stream]) -> Expectation {
    let requests: Vec<Request> = streams.iter().cloned().map(Request::One).collect();
    of_requests(machine, figures, &requests)
}

/// As [`of_machine`], of streams that may be mixed.
pub(crate) fn of_requests(
    machine: &Machine,
    figures: &Figures,
    requests: &[Request],
) -> Expectation {
    let (network, laid, processors) = lay_requests(machine, figures, requests);
    expectation(&network, laid, processors)
}

/// Lays requests through the parts of a machine.
pub(crate) fn lay_requests(
    machine: &Machine,
    figures: &Figures,
    requests: &[Request],
) -> (Network, Vec<Laid>, Processors) {
    let mut layer = Layer { machine, figures, network: Network::default() };
    let laid = requests.iter().map(|one| match one {
        Request::One(stream) => layer.lay(stream),
        Request::Mixed { read, write, read_share } => {
            let (read, write) = (layer.lay(read), layer.lay(write));
            read.mixed_with(write, *read_share)
        }
    });
    let laid = laid.collect();
    let processors = layer.processors();
    (layer.network, laid, processors)
}

/// A job's requests.
pub(crate) enum Request {
    /// Reads or writes.
    One(Stream),
    /// Reads and writes in a fixed ratio: the slower holds back the other.
    Mixed {
        read: Stream,
        write: Stream,
        /// Bytes read of all bytes, 0 to 1.
        read_share: f64,
    },
}

/// Lays streams through the network, making parts as they are met.
struct Layer<'m> {
    machine: &'m Machine,
    figures: &'m Figures,
    network: Network,
}

/// A device that bytes come from or go to.
struct Source {
    /// Its PCI function, where it is known.
    pci: Option<String>,
    /// Bytes out of it towards memory, and into it, per byte of the stream.
    out: f64,
    into: f64,
}

impl Layer<'_> {
    /// Those that this process may use, else all that are online.
    fn processors(&self) -> Processors {
        let cpu = &self.machine.host.cpu;
        let count = cpu.allowed.as_ref().or(cpu.online.as_ref()).map(Vec::len);
        let count = count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        match (count, self.figures.processor()) {
            (Some(_), Some(_)) => Processors::Counted,
            (Some(count), None) => Processors::Count(count),
            (None, _) => Processors::Machines(1),
        }
    }

    /// The processors' time that each I/O takes, where there is a figure of it.
    fn processors_time(&mut self, stream: &Stream, laid: &mut Laid) {
        let cpu = &self.machine.host.cpu;
        let count = cpu.allowed.as_ref().or(cpu.online.as_ref()).map_or(0, Vec::len);
        let Some((ios, source)) = self.figures.processor().filter(|_| count > 0) else { return };
        let busy = 1.0 / (ios * count as f64 * stream.block_bytes.max(1) as f64);
        let text = gpuio_base::units::human_count(ios);
        let figure = format!("{count} × {text} I/Os per second ({source})");
        let name = format!("processors{IOS}");
        laid.uses(&mut self.network, ("processors", &name), busy, figure);
    }

    fn lay(&mut self, stream: &Stream) -> Laid {
        let mut laid = Laid {
            name: stream.name.clone(),
            block_bytes: stream.block_bytes,
            in_flight: stream.in_flight,
            ..Laid::default()
        };
        if let Some(requested) = stream.requested_bytes_per_s {
            laid.flow.own_limit = Some((requested, "the requested rate".to_owned()));
        }
        let share = share_of(stream.storage.len());
        if stream.storage.is_empty() {
            laid.missing.push("the target's storage device is unknown".to_owned());
        }
        for storage in &stream.storage {
            let load = load(stream, share);
            let sources = match storage {
                Storage::Device(name) => self.device(name, load, stream, &mut laid),
                Storage::Mount(point) => self.mount(point, load, stream, &mut laid),
            };
            for source in sources {
                self.source_way(&source, stream, &mut laid);
            }
        }
        self.end(stream, &mut laid);
        laid
    }

    fn mount(&mut self, point: &str, load: Load, stream: &Stream, laid: &mut Laid) -> Vec<Source> {
        let mounted = self.machine.mounts.iter().rev().find(|one| one.mount.mount_point == point);
        let Some(mounted) = mounted else {
            laid.missing.push(format!("no mount {point} is known"));
            return Vec::new();
        };
        match mounted.kind {
            MountKind::Block => {
                let count = mounted.devices.len();
                if count == 0 {
                    laid.missing.push(format!("the devices beneath {point} are not known"));
                } else if count > 1 {
                    laid.notes
                        .push(format!("The {count} devices beneath {point} count as evenly used."));
                }
                let load = load.times(share_of(count));
                let devices = mounted.devices.iter();
                devices.flat_map(|name| self.device(name, load, stream, laid)).collect()
            }
            MountKind::Memory => {
                laid.missing.push(format!("{point} is memory, which has no figure"));
                Vec::new()
            }
            MountKind::Overlay | MountKind::Other => {
                let kind = &mounted.mount.fs_type;
                laid.missing.push(format!("what lies beneath {point} ({kind}) is not known"));
                Vec::new()
            }
            MountKind::Nfs
            | MountKind::Lustre
            | MountKind::Beegfs
            | MountKind::Weka
            | MountKind::Gpfs => self.remote(mounted, load, stream, laid),
        }
    }
}

/// An even share of one among so many.
fn share_of(count: usize) -> f64 {
    1.0 / count.max(1) as f64
}

/// The load of a share of a stream's bytes.
fn load(stream: &Stream, share: f64) -> Load {
    let io = Io { bytes: share, ios: share / stream.block_bytes.max(1) as f64 };
    match stream.towards {
        Towards::Read => Load { reads: io, writes: Io::default() },
        Towards::Write => Load { reads: Io::default(), writes: io },
    }
}

impl Load {
    /// This much of it.
    pub(crate) fn times(self, share: f64) -> Load {
        let of = |io: Io| Io { bytes: io.bytes * share, ios: io.ios * share };
        Load { reads: of(self.reads), writes: of(self.writes) }
    }
}

impl Layer<'_> {
    /// The leg between host memory and the end, and memory itself.
    fn end(&mut self, stream: &Stream, laid: &mut Laid) {
        self.processors_time(stream, laid);
        let bounce = stream.by == crate::flow::By::Host;
        let gpus = stream.end.gpus();
        for pci in gpus.iter().filter(|_| bounce) {
            let share = share_of(gpus.len());
            let (up, down) = match stream.towards {
                Towards::Read => (0.0, share),
                Towards::Write => (share, 0.0),
            };
            if !self.coherent(pci, up, down, laid) {
                self.up_to_root(pci, up, down, laid);
            }
        }
        if bounce || stream.end == End::Host {
            let touches = if gpus.is_empty() { 1.0 } else { 2.0 };
            self.memory(touches, laid);
        }
    }

    /// The coherent link between a GPU and its processor, which bytes from host memory take instead
    /// of PCIe; `false` where it has none. GPUs of one processor share it.
    fn coherent(&mut self, pci: &str, up: f64, down: f64, laid: &mut Laid) -> bool {
        let gpu = self.machine.gpus.iter().find(|gpu| gpu.pci.as_deref() == Some(pci));
        let Some(found) = gpu.and_then(|gpu| crate::topo::coherent(self.machine, gpu, pci)) else {
            return false;
        };
        let name = format!("{} of {pci}", found.link);
        let Some(rate) = found.bytes_per_second else {
            laid.note(&format!("The {name} is not counted: {}.", found.source));
            return true;
        };
        let rate = rate as f64;
        let text = gpuio_base::units::human_decimal_rate(rate);
        let chip = match (found.gpus_at_most, found.node) {
            (1, _) => pci.to_owned(),
            (_, Some(node)) => format!("node {node}"),
            // Boards have the GPUs of a processor at neighbouring addresses.
            (gpus, None) => {
                let mut all = self.machine.gpus.iter();
                let at = all.position(|gpu| gpu.pci.as_deref() == Some(pci)).unwrap_or(0);
                format!("processor {}", at / gpus.max(1) as usize)
            }
        };
        for (bytes, direction) in [(up, "up"), (down, "down")] {
            let key = format!("coherent:{chip}:{direction}");
            let figure = format!("{text} in one direction ({})", found.source);
            laid.uses(&mut self.network, (&key, &name), bytes / rate, figure);
        }
        true
    }

    fn memory(&mut self, touches: f64, laid: &mut Laid) {
        match self.figures.memory() {
            Some((rate, source)) => {
                let rate_text = gpuio_base::units::human_decimal_rate(rate);
                let figure = format!("{rate_text} ({source})");
                laid.uses(&mut self.network, ("memory", "host memory"), touches / rate, figure);
            }
            None => laid.note("Host memory is not counted."),
        }
    }
}
