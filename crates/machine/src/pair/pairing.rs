//! Pairs GPUs with storage.

use crate::topo::{Class, DeviceKind, Topology};
use gpuio_base::units::parse_index_list;
use gpuio_record::Expected;
use gpuio_record::facts::Machine;

use crate::pair::assign::assign;
use crate::pair::distance::Distance;
use crate::pair::store::{Stock, Store, Tier, leaves, stock};
use crate::pair::{
    DeviceAbsent, Given, NotUsed, Pair, PairExpected, Pairing, Start, StoreKind, Wanted, distance,
    links, mount_lines, nics, raw, reason, regroup, start,
};

/// Version of [`Pairing`]'s JSON.
const SCHEMA: u32 = 1;

impl Pairing {
    /// Takes in what was reckoned for each pair, in their order, and for all. Where rate and
    /// latency are known, start values are made anew from them by Little's law.
    pub fn set_expected(&mut self, pairs: Vec<PairExpected>, total: Expected) {
        for (index, expected) in pairs.into_iter().enumerate().take(self.pairs.len()) {
            start::refine(&mut self.pairs, index, &expected.expected, self.all_cpus);
            self.pairs[index].expected = Some(expected);
        }
        self.total = Some(total);
    }
}

/// Pairs the GPUs that are wanted with storage.
///
/// Deterministic, and the order of the machine's lists does not matter where GPUs have numbers.
///
/// # Errors
/// A GPU, mount or drive that was named and is not there, or can't be used for such a load.
pub fn pair(
    machine: &Machine,
    topology: &Topology,
    wanted: &Wanted,
) -> Result<Pairing, DeviceAbsent> {
    let stock = stock(machine, topology, wanted)?;
    pair_with(machine, topology, wanted, &stock)
}

/// The pairing with the next kind of storage, where none was named and there is one that is not the
/// system's own.
pub fn second_choice(machine: &Machine, topology: &Topology, wanted: &Wanted) -> Option<Pairing> {
    if wanted.names_storage() {
        return None;
    }
    let mut stock = stock(machine, topology, wanted).ok()?;
    let best = stock.stores.iter().map(|store| store.tier).min()?;
    stock.stores.retain(|store| store.tier != best && store.tier != Tier::System);
    stock.not_used.clear();
    if stock.stores.is_empty() {
        return None;
    }
    pair_with(machine, topology, wanted, &stock).ok()
}

fn pair_with(
    machine: &Machine,
    topology: &Topology,
    wanted: &Wanted,
    stock: &Stock,
) -> Result<Pairing, DeviceAbsent> {
    let gpus = wanted_gpus(topology, &wanted.gpus)?;
    let cpu = &machine.host.cpu;
    let named = wanted.names_storage();
    let mut pairing = Pairing {
        gpuio_plan: SCHEMA,
        load: wanted.load,
        pairs: Vec::new(),
        total: None,
        shared_links: Vec::new(),
        regroup: Vec::new(),
        new_arrays: None,
        mount_commands: Vec::new(),
        unused_nics: Vec::new(),
        not_used: Vec::new(),
        second_choice: None,
        notes: Vec::new(),
        all_cpus: cpu.allowed.as_ref().or(cpu.online.as_ref()).map(Vec::len),
    };
    let (first, rest) = first_tier(stock, named);
    pairing.pairs = if gpus.is_empty() {
        first.iter().map(|store| to_host_memory(machine, topology, store)).collect()
    } else {
        let mut pairs: Vec<Pair> =
            gpus.iter().map(|gpu| empty_pair(machine, topology, *gpu)).collect();
        let kept = if named { first.clone() } else { near(topology, &gpus, &first) };
        give(machine, topology, &gpus, &kept, &mut pairs, |pair| &mut pair.stores);
        let network: Vec<&Store> =
            rest.iter().copied().filter(|store| store.tier == Tier::Network).collect();
        let network = near(topology, &gpus, &network);
        give(machine, topology, &gpus, &network, &mut pairs, |pair| &mut pair.network);
        pairs
    };
    for pair in &mut pairing.pairs {
        pair.why = reason::why(topology, pair);
    }
    start::set(&mut pairing.pairs, wanted.load, pairing.all_cpus);
    pairing.shared_links = links::shared(machine, topology, &pairing.pairs);
    pairing.regroup = regroup::suggest(machine, topology, &gpus, &first);
    if !named && first.iter().all(|store| store.tier >= Tier::Raw) {
        pairing.new_arrays = raw::arrays(machine, topology, &gpus, wanted)?;
    }
    pairing.mount_commands = mount_lines::commands(machine, &pairing.pairs);
    pairing.unused_nics = nics::unused(&pairing.pairs);
    pairing.not_used = left_over(topology, &gpus, &pairing, stock, (&first, &rest));
    let tier = first.first().map(|store| store.tier);
    reason::notes(machine, topology, &mut pairing, tier);
    Ok(pairing)
}

