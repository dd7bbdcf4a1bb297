//! Figures from the built-in table, files and flags; arrays; links; systems on paper as text.

use gpuio_machine::flow::link::{Transport, ethernet, infiniband, pcie, sas, sata};
use gpuio_machine::flow::paper::{System, document};
use gpuio_machine::flow::{Figures, Io, Level, Load, Pattern, ServerFigures};

fn close(found: f64, wanted: f64) {
    assert!((found / wanted - 1.0).abs() < 1e-3, "{found} for {wanted}");
}

#[test]
fn the_built_in_table_is_read_whole_and_every_model_has_a_source_of_its_own() {
    let mut figures = Figures::default();
    figures.add("a.ini", include_str!("../../../src/flow/families.ini")).unwrap();
    figures.add("a.ini", include_str!("../../../src/flow/drives.ini")).unwrap();
    assert_eq!(figures, Figures::built_in());
    assert!(figures.drives().len() >= 90, "{}", figures.drives().len());
    for drive in figures.drives() {
        assert!(!drive.source.contains("a.ini"), "{}", drive.matches);
        assert!(drive.read.is_some(), "{}", drive.matches);
    }
}

#[test]
fn models_fit_by_pattern_and_names_of_devices_go_first() {
    let mut figures = Figures::built_in();
    let read = |figures: &Figures, device, model| {
        figures.drive(device, Some(model)).and_then(|drive| drive.read)
    };
    assert_eq!(read(&figures, "nvme0n1", "Micron_9200_MTFDHAL3T8TCT"), Some(3.5e9));
    assert_eq!(read(&figures, "nvme0n1", "samsung mzwlj3t8hbls-00007"), Some(6.4e9));
    assert_eq!(read(&figures, "nvme0n1", "Micron_92"), None);
    // Sixteen characters of a SCSI model do not distinguish EVO from PRO.
    assert_eq!(read(&figures, "sdb", "Samsung SSD 850"), None);
    figures.add("mine", "[drive nvme0n1]\nread = 1GB/s\n").unwrap();
    assert_eq!(read(&figures, "nvme0n1", "Micron_9200_MTFDHAL3T8TCT"), Some(1e9));
    assert_eq!(read(&figures, "nvme1n1", "Micron_9200_MTFDHAL3T8TCT"), Some(3.5e9));
}

#[test]
fn families_follow_models_and_are_marked_as_estimates() {
    let mut figures = Figures::built_in();
    let drive = |figures: &Figures, model| {
        let found = figures.drive("nvme0n1", Some(model)).unwrap();
        (found.read, found.source.starts_with("estimate, "))
    };
    assert_eq!(drive(&figures, "SAMSUNG MZQL21T9HCJR-00A07"), (Some(6.8e9), false));
    assert_eq!(drive(&figures, "SAMSUNG MZQL215THBLA-00A07"), (Some(6.9e9), true));
    assert_eq!(drive(&figures, "Dell Ent NVMe CM7 E3.S MU 3.2TB"), (Some(14e9), true));
    let card = "Mellanox Technologies MT2910 Family [ConnectX-7]";
    assert_eq!(figures.nic(card).unwrap().megabits, 400_000);
    let lx = "Mellanox Technologies MT2894 Family [ConnectX-6 Lx]";
    assert_eq!(figures.nic(lx).unwrap().megabits, 50_000);
    assert!(figures.nic(card).unwrap().source.starts_with("estimate, "));
    assert_eq!(figures.nic("Intel Corporation Something"), None);
    figures.add("mine", "[nic *ConnectX-7*]\nmegabits = 200000\n").unwrap();
    assert_eq!(figures.nic(card).unwrap().megabits, 200_000);
}

#[test]
fn mistakes_in_a_file_have_line_and_column() {
    let error = |text: &str| {
        let error = Figures::default().add("f", text).unwrap_err();
        (error.line, error.column, error.what)
    };
    let (line, column, what) = error("# c\n[drive X]\nread = 2GBs\n");
    assert_eq!((line, column), (3, 9), "{what}");
    assert!(what.contains("3.5GB/s"), "{what}");
    assert_eq!(error("[drive X]\n  reed = 2GB/s\n").1, 3);
    assert_eq!(error("read = 1GB/s\n").0, 1);
    assert!(error("[drive X\n").2.contains(']'));
    assert!(error("[disk X]\n").2.contains("drive, server"));
    assert!(error("[drive X]\nread = 1GB/s\nread = 2GB/s\n").2.contains("line 2"));
    assert!(error("[drive X]\nread = 0GB/s\n").2.contains("nothing ever moves"));
    assert!(error("[drive]\n").2.contains("which drive"));
    assert!(error("[nic X]\n").2.contains("megabits="));
    assert!(error("[port eth0]\n").2.contains("read=, write= or both"));
    assert!(error("[memory]\n").2.contains("rate="));
    // Nothing of a file with a mistake counts.
    let mut figures = Figures::default();
    figures.add("f", "[drive A]\nread = 1GB/s\n[drive B]\nread = x\n").unwrap_err();
    assert_eq!(figures, Figures::default());
}

