//! Texts put together: each function, device and card once, with all that is known of it.

use std::collections::BTreeMap;

use gpuio_record::facts::{
    BlockDevice, BlockFacts, BlockKind, DeviceNumber, Fact, GpuFacts, Lanes, Machine, ModuleFacts,
    MountFacts, MountKind, MountedStorage, NicFacts, PciFacts,
};

use crate::{Captured, pci_names};

/// More contradictions than anybody reads.
const MOST_CONTRADICTIONS: usize = 100;

/// A function whose address a tool shows; everything else is unknown for `why`.
pub(crate) fn function(address: String, why: &str) -> PciFacts {
    PciFacts { address, ..PciFacts::unknown(why) }
}

/// Adds a module: one that any text shows is loaded.
pub(crate) fn module(machine: &mut Machine, new: ModuleFacts) {
    match machine.modules.iter_mut().find(|known| known.name == new.name) {
        Some(known) => {
            known.loaded |= new.loaded;
            known.version = new.version.or(known.version.take());
            known.parameters.extend(new.parameters);
        }
        None => machine.modules.push(new),
    }
}

/// Adds functions: what they know stands, what they do not stays as it was. Where two texts differ,
/// the later one is taken, and that is noted.
pub(crate) fn functions(captured: &mut Captured, new: Vec<PciFacts>) {
    let Captured { machine, contradictions, .. } = captured;
    let mut known: BTreeMap<String, PciFacts> =
        machine.pci.drain(..).map(|one| (one.address.clone(), one)).collect();
    for mut one in new {
        complete_by_name(&mut one);
        match known.get_mut(&one.address) {
            Some(ours) => {
                differ(ours, &one, contradictions);
                take(ours, one);
            }
            None => {
                known.insert(one.address.clone(), one);
            }
        }
    }
    machine.pci = known.into_values().collect();
}

/// A class and numbers that only the name shows.
fn complete_by_name(one: &mut PciFacts) {
    let Some(name) = &one.name else { return };
    let ids = pci_names::ids(name);
    one.vendor = one.vendor.or(ids.map(|(vendor, _)| vendor)).or(pci_names::vendor(name));
    one.device = one.device.or(ids.map(|(_, device)| device));
    if one.secondary_bus.is_none() {
        one.class = one.class.or_else(|| pci_names::class(name));
    }
}

/// Notes what two texts report differently of one function.
fn differ(ours: &PciFacts, new: &PciFacts, notes: &mut Vec<String>) {
    let address = &ours.address;
    let mut note = |what: &str, one: String, other: String| {
        let text = format!("{address}: {what} {one} in one text, {other} in a later one");
        if notes.len() < MOST_CONTRADICTIONS && !notes.contains(&text) {
            notes.push(text);
        }
    };
    let both = |a: Option<u32>, b: Option<u32>| a.zip(b).filter(|(a, b)| a != b);
    if let Some((a, b)) = both(ours.node, new.node) {
        note("NUMA node", a.to_string(), b.to_string());
    }
    let ids = |one: &PciFacts| Some((u32::from(one.vendor?) << 16) | u32::from(one.device?));
    if let Some((a, b)) = both(ids(ours), ids(new)) {
        let text = |id: u32| format!("{:04x}:{:04x}", id >> 16, id & 0xffff);
        note("vendor and device", text(a), text(b));
    }
    let parents = ours.parent.as_ref().zip(new.parent.as_ref());
    let real = |(a, b): &(&String, &String)| a != b && is_address(a) && is_address(b);
    if let Some((a, b)) = parents.filter(real) {
        note("the bridge above is", a.clone(), b.clone());
    }
}

/// Whether a bridge has an address, and no number that a text without addresses got.
pub(crate) fn is_address(bridge: &str) -> bool {
    bridge.contains(':')
}

/// Notes facts that a machine has once and that a text reports differently from those before it.
pub(crate) fn replaced(before: &Machine, with: &mut Captured) {
    fn differ<T: PartialEq>(ours: Option<&T>, new: Option<&T>) -> bool {
        ours.zip(new).is_some_and(|(ours, new)| ours != new)
    }
    let after = &with.machine;
    let (ours, new) = (&before.host, &after.host);
    let text = |machine: &Machine| machine.cufile.text.known().cloned().flatten();
    let source = |machine: &Machine| machine.config.source.known().cloned();
    let all = [
        ("cufile.json", differ(text(before).as_ref(), text(after).as_ref())),
        ("the processor's model", differ(ours.cpu.model.as_ref(), new.cpu.model.as_ref())),
        ("the kernel's release", differ(ours.kernel.release.as_ref(), new.kernel.release.as_ref())),
        ("the kernel's configuration", differ(source(before).as_ref(), source(after).as_ref())),
        (
            "the kernel's command line",
            differ(before.settings.command_line.as_ref(), after.settings.command_line.as_ref()),
        ),
    ];
    let differing: Vec<&str> =
        all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
    differing.into_iter().for_each(|name| with.differ(name.to_owned()));
    mounted_again(before.mounts.len(), with);
}

