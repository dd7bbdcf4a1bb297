//! Servers behind a network.

use gpuio_record::Towards;
use gpuio_record::facts::{InterfaceFacts, LinkLayer, MountedStorage, NicFacts};

use super::{Layer, Source};
use crate::expectation::{IOS, Laid};
use crate::link::{self, Transport};
use crate::{Load, ServerFigures, Stream};

impl Layer<'_> {
    pub(super) fn remote(
        &mut self,
        mounted: &MountedStorage,
        load: Load,
        stream: &Stream,
        laid: &mut Laid,
    ) -> Vec<Source> {
        let nfs = mounted.nfs.as_ref();
        let point = &mounted.mount.mount_point;
        let mut names: Vec<&str> = vec![&mounted.mount.source];
        names.extend(nfs.map(|nfs| nfs.server.as_str()));
        names.extend(nfs.and_then(|nfs| nfs.address.as_deref()));
        let figures = self.figures;
        match figures.server(&names) {
            Some(server) => {
                let called = nfs.map_or(mounted.mount.source.as_str(), |nfs| nfs.server.as_str());
                self.server(server, called, load, stream, laid);
            }
            None => laid.missing.push(format!(
                "what the server of {point} delivers is not known: tell it with --server"
            )),
        }
        let interface = match nfs.map(|nfs| &nfs.interface) {
            Some(interface) => interface.known(),
            None => None,
        };
        let Some(interface) = interface else {
            let why = nfs.and_then(|nfs| nfs.interface.why()).unwrap_or("its route is not told");
            laid.note(&format!("The network port to {point} is not counted: {why}."));
            return Vec::new();
        };
        let transport = nfs.and_then(|nfs| nfs.transport.as_deref()).unwrap_or("tcp");
        let rdma = transport.starts_with("rdma");
        self.port(interface, if rdma { Transport::Rdma } else { Transport::Tcp }, load, laid)
    }

    fn server(
        &mut self,
        server: &ServerFigures,
        called: &str,
        load: Load,
        stream: &Stream,
        laid: &mut Laid,
    ) {
        let name = match &server.name {
            Some(_) => format!("server {called}"),
            None => "the server".to_owned(),
        };
        let source = &server.source;
        let key = server.name.as_deref().unwrap_or("*");
        let reads = stream.towards == Towards::Read;
        let (rate, iops) =
            if reads { (server.read, server.read_iops) } else { (server.write, server.write_iops) };
        let (io, what) = if reads { (load.reads, "read") } else { (load.writes, "write") };
        if let Some(rate) = rate {
            let figure = format!("{} {what} ({source})", gpuio_units::human_decimal_rate(rate));
            laid.uses(
                &mut self.network,
                (&format!("server:{key}"), &name),
                io.bytes / rate,
                figure,
            );
        }
        if let Some(iops) = iops {
            let figure =
                format!("{} {what}s per second ({source})", gpuio_units::human_count(iops));
            let part = format!("{name}{IOS}");
            laid.uses(
                &mut self.network,
                (&format!("server-ios:{key}"), &part),
                io.ios / iops,
                figure,
            );
        }
        if let Some((count, each)) = server.ports {
            #[expect(clippy::cast_precision_loss, reason = "ports are few")]
            let rate = count as f64 * each;
            let text = gpuio_units::human_decimal_rate(rate);
            let figure = format!("{count} ports, {text} on the wire ({source})");
            let key = format!("server-ports:{key}:{what}");
            laid.uses(
                &mut self.network,
                (&key, &format!("ports of {name}")),
                io.bytes / rate,
                figure,
            );
        }
        if rate.is_none() {
            laid.missing.push(format!("{source} has no {what} rate of {name}"));
        }
        let access = server.latency_ns;
        laid.access(access.ok_or_else(|| format!("{source} has no access time of {name}")));
    }

    /// The machine's own port, and its card's way over PCIe.
    fn port(
        &mut self,
        interface: &str,
        transport: Transport,
        load: Load,
        laid: &mut Laid,
    ) -> Vec<Source> {
        let machine = self.machine;
        let found = machine.nics.iter().find_map(|nic| {
            let one = nic.interfaces.iter().find(|one| one.name == interface)?;
            Some((nic, one))
        });
        let Some((nic, facts)) = found else {
            laid.note(&format!("{interface} is not counted: nothing is known of it."));
            return Vec::new();
        };
        match rate(nic, facts, transport) {
            Some((rate, figure)) => {
                for (bytes, way) in [(load.reads.bytes, "in"), (load.writes.bytes, "out")] {
                    let key = format!("port:{interface}:{way}");
                    let name = format!("port {interface}");
                    laid.uses(&mut self.network, (&key, &name), bytes / rate, figure.clone());
                }
            }
            None => laid.note(&format!("Port {interface} is not counted: its rate is not known.")),
        }
        if nic.pci.is_none() {
            laid.note(&format!("Links above the cards of {interface} are not counted."));
            return Vec::new();
        }
        vec![Source { pci: nic.pci.clone(), out: load.reads.bytes, into: load.writes.bytes }]
    }
}

/// Data per second through a port, and that figure in words.
fn rate(nic: &NicFacts, facts: &InterfaceFacts, transport: Transport) -> Option<(f64, String)> {
    let ports = || nic.rdma.iter().flat_map(|rdma| &rdma.ports);
    let own = ports().find(|port| port.interface.as_deref() == Some(&facts.name));
    let port = own.or_else(|| ports().next());
    let infiniband = facts.carries == Some(LinkLayer::Infiniband)
        || facts.carries.is_none()
            && port.and_then(|port| port.carries) == Some(LinkLayer::Infiniband);
    let megabits = facts.megabits.or(port.and_then(|port| port.megabits))?;
    let gigabits = megabits / 1000;
    if infiniband && transport == Transport::Rdma {
        let rate = link::infiniband(megabits);
        let text = gpuio_units::human_decimal_rate(rate);
        return Some((rate, format!("InfiniBand at {gigabits} Gb/s, {text} of data")));
    }
    let mtu = facts.mtu_bytes.unwrap_or(1500);
    let rate = link::ethernet(megabits, mtu, transport);
    let text = gpuio_units::human_decimal_rate(rate);
    let by = match transport {
        Transport::Tcp => "TCP",
        Transport::Rdma => "RoCE",
    };
    Some((rate, format!("{gigabits} Gb/s, {text} of data by {by} at MTU {mtu}")))
}
