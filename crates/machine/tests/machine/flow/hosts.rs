//! Several hosts together: Dell's cluster from captures of its clients, 3, 7 and 252 of them.

use gpuio_machine::flow::{
    By, End, Figures, HostPortions, HostsExpected, Pattern, Portion, ServerFigures, Storage,
    Stream, of_hosts, of_ranks, portions_of_streams, set_expected,
};
use gpuio_record::facts::Machine;
use gpuio_record::merge::{Merger, RankFacts, Started};
use gpuio_record::{Record, Towards};
use gpuio_testkit::machines::{R7525, read};

const GPU: &str = "0000:81:00.0";

/// The report's client with the mount of node `node`.
fn client(node: usize) -> Machine {
    let mut machine = read(R7525);
    let mount = machine.mounts.iter_mut().find(|mount| mount.nfs.is_some()).unwrap();
    let address = format!("10.100.10.{node}");
    mount.mount.source = format!("{address}:/ifs/benchmark");
    let nfs = mount.nfs.as_mut().unwrap();
    nfs.server.clone_from(&address);
    nfs.address = Some(address);
    machine
}

fn stream(name: &str) -> Stream {
    Stream {
        name: name.to_owned(),
        storage: vec![Storage::Mount("/mnt/f600_gdsio1".to_owned())],
        end: End::Gpu(GPU.to_owned()),
        by: By::Host,
        towards: Towards::Read,
        block_bytes: 512 << 10,
        pattern: Pattern::Sequential,
        in_flight: None,
        requested_bytes_per_s: None,
    }
}

fn figures(servers: &[&str]) -> Figures {
    let mut figures = Figures::built_in();
    servers.iter().for_each(|words| figures.add_server(ServerFigures::parse(words).unwrap()));
    figures
}

/// `count` clients with a node each.
fn cluster(count: usize, figures: &Figures) -> HostsExpected {
    let host = |node: usize| HostPortions {
        host: format!("worker{node:03}"),
        portions: portions_of_streams(&client(node), figures, &[stream("GPU0")]),
    };
    of_hosts(&(1..=count).map(host).collect::<Vec<_>>())
}

fn gigabytes(rate: Option<f64>) -> f64 {
    (rate.unwrap() / 1e8).round() / 10.0
}

/// The report: 8.2 GB/s from each node, 24.6 GB/s from three, 57.4 GB/s from seven, and "over 2
/// TB/s" from 252. Each node's address is a server by itself.
#[test]
fn as_many_nodes_as_clients_deliver_what_the_report_computes() {
    let figures = figures(&["name=10.100.10.*,read=8.2GB/s"]);
    for (count, expected) in [(3, 24.6), (7, 57.4), (252, 2066.4)] {
        let answer = cluster(count, &figures);
        assert!((gigabytes(answer.total.bytes_per_s) - expected).abs() < 0.11, "{answer:#?}");
        assert_eq!(answer.hosts.len(), count);
        assert!(
            answer.hosts.iter().all(|one| (gigabytes(one.total.bytes_per_s) - 8.2).abs() < 0.01)
        );
        let more = format!(" and {} more: 8.20 GB/s read (--server)", count - 3);
        let bottleneck = answer.total.bottleneck.unwrap();
        assert!(count == 3 || bottleneck.ends_with(&more), "{bottleneck}");
        assert!(bottleneck.starts_with("server 10.100.10.1, server 10.100.10."), "{bottleneck}");
    }
}

/// Without a name the figures are of all servers together: clients share them evenly.
#[test]
fn one_server_is_shared_by_all_hosts() {
    let answer = cluster(4, &figures(&["read=20GB/s"]));
    assert_eq!(gigabytes(answer.total.bytes_per_s), 20.0);
    assert!(answer.hosts.iter().all(|one| gigabytes(one.total.bytes_per_s) == 5.0));
    let bottleneck = answer.total.bottleneck.unwrap();
    assert_eq!(bottleneck, "server: 20.0 GB/s read (--server)");
}

/// Servers that could deliver more leave the ports of the hosts, or the network between.
#[test]
fn the_hosts_ports_or_the_network_bind_where_servers_do_not() {
    let fast = figures(&["read=1TB/s"]);
    let answer = cluster(3, &fast);
    assert!((gigabytes(answer.total.bytes_per_s) - 3.0 * 12.2).abs() < 0.5, "{answer:#?}");
    let bottleneck = answer.total.bottleneck.unwrap();
    assert!(bottleneck.starts_with("port ens6f0 on 3 hosts: 100 Gb/s by RoCE"), "{bottleneck}");
    let mut narrow = fast;
    narrow.add("net.ini", "[network]\nrate = 15GB/s\nsource = one uplink\n").unwrap();
    let answer = cluster(3, &narrow);
    assert_eq!(gigabytes(answer.total.bytes_per_s), 15.0);
    assert_eq!(answer.total.bottleneck.as_deref(), Some("network: 15.0 GB/s (one uplink)"));
}