fn take(ours: &mut PciFacts, new: PciFacts) {
    fn option<T>(ours: &mut Option<T>, new: Option<T>) {
        if new.is_some() {
            *ours = new;
        }
    }
    fn fact<T>(ours: &mut Fact<T>, new: Fact<T>) {
        if new.known().is_some() || ours.known().is_none() {
            *ours = new;
        }
    }
    fn lanes(ours: &mut Lanes, new: Lanes) {
        option(&mut ours.mega_transfers, new.mega_transfers);
        option(&mut ours.width, new.width);
    }
    // A tree without addresses does not replace one with.
    let has_way = ours.host_bridge.as_deref().is_some_and(is_address);
    let better = new.host_bridge.as_deref().is_some_and(is_address) || !has_way;
    if better && (new.parent.is_some() || new.host_bridge.is_some()) {
        option(&mut ours.parent, new.parent);
        option(&mut ours.host_bridge, new.host_bridge);
    }
    // A class that was told replaces one that was taken from a name, and so does a longer one.
    let precise = |class: Option<u32>| class.is_some_and(|class| class & 0xff != 0);
    if ours.class.is_none() || precise(new.class) || !precise(ours.class) {
        option(&mut ours.class, new.class);
    }
    option(&mut ours.vendor, new.vendor);
    option(&mut ours.device, new.device);
    option(&mut ours.subsystem_vendor, new.subsystem_vendor);
    option(&mut ours.subsystem_device, new.subsystem_device);
    option(&mut ours.name, new.name);
    option(&mut ours.driver, new.driver);
    option(&mut ours.node, new.node);
    option(&mut ours.secondary_bus, new.secondary_bus);
    option(&mut ours.subordinate_bus, new.subordinate_bus);
    fact(&mut ours.port, new.port);
    lanes(&mut ours.link_now, new.link_now);
    lanes(&mut ours.link_most, new.link_most);
    option(&mut ours.link_bytes_per_second, new.link_bytes_per_second);
    fact(&mut ours.acs, new.acs);
    option(&mut ours.iommu_group, new.iommu_group);
    option(&mut ours.iommu_domain, new.iommu_domain);
    fact(&mut ours.max_payload_bytes, new.max_payload_bytes);
    fact(&mut ours.max_payload_supported_bytes, new.max_payload_supported_bytes);
    fact(&mut ours.max_read_request_bytes, new.max_read_request_bytes);
    fact(&mut ours.relaxed_ordering, new.relaxed_ordering);
    option(&mut ours.p2p_memory_bytes, new.p2p_memory_bytes);
}

/// Adds a mount; what another text already has of it is completed.
pub(crate) fn mount(machine: &mut Machine, new: MountedStorage) {
    let same = |known: &&mut MountedStorage| {
        known.mount.mount_point == new.mount.mount_point
            && known.mount.source == new.mount.source
            && (known.mount.options.is_empty() || new.mount.options.is_empty())
    };
    let Some(known) = machine.mounts.iter_mut().find(same) else {
        machine.mounts.push(new);
        return;
    };
    if !new.mount.options.is_empty() || known.mount.fs_type.is_empty() {
        *known = new;
    }
}

/// Takes out the first `before` mounts of those that a later text shows at the same place, and
/// notes what differs. A place that one text shows twice is mounted over.
fn mounted_again(before: usize, with: &mut Captured) {
    let later = with.machine.mounts.split_off(before.min(with.machine.mounts.len()));
    let mut differing = Vec::new();
    with.machine.mounts.retain(|MountedStorage { mount: old, .. }| {
        let again = |new: &&MountedStorage| new.mount.mount_point == old.mount_point;
        let Some(MountedStorage { mount: new, .. }) = later.iter().rfind(again) else {
            return true;
        };
        if old.source != new.source && [old, new].iter().any(|one| has_other_names(&one.source)) {
            return true;
        }
        if let Some(what) = remounted(old, new) {
            differing.push(format!("what is mounted at {} ({what})", old.mount_point));
        }
        false
    });
    with.machine.mounts.extend(later);
    differing.into_iter().for_each(|what| with.differ(what));
}

