//! Any machine: distances are symmetric, and no way round is nearer than the straight one.

use gpuio_machine::topo::{Class, Route, Topology};
use gpuio_record::facts::{Fact, GpuFacts, Machine, NumaNode, PciFacts, PciPort};
use proptest::prelude::*;
use proptest::sample::Index;

/// Where a new port or device hangs.
#[derive(Debug, Clone)]
struct Grow {
    switch: bool,
    under: Index,
}

#[derive(Debug, Clone)]
struct Plan {
    /// NUMA nodes of host bridges.
    bridges: Vec<u32>,
    grow: Vec<Grow>,
    /// Whether ports' kinds are known.
    kinds: bool,
}

fn plans() -> impl Strategy<Value = Plan> {
    let grow = (any::<bool>(), any::<Index>()).prop_map(|(switch, under)| Grow { switch, under });
    (prop::collection::vec(0u32..3, 1..4), prop::collection::vec(grow, 1..40), any::<bool>())
        .prop_map(|(bridges, grow, kinds)| Plan { bridges, grow, kinds })
}

struct Builder {
    machine: Machine,
    kinds: bool,
    bus: u8,
    /// Where things can hang: the parent, its bus, the host bridge, the next device number.
    places: Vec<(Option<String>, u8, usize, u8)>,
}

impl Builder {
    fn add(&mut self, place: usize, port: PciPort, plan: &Plan) -> (String, usize) {
        let (parent, bus, bridge, device) = &mut self.places[place];
        let address = format!("0000:{bus:02x}:{device:02x}.0");
        *device += 1;
        let leads = !matches!(port, PciPort::Endpoint);
        self.bus += u8::from(leads);
        let facts = PciFacts {
            address: address.clone(),
            parent: parent.clone(),
            host_bridge: Some(format!("0000:b{bridge}")),
            node: Some(plan.bridges[*bridge]),
            class: Some(if leads { 0x06_0400 } else { 0x03_0200 }),
            secondary_bus: leads.then_some(self.bus),
            port: if self.kinds { Fact::Known(port) } else { Fact::unknown("not reported") },
            ..PciFacts::default()
        };
        let bridge = *bridge;
        self.machine.pci.push(facts);
        (address, bridge)
    }

    /// A port below a place: the new place.
    fn port(&mut self, place: usize, port: PciPort, plan: &Plan) -> usize {
        let (address, bridge) = self.add(place, port, plan);
        self.places.push((Some(address), self.bus, bridge, 0));
        self.places.len() - 1
    }
}

fn machine(plan: &Plan) -> Machine {
    let mut machine = Machine::default();
    machine.host.numa.nodes = (0..3).map(|node| NumaNode { node, ..NumaNode::default() }).collect();
    let mut builder = Builder { machine, kinds: plan.kinds, bus: 0x80, places: Vec::new() };
    // Buses of host bridges lie below those of ports.
    for (bridge, bus) in (0..plan.bridges.len()).zip(0u8..) {
        builder.places.push((None, bus, bridge, 0));
    }
    // Where a single device or switch may hang: free ports of roots and switches.
    let mut free: Vec<usize> = Vec::new();
    for (step, grow) in plan.grow.iter().enumerate() {
        if step % 3 == 0 || free.is_empty() {
            let root = grow.under.index(plan.bridges.len());
            free.push(builder.port(root, PciPort::RootPort, plan));
        }
        let port = free.swap_remove(grow.under.index(free.len()));
        if grow.switch && builder.bus < 0xf0 {
            let up = builder.port(port, PciPort::SwitchUpstream, plan);
            for _ in 0..3 {
                free.push(builder.port(up, PciPort::SwitchDownstream, plan));
            }
        } else {
            let (address, _) = builder.add(port, PciPort::Endpoint, plan);
            builder.machine.gpus.push(GpuFacts { pci: Some(address), ..GpuFacts::default() });
        }
        if builder.bus > 0xf0 {
            break;
        }
    }
    builder.machine
}

fn class(topology: &Topology, a: usize, b: usize) -> Class {
    let known = |route: &Route| *route.class.known().expect("everything is known");
    topology.route(a, b).map_or(Class::X, known)
}

proptest! {
    #[test]
    fn distances_are_symmetric_and_no_way_round_is_nearer(plan in plans()) {
        let machine = machine(&plan);
        let topology = Topology::of(&machine, &[]);
        let count = topology.devices.len();
        let mut turned = machine.clone();
        turned.gpus.reverse();
        let other = Topology::of(&turned, &[]);
        for a in 0..count {
            for b in 0..count {
                prop_assert_eq!(class(&topology, a, b), class(&topology, b, a));
                // The same pair, asked from the other side.
                let (x, y) = (count - 1 - a, count - 1 - b);
                prop_assert_eq!(class(&topology, a, b), class(&other, x, y));
                if let (Some(one), Some(two)) = (topology.route(a, b), other.route(x, y)) {
                    prop_assert_eq!(one.bridges, two.bridges);
                    prop_assert_eq!(&one.shared_above, &two.shared_above);
                }
                for c in 0..count {
                    let round = class(&topology, a, b).max(class(&topology, b, c));
                    prop_assert!(class(&topology, a, c) <= round, "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn kinds_that_are_not_reported_are_found(plan in plans()) {
        let reported = machine(&Plan { kinds: true, ..plan.clone() });
        let silent = machine(&Plan { kinds: false, ..plan });
        let (reported, silent) = (Topology::of(&reported, &[]), Topology::of(&silent, &[]));
        prop_assert_eq!(reported.routes, silent.routes);
        prop_assert_eq!(reported.tree, silent.tree);
    }

    #[test]
    fn a_torn_machine_claims_nothing_that_is_wrong(plan in plans(), lost in any::<Index>()) {
        let mut machine = machine(&plan);
        let whole = Topology::of(&machine, &[]);
        machine.pci.remove(lost.index(machine.pci.len()));
        let torn = Topology::of(&machine, &[]);
        for (torn, whole) in torn.routes.iter().zip(&whole.routes) {
            if let (Some(torn), Some(whole)) = (torn.class.known(), whole.class.known()) {
                prop_assert_eq!(torn, whole);
            }
        }
    }
}
