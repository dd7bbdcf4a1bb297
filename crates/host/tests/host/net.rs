//! Interfaces, ports and routes, on trees and tables as Linux 6.x has them.

use std::net::IpAddr;

use gpuio_host::net::{self, NetSample, Port};
use gpuio_host::rdma_io::known_units;
use gpuio_testkit::tree::Tree;
use proptest::prelude::*;

const ROUTES: &str = include_str!("../fixtures/route");
const ROUTES6: &str = include_str!("../fixtures/ipv6_route");
const FIB: &str = include_str!("../fixtures/fib_trie");

fn machine() -> Tree {
    let tree = Tree::new();
    tree.file("proc/net/route", ROUTES)
        .file("proc/net/ipv6_route", ROUTES6)
        .file("proc/net/fib_trie", FIB);
    tree
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_longest_prefix_leads() {
    let tree = machine();
    let to = |text: &str| net::interface_to(&tree.root(), address(text)).unwrap();
    let is = |text: &str, name: &str| assert_eq!(to(text).as_deref(), Some(name), "{text}");
    is("198.51.100.9", "eno1");
    is("10.20.7.5", "bond0");
    is("10.20.200.5", "ib0");
    is("10.20.0.9", "lo");
    is("127.0.0.1", "lo");
    is("::ffff:10.20.7.5", "bond0");
    is("fd00:20::7", "bond0");
    is("fd00:20::9", "lo");
    is("2001:db8::1", "eno1");
    is("192.0.2.8", "eno2");
}

#[test]
fn no_route_is_no_interface() {
    let tree = Tree::new();
    let to = |text: &str| net::interface_to(&tree.root(), address(text)).unwrap();
    assert_eq!(to("10.0.0.1"), None, "no tables");
    let only: String = ROUTES.lines().take(1).map(|line| format!("{line}\n")).collect();
    tree.file("proc/net/route", only);
    assert_eq!(to("10.0.0.1"), None, "a heading only");
}

#[test]
fn a_broken_table_is_reported_by_its_line() {
    let error = net::parse_routes("Iface\neth0 zz 0 0001 0 0 0 0\n").unwrap_err();
    assert_eq!(error.line, 2);
    assert_eq!(net::parse_routes("Iface\neth0 0\n").unwrap_err().line, 2);
    assert_eq!(net::parse_ipv6_routes("fd00 40\n").unwrap_err().line, 1);
}

fn card(tree: &Tree, interface: &str, device: &str, nth: u64) {
    let at = format!("sys/class/net/{interface}");
    tree.file(&format!("{at}/dev_port"), format!("{nth}\n"))
        .file(&format!("{at}/device/infiniband/{device}/node_type"), "1: CA\n");
}

fn port(tree: &Tree, device: &str, port: u64, units: u64) {
    let at = format!("sys/class/infiniband/{device}/ports/{port}/counters");
    tree.file(&format!("{at}/port_rcv_data"), format!("{units}\n"))
        .file(&format!("{at}/port_xmit_data"), format!("{}\n", units + 1));
}

#[test]
fn an_interface_has_the_ports_of_its_card() {
    let tree = Tree::new();
    card(&tree, "ib0", "mlx5_0", 0);
    port(&tree, "mlx5_0", 1, 500);
    let ports = net::rdma_ports(&tree.root(), "ib0").unwrap();
    assert_eq!(ports, [Port { device: "mlx5_0".into(), port: 1 }]);
}

#[test]
fn a_bond_has_the_ports_of_what_is_below_it() {
    let tree = Tree::new();
    card(&tree, "eno1", "mlx4_0", 0);
    card(&tree, "eno2", "mlx4_0", 1);
    port(&tree, "mlx4_0", 1, 5);
    port(&tree, "mlx4_0", 2, 6);
    tree.file("sys/class/net/bond0/lower_eno1/x", "")
        .file("sys/class/net/bond0/lower_eno2/x", "")
        .file("sys/class/net/bond0.7/lower_bond0/x", "");
    let ports = net::rdma_ports(&tree.root(), "bond0.7").unwrap();
    let of = |port| Port { device: "mlx4_0".into(), port };
    assert_eq!(ports, [of(1), of(2)]);
    assert_eq!(net::rdma_ports(&tree.root(), "lo").unwrap(), []);
}

#[test]
fn a_counter_at_its_end_or_that_went_back_is_no_figure() {
    let most = u64::from(u32::MAX);
    assert_eq!(known_units(Some(most)), None);
    assert_eq!(known_units(Some(most + 1)), Some(most + 1), "one of 64 bits");
    let sample = |received, sent| NetSample { received, sent };
    assert_eq!(sample(10, 20).delta(&sample(15, 20)), Some(sample(5, 0)));
    let wrapped = sample(u64::from(u32::MAX) - 5, 20).delta(&sample(5, 20));
    assert_eq!(wrapped, None, "once or more often, nobody knows");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_parser_panics(text in "[a-z0-9A-F \t\n]{0,300}") {
        let _ = net::parse_routes(&text);
        let _ = net::parse_ipv6_routes(&text);
    }

    /// A route that leads somewhere shares its leading bits.
    #[test]
    fn whatever_leads_shares_the_prefix(bits in any::<u32>()) {
        let routes = net::parse_routes(ROUTES).unwrap();
        let to = IpAddr::V4(bits.into());
        let found = net::best(&routes, to).expect("there is a default route");
        let IpAddr::V4(net) = found.to else { panic!("{found:?}") };
        let mask = u32::MAX.checked_shl(32 - found.prefix).unwrap_or(0);
        prop_assert_eq!(net.to_bits() & mask, bits & mask);
    }
}
