//! Servers behind a network.

use gpuio_record::Towards;
use gpuio_record::facts::{InterfaceFacts, LinkLayer, MountedStorage, NicFacts};

use super::{Layer, Source};
use crate::flow::expectation::{IOS, Laid};
use crate::flow::link::{self, Transport};
use crate::flow::portion::{NETWORK, PORT, SERVER, SERVER_PORTS};
use crate::flow::{Load, PortFigures, ServerFigures, Stream};

/// The rate of a port of the machine.
struct PortRate {
    bytes_per_s: f64,
    /// The part of the bits on the wire that is data.
    data_share: f64,
    figure: String,
}

impl Layer<'_> {
    pub(super) fn remote(
        &mut self,
        mounted: &MountedStorage,
        load: Load,
        stream: &Stream,
        laid: &mut Laid,
    ) -> Vec<Source> {
        let machine = self.machine;
        let nfs = mounted.nfs.as_ref();
        let point = &mounted.mount.mount_point;
        let route = machine.server_route(mounted);
        let transport = nfs.and_then(|nfs| nfs.transport.as_deref()).unwrap_or("tcp");
        let rdma = transport.starts_with("rdma");
        let transport = if rdma { Transport::Rdma } else { Transport::Tcp };
        let found = route.and_then(|route| {
            machine.nics.iter().find_map(|nic| {
                let one = nic.interfaces.iter().find(|one| one.name == route.interface)?;
                Some((nic, one))
            })
        });
        let rate = found.and_then(|(nic, facts)| {
            let by_name = || self.by_name(nic);
            port_rate(nic, facts, transport, by_name)
        });
        let data_share = rate.as_ref().map_or(1.0, |rate| rate.data_share);
        self.server_of(mounted, data_share, (load, stream), laid);
        let Some((nic, facts)) = found else {
            let why = nfs.and_then(|nfs| nfs.interface.why()).unwrap_or("it is not known");
            laid.note(&format!("The network port to {point} is not counted: {why}."));
            return Vec::new();
        };
        let measured = self.figures.port(&facts.name);
        if let Some(measured) = measured.filter(|_| rdma) {
            laid.note(&format!(
                "The rate of port {} ({}) is by TCP, and {point} uses RDMA: it is not counted.",
                facts.name, measured.source
            ));
        }
        let measured = measured.filter(|_| !rdma);
        self.port((nic, facts), rate, measured, load, laid)
    }

    /// The rate of a card's ports by its name on PCI, with the source.
    fn by_name(&self, nic: &NicFacts) -> Option<(u64, String)> {
        let function = self.machine.function(nic.pci.as_deref()?)?;
        let figures = self.figures.nic(function.name.as_deref()?)?;
        Some((figures.megabits, figures.source.clone()))
    }

    fn server_of(
        &mut self,
        mounted: &MountedStorage,
        data_share: f64,
        (load, stream): (Load, &Stream),
        laid: &mut Laid,
    ) {
        let nfs = mounted.nfs.as_ref();
        let source = mounted.mount.source.as_str();
        let called = nfs.map_or(source, |nfs| nfs.server.as_str());
        let mut names = vec![source, called];
        names.extend(nfs.and_then(|nfs| nfs.address.as_deref()));
        let figures = self.figures;
        self.between(load, laid);
        match figures.server(&names) {
            Some((server, of)) => {
                let called = (called, of.as_deref());
                self.server(server, (called, data_share), (load, stream), laid);
            }
            None => laid
                .missing
                .push(format!("what server {called} delivers is not known: give it with --server")),
        }
    }

    fn server(
        &mut self,
        server: &ServerFigures,
        ((called, of), data_share): ((&str, Option<&str>), f64),
        (load, stream): (Load, &Stream),
        laid: &mut Laid,
    ) {
        let name = match of {
            Some(_) => format!("server {called}"),
            None => "server".to_owned(),
        };
        let source = &server.source;
        let key = of.unwrap_or("*");
        let (io, rate, iops, what) = match stream.towards {
            Towards::Read => (load.reads, server.read, server.read_iops, "read"),
            Towards::Write => (load.writes, server.write, server.write_iops, "write"),
        };
        if let Some(rate) = rate {
            let figure =
                format!("{} {what} ({source})", gpuio_base::units::human_decimal_rate(rate));
            let busy = io.bytes / rate;
            laid.uses(&mut self.network, (&format!("{SERVER}:{key}"), &name), busy, figure);
        }
        if let Some(iops) = iops {
            let iops_text = gpuio_base::units::human_count(iops);
            let figure = format!("{iops_text} {what}s per second ({source})");
            let part = (format!("{SERVER}-ios:{key}"), format!("{name}{IOS}"));
            laid.uses(&mut self.network, (&part.0, &part.1), io.ios / iops, figure);
        }
        if let Some((count, each)) = server.ports {
            let rate = count as f64 * each * data_share;
            let text = gpuio_base::units::human_decimal_rate(rate);
            let figure = format!("{count} ports, {text} of data ({source})");
            let part = (format!("{SERVER_PORTS}{key}:{what}"), format!("ports of {name}"));
            laid.uses(&mut self.network, (&part.0, &part.1), io.bytes / rate, figure);
        }
        if rate.is_none() {
            laid.missing.push(format!("{source} has no {what} rate of {name}"));
        }
        let access = server.latency_ns;
        laid.access(access.ok_or_else(|| format!("{source} has no access time of {name}")));
    }

    /// The network between hosts and servers, where there is a figure of it.
    fn between(&mut self, load: Load, laid: &mut Laid) {
        let Some((rate, source)) = self.figures.network() else { return };
        let text = gpuio_base::units::human_decimal_rate(rate);
        for (bytes, direction) in [(load.reads.bytes, "in"), (load.writes.bytes, "out")] {
            let key = format!("{NETWORK}{direction}");
            let figure = format!("{text} ({source})");
            laid.uses(&mut self.network, (&key, "network"), bytes / rate, figure);
        }
    }

    /// The machine's own port, by what was measured through it or else by its speed, and its
    /// card's path over PCIe.
    fn port(
        &mut self,
        (nic, facts): (&NicFacts, &InterfaceFacts),
        rate: Option<PortRate>,
        measured: Option<&PortFigures>,
        load: Load,
        laid: &mut Laid,
    ) -> Vec<Source> {
        let interface = &facts.name;
        if facts.state.as_deref() == Some("down") {
            laid.missing.push(format!("port {interface}, which leads there, is down"));
        }
        let both = [
            (load.reads.bytes, "in", measured.and_then(|one| one.read)),
            (load.writes.bytes, "out", measured.and_then(|one| one.write)),
        ];
        for (bytes, direction, own) in both.into_iter().filter(|(bytes, ..)| *bytes > 0.0) {
            let own = own.zip(measured).map(|(rate, one)| {
                (rate, format!("{} ({})", gpuio_base::units::human_decimal_rate(rate), one.source))
            });
            let by_speed = || rate.as_ref().map(|rate| (rate.bytes_per_s, rate.figure.clone()));
            let Some((rate, figure)) = own.or_else(by_speed) else {
                laid.missing.push(format!(
                    "the rate of port {interface} is not known: give it in [port {interface}] with \
                     --spec"
                ));
                continue;
            };
            let part = (format!("{PORT}{interface}:{direction}"), format!("port {interface}"));
            laid.uses(&mut self.network, (&part.0, &part.1), bytes / rate, figure);
        }
        if nic.pci.is_none() {
            laid.note(&format!("Links above the cards of {interface} are not counted."));
            return Vec::new();
        }
        vec![Source { pci: nic.pci.clone(), out: load.reads.bytes, into: load.writes.bytes }]
    }
}