/// Whether tools call a device by different names: volumes, links, numbers.
fn has_other_names(source: &str) -> bool {
    let name = source.strip_prefix("/dev/").unwrap_or_default();
    name.contains('/') || name.starts_with("dm-") || name == "root" || source.contains('=')
}

/// The difference of two texts on a mount: `vers=3, then vers=4.2`. An option that one of them
/// leaves out says nothing.
fn remounted(old: &MountFacts, new: &MountFacts) -> Option<String> {
    fn key(option: &str) -> &str {
        let key = option.split('=').next().unwrap_or_default();
        if key == "ro" { "rw" } else { key }
    }
    // `nfs` and `nfs4` are one.
    let same_type = old.fs_type.starts_with(&new.fs_type) || new.fs_type.starts_with(&old.fs_type);
    let words_of = |one: &MountFacts, other: &MountFacts| {
        let differs = |option: &&String| {
            let mut same = other.options.iter().filter(|own| key(own) == key(option)).peekable();
            same.peek().is_some() && same.all(|own| own != *option)
        };
        let source = (old.source != new.source).then_some(&one.source);
        let facts = source.into_iter().chain((!same_type).then_some(&one.fs_type));
        let words = facts.chain(one.options.iter().filter(differs)).map(String::as_str);
        words.collect::<Vec<_>>().join(" ")
    };
    let (was, is) = (words_of(old, new), words_of(new, old));
    (was != is).then(|| format!("{was}, then {is}"))
}

/// The device of a kernel name, added where it is not there yet.
pub(crate) fn block<'m>(
    machine: &'m mut Machine,
    name: &str,
    kind: BlockKind,
) -> &'m mut BlockDevice {
    let at = machine.block.iter().position(|device| device.facts.name == name);
    let at = at.unwrap_or_else(|| {
        machine.block.push(device(name, kind));
        machine.block.len() - 1
    });
    &mut machine.block[at]
}

fn device(name: &str, kind: BlockKind) -> BlockDevice {
    BlockDevice::of(BlockFacts::unread(name, DeviceNumber::default(), kind))
}

/// The disk of a partition's name (`nvme0n1p2`, `sda1`), `None` for a name that is none.
pub(crate) fn disk_of(name: &str) -> Option<&str> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if disk.len() == name.len() {
        return None;
    }
    let numbered =
        disk.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    let lettered = ["sd", "vd", "xvd", "hd"].iter().any(|start| disk.starts_with(start));
    numbered.or_else(|| lettered.then_some(disk))
}

/// A device by name as disk, or as partition with the disk below it.
pub(crate) fn disk_or_partition<'m>(machine: &'m mut Machine, name: &str) -> &'m mut BlockDevice {
    let Some(disk) = disk_of(name) else { return block(machine, name, BlockKind::Disk) };
    block(machine, disk, BlockKind::Disk);
    let partition = block(machine, name, BlockKind::Partition);
    partition.facts.disk = Some(disk.to_owned());
    partition.made_of = vec![disk.to_owned()];
    partition
}

/// Lists a device of which a text has the kernel's name alone; other names are none.
pub(crate) fn device_of_kernel_name(machine: &mut Machine, name: &str) {
    if name.starts_with("md") {
        block(machine, name, BlockKind::Md);
    } else if name.starts_with("dm-") {
        block(machine, name, BlockKind::DeviceMapper);
    } else if ["nvme", "sd", "vd", "xvd", "hd"].iter().any(|start| name.starts_with(start)) {
        // Paths of a multipath drive (`nvme0c0n1`) are no drives of their own.
        let path = name.strip_prefix("nvme").is_some_and(|rest| rest.contains('c'));
        if !path {
            disk_or_partition(machine, name);
        }
    }
}

/// An RDMA device's name. `mlx5 1`, copied out of a PDF that prints a blank for the underscore, is
/// `mlx5_1`; other names with blanks are none, so that no card is made up.
pub(crate) fn rdma_name(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    match (words.next()?, words.next(), words.next()) {
        (name, None, _) => Some(name.to_owned()),
        (name, Some(number), None) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(format!("{name}_{number}"))
        }
        _ => None,
    }
}

/// The card of an RDMA device or an interface: by its function, else by one of the names.
pub(crate) fn card<'m>(
    machine: &'m mut Machine,
    pci: Option<&str>,
    rdma: Option<&str>,
    interface: Option<&str>,
) -> &'m mut NicFacts {
    let is = |nic: &NicFacts| {
        let same = |ours: &str, wanted: Option<&str>| wanted == Some(ours);
        pci.is_some() && nic.pci.as_deref() == pci
            || nic.rdma.iter().any(|one| same(&one.name, rdma))
            || nic.interfaces.iter().any(|one| same(&one.name, interface))
    };
    let at = machine.nics.iter().position(is);
    let at = at.unwrap_or_else(|| {
        machine.nics.push(NicFacts::default());
        machine.nics.len() - 1
    });
    let card = &mut machine.nics[at];
    card.pci = card.pci.take().or(pci.map(str::to_owned));
    card
}

