//! The last step when all texts of a machine are read: what only follows from all of them together,
//! and what they say beside the facts.

use std::collections::BTreeSet;

use gpuio_base::units::many;
use gpuio_host::numa::normalize_pci;
use gpuio_record::facts::{
    BlockDevice, BlockKind, GpuFacts, InterfaceFacts, Machine, MountedStorage,
};

use crate::{
    Captured, MOST_GPUS, Matrix, Measured, cards, dmesg, gdscheck, measured, merge, mig, netplan,
};

impl Captured {
    /// Completes a machine whose texts are all read. Mounts of `/etc/fstab` are taken in where no
    /// text shows what is mounted.
    pub fn finish(&mut self) {
        let at_boot = std::mem::take(&mut self.at_boot);
        let missing: Vec<MountedStorage> = at_boot
            .into_iter()
            .filter(|one| {
                let at = &one.mount.mount_point;
                !self.machine.mounts.iter().any(|known| known.mount.mount_point == *at)
            })
            .collect();
        let names: Vec<&str> = missing.iter().map(|one| one.mount.mount_point.as_str()).collect();
        let names = names.join(", ");
        if !missing.is_empty() && self.lists_mounts {
            self.remark(format!("In /etc/fstab and not mounted: {names}."));
        } else if !missing.is_empty() {
            self.remark(format!(
                "These mounts are from /etc/fstab, so they may not be mounted: {names}."
            ));
            for one in missing {
                self.machine.at_boot.push(one.mount.mount_point.clone());
                merge::mount(&mut self.machine, one);
            }
        }
        if self.sets_at_boot {
            let network = &self.network;
            let of = |one: &InterfaceFacts| {
                let routes = network.connected.iter().filter(|route| route.interface == one.name);
                let addresses = routes.map(|route| format!("{}/{}", route.to, route.prefix));
                let mtu = one.mtu_bytes.map(|bytes| format!("MTU {bytes}"));
                let facts: Vec<String> = addresses.chain(mtu).collect();
                (!facts.is_empty()).then(|| format!("{} {}", one.name, facts.join(", ")))
            };
            let all: Vec<String> = network.interfaces.iter().filter_map(of).collect();
            let all = all.join("; ");
            self.remark(format!(
                "Netplan's MTUs and addresses are those that it sets at boot: {all}."
            ));
        }
        self.finish_command_line();
        let grouped = self.machine.pci.iter_mut().filter(|one| one.iommu_group.is_some());
        for function in grouped.filter(|one| one.iommu_domain.is_none()) {
            function.iommu_domain = self.iommu_domain.map(str::to_owned);
        }
        cards::join(self);
        dmesg::tie(&mut self.machine);
        merge::complete(&mut self.machine);
        self.network.complete(&mut self.machine);
        self.join_gpus();
        self.remark_all(&seen_twice(&self.machine));
        let check = self.machine.gdscheck.as_ref();
        let models = check.and_then(|check| gdscheck::other_models(check, &self.machine));
        if let Some((printed, own)) = models {
            self.machine.gdscheck = None;
            self.remark(format!(
                "gdscheck's report lists {printed} GPUs and the other texts {own}: it is of \
                 another machine, and is not used."
            ));
        }
        if let Some(release) = self.machine.gdscheck.as_ref().and_then(gdscheck::release) {
            self.machine.host.kernel.release.get_or_insert(release);
        }
        self.finish_gpus();
        self.find_conflicts();
        self.machine.printed = self.matrices.iter().flat_map(Matrix::printed).collect();
    }

