//! A PowerEdge R7525 as its vendor's report shows it (H18931.1): two GPUs, one card, NFS over RDMA.

use gpuio_capture::{Captured, add, kind_of};
use gpuio_machine::topo::{Affinity, Class, Evidence, Printed, Topology, format};
use gpuio_record::facts::Fact;
use gpuio_testkit::machines::{R7525, read};

const MATRIX: &str = include_str!("../../../../capture/tests/fixtures/r7525.topo-mp");
const CARDS: &str = include_str!("../../../../capture/tests/fixtures/r7525.ibdev2netdev");
const MOUNT: &str = include_str!("../../../../capture/tests/fixtures/r7525.mount");

/// Table 3: GPU, Mellanox card, NUMA node.
const TABLE_3: [(&str, &str, u32); 2] = [("GPU0", "mlx5_0", 1), ("GPU1", "mlx5_1", 1)];

fn captured(texts: &[&str]) -> Captured {
    let mut captured = Captured::default();
    for text in texts {
        add(kind_of(text).unwrap(), text, &mut captured).unwrap();
    }
    captured
}

fn topology(captured: &Captured) -> Topology {
    let matrix = &captured.matrices[0];
    let rows = matrix.rows.iter().zip(&matrix.cells);
    let cells = rows.flat_map(|(row, cells)| {
        let pairs = matrix.columns.iter().zip(cells);
        pairs.map(move |(column, cell)| Printed { row, column, cell })
    });
    Topology::of(&captured.machine, &cells.collect::<Vec<_>>())
}

fn row<'t>(topology: &'t Topology, gpu: &str) -> &'t Affinity {
    topology.affinity.iter().find(|row| row.gpu == gpu).unwrap()
}

/// The report gives each GPU one of two cards that are equally near; both rows hold both.
fn has_table_3(topology: &Topology) {
    for (gpu, card, node) in TABLE_3 {
        let row = row(topology, gpu);
        assert_eq!(row.node, Some(node), "{gpu}");
        let near: Vec<(&str, Class)> =
            row.nics.iter().map(|near| (near.name.as_str(), near.class)).collect();
        assert_eq!(near, [("mlx5_0", Class::Node), ("mlx5_1", Class::Node)]);
        assert!(near.iter().any(|(name, _)| *name == card), "{gpu} {card}");
    }
}

#[test]
fn table_3_comes_out_of_what_was_printed() {
    for texts in [[MATRIX, CARDS, MOUNT], [MOUNT, CARDS, MATRIX]] {
        let topology = topology(&captured(&texts));
        has_table_3(&topology);
        let gpus = (topology.find("GPU0").unwrap(), topology.find("GPU1").unwrap());
        let route = topology.route(gpus.0, gpus.1).unwrap();
        assert_eq!((&route.class, route.evidence), (&Fact::Known(Class::Node), Evidence::Printed));
        let cards = (topology.find("ens6f0").unwrap(), topology.find("mlx5_1").unwrap());
        assert_eq!(topology.route(cards.0, cards.1).unwrap().cell(), "PIX");
    }
}

#[test]
fn what_the_listing_leaves_open_is_said() {
    let captured = captured(&[MATRIX, CARDS, MOUNT]);
    let topology = topology(&captured);
    assert_eq!(topology.unplaced, ["GPU0", "GPU1", "mlx5_0", "mlx5_1"]);
    let row = row(&topology, "GPU0");
    assert_eq!((&row.pci, row.nics[0].switches), (&None, None));
    assert!(row.storage.is_empty(), "the mount's card is not known");
    let nfs = captured.machine.mounts[0].nfs.as_ref().unwrap();
    assert_eq!((nfs.transport.as_deref(), nfs.port), (Some("rdma"), Some(20049)));
    assert_eq!(nfs.read_bytes, Some(512 << 10));
    assert!(nfs.interface.why().is_some());
    let notes = topology.notes.join("\n");
    assert!(notes.contains("no PCI function is known: GPU0, GPU1, mlx5_0, mlx5_1"), "{notes}");
    assert!(notes.contains("the class that nvidia-smi printed"), "{notes}");
    let text = format::document(&topology).unbroken();
    assert!(text.contains("mlx5_0 mlx5_1 (NODE)"), "{text}");
    assert!(format::svg(&captured.machine, &topology).contains("position unknown"));
}

#[test]
fn the_server_from_its_files_has_the_printed_matrix() {
    let machine = read(R7525);
    let matrix = captured(&[MATRIX]).matrices.remove(0);
    let topology = Topology::of(&machine, &[]);
    for (row, cells) in matrix.rows.iter().zip(&matrix.cells) {
        for (column, cell) in matrix.columns.iter().zip(cells) {
            let indices = (topology.find(row).unwrap(), topology.find(column).unwrap());
            let ours = topology.route(indices.0, indices.1);
            let ours = ours.map_or("X".to_owned(), gpuio_machine::topo::Route::cell);
            assert_eq!((row, column, &ours), (row, column, cell));
        }
    }
    has_table_3(&topology);
    assert_eq!(row(&topology, "GPU1").cpus.as_ref().unwrap().len(), 64);
    // Table 4: the mount goes over mlx5_0's port.
    let storage = &row(&topology, "GPU0").storage;
    assert_eq!(storage[0].mount.as_deref(), Some("/mnt/f600_gdsio1"));
    assert_eq!((storage[0].near, storage[0].of), (1, 1));
    assert_eq!(machine.mounts[0].pci, ["0000:a1:00.0"]);
}
