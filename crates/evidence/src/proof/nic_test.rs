use super::*;

const ROUTES: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
                      eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\n\
                      ib0\t0007000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n";

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        tree.put("proc/net/route", ROUTES);
        files.iter().for_each(|(path, text)| tree.put(path, text));
        tree
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }
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
    let tree = Tree::new(&[]);
    let of = |options: &str| behind(&tree.root(), &mount(options));
    let interface = |name: &str| Ok(vec![Door::Interface(name.into())]);
    assert_eq!(of("rw,vers=4.2,proto=tcp,addr=10.0.7.9"), interface("ib0"));
    assert_eq!(of("rw,proto=tcp,clientaddr=10.0.7.1,addr=192.0.2.1"), interface("eth0"));
    assert_eq!(of("rw,proto=tcp6,addr=fe80::1%eth3"), interface("eth3"));
    assert!(of("rw,proto=tcp6,addr=fd00::1").unwrap_err().contains("no route"));
    assert!(of("rw,addr=server").unwrap_err().contains("no address"));
    assert!(of("rw").unwrap_err().contains("does not name"));
}

#[test]
fn rdma_is_counted_at_the_port() {
    let tree = Tree::new(&[
        ("sys/class/net/ib0/device/infiniband/mlx5_0/node_type", "1: CA\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "250\n"),
        ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "100\n"),
    ]);
    let root = tree.root();
    let doors = behind(&root, &mount("rw,proto=rdma,port=20049,addr=10.0.7.9")).unwrap();
    assert_eq!(names(&doors), "mlx5_0/1");
    let before = read(&root, doors.iter());
    tree.put("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "350\n");
    let after = read(&root, doors.iter());
    let nic = Nic { doors: Vec::new(), before, after };
    assert_eq!(nic.moved(&doors, Flow::Read), Some(400));
    assert_eq!(nic.moved(&doors, Flow::Write), Some(0));
    let reading = Nic::reading(&nic.before, &doors, Flow::Read);
    assert_eq!(reading.as_deref(), Some("received 1000 (mlx5_0/1)"));
    let none = behind(&root, &mount("rw,proto=rdma,addr=192.0.2.1")).unwrap_err();
    assert!(none.contains("eth0"), "{none}");
}

#[test]
fn an_interface_that_went_away_or_wrapped_leaves_no_figure() {
    let sample = |received| Some(NetSample { received, sent: 0 });
    let doors = [Door::Interface("eth0".into())];
    let of = |before: Option<NetSample>, after: Option<NetSample>| {
        let samples = |sample| Samples::from([("eth0".to_owned(), sample)]);
        let nic = Nic { doors: Vec::new(), before: samples(before), after: samples(after) };
        nic.moved(&doors, Flow::Read)
    };
    assert_eq!(of(sample(10), sample(30)), Some(20));
    assert_eq!(of(sample(30), sample(10)), None);
    assert_eq!(of(sample(30), None), None);
    assert_eq!(of(None, sample(30)), None);
}

#[test]
fn fewer_bytes_at_an_interface_prove_nothing() {
    assert_eq!(interpret(Some(Share::All)), Observed::Storage(Share::All));
    for share in [Some(Share::Part), Some(Share::Little), None] {
        assert_eq!(interpret(share), Observed::Nothing, "{share:?}");
    }
}