    /// Finds statements of two texts, or of two lines of one, that can't both be right.
    fn find_conflicts(&mut self) {
        let mut found = Vec::new();
        let gpus = &self.machine.gpus;
        let number = |(at, gpu): (u32, &GpuFacts)| gpu.index.known().copied().unwrap_or(at);
        let known: BTreeSet<u32> = (0..).zip(gpus).map(number).collect();
        let printed: BTreeSet<u32> = self.matrices.iter().flat_map(Matrix::gpus).collect();
        let more: Vec<String> = printed.difference(&known).map(|n| format!("GPU{n}")).collect();
        if !more.is_empty() && !known.is_empty() {
            found.push(format!(
                "nvidia-smi topo has {}, and the other texts have {} without: a text is cut, or of \
                 another time. They are left out.",
                more.join(", "),
                many(gpus.len() as u64, "GPU")
            ));
        }
        let check = self.machine.gdscheck.iter().filter(|check| !check.by_gpuio);
        for check in check {
            let listed = check.gpus.len();
            // GPUs that two texts show in two ways count twice.
            let counted = gpus.iter().all(|gpu| gpu.pci.is_some() == gpus[0].pci.is_some());
            if listed > 0 && listed < gpus.len() && counted {
                found.push(format!(
                    "gdscheck lists {} and the other texts {}: its list is cut, or \
                     CUDA_VISIBLE_DEVICES hid some from it.",
                    many(listed as u64, "GPU"),
                    gpus.len()
                ));
            }
            let word = |text: &str| text.trim().to_lowercase();
            let off = |text: &str| word(text).starts_with("disabled");
            let on = |text: &str| word(text).starts_with("enabled");
            let whole = check.iommu.known();
            let of_gpus = check.gpus.iter().filter_map(|gpu| gpu.iommu.known());
            let other = whole.and_then(|whole| {
                let differs = |one: &&String| off(one) && on(whole) || on(one) && off(whole);
                Some((whole, of_gpus.into_iter().find(differs)?))
            });
            if let Some((whole, one)) = other {
                found.push(format!(
                    "gdscheck says `IOMMU: {whole}` and, of a GPU, `IOMMU State: {one}`."
                ));
            }
            let unloaded = self.machine.modules.iter().any(|m| m.name == "nvidia_fs" && !m.loaded);
            if let Some(version) = check.nvidia_fs.known().filter(|_| unloaded) {
                found.push(format!(
                    "gdscheck says `nvidia_fs version: {version}`, and by lsmod or \
                     /proc/driver/nvidia-fs that module is not loaded: it was unloaded between the \
                     two, never loaded, or is hidden from a container."
                ));
            }
        }
        found.into_iter().for_each(|one| self.conflict(one));
    }

    /// GPUs that one text numbers from 0 and another one shows at as many addresses are the same
    /// ones. Which of several is which no text has.
    fn join_gpus(&mut self) {
        let is_numbered = |gpu: &GpuFacts| gpu.pci.is_none() && gpu.index.known().is_some();
        let (numbered, placed): (Vec<GpuFacts>, Vec<GpuFacts>) =
            self.machine.gpus.iter().cloned().partition(is_numbered);
        let numbers = numbered.iter().filter_map(|gpu| gpu.index.known().copied());
        let whole = !numbered.is_empty() && numbers.eq((0..).take(numbered.len()));
        let bare = placed.iter().all(|gpu| gpu.pci.is_some() && gpu.index.known().is_none());
        if !whole || !bare || placed.len() != numbered.len() {
            return;
        }
        let model = |gpu: &GpuFacts| gdscheck::model(gpu.name.known()?);
        let on_pci = |gpu: &GpuFacts| {
            let one = self.machine.pci.iter().find(|one| Some(&one.address) == gpu.pci.as_ref())?;
            gdscheck::model(one.name.as_ref()?.split_once('[')?.1)
        };
        let shown: Option<Vec<String>> =
            placed.iter().map(|gpu| model(gpu).or(on_pci(gpu))).collect();
        if shown.is_some_and(|shown| numbered.iter().filter_map(model).any(|m| !shown.contains(&m)))
        {
            return;
        }
        if let ([known], [gpu]) = (numbered.as_slice(), placed.as_slice()) {
            let (pci, node) = (gpu.pci.clone(), gpu.node.or(known.node));
            let whole = GpuFacts { pci, node, ..known.clone() };
            self.machine.gpus = vec![whole];
            return;
        }
        let count = placed.len();
        let alike = numbered.iter().all(|gpu| gpu.name.known() == numbered[0].name.known());
        let name = numbered[0].name.clone();
        self.machine.gpus = placed;
        self.machine.gpus.iter_mut().filter(|_| alike).for_each(|gpu| gpu.name = name.clone());
        self.remark(format!(
            "The {count} GPUs that one text numbers and the {count} that another one shows at \
             addresses are the same; which is which no text says."
        ));
    }