fn port_rate(
    nic: &NicFacts,
    facts: &InterfaceFacts,
    transport: Transport,
    by_name: impl Fn() -> Option<(u64, String)>,
) -> Option<PortRate> {
    let ports = || nic.rdma.iter().flat_map(|rdma| &rdma.ports);
    let own = ports().find(|port| port.interface.as_deref() == Some(&facts.name));
    let port = own.or_else(|| ports().next());
    let carries = facts.carries.or_else(|| port.and_then(|port| port.carries));
    let known = facts.megabits.or_else(|| port.and_then(|port| port.megabits));
    let (megabits, source) = match known {
        Some(megabits) => (megabits, None),
        None => by_name().map(|(megabits, source)| (megabits, Some(source)))?,
    };
    let gigabits = megabits / 1000;
    let (bytes_per_s, what) =
        if carries == Some(LinkLayer::Infiniband) && transport == Transport::Rdma {
            (link::infiniband(megabits), format!("InfiniBand at {gigabits} Gb/s"))
        } else {
            let mtu = facts.mtu_bytes.unwrap_or(1500);
            let by = match transport {
                Transport::Tcp => "TCP",
                Transport::Rdma => "RoCE",
            };
            let rate = link::ethernet(megabits, mtu, transport);
            (rate, format!("{gigabits} Gb/s by {by} at MTU {mtu}"))
        };
    let text = gpuio_base::units::human_decimal_rate(bytes_per_s);
    Some(PortRate {
        bytes_per_s,
        data_share: bytes_per_s / link::megabits(megabits),
        figure: match source {
            Some(source) => format!("{what}, {text} of data ({source})"),
            None => format!("{what}, {text} of data"),
        },
    })
}
