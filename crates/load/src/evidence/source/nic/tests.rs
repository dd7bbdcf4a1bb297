use gpuio_host::interface_io::InterfaceSample;
use gpuio_record::facts::MountFacts;
use gpuio_testkit::tree::Tree;

use super::*;
use crate::evidence::net_devices::devices_of;

const ROUTES: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
                      eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\n\
                      ib0\t0007000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n";

fn tree(files: &[(&str, &str)]) -> Tree {
    let tree = Tree::new();
    tree.file("proc/net/route", ROUTES);
    for (path, text) in files {
        tree.file(path, text);
    }
    tree
}

fn mount(options: &str) -> MountFacts {
    MountFacts {
        mount_point: "/mnt/a".into(),
        fs_type: "nfs4".into(),
        source: "server:/a".into(),
        fs_root: "/".into(),
        device: gpuio_record::facts::DeviceNumber { major: 0, minor: 50 },
        options: Vec::new(),
        super_options: options.split(',').map(str::to_owned).collect(),
    }
}

#[test]
fn the_server_s_address_leads_to_an_interface() {
    let tree = tree(&[]);
    let of = |options: &str| devices_of(&tree.root(), &mount(options));
    let interface = |name: &str| Ok(vec![NetDevice::Interface(name.into())]);
    assert_eq!(of("rw,vers=4.2,proto=tcp,addr=10.0.7.9"), interface("ib0"));
    assert_eq!(of("rw,proto=tcp,clientaddr=10.0.7.1,addr=192.0.2.1"), interface("eth0"));
    assert_eq!(of("rw,proto=tcp6,addr=fe80::1%eth3"), interface("eth3"));
    assert!(of("rw,proto=tcp6,addr=fd00::1").unwrap_err().contains("no route"));
    assert!(of("rw,addr=server").unwrap_err().contains("no address"));
    assert!(of("rw").unwrap_err().contains("does not name"));
}

#[test]
fn rdma_is_counted_at_the_port() {
    let tree = tree(&[
        ("sys/class/net/ib0/device/infiniband/mlx5_0/node_type", "1: CA\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "250\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "100\n"),
    ]);
    let root = tree.root();
    let devices = devices_of(&root, &mount("rw,proto=rdma,port=20049,addr=10.0.7.9")).unwrap();
    assert_eq!(names(&devices), "mlx5_0/1");
    let read = || {
        let ports = gpuio_host::rdma_io::samples(&root).unwrap();
        Counters { ports, ..Counters::default() }
    };
    let before = read();
    tree.file("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "350\n");
    let after = read();
    assert_eq!(moved(&before, &after, &devices, Flow::Read), Some(400));
    assert_eq!(moved(&before, &after, &devices, Flow::Write), Some(0));
    let reading = reading(&before, &devices, Flow::Read);
    assert_eq!(reading.as_deref(), Some("received 1000 (mlx5_0/1)"));
    let none = devices_of(&root, &mount("rw,proto=rdma,addr=192.0.2.1")).unwrap_err();
    assert!(none.contains("eth0"), "{none}");
}

#[test]
fn an_interface_that_went_away_or_wrapped_leaves_no_figure() {
    let devices = [NetDevice::Interface("eth0".into())];
    let sample = |received_bytes| {
        let name = "eth0".to_owned();
        let one = InterfaceSample { name, received_bytes, ..InterfaceSample::default() };
        Counters { interfaces: vec![one], ..Counters::default() }
    };
    let none = Counters::default();
    let of = |before: &Counters, after: &Counters| moved(before, after, &devices, Flow::Read);
    assert_eq!(of(&sample(10), &sample(30)), Some(20));
    assert_eq!(of(&sample(30), &sample(10)), None);
    assert_eq!(of(&sample(30), &none), None);
    assert_eq!(of(&none, &sample(30)), None);
}

#[test]
fn fewer_bytes_at_an_interface_prove_nothing() {
    assert_eq!(interpret(Some(Share::All)), Observed::Storage(Share::All));
    for share in [Some(Share::Part), Some(Share::Little), None] {
        assert_eq!(interpret(share), Observed::Nothing, "{share:?}");
    }
}
