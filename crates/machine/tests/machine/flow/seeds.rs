//! Figures that documents print, beside the model's own: within 10 %, with the same bottleneck.
//!
//! Systems are in `fixtures/seeds`, each with its document; the guides' servers are the tables of
//! crate `testkit`. `UPDATE_DOCS=1` writes the table of docs/lab-book/expectation.md anew.

use std::sync::OnceLock;

use gpuio_machine::flow::paper::{Answer, System};
use gpuio_machine::flow::{By, End, Figures, Pattern, ServerFigures, Storage, Stream, of_machine};
use gpuio_record::facts::{ArrayFacts, BlockDevice, BlockKind, Machine};
use gpuio_record::{Expected, Towards};
use gpuio_testkit::docs::documented;
use gpuio_testkit::machines::{DGX_2, DGX_A100, read};

const GIB: f64 = (1_u64 << 30) as f64;

macro_rules! seed {
    ($name:literal) => {
        answer($name, include_str!(concat!("fixtures/seeds/", $name, ".ini")))
    };
}

/// A printed figure and ours.
struct Row {
    what: &'static str,
    /// Bytes or I/Os per second.
    printed: f64,
    /// How the document prints it.
    words: &'static str,
    expected: Expected,
    iops: bool,
    /// The beginning of the bottleneck's words.
    bottleneck: &'static str,
    /// The figure is a bound, since the document lacks a datum.
    bound: bool,
}

fn answer(name: &str, text: &str) -> Answer {
    System::read(name, text, Figures::built_in()).unwrap().answer()
}

/// The arrays of two drives that the guide makes, which the tables do not have.
fn with_array(mut machine: Machine, name: &str, members: [&str; 2]) -> Machine {
    let mut array: BlockDevice = machine
        .block
        .iter()
        .find(|one| one.facts.kind == BlockKind::Md && one.array.is_some())
        .unwrap()
        .clone();
    array.facts.name = name.to_owned();
    array.made_of = members.map(str::to_owned).to_vec();
    array.array = Some(ArrayFacts {
        level: Some("raid0".to_owned()),
        chunk_bytes: Some(512 << 10),
        ..ArrayFacts::default()
    });
    machine.block.push(array);
    machine
}

fn stream(device: &str, gpu: &str, towards: Towards) -> Stream {
    Stream {
        name: "job".to_owned(),
        storage: vec![Storage::Device(device.to_owned())],
        end: End::Gpu(gpu.to_owned()),
        by: By::Direct,
        towards,
        block_bytes: 1 << 20,
        pattern: Pattern::Sequential,
        in_flight: Some(8),
        requested_bytes_per_s: None,
    }
}

fn of(machine: &Machine, stream: Stream) -> Expected {
    let mut answer = of_machine(machine, &Figures::built_in(), &[stream]);
    answer.streams.remove(0).expected
}

fn dgx_2() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| with_array(read(DGX_2), "md23", ["nvme2n1", "nvme3n1"]))
}

fn dgx_a100() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| with_array(read(DGX_A100), "raid4", ["nvme8n1", "nvme9n1"]))
}

/// The GPU by the driver's number in the guide.
fn near_gpu() -> &'static str {
    "0000:39:00.0"
}

fn row(
    what: &'static str,
    printed: f64,
    words: &'static str,
    expected: Expected,
    bottleneck: &'static str,
) -> Row {
    Row { what, printed, words, expected, iops: false, bottleneck, bound: false }
}

/// A figure in I/Os per second.
fn ios(row: Row) -> Row {
    Row { iops: true, ..row }
}

fn first(answer: Answer) -> Expected {
    answer.jobs[0].expected.clone()
}

fn rows() -> Vec<Row> {
    let mut rows = basics();
    rows.extend(guides());
    rows
}

/// "Storage Performance Basics for Deep Learning".
fn basics() -> Vec<Row> {
    vec![
        row("one SATA SSD, reads of 1 MiB", 519e6, "519.0MB", first(seed!("single-ssd")), "sdb"),
        ios(row(
            "one SATA SSD, random reads of 4 KiB",
            98.3e3,
            "98.3K iops",
            first(seed!("single-ssd-random")),
            "sdb's I/Os",
        )),
        row(
            "five SSDs in an eSATA box at 6 Gb/s",
            600e6,
            "about 600MB/sec",
            first(seed!("esata-box")),
            "eSATA",
        ),
        ios(row(
            "the same, random reads of 4 KiB",
            140e3,
            "about 140k IOPS",
            first(seed!("esata-box-random")),
            "eSATA",
        )),
        row("the box at 3 Gb/s", 300e6, "about 300MB/sec", first(seed!("esata-box-3gb")), "eSATA"),
        ios(row(
            "the same, random reads of 4 KiB",
            70e3,
            "half of 140k IOPS",
            first(seed!("esata-box-3gb-random")),
            "eSATA",
        )),
        row("one 10 GbE port", 1.2e9, "about 1.2GB/sec", first(seed!("ten-gigabit")), "one port"),
        row("two 10 GbE ports", 2.4e9, "2.4GB/sec", first(seed!("ten-gigabit-twice")), "two ports"),
        ios(row(
            "one 10 GbE port, random reads of 4 KiB",
            300e3,
            "about 300k IOPS",
            first(seed!("ten-gigabit-small")),
            "one port",
        )),
    ]
}