    /// GPUs that gdscheck or the statistics of nvidia-fs alone name.
    fn finish_gpus(&mut self) {
        let listed = self.machine.gdscheck.iter().flat_map(|check| &check.gpus);
        // Its numbers are CUDA's, which need not be those of `nvidia-smi`.
        let listed = listed.map(|gpu| GpuFacts { name: gpu.name.clone(), ..GpuFacts::default() });
        let listed: Vec<GpuFacts> = listed.collect();
        let known = self.machine.gpus.len();
        if known > 0 {
            if listed.len() > known {
                let all = listed.len();
                self.remark(format!(
                    "gdscheck lists {all} GPUs and the other texts {known}: the rest is named \
                     only by gdscheck, without an address."
                ));
            }
            return;
        }
        let is_own = |one: &&Measured| one.command == measured::nvidia_fs::KIND.command;
        let rows = self.measured.iter().filter(is_own).flat_map(|one| &one.rows);
        let used: BTreeSet<String> = rows.filter_map(|row| normalize_pci(&row.of)).collect();
        let of = |pci| GpuFacts { pci: Some(pci), ..GpuFacts::default() };
        let used: Vec<GpuFacts> = used.into_iter().take(MOST_GPUS).map(of).collect();
        if listed.len() > used.len() {
            self.machine.gpus = listed;
            self.remark(
                "The GPUs are named only by gdscheck, in CUDA's order: neither their addresses nor \
                 the driver's numbers are known."
                    .to_owned(),
            );
        } else if !used.is_empty() {
            self.machine.gpus = used;
            self.remark(
                "The GPUs are named only by nvidia-fs' statistics, which list those in use: there \
                 may be more."
                    .to_owned(),
            );
        }
    }

    /// Adds sentences on texts that are of no machine.
    pub fn remark_all(&mut self, notes: &[String]) {
        notes.iter().for_each(|note| self.remark(note.clone()));
    }

    /// Whether facts come from the output of tools.
    pub fn is_from_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    pub(crate) fn remark(&mut self, text: String) {
        if !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }

    /// The statements of texts beside the facts, as sentences: MIG, servers, results, logs.
    pub fn remarks(&self) -> Vec<String> {
        let mut all = self.remarks.clone();
        all.extend(mig::notes(&self.mig));
        all.extend(netplan::notes(self));
        let compared = |tool: &&str| crate::results::COMPARED.contains(tool);
        let mut tools: Vec<&str> =
            self.results.iter().map(|one| one.tool).filter(compared).collect();
        tools.dedup();
        if !tools.is_empty() {
            all.push(format!(
                "Results of {} are among the texts: `gpuio compare` reads them.",
                tools.join(", ")
            ));
        }
        if self.log_was_read && self.log.is_empty() {
            all.push("cufile.log has no message that says how bytes went.".to_owned());
        }
        all
    }
}

