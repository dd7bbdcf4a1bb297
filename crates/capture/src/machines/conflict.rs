//! Whether two texts are of one machine: by the devices that both show.

use std::collections::BTreeMap;

use gpuio_record::facts::{BlockDevice, GpuFacts, PciFacts};

use crate::{Captured, Matrix, gdscheck};

/// Devices that both texts show, and how many of them are not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Compared {
    pub(super) same: usize,
    differing: usize,
}

impl Compared {
    /// Whether they are of different machines: one thing alone may have been changed between two
    /// texts, or be misprinted.
    pub(super) fn is_another(self) -> bool {
        self.differing > 1 && self.differing * 2 > self.same || self.differing > 0 && self.same == 0
    }

    fn note(&mut self, same: bool) {
        if same {
            self.same += 1;
        } else {
            self.differing += 1;
        }
    }
}

pub(super) fn compare(a: &Captured, b: &Captured) -> Compared {
    let mut compared = Compared::default();
    gpus(&a.machine.gpus, &b.machine.gpus, &mut compared);
    if have_other_gpus(a, b) {
        a.machine.gpus.iter().for_each(|_| compared.note(false));
    }
    for (one, other) in [(a, b), (b, a)] {
        let check = one.machine.gdscheck.as_ref();
        if check.is_some_and(|check| gdscheck::other_models(check, &other.machine).is_some()) {
            compared.note(false);
        }
    }
    let checks = a.machine.gdscheck.as_ref().zip(b.machine.gdscheck.as_ref());
    let cpus = a.machine.host.cpu.model.as_ref().zip(b.machine.host.cpu.model.as_ref());
    if checks.is_some_and(|(a, b)| gdscheck::is_of_another(a, b))
        || cpus.is_some_and(|(a, b)| a != b)
    {
        compared.note(false);
    }
    functions(&a.machine.pci, &b.machine.pci, &mut compared);
    drives(&a.machine.block, &b.machine.block, &mut compared);
    cards(a, b, &mut compared);
    for one in &a.matrices {
        b.matrices.iter().for_each(|other| cells(one, other, &mut compared));
    }
    compared
}

/// Whether both show a GPU of one UUID, which no other GPU has.
pub(super) fn share_a_gpu(a: &Captured, b: &Captured) -> bool {
    let whole = |uuid: &&String| uuid.len() >= "GPU-00000000-0000-0000-0000-000000000000".len();
    let known: Vec<&String> =
        a.machine.gpus.iter().filter_map(|gpu| gpu.uuid.known()).filter(whole).collect();
    let mut others = b.machine.gpus.iter().filter_map(|gpu| gpu.uuid.known());
    others.any(|uuid| known.contains(&uuid))
}

fn gpus(a: &[GpuFacts], b: &[GpuFacts], compared: &mut Compared) {
    let by_number: BTreeMap<u32, &GpuFacts> =
        a.iter().filter_map(|gpu| Some((*gpu.index.known()?, gpu))).collect();
    for gpu in b {
        let Some(ours) = gpu.index.known().and_then(|number| by_number.get(number)) else {
            continue;
        };
        if let Some((one, other)) = ours.pci.as_ref().zip(gpu.pci.as_ref()) {
            compared.note(one == other);
        } else if let Some((one, other)) = ours.uuid.known().zip(gpu.uuid.known()) {
            compared.note(one == other);
        } else if let Some((one, other)) = ours.name.known().zip(gpu.name.known()) {
            // Equal GPUs are in many machines, so equal names show nothing.
            if one != other && !one.ends_with(other.as_str()) && !other.ends_with(one.as_str()) {
                compared.note(false);
            }
        }
    }
}

/// Whether one of two texts numbers all GPUs of its machine, and has none of the other's.
pub(super) fn have_other_gpus(a: &Captured, b: &Captured) -> bool {
    let (a, b) = (&a.machine.gpus, &b.machine.gpus);
    are_apart(a, b) || are_apart(b, a)
}