/// The guide of GPUDirect Storage, and the report on PowerScale.
fn guides() -> Vec<Row> {
    let bound = |row: Row| Row { bound: true, ..row };
    let scale = seed!("powerscale").scale;
    let at = |nodes: u64| scale.iter().find(|one| one.nodes == nodes).unwrap().total.clone();
    vec![
        row(
            "DGX-2, two NVMe drives by the near switch",
            6.524658 * GIB,
            "6.524658 GiB/sec",
            of(dgx_2(), stream("md23", near_gpu(), Towards::Read)),
            "nvme2n1, nvme3n1",
        ),
        row(
            "the same by the drives' figure",
            6.8e9,
            "around 3.4GB/sec each",
            of(dgx_2(), stream("md23", near_gpu(), Towards::Read)),
            "nvme2n1, nvme3n1",
        ),
        row(
            "four NVMe drives, RAID 0, Gen3 x16",
            14e9,
            "14GB/sec",
            first(seed!("four-drives")),
            "RAID 0",
        ),
        row(
            "DGX A100, writes to /raid4",
            7.181430 * GIB,
            "7.181430 GiB/sec",
            of(dgx_a100(), stream("raid4", "0000:bd:00.0", Towards::Write)),
            "nvme8n1, nvme9n1",
        ),
        bound(row(
            "NFS server with two 100 Gb ports",
            24e9,
            "24GB/sec or so",
            first(seed!("nfs-ports")),
            "NFS server: ports",
        )),
        row(
            "PowerScale, seven nodes",
            7.0 * 8.2e9,
            "8.2 GB/s each",
            first(seed!("powerscale")),
            "F600",
        ),
        row("PowerScale, three nodes", 24e9, "over 24 GB/s", at(3), "F600"),
        row("PowerScale, 252 nodes", 2e12, "over 2 TB/s", at(252), "F600"),
    ]
}

impl Row {
    fn ours(&self) -> f64 {
        let expected = &self.expected;
        let rate = if self.iops { expected.iops } else { expected.bytes_per_s };
        rate.or(expected.at_most.filter(|_| self.bound)).unwrap_or_else(|| panic!("{expected:#?}"))
    }
}

#[test]
fn printed_figures_follow_within_10_per_cent_with_their_bottleneck() {
    for row in rows() {
        let ratio = row.ours() / row.printed;
        assert!((0.9..=1.1).contains(&ratio), "{}: {ratio} {:#?}", row.what, row.expected);
        let bottleneck = row.expected.bottleneck.as_deref().unwrap();
        assert!(bottleneck.starts_with(row.bottleneck), "{}: {bottleneck}", row.what);
        assert_eq!(row.bound, row.expected.unknown.is_some(), "{}", row.what);
    }
}

/// Clients x storage nodes: as many clients as nodes leave the nodes the bottleneck; fewer clients
/// are bound by their ports.
#[test]
fn a_table_of_clients_and_nodes_has_every_pair() {
    let text = include_str!("fixtures/seeds/powerscale.ini")
        .replace("counts = 3, 7, 14, 63, 126, 252", "counts = 3, 7, 252")
        .replace("count = 1 per node", "count = 1 per node\ncounts = 1, 7, 252");
    let answer = answer("clients", &text);
    let rate = |clients: u64, nodes: u64| {
        let one = |one: &&gpuio_machine::flow::paper::Scaled| {
            (one.clients, one.nodes) == (Some(clients), nodes)
        };
        let total = &answer.scale.iter().find(one).unwrap().total;
        (total.bytes_per_s.unwrap() / 1e9, total.bottleneck.clone().unwrap())
    };
    assert_eq!(answer.scale.len(), 9);
    for (nodes, expected) in [(3, 24.6), (7, 57.4), (252, 2066.4)] {
        let (rate, bottleneck) = rate(252, nodes);
        assert!((rate - expected).abs() < 0.01 && bottleneck.starts_with("F600"), "{bottleneck}");
    }
    let (alone, bottleneck) = rate(1, 7);
    assert!((12.0..12.5).contains(&alone) && bottleneck.starts_with("worker: ports"), "{alone}");
    let (seven, _) = rate(7, 252);
    assert!((seven / alone - 7.0).abs() < 1e-9, "{seven}");
    let table = gpuio_machine::flow::paper::document(&answer).unbroken();
    assert!(table.contains("clients  nodes   expected  bottleneck"), "{table}");
    assert!(table.contains("2.07 TB/s"), "{table}");
}