/// Where one text may name a device that another one shows by its address or number only.
fn seen_twice(machine: &Machine) -> Vec<String> {
    let drives = machine.block.iter().filter(|one| one.facts.name.starts_with("nvme"));
    let drives = drives.filter(|one| one.facts.kind == BlockKind::Disk);
    let (placed, named): (Vec<_>, Vec<_>) = drives.partition(|one| !one.pci.is_empty());
    let names = |all: Vec<&BlockDevice>| -> Vec<String> {
        all.into_iter().map(|one| one.facts.name.clone()).collect()
    };
    let placed = placed.into_iter().filter(|one| one.facts.name.contains('@')).collect();
    let (bare, nameless): (Vec<_>, Vec<_>) = machine.nics.iter().partition(|nic| nic.pci.is_none());
    let cards = bare.into_iter().flat_map(|nic| &nic.rdma);
    let (numbered, by_name): (Vec<String>, Vec<String>) =
        cards.map(|one| one.name.clone()).partition(|name| name.starts_with("NIC"));
    let and = |count: usize| if count == 0 { String::new() } else { format!(" and {count} more") };
    let nameless = nameless.into_iter().filter(|n| n.rdma.is_empty() && n.interfaces.is_empty());
    let nameless: Vec<String> = nameless.filter_map(|nic| nic.pci.clone()).collect();
    let shown = [by_name.as_slice(), &numbered].concat();
    let (placed_gpus, bare): (Vec<_>, Vec<_>) =
        machine.gpus.iter().partition(|gpu| gpu.pci.is_some());
    let numbers = bare.iter().filter_map(|gpu| Some(format!("GPU{}", gpu.index.known()?)));
    let unnumbered = placed_gpus.into_iter().filter(|gpu| gpu.index.known().is_none());
    let gpus = (numbers.collect(), unnumbered.filter_map(|gpu| gpu.pci.clone()).collect());
    let is_sata = |one: &&BlockDevice| {
        let transport = one.facts.transport.as_deref().unwrap_or("sata");
        one.facts.name.starts_with("sd") && transport == "sata" && one.link.is_none()
    };
    let sata = machine.block.iter().filter(is_sata);
    let sata = sata.filter(|one| one.facts.kind == BlockKind::Disk).collect();
    let at_port = |one: &&BlockDevice| one.facts.name.starts_with(dmesg::AT_PORT);
    let at_port = machine.block.iter().filter(at_port).collect();
    let pairs = [
        (names(sata), names(at_port)),
        (names(named), names(placed)),
        (by_name, numbered),
        (shown, nameless),
        gpus,
    ];
    let all = pairs.iter().filter_map(|(named, others)| {
        let (first, other) = (named.first()?, others.first()?);
        Some(format!(
            "{first}{} may be the same as {other}{}, and counted twice: no text has both.",
            and(named.len() - 1),
            and(others.len() - 1)
        ))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_gdscheck_or_nvidia_fs_alone_name_are_listed() {
        let of = |texts: &[&str]| {
            let mut captured = Captured::default();
            texts.iter().for_each(|text| crate::read("a text", text, &mut captured).unwrap());
            captured.finish();
            (captured.machine.gpus.len(), captured.remarks().join(" "))
        };
        let check = include_str!("../tests/fixtures/h100-1.13.gdscheck");
        let stats = include_str!("../tests/kinds/nvidia-fs-stats.txt");
        let smi = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n";
        for (texts, count, words) in [
            (&[check][..], 8, "named only by gdscheck, in CUDA's order"),
            (&[stats], 2, "only by nvidia-fs' statistics"),
            (&[stats, check], 8, "named only by gdscheck, in CUDA's order"),
            (&[smi, check], 1, "lists 8 GPUs and the other texts 1"),
        ] {
            let (gpus, remarks) = of(texts);
            assert!(gpus == count && remarks.contains(words), "{gpus}: {remarks}");
        }
        assert_eq!(of(&[smi, stats]).0, 1);
    }

    #[test]
    fn a_gpu_of_a_list_and_of_a_tree_is_one() {
        let of = |count: u32| {
            let mut text = "$ lspci\n".to_owned();
            for at in 1..=count {
                text += &format!("0{at}:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n");
            }
            text += "$ nvidia-smi -L\n";
            for at in 0..count {
                text += &format!("GPU {at}: NVIDIA A100-PCIE-40GB (UUID: GPU-1c1c1c1c-{at})\n");
            }
            let mut captured = Captured::default();
            crate::read("p", &text, &mut captured).unwrap();
            captured.finish();
            captured
        };
        let one = of(1).machine.gpus;
        let whole = one[0].pci.is_some() && one[0].index.known() == Some(&0);
        assert!(one.len() == 1 && whole && one[0].uuid.known().is_some(), "{one:?}");
        let two = of(2);
        let gpus = &two.machine.gpus;
        let apart = gpus.iter().all(|gpu| gpu.pci.is_some() && gpu.index.known().is_none());
        assert!(gpus.len() == 2 && apart && gpus[1].name.known().is_some(), "{gpus:?}");
        assert!(two.remarks.iter().any(|one| one.contains("which is which")), "{:?}", two.remarks);
        assert!(!two.remarks.iter().any(|one| one.contains("counted twice")), "{:?}", two.remarks);
    }

    #[test]
    fn a_second_gpu_of_one_number_is_of_another_machine() {
        let row =
            |pci: &str| format!("|   0  NVIDIA A100   Off | 00000000:{pci}:00.0 Off |  0 |\n");
        let list = |id: u32| format!("GPU 0: NVIDIA A100 (UUID: GPU-{id})\n");
        let block =
            |pci: &str| format!("GPU 00000000:{pci}:00.0\n    Product Name   : NVIDIA GB10\n");
        for text in [
            row("07") + &row("19"),
            list(1) + &list(2),
            format!("Attached GPUs : 1\n{}{}", block("01"), block("dd")),
        ] {
            let mut captured = Captured::default();
            crate::read("p", &text, &mut captured).unwrap();
            captured.finish();
            assert_eq!(captured.machine.gpus.len(), 1, "{text}");
            assert!(captured.conflicts[0].contains("left out"), "{text}");
        }
        let text = row("07") + "and on the other node\n" + &row("19");
        let text = crate::machines::Text { name: "p".to_owned(), body: text };
        let found = crate::machines::read_all(&[text]).machines;
        let gpus =
            found.iter().map(|one| (one.captured.machine.gpus.len(), one.captured.conflicts.len()));
        assert_eq!(gpus.collect::<Vec<_>>(), [(1, 0), (1, 0)], "{found:?}");
    }

    #[test]
    fn texts_that_contradict_each_other_are_named() {
        let of = |texts: &[&str]| {
            let mut captured = Captured::default();
            texts.iter().for_each(|text| crate::read("a text", text, &mut captured).unwrap());
            captured.finish();
            (captured.conflicts.join(" "), captured)
        };
        let smi = |count: u32| -> String {
            (0..count)
                .map(|n| format!("GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-{n})\n"))
                .collect()
        };
        let matrix = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV18\tPXB\nGPU1\tNV18\t X \tSYS\n\
                      NIC0\tPXB\tSYS\t X \n";
        assert_eq!(of(&[matrix, &smi(2)]).0, "");
        let (said, captured) = of(&[&matrix.replace("NIC0\tPXB\tSYS", "NIC0\tPXB\tPIX")]);
        assert!(said.contains("row GPU1 has SYS for NIC0, row NIC0 has PIX for GPU1"), "{said}");
        assert_eq!(captured.matrices[0].cell("GPU1", "NIC0"), None);
        assert_eq!(captured.matrices[0].cell("GPU0", "NIC0"), Some("PXB"));
        assert!(of(&[matrix, &smi(1)]).0.contains("topo has GPU1, and the other texts have 1 GPU"));
        let check = include_str!("../tests/fixtures/h100-1.13.gdscheck");
        assert_eq!(of(&[check, &smi(8)]).0, "");
        assert!(of(&[check, &smi(9)]).0.contains("lists 8 GPUs and the other texts 9"));
        let iommu = check.replace(" IOMMU: disabled", " IOMMU: enabled");
        assert!(of(&[&iommu]).0.contains("IOMMU State: Disabled"), "{}", of(&[&iommu]).0);
        let lsmod = "$ lsmod | grep nvidia_fs\n$ \n";
        assert!(of(&[check, lsmod]).0.contains("by lsmod or /proc/driver/nvidia-fs"));
    }

    #[test]
    fn a_drive_that_two_texts_show_in_two_ways_may_be_one() {
        let name = "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS\nnvme0n1 259:0 0 1.8T 0 disk\n";
        let place = "01:00.0 Non-Volatile memory controller: Samsung (prog-if 02 [NVM Express])\n";
        let remarks = |texts: &[&str]| {
            let mut captured = Captured::default();
            texts.iter().for_each(|text| crate::read("a text", text, &mut captured).unwrap());
            captured.finish();
            captured.remarks().join(" ")
        };
        let both = remarks(&[name, place]);
        assert!(both.contains("nvme0n1 may be the same as nvme@01:00.0"), "{both}");
        assert_eq!(remarks(&[name]) + &remarks(&[place]), "");
    }
}