#[test]
fn a_server_in_words() {
    let server = ServerFigures::parse("name=filer,read=24GB/s,iops=800k,ports=2x100Gb").unwrap();
    assert_eq!(server.name.as_deref(), Some("filer"));
    assert_eq!((server.read, server.read_iops), (Some(24e9), Some(800e3)));
    assert_eq!(server.ports, Some((2, 12.5e9)));
    let error = ServerFigures::parse("read=24GB/s,ports=2y100Gb").unwrap_err();
    assert_eq!(error.column, 20, "{error}");
    assert!(ServerFigures::parse("fast").is_err());
}

#[test]
fn links_carry_what_their_specifications_say() {
    close(pcie(8_000, 16, 256).unwrap(), 15.753_846e9 * 256.0 / 280.0);
    close(pcie(64_000, 16, 512).unwrap(), 118e9 * 512.0 / 528.0);
    assert_eq!(pcie(0, 16, 256), None);
    close(sata(6_000), 600e6);
    close(sas(12_000), 1.2e9);
    close(sas(22_500), 2.4e9);
    close(ethernet(10_000, 1500, Transport::Tcp), 1.25e9 * 1448.0 / 1538.0);
    close(ethernet(100_000, 9000, Transport::Rdma), 12.5e9 * 4096.0 / 4178.0);
    // RoCE's payloads are powers of two: 1024 fits 1500, 2048 does not.
    close(ethernet(100_000, 1500, Transport::Rdma), 12.5e9 * 1024.0 / 1106.0);
    close(infiniband(200_000), 25e9 * 4096.0 / 4122.0);
}

#[test]
fn arrays_need_of_their_members_what_the_level_costs() {
    let io = |bytes: f64| Io { bytes, ios: bytes / 4096.0 };
    let write = Load { writes: io(1.0), ..Load::default() };
    let read = Load { reads: io(1.0), ..Load::default() };
    let of = |level: Level, load, n, pattern| level.member(load, n, Some(512 << 10), pattern);
    let random = Pattern::Random;
    close(of(Level::Raid0, read, 4, random).reads.bytes, 0.25);
    close(of(Level::Raid1, write, 2, random).writes.bytes, 1.0);
    close(of(Level::Raid1, read, 2, random).reads.bytes, 0.5);
    close(of(Level::Raid10, write, 4, random).writes.bytes, 0.5);
    // Small writes: two reads and two writes over five members, three and three over six.
    let five = of(Level::Raid5, write, 5, random);
    close(five.reads.ios * 4096.0, 2.0 / 5.0);
    close(five.writes.ios * 4096.0, 2.0 / 5.0);
    let six = of(Level::Raid6, write, 8, random);
    close(six.reads.bytes, 3.0 / 8.0);
    close(six.writes.bytes, 3.0 / 8.0);
    // The one left of three members is read in place of data and parity.
    close(of(Level::Raid5, write, 3, random).reads.bytes, 1.0 / 3.0);
    // Whole stripes: the parity is written besides.
    let whole = of(Level::Raid5, write, 5, Pattern::Sequential);
    close(whole.writes.bytes, 0.25);
    assert_eq!(whole.reads.bytes, 0.0);
    // A block of 1 MiB over chunks of 512 KiB is two I/Os; over two members one for each.
    let large = Load { reads: Io { bytes: 1.0, ios: 1.0 / f64::from(1 << 20) }, ..Load::default() };
    close(of(Level::Raid0, large, 2, random).reads.ios * f64::from(1 << 20), 1.0);
}

#[test]
fn a_cluster_on_paper_reads_well() {
    let described = include_str!("fixtures/seeds/powerscale.ini");
    let system = System::read("powerscale.ini", described, Figures::built_in()).unwrap();
    insta::assert_snapshot!(document(&system.answer()).unbroken());
}

/// The figure of a node is of reads or writes alone; a port carries both at once.
#[test]
fn reads_and_writes_divide_the_time_of_nodes_and_not_of_ports() {
    let of = |nodes: &str, bottleneck: &str| {
        let text =
            format!("[nodes]\ncount = 1\n{nodes}\n[job r]\nrw = read\n[job w]\nrw = write\n");
        let answer = System::read("paper", &text, Figures::built_in()).unwrap().answer();
        for job in &answer.jobs {
            let words = job.expected.bottleneck.as_deref().unwrap();
            assert!(words.ends_with(bottleneck), "{words}");
        }
        let rate = |nth: usize| answer.jobs[nth].expected.bytes_per_s.unwrap();
        (rate(0), rate(1))
    };
    // Each moves as much, in 2/3 and 1/3 of the time.
    let (reads, writes) = of("read = 10GB/s\nwrite = 20GB/s", ", shared by reads and writes");
    close(reads, 20e9 / 3.0);
    close(writes, 20e9 / 3.0);
    let ports = "read = 90GB/s\nwrite = 90GB/s\nports = 1x100Gb\ntransport = infiniband";
    let (reads, writes) = of(ports, ", each direction");
    close(reads, infiniband(100_000));
    close(writes, infiniband(100_000));
}

