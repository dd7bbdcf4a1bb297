//! A job through the tiers.

use gpuio_record::Towards;

use super::{Clients, Count, Drives, Job, Kind, Nodes, Switch, System, Tier};
use crate::flow::drive::{Request, lay_drive};
use crate::flow::expectation::{IOS, Laid, not_counted};
use crate::flow::{Io, Load, Network};

/// A link or port of a described system.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Bytes of data per second in one direction.
    pub bytes_per_s: f64,
    /// Its description.
    pub what: String,
    /// Data goes in one direction at a time.
    pub half_duplex: bool,
}

/// Lays a job; returns the flow and the number of units of each of its uses.
pub(super) fn lay(
    system: &System,
    job: &Job,
    nodes: u64,
    network: &mut Network,
) -> (Laid, Vec<u64>) {
    let mut laid = Laid {
        name: job.name.clone(),
        block_bytes: job.block_bytes,
        in_flight: job.in_flight,
        ..Laid::default()
    };
    if let Some(rate) = job.rate {
        laid.flow.own_limit = Some((rate, "the requested rate".to_owned()));
    }
    let mut pen = Pen { system, job, nodes, network, laid, units: Vec::new() };
    for tier in &system.tiers {
        if job.through.is_empty() || job.through.contains(&tier.name) {
            pen.tier(tier);
        }
    }
    let Pen { mut laid, units, .. } = pen;
    match (job.in_flight, laid.access_ns.clone()) {
        (Some(depth), Some(Err(why))) => laid.missing.push(not_counted(depth, &why)),
        (Some(depth), None) => {
            laid.note(&format!("{}.", not_counted(depth, "no tier has an access time")));
        }
        _ => {}
    }
    (laid, units)
}

struct Pen<'p> {
    system: &'p System,
    job: &'p Job,
    nodes: u64,
    network: &'p mut Network,
    laid: Laid,
    units: Vec<u64>,
}

fn float(count: u64) -> f64 {
    count as f64
}