fn wanted_gpus<'w>(topology: &Topology, wanted: &'w [String]) -> Result<Vec<usize>, DeviceAbsent> {
    let all: Vec<usize> = topology.of_kind(DeviceKind::Gpu).map(|(index, _)| index).collect();
    // The word that bench takes, too.
    if wanted.is_empty() || wanted.iter().any(|name| name == "all") {
        return Ok(all);
    }
    // As in bench: numbers and ranges of them.
    let each = |given: &'w String| {
        let names = match parse_index_list(given) {
            Ok(numbers) => numbers.iter().map(|number| format!("GPU{number}")).collect(),
            Err(_) => vec![given.clone()],
        };
        names.into_iter().map(move |name| (given, name))
    };
    let find = |(given, name): (&String, String)| {
        let index = topology.find(&name);
        index.filter(|index| all.contains(index)).ok_or_else(|| {
            let known: Vec<&str> =
                all.iter().map(|index| topology.devices[*index].name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let why = format!("no such GPU; there are: {known}");
            DeviceAbsent { flag: "--gpu", name: given.clone(), why }
        })
    };
    let mut found: Vec<usize> = wanted.iter().flat_map(each).map(find).collect::<Result<_, _>>()?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The stores that jobs open, and the others: all that were named, else the best kind there is.
fn first_tier(stock: &Stock, named: bool) -> (Vec<&Store>, Vec<&Store>) {
    let best = stock.stores.iter().map(|store| store.tier).min();
    stock.stores.iter().partition(|store| named || Some(store.tier) == best)
}

fn empty_pair(machine: &Machine, topology: &Topology, gpu: usize) -> Pair {
    let device = &topology.devices[gpu];
    let row = topology.affinity.iter().find(|row| row.gpu == device.name);
    Pair {
        gpu: Some(device.name.clone()),
        pci: device.pci.first().cloned(),
        node: device.node,
        near_nodes: row.map(|row| row.near_nodes.clone()).unwrap_or_default(),
        cpus: row.and_then(|row| row.cpus.clone()),
        stores: Vec::new(),
        network: Vec::new(),
        nics: row.map(|row| nics::near(machine, &topology.devices, row)).unwrap_or_default(),
        why: String::new(),
        start: Start::default(),
        expected: None,
    }
}

fn to_host_memory(machine: &Machine, topology: &Topology, store: &Store) -> Pair {
    let mut nodes = store.parts.iter().map(|part| topology.devices[*part].node);
    let node = nodes.next().flatten().filter(|first| nodes.all(|other| other == Some(*first)));
    let facts = machine.host.numa.nodes.iter().find(|facts| Some(facts.node) == node);
    Pair {
        gpu: None,
        pci: None,
        node,
        near_nodes: Vec::new(),
        cpus: facts.and_then(|facts| facts.cpus.clone()),
        stores: vec![given(machine, topology, None, store)],
        network: Vec::new(),
        nics: Vec::new(),
        why: String::new(),
        start: Start::default(),
        expected: None,
    }
}

/// How far each store is from each GPU: what is beyond the reach of the GPU's nearest counts as
/// farther than all else.
fn distances(topology: &Topology, gpus: &[usize], stores: &[&Store]) -> Vec<Vec<Distance>> {
    let row = |gpu: &usize| -> Vec<Distance> {
        let all: Vec<Distance> =
            stores.iter().map(|store| distance::mean(topology, *gpu, &store.parts)).collect();
        let nearest = all.iter().map(|one| one.reach()).min();
        let marked = all.into_iter().map(|one| match nearest {
            Some(nearest) if one.reach() > nearest => one.out_of_reach(),
            _ => one,
        });
        marked.collect()
    };
    gpus.iter().map(row).collect()
}

/// The stores that at least one GPU has nothing nearer than: far ones would slow its job down, and
/// are taken where they are named.
fn near<'s>(topology: &Topology, gpus: &[usize], stores: &[&'s Store]) -> Vec<&'s Store> {
    let distances = distances(topology, gpus, stores);
    let in_reach = |at: usize| {
        let mut rows = gpus.iter().zip(&distances);
        rows.any(|(gpu, row)| distance::mean(topology, *gpu, &stores[at].parts) == row[at])
    };
    let kept = stores.iter().enumerate().filter(|(at, _)| in_reach(*at));
    kept.map(|(_, store)| *store).collect()
}