/// Gives parts what others know: arrays and mounts their functions, cards and GPUs their nodes, and
/// functions the nodes of their GPUs and cards; GPUs that only PCI shows are listed.
pub(crate) fn complete(machine: &mut Machine) {
    let sources: Vec<String> = machine.mounts.iter().map(|one| one.mount.source.clone()).collect();
    for name in sources.iter().filter_map(|source| source.strip_prefix("/dev/")) {
        device_of_kernel_name(machine, name);
    }
    gpuio_host::drive::inherit_pci_functions(&mut machine.block);
    gpus_on_pci(machine);
    links_of_gpus(machine);
    drives_on_pci(machine);
    cards_on_pci(machine);
    let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
    let gpus = machine.gpus.iter().map(|gpu| (gpu.pci.as_deref(), gpu.node));
    let nics = machine.nics.iter().map(|nic| (nic.pci.as_deref(), nic.node));
    nodes.extend(gpus.chain(nics).filter_map(|(pci, node)| pci.zip(node)));
    for function in machine.pci.iter_mut().filter(|function| function.node.is_none()) {
        function.node = nodes.get(function.address.as_str()).copied();
    }
    nodes_below_host_bridges(machine);
    let nodes: BTreeMap<&str, u32> =
        machine.pci.iter().filter_map(|one| Some((one.address.as_str(), one.node?))).collect();
    let node = |address: Option<&String>| nodes.get(address?.as_str()).copied();
    for gpu in &mut machine.gpus {
        gpu.node = gpu.node.or(node(gpu.pci.as_ref()));
    }
    for nic in &mut machine.nics {
        nic.node = nic.node.or(node(nic.pci.as_ref()));
    }
    machine.nics.sort_by(|a, b| (a.pci.is_none(), &a.pci).cmp(&(b.pci.is_none(), &b.pci)));
    for mount in &mut machine.mounts {
        let source = mount.mount.source.strip_prefix("/dev/").unwrap_or_default();
        let source = source.strip_prefix("mapper/").unwrap_or(source);
        let beneath = machine.block.iter().find(|device| device.facts.name == source);
        if let Some(device) = beneath {
            mount.devices = vec![device.facts.name.clone()];
            mount.pci.clone_from(&device.pci);
            mount.kind = gpuio_host::mounted::kind(&mount.mount.fs_type, true);
        } else if mount.kind == MountKind::Other && mount.mount.source.starts_with("/dev/") {
            mount.kind = MountKind::Block;
        }
    }
}

/// Gives functions the node of those below the same host bridge: a host bridge is on one node.
/// Where these differ nothing is given.
fn nodes_below_host_bridges(machine: &mut Machine) {
    let mut bridges: BTreeMap<String, Option<u32>> = BTreeMap::new();
    for one in &machine.pci {
        let Some((bridge, node)) = one.host_bridge.clone().zip(one.node) else { continue };
        let known = bridges.entry(bridge).or_insert(Some(node));
        if *known != Some(node) {
            *known = None;
        }
    }
    for one in machine.pci.iter_mut().filter(|one| one.node.is_none()) {
        let bridge = one.host_bridge.as_ref().and_then(|bridge| bridges.get(bridge));
        one.node = bridge.copied().flatten();
    }
    let nodes: BTreeMap<&str, u32> =
        machine.pci.iter().filter_map(|one| Some((one.address.as_str(), one.node?))).collect();
    for drive in machine.block.iter_mut().filter(|drive| drive.facts.numa_node.is_none()) {
        let address = drive.facts.pci_address.as_deref();
        drive.facts.numa_node = address.and_then(|address| nodes.get(address).copied());
    }
}

/// Lists NVMe controllers that no text names, by their address: `nvme@36:00.0`.
fn drives_on_pci(machine: &mut Machine) {
    machine.block.retain(|device| !device.facts.name.starts_with("nvme@"));
    let known = |address: &String| machine.block.iter().any(|one| one.pci.contains(address));
    let drives = machine
        .pci
        .iter()
        .filter(|one| one.class.is_some_and(|class| class >> 8 == 0x0108) && !known(&one.address));
    let drives: Vec<BlockDevice> = drives
        .take(crate::MOST_DEVICES)
        .map(|one| {
            let short = one.address.strip_prefix("0000:").unwrap_or(&one.address);
            let mut drive = device(&format!("nvme@{short}"), BlockKind::Disk);
            drive.facts.pci_address = Some(one.address.clone());
            drive.facts.numa_node = one.node;
            drive.pci = vec![one.address.clone()];
            drive
        })
        .collect();
    machine.block.extend(drives);
}