#[test]
fn without_the_servers_figure_ports_bound_the_sum() {
    let answer = cluster(3, &Figures::built_in());
    assert_eq!(answer.total.bytes_per_s, None);
    assert!((gigabytes(answer.total.at_most) - 36.6).abs() < 0.5, "{answer:#?}");
    assert!(answer.total.unknown.unwrap().contains("what server 10.100.10.1 delivers"));
}

/// Portions survive the way through a message; ranks of one host share its port.
#[test]
fn ranks_of_a_host_share_its_port_and_jobs_are_summed() {
    let figures = figures(&["read=1TB/s"]);
    let portions = portions_of_streams(&client(1), &figures, &[stream("job")]);
    let text = serde_json::to_string(&portions).unwrap();
    let portions: Vec<Portion> = serde_json::from_str(&text).unwrap();
    assert!(text.len() < 8 << 10, "{} bytes", text.len());
    let rank = |host: &str| (host.to_owned(), portions.clone());
    let answer = of_ranks(&[rank("a"), rank("b"), rank("a")]);
    let rates: Vec<(&str, f64)> = answer
        .hosts
        .iter()
        .map(|one| (one.host.as_str(), gigabytes(one.expected.bytes_per_s)))
        .collect();
    assert_eq!(rates.len(), 2);
    assert_eq!(rates[0], ("a", rates[1].1), "two ranks of a have one port, as b's one");
    assert_eq!(answer.jobs.len(), 1);
    let job = &answer.jobs[0];
    assert_eq!((job.job.as_str(), job.direction), ("job", Towards::Read));
    assert!((gigabytes(job.expected.bytes_per_s) - 2.0 * rates[0].1).abs() < 0.11);
    assert!(job.expected.iops.is_some());
}

/// A run on 252 clients with a rank each, on paper: the records are merged, and what was measured
/// is compared with the expectation of all, and on each host.
#[test]
fn the_merged_record_of_252_ranks_has_the_reports_sum() {
    const NODES: usize = 252;
    let figures = figures(&["name=10.100.10.*,read=8.2GB/s"]);
    let name = |node: usize| format!("worker{node:03}");
    let one = include_str!("../../../../record/tests/record/merge/one_rank.json");
    let record = |megabytes: u32| {
        let mut record: Record = serde_json::from_str(one).unwrap();
        let job = &mut record.jobs[0];
        (job.read.bytes_per_s, job.read.ios) = (1e6 * f64::from(megabytes), 1000);
        job.read.bytes = 1_000_000 * u64::from(megabytes);
        job.workers.iter_mut().for_each(|worker| worker.done_ns = 1_000_000_000);
        record
    };
    let facts = (1..=NODES).map(|node| RankFacts { host: name(node), ..RankFacts::default() });
    // One client reaches half.
    let rate = |node: usize| if node == 7 { 4100 } else { 7790 };
    let mut merger = Merger::new(record(rate(1)), facts.collect());
    (2..=NODES).for_each(|node| merger.add(u32::try_from(node - 1).unwrap(), &record(rate(node))));
    let mut merged = merger.finish(Started::default(), Vec::new(), None);
    assert_eq!(merged.expected, [], "what single ranks expect can't be added");

    let ranks: Vec<(String, Vec<Portion>)> = (1..=NODES)
        .map(|node| (name(node), portions_of_streams(&client(node), &figures, &[stream("job")])))
        .collect();
    set_expected(&mut merged, &ranks);
    let total = &merged.expected[0];
    assert_eq!(gigabytes(total.expected.bytes_per_s), 2066.4);
    let measured = merged.jobs[0].read.bytes_per_s;
    let percent = measured / 2066.4e9 * 100.0;
    assert!((total.percent.unwrap() - percent).abs() < 0.1, "{:?} {percent}", total.percent);
    assert!((94.0..96.0).contains(&percent), "{percent}");
    let bottleneck = total.expected.bottleneck.as_deref().unwrap();
    assert!(bottleneck.ends_with("and 249 more: 8.20 GB/s read (--server)"), "{bottleneck}");
    let hosts = merged.ranks.unwrap().hosts;
    let of = |host: usize| hosts[host].expected[0].percent.unwrap();
    assert!((of(0) - 95.0).abs() < 0.01 && (of(6) - 50.0).abs() < 0.01, "{} {}", of(0), of(6));
}