/// Assigns stores to GPUs and writes them into one list of each pair.
fn give(
    machine: &Machine,
    topology: &Topology,
    gpus: &[usize],
    stores: &[&Store],
    pairs: &mut [Pair],
    list: fn(&mut Pair) -> &mut Vec<Given>,
) {
    let assigned = assign(&distances(topology, gpus, stores));
    for (gpu, store) in &assigned {
        let mut given = given(machine, topology, Some(gpus[*gpu]), stores[*store]);
        let others = assigned.iter().filter(|(other, same)| same == store && other != gpu);
        let names = others.map(|(other, _)| topology.devices[gpus[*other]].name.clone());
        given.shared_with = names.collect();
        list(&mut pairs[*gpu]).push(given);
    }
}

fn given(machine: &Machine, topology: &Topology, gpu: Option<usize>, store: &Store) -> Given {
    let classes: Option<Vec<Class>> = gpu.and_then(|gpu| {
        store.parts.iter().map(|part| distance::class(topology, gpu, *part)).collect()
    });
    let classes = classes.unwrap_or_default();
    let class = classes.iter().min().copied();
    let name = |part: &usize| topology.devices[*part].name.clone();
    Given {
        name: store.name.clone(),
        kind: store.kind,
        directory: store.directory.clone(),
        on: store.on.clone(),
        drives: if store.card { Vec::new() } else { store.parts.iter().map(name).collect() },
        nic: store.parts.first().filter(|_| store.card).map(name),
        nic_megabits: store
            .parts
            .first()
            .filter(|_| store.card)
            .and_then(|card| nics::megabits(nics::facts(machine, &topology.devices[*card])?)),
        class,
        farthest: classes.iter().max().copied(),
        near: classes.iter().filter(|one| Some(**one) == class).count(),
        of: store.parts.len() - further_ways(machine, topology, store),
        shared_with: Vec::new(),
    }
}

/// Disks of a store that are further ways to a drive which another of its disks is a way to.
fn further_ways(machine: &Machine, topology: &Topology, store: &Store) -> usize {
    let disks: Vec<&str> = store.parts.iter().map(|p| topology.devices[*p].name.as_str()).collect();
    let joined = machine.block.iter().filter(|one| one.mapper.as_deref() == Some("mpath"));
    let ways = joined.map(|one| {
        let ways = leaves(machine, &one.made_of);
        ways.iter().filter(|way| disks.contains(&way.as_str())).count().saturating_sub(1)
    });
    ways.sum()
}

/// Why a store of the kind that jobs open was left out, and how to ask for it.
fn too_far(topology: &Topology, gpus: &[usize], store: &Store) -> String {
    let classes: Vec<Option<Class>> = gpus
        .iter()
        .flat_map(|gpu| store.parts.iter().map(|part| distance::class(topology, *gpu, *part)))
        .collect();
    let nearest = classes.iter().flatten().min();
    let how_far = match nearest {
        Some(class) => format!("{} at best", class.name()),
        None => "its distance is not known".to_owned(),
    };
    let flag = match store.kind {
        StoreKind::Mount | StoreKind::NetworkMount => "--mount",
        StoreKind::Array | StoreKind::Drive => "--drive",
    };
    let nearer = if gpus.len() == 1 { "the GPU has something" } else { "every GPU has something" };
    format!("{how_far}, and {nearer} nearer; {flag} takes it all the same")
}

/// Devices that no pair uses, with the reason.
fn left_over(
    topology: &Topology,
    gpus: &[usize],
    pairing: &Pairing,
    stock: &Stock,
    (first, rest): (&[&Store], &[&Store]),
) -> Vec<NotUsed> {
    let given = |store: &&&Store| {
        let lists = pairing.pairs.iter().flat_map(|pair| [&pair.stores, &pair.network]);
        lists.flatten().any(|given| given.name == store.name)
    };
    let not_used =
        |store: &&Store, why: &str| NotUsed { name: store.name.clone(), why: why.to_owned() };
    let passed = first.iter().filter(|store| !given(store));
    let passed = passed.map(|store| not_used(store, &too_far(topology, gpus, store)));
    let others = rest.iter().filter(|store| !given(store)).map(|store| {
        not_used(
            store,
            match store.tier {
                Tier::System => "it is on the system's own disk; --mount takes it all the same",
                Tier::Raw => "no file system is known on it, and others have one; --drive takes it",
                Tier::Network => "local storage comes first; --mount takes it",
                Tier::Files => "others were named",
            },
        )
    });
    passed.chain(others).chain(stock.not_used.iter().cloned()).collect()
}