/// Lists network controllers that no text names.
fn cards_on_pci(machine: &mut Machine) {
    machine.nics.retain(|nic| !nic.interfaces.is_empty() || !nic.rdma.is_empty());
    let known = |address: &String| machine.nics.iter().any(|nic| nic.pci.as_ref() == Some(address));
    let cards = machine
        .pci
        .iter()
        .filter(|one| one.class.is_some_and(|class| class >> 16 == 2) && !known(&one.address));
    let cards: Vec<NicFacts> = cards
        .take(crate::MOST_DEVICES)
        .map(|one| NicFacts { pci: Some(one.address.clone()), ..NicFacts::default() })
        .collect();
    machine.nics.extend(cards);
}

/// Gives the functions of GPUs the links that NVIDIA's driver reports, where PCI's texts have none.
fn links_of_gpus(machine: &mut Machine) {
    for gpu in &machine.gpus {
        let link = |fact: &Fact<Lanes>| fact.known().copied().unwrap_or_default();
        let (now, most) = (link(&gpu.pcie_now), link(&gpu.pcie_most));
        let Some(address) = gpu.pci.as_ref().filter(|_| now.or(most) != Lanes::default()) else {
            continue;
        };
        let at = machine.pci.iter().position(|one| one.address == *address).unwrap_or_else(|| {
            machine.pci.push(function(address.clone(), "only NVIDIA's driver shows the function"));
            machine.pci.len() - 1
        });
        let one = &mut machine.pci[at];
        (one.link_now, one.link_most) = (one.link_now.or(now), one.link_most.or(most));
    }
    machine.pci.sort_by(|a, b| a.address.cmp(&b.address));
}

/// Adds GPUs of a text. A second GPU of one number, at another address or of another UUID, is of
/// another machine or time: which is meant is not known, and it is left out.
pub(crate) fn gpus(captured: &mut Captured, new: Vec<GpuFacts>) {
    for gpu in new {
        let other = captured.machine.gpus.iter().find(|known| {
            let number = known.index.known().filter(|number| gpu.index.known() == Some(*number));
            let pci = known.pci.as_ref().zip(gpu.pci.as_ref());
            let uuids = known.uuid.known().zip(gpu.uuid.known());
            let differ = pci.map(|(a, b)| a != b).or(uuids.map(|(a, b)| a != b));
            number.is_some() && differ == Some(true)
        });
        match other {
            Some(other) => {
                let named = |gpu: &GpuFacts| {
                    let uuid = gpu.uuid.known().map(|uuid| uuid.to_string());
                    gpu.pci.clone().or(uuid).unwrap_or_default()
                };
                let number = gpu.index.known().copied().unwrap_or_default();
                let (first, second) = (named(other), named(&gpu));
                captured.conflict(format!(
                    "Two GPUs have the number {number}: {first} and {second}. One of them is of \
                     another machine or time; {second}, the later one, is left out."
                ));
            }
            None => gpuio_host::nvidia_gpu::merge(&mut captured.machine.gpus, vec![gpu]),
        }
    }
}

/// Lists the GPUs among the PCI functions.
fn gpus_on_pci(machine: &mut Machine) {
    let is_gpu = |one: &&PciFacts| {
        one.vendor == Some(pci_names::NVIDIA) && one.class.is_some_and(|class| class >> 16 == 3)
    };
    let known =
        |one: &PciFacts| machine.gpus.iter().any(|gpu| gpu.pci.as_ref() == Some(&one.address));
    let missing = machine.pci.iter().filter(is_gpu).filter(|one| !known(one));
    let missing: Vec<GpuFacts> = missing
        .take(crate::MOST_GPUS)
        .map(|one| GpuFacts {
            pci: Some(one.address.clone()),
            node: one.node,
            name: Fact::unknown("PCI shows only the chip's name"),
            ..GpuFacts::default()
        })
        .collect();
    if missing.is_empty() {
        return;
    }
    // GPUs that a matrix alone numbers are the same ones where there are as many.
    let by_number = machine.gpus.iter().all(|gpu| gpu.pci.is_none() && gpu.uuid.known().is_none());
    if by_number && !machine.gpus.is_empty() && machine.gpus.len() == missing.len() {
        machine.gpus.clear();
    }
    gpuio_host::nvidia_gpu::merge(&mut machine.gpus, missing);
}