#[test]
fn eight_nfs_jobs_are_bounded_by_the_server_and_what_it_delivers_is_missing() {
    let bounded = seed!("nfs-ports").jobs.remove(0).expected;
    assert_eq!(bounded.bytes_per_s, None);
    assert!(bounded.unknown.unwrap().contains("what a unit of NFS server reads is not known"));
    assert!(12.763141 * GIB < bounded.at_most.unwrap());
    // With what was measured as the server's figure, the server and not a port saturates, and
    // each job has its eighth.
    let measured = seed!("nfs-measured");
    assert_eq!(measured.jobs.len(), 8);
    for job in &measured.jobs {
        let eighth = 12.763141 * GIB / 8.0;
        assert!((job.expected.bytes_per_s.unwrap() / eighth - 1.0).abs() < 0.001);
        assert!(job.expected.bottleneck.as_deref().unwrap().starts_with("NFS server: 1 ×"));
    }
}

#[test]
fn nfs_mounts_of_the_dgx_2_share_the_server_that_was_described() {
    let machine = dgx_2();
    let mounts = ["/mnt/nfs/ib9/data/0", "/mnt/nfs/ib8/data/0"];
    let streams: Vec<Stream> = mounts
        .iter()
        .map(|mount| Stream {
            storage: vec![Storage::Mount((*mount).to_owned())],
            end: End::Host,
            ..stream("", "", Towards::Read)
        })
        .collect();
    let mut figures = Figures::built_in();
    let unknown = of_machine(machine, &figures, &streams);
    let expected = &unknown.streams[0].expected;
    assert!(expected.unknown.as_deref().unwrap().contains("--server"), "{expected:#?}");
    figures.add_server(ServerFigures::parse("read=20GB/s,ports=2x100Gb").unwrap());
    // Both cards hang below one link of generation 3.
    let reported = of_machine(machine, &figures, &streams);
    assert!((reported.total.bytes_per_s.unwrap() - 14.4e9).abs() < 1e7, "{:#?}", reported.total);
    assert!(reported.total.bottleneck.unwrap().starts_with("link above 0000:d8:00.0"));
    figures.add_server(ServerFigures::parse("read=10GB/s,ports=2x100Gb").unwrap());
    let reported = of_machine(machine, &figures, &streams);
    assert!((reported.total.bytes_per_s.unwrap() - 10e9).abs() < 1e6, "{:#?}", reported.total);
    // Half of the server, and what the mount's own port allows without it.
    let because = &reported.streams[0].expected.because;
    let alone = because.iter().find(|line| line.starts_with("The network alone allows"));
    let alone = alone.unwrap_or_else(|| panic!("{because:#?}"));
    assert!(alone.contains("12.4 GB/s: ports of server: 2 ports"), "{alone}");
    assert!(
        reported.streams[0]
            .expected
            .bottleneck
            .as_deref()
            .unwrap()
            .starts_with("server: 10.0 GB/s")
    );
}

#[test]
fn a_gpu_on_another_switch_tree_has_a_bound_only() {
    let far = of(dgx_2(), stream("md23", "0000:e0:00.0", Towards::Read));
    assert_eq!(far.bytes_per_s, None);
    assert!(far.unknown.unwrap().contains("root complex"));
    // The guide measured 3.893747 GiB/s.
    assert!(far.at_most.unwrap() > 3.893747 * GIB);
}

#[test]
fn the_document_has_this_table() {
    let mut table =
        String::from("| Figure | Published | Computed | Computed, % of published | Bottleneck |\n");
    table.push_str("| --- | --- | --- | --- | --- |\n");
    for row in rows() {
        let ours = if row.iops {
            gpuio_base::units::human_count(row.ours())
        } else {
            gpuio_base::units::human_decimal_rate(row.ours())
        };
        let at_most = if row.bound { "at most " } else { "" };
        let percent = row.ours() / row.printed * 100.0;
        let bottleneck = row.expected.bottleneck.as_deref().unwrap().replace('|', "/");
        let (what, words) = (row.what, row.words);
        table.push_str(&format!(
            "| {what} | {words} | {at_most}{ours} | {percent:.0} % | {bottleneck} |\n"
        ));
    }
    documented("lab-book/expectation.md", "figures", &table);
}