fn are_apart(a: &[GpuFacts], b: &[GpuFacts]) -> bool {
    let addresses =
        |gpus: &[GpuFacts]| gpus.iter().filter_map(|gpu| gpu.pci.clone()).collect::<Vec<_>>();
    let (ours, others) = (addresses(a), addresses(b));
    let numbered = a.iter().filter(|gpu| gpu.pci.is_some() && gpu.index.known().is_some()).count();
    // One GPU may be asked for alone, and one may be lost to the driver.
    numbered > 1
        && numbered == a.len()
        && others.len() > 1
        && !others.iter().any(|one| ours.contains(one))
}

fn functions(a: &[PciFacts], b: &[PciFacts], compared: &mut Compared) {
    let known: BTreeMap<&str, &PciFacts> =
        a.iter().map(|one| (one.address.as_str(), one)).collect();
    for one in b {
        let Some(ours) = known.get(one.address.as_str()) else { continue };
        let ids = |one: &PciFacts| one.vendor.zip(one.device);
        let classes = ours.class.zip(one.class).map(|(a, b)| a >> 16 == b >> 16);
        let vendors = ours.vendor.zip(one.vendor).map(|(a, b)| a == b);
        let same = match ids(ours).zip(ids(one)) {
            Some((a, b)) => Some(a == b),
            None => match (classes, vendors) {
                (None, None) => None,
                (class, vendor) => Some(class != Some(false) && vendor != Some(false)),
            },
        };
        same.into_iter().for_each(|same| compared.note(same));
    }
}

fn drives(a: &[BlockDevice], b: &[BlockDevice], compared: &mut Compared) {
    let known: BTreeMap<&str, &BlockDevice> =
        a.iter().map(|one| (one.facts.name.as_str(), one)).collect();
    for one in b {
        let Some(ours) = known.get(one.facts.name.as_str()) else { continue };
        if let Some((a, b)) = ours.facts.pci_address.as_ref().zip(one.facts.pci_address.as_ref()) {
            compared.note(a == b);
        }
        if let Some((a, b)) = ours.facts.model.as_ref().zip(one.facts.model.as_ref()) {
            // Tools cut and join names of models.
            let bare = |text: &str| text.replace([' ', '_'], "").to_ascii_lowercase();
            let (a, b) = (bare(a), bare(b));
            compared.note(a.contains(&b) || b.contains(&a));
        }
    }
}

fn cards(a: &Captured, b: &Captured, compared: &mut Compared) {
    let names = |captured: &'_ Captured| -> BTreeMap<String, String> {
        let cards = captured.machine.nics.iter().filter_map(|nic| Some((nic, nic.pci.clone()?)));
        cards
            .flat_map(|(nic, pci)| {
                let rdma = nic.rdma.iter().map(|one| one.name.clone());
                let interfaces = nic.interfaces.iter().map(|one| one.name.clone());
                rdma.chain(interfaces).map(move |name| (name, pci.clone()))
            })
            .collect()
    };
    let known = names(a);
    for (name, pci) in names(b) {
        if let Some(ours) = known.get(&name) {
            compared.note(*ours == pci);
        }
    }
}

/// Cells of two matrices that both hold a class of PCIe.
fn cells(a: &Matrix, b: &Matrix, compared: &mut Compared) {
    let all = |matrix: &Matrix| -> BTreeMap<(String, String), String> {
        let rows = matrix.rows.iter().zip(&matrix.cells);
        rows.flat_map(|(row, cells)| {
            let cells = matrix.columns.iter().zip(cells);
            let classes = cells
                .filter(|(_, cell)| ["PIX", "PXB", "PHB", "NODE", "SYS"].contains(&cell.as_str()));
            classes
                .map(|(column, cell)| ((row.clone(), column.clone()), cell.clone()))
                .collect::<Vec<_>>()
        })
        .collect()
    };
    let known = all(a);
    for (pair, cell) in all(b) {
        if let Some(ours) = known.get(&pair) {
            compared.note(*ours == cell);
        }
    }
}