#[test]
fn the_tier_that_saturates_moves_with_the_nodes() {
    let described = "[clients]\ncount = 8\nports = 1x100Gb\ntransport = infiniband\n\
                     [switch spine]\noversubscription = 2:1\n\
                     [nodes]\ncount = 4\ncounts = 4, 5, 6, 40\nread = 10GB/s\n";
    let system = System::read("paper", described, Figures::built_in()).unwrap();
    let answer = system.answer();
    let found: Vec<(u64, &str)> = answer
        .scale
        .iter()
        .map(|one| (one.nodes, one.total.bottleneck.as_deref().unwrap()))
        .map(|(nodes, words)| (nodes, words.split(':').next().unwrap()))
        .collect();
    assert_eq!(found, [(4, "nodes"), (5, "spine"), (6, "spine"), (40, "spine")]);
    close(answer.total.bytes_per_s.unwrap(), 40e9);
    close(answer.scale[3].total.bytes_per_s.unwrap(), 8.0 * infiniband(100_000) / 2.0);
}

#[test]
fn the_files_in_the_documents_are_files() {
    let document = include_str!("../../../../../docs/expectation.md");
    let files: Vec<&str> =
        document.split("```ini\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(files.len(), 2);
    Figures::built_in().add("docs", files[0]).unwrap();
    let system = System::read("docs", files[1], Figures::built_in()).unwrap();
    let answer = system.answer();
    assert_eq!(answer.scale.len(), 12, "each number of clients with each of nodes");
    assert!(answer.total.bytes_per_s.is_some(), "{answer:#?}");
}

#[test]
fn mistakes_in_a_description_have_line_and_column() {
    let error = |text: &str| System::read("s", text, Figures::built_in()).unwrap_err();
    assert_eq!(error("").line, 1);
    assert!(error("[link a]\n").what.contains("pcie="));
    assert!(error("[link a]\npcie = 9.0 x16\n").what.contains("4.0 x16"));
    assert_eq!(error("[link a]\nrate = 1GB/s\n[link a]\nrate = 1GB/s\n").line, 3);
    let through = error("[link a]\nrate = 1GB/s\n[job j]\nthrough = a, b\n");
    assert!(through.what.contains("no section is called b") && through.line == 4);
    assert!(error("[drives d]\ndrive = x\ndrives = 2\nraid = raid6\n").what.contains("4 drives"));
    assert!(error("[nodes]\ncount = 1 per node\n").what.contains("others are counted"));
}

/// A connection has one transport and one size of packets from end to end.
#[test]
fn ports_of_nodes_are_as_the_clients_where_nothing_else_is_said() {
    let of = |nodes: &str| {
        let text = format!(
            "[clients]\ncount = 8\nports = 1x100Gb\nmtu = 9000\ntransport = rdma\n\
             [nodes]\ncount = 2\nports = 1x100Gb\nread = 50GB/s\n{nodes}"
        );
        let answer = System::read("x.ini", &text, Figures::built_in()).unwrap().answer();
        let tiers = &answer.jobs[0].tiers;
        tiers.iter().find(|tier| tier.name == "nodes: ports").unwrap().figure.clone()
    };
    assert!(of("").contains("RoCE at MTU 9000, as the clients"), "{}", of(""));
    assert!(of("mtu = 4200\n").contains("RoCE at MTU 4200"), "{}", of("mtu = 4200\n"));
    let own = of("transport = tcp\nmtu = 1500\n");
    assert!(own.ends_with("TCP at MTU 1500)"), "{own}");
}

#[test]
fn a_page_is_an_address_and_its_host_stands_in_the_source() {
    let mut figures = Figures::default();
    let text = "[drive A]\nread = 1GB/s\nsource = a review\npage = https://example.org/a/b\n";
    figures.add("f", text).unwrap();
    let drive = figures.drive("A", None).unwrap();
    assert_eq!(drive.source, "a review, example.org");
    assert_eq!(drive.page, "https://example.org/a/b");
    for wrong in ["example.org/a", "https:// a", "file:///etc/passwd"] {
        let error = Figures::default().add("f", &format!("[drive A]\npage = {wrong}\n"));
        assert_eq!(error.unwrap_err().line, 2, "{wrong}");
    }
}