impl Pen<'_> {
    fn tier(&mut self, tier: &Tier) {
        let count = match tier.count {
            Count::Fixed(_) if matches!(tier.kind, Kind::Nodes(_)) => self.nodes,
            Count::Fixed(count) => count,
            Count::PerNode(each) => each.saturating_mul(self.nodes),
        };
        match &tier.kind {
            Kind::Clients(clients) => self.clients(&tier.name, count, clients),
            Kind::Switch(switch) => self.switch(&tier.name, count, switch),
            Kind::Nodes(nodes) => self.storage(&tier.name, count, nodes),
            Kind::Drives(drives) => self.drives(&tier.name, count, drives),
            Kind::Link(port) => self.port(&tier.name, count, port),
        }
    }

    /// Counts `units` equal parts of `rate` bytes per second each. Reads and writes divide the time
    /// of parts that are `shared`; of others each direction has its own. A system with jobs of both
    /// says which it is.
    fn pool(&mut self, name: &str, units: u64, rate: f64, mut figure: String, shared: bool) {
        if self.system.jobs.iter().any(|job| job.towards != self.job.towards) {
            figure.push_str(if shared {
                ", shared by reads and writes"
            } else {
                ", each direction"
            });
        }
        let direction = match self.job.towards {
            _ if shared => "both",
            towards => towards.name(),
        };
        let busy = 1.0 / (rate * float(units));
        self.laid.uses(self.network, (&format!("{name}:{direction}"), name), busy, figure);
        self.units.push(units);
    }

    fn port(&mut self, name: &str, units: u64, port: &Port) {
        let rate = gpuio_base::units::human_decimal_rate(port.bytes_per_s);
        let figure = format!("{units} × {rate} ({})", port.what);
        self.pool(name, units, port.bytes_per_s, figure, port.half_duplex);
    }

    fn clients(&mut self, name: &str, count: u64, clients: &Clients) {
        if let Some((gpus, Some(link))) = &clients.gpus {
            self.port(&format!("{name}: GPU links"), count.saturating_mul(*gpus), link);
        }
        if let Some((ports, port)) = &clients.ports {
            let all = count.saturating_mul(*ports);
            if let Some(link) = &clients.nic_link {
                self.port(&format!("{name}: links of cards"), all, link);
            }
            self.port(&format!("{name}: ports"), all, port);
        }
    }

    fn switch(&mut self, name: &str, count: u64, switch: &Switch) {
        if let Some(rate) = switch.rate {
            let text = gpuio_base::units::human_decimal_rate(rate);
            self.pool(name, count, rate, format!("{count} × {text} (as described)"), false);
        }
        if let Some((uplinks, port)) = &switch.uplinks {
            self.port(&format!("{name}: uplinks"), count.saturating_mul(*uplinks), port);
        }
        if let Some(over) = switch.oversubscription {
            let below: f64 = self.client_ports();
            if below > 0.0 {
                let figure = format!("{over} : 1 below the clients' ports");
                self.pool(name, 1, below / over, figure, false);
            }
        }
    }

    /// Bytes per second of all clients' ports.
    fn client_ports(&self) -> f64 {
        let of = |tier: &Tier| match (&tier.kind, tier.count) {
            (Kind::Clients(Clients { ports: Some((ports, port)), .. }), count) => {
                let count = match count {
                    Count::Fixed(count) => count,
                    Count::PerNode(each) => each.saturating_mul(self.nodes),
                };
                float(count) * float(*ports) * port.bytes_per_s
            }
            _ => 0.0,
        };
        self.system.tiers.iter().map(of).sum()
    }

    fn storage(&mut self, name: &str, count: u64, nodes: &Nodes) {
        if let Some((ports, port)) = &nodes.ports {
            self.port(&format!("{name}: ports"), count.saturating_mul(*ports), port);
        }
        let (rate, iops, what) = match self.job.towards {
            Towards::Read => (nodes.read, nodes.read_iops, "read"),
            Towards::Write => (nodes.write, nodes.write_iops, "write"),
        };
        if let Some(rate) = rate {
            let text = gpuio_base::units::human_decimal_rate(rate);
            let figure = format!("{count} × {text} {what} ({})", nodes.source);
            self.pool(name, count, rate, figure, true);
        }
        if let Some(iops) = iops {
            let text = gpuio_base::units::human_count(iops);
            let figure = format!("{count} × {text} {what}s per second ({})", nodes.source);
            let bytes = iops * float(self.job.block_bytes);
            self.pool(&format!("{name}{IOS}"), count, bytes, figure, true);
        }
        match &nodes.drives {
            Some(drives) => self.drives(&format!("{name}: drives"), count, drives),
            None if rate.is_none() => self.laid.missing.push(format!(
                "what a unit of {name} {what}s is not known: give {what}= or drives="
            )),
            None => {}
        }
        if let Some(latency) = nodes.latency_ns {
            self.laid.access(Ok(latency));
            // Whatever else an I/O waits for.
            if let Some(depth) = self.job.in_flight {
                self.laid.bound_by_latency(depth, latency);
            }
        }
    }

    fn drives(&mut self, name: &str, count: u64, drives: &Drives) {
        let Some(figures) = self.system.figures.drive(&drives.model, Some(&drives.model)) else {
            self.laid.missing.push(format!(
                "no figures for {}: give them in a section [drive {}], or with --spec FILE",
                drives.model, drives.model
            ));
            return;
        };
        let share = 1.0 / float(count);
        let io = Io { bytes: share, ios: share / float(self.job.block_bytes) };
        let load = match self.job.towards {
            Towards::Read => Load { reads: io, writes: Io::default() },
            Towards::Write => Load { reads: Io::default(), writes: io },
        };
        let each = float(drives.each);
        let load = match drives.level {
            Some(level) => level.member(load, drives.each, drives.chunk_bytes, self.job.pattern),
            None => load.times(1.0 / each),
        };
        let request = Request {
            towards: self.job.towards,
            pattern: self.job.pattern,
            block_bytes: self.job.block_bytes,
        };
        let before = self.laid.flow.uses.len();
        let figures = figures.clone();
        lay_drive(self.network, name, &figures, (load, request), &mut self.laid);
        let units = count.saturating_mul(drives.each);
        for one in &mut self.laid.flow.uses[before..] {
            one.figure = format!("{units} × {}", one.figure);
            self.units.push(units);
        }
    }
}
