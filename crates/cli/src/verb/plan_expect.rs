//! Expected performance of the pairs of `gpuio plan`, and of described systems.

use std::path::Path;

use gpuio_host::input;
use gpuio_machine::check;
use gpuio_machine::flow::{
    End, Figures, HostPortions, Pattern, Storage, Stream, of_hosts, of_machine, paper,
    portions_of_streams,
};
use gpuio_machine::pair::{
    By, Direction, Given, Load, Pair, PairExpected, Pairing, Regroup, StoreKind, Wanted,
    second_choice,
};
use gpuio_machine::topo::{Class, Topology};
use gpuio_record::facts::Machine;
use gpuio_record::{Expected, Towards};

use crate::failure::Failure;

/// The output of `--system`.
pub(super) fn on_paper(path: &Path, figures: Figures) -> Result<paper::Answer, Failure> {
    let name = path.display().to_string();
    let text = input::read_text(path, input::MOST_WRITTEN)
        .map_err(|error| Failure::Usage(format!("--system {name}: {error}")))?;
    let system = paper::System::read(&name, &text, figures);
    Ok(system.map_err(|error| Failure::Usage(format!("--system: {error}")))?.answer())
}

/// Computes all pairs at once.
pub(super) fn set(machine: &Machine, figures: &Figures, pairing: &mut Pairing) {
    let transfers: Vec<By> = pairing.pairs.iter().map(|pair| transfer_by(machine, pair)).collect();
    let load = pairing.load;
    let streams: Vec<Stream> =
        pairing.pairs.iter().zip(&transfers).map(|(pair, by)| stream(pair, *by, load)).collect();
    let answer = of_machine(machine, figures, &streams);
    let expected = answer.streams.into_iter().zip(transfers);
    let expected = expected.map(|(one, by)| PairExpected { by, expected: one.expected });
    pairing.set_expected(expected.collect(), answer.total);
    let to_gpus = pairing.pairs.iter().any(|pair| pair.gpu.is_some() && !pair.stores.is_empty());
    if to_gpus && !machine.modules.iter().any(|module| module.name == "nvidia_fs") {
        let unknown = match machine.modules.is_empty() {
            true => "No list of modules (lsmod) is among what was read",
            false => "The list of modules (lsmod) may be a part, without nvidia_fs",
        };
        pairing.notes.push(format!("{unknown}: figures are for paths through host memory."));
    }
    for nth in 0..pairing.regroup.len() {
        let expected = regrouped(machine, figures, pairing, &pairing.regroup[nth]);
        pairing.regroup[nth].expected = expected;
    }
}

/// Adds the second choice where only that has a figure.
pub(super) fn set_second(
    machine: &Machine,
    topology: &Topology,
    wanted: &Wanted,
    figures: &Figures,
    pairing: &mut Pairing,
) {
    let known = |pairing: &Pairing| {
        pairing.total.as_ref().is_some_and(|total| total.bytes_per_s.or(total.iops).is_some())
    };
    if known(pairing) {
        return;
    }
    let Some(mut second) = second_choice(machine, topology, wanted) else { return };
    set(machine, figures, &mut second);
    if known(&second) {
        pairing.second_choice = Some(Box::new(second));
    }
}

/// Computes all pairs of all hosts at once; returns what all should reach together. `own_servers`
/// has hosts whose servers can't be recognised on others.
pub(super) fn set_hosts(
    hosts: &mut [(String, &Machine, Pairing)],
    figures: &Figures,
    own_servers: &[bool],
) -> Expected {
    let by: Vec<Vec<By>> = hosts
        .iter()
        .map(|(_, machine, plan)| plan.pairs.iter().map(|p| transfer_by(machine, p)).collect())
        .collect();
    let portions =
        hosts.iter().zip(&by).zip(own_servers).map(|(((name, machine, plan), by), own)| {
            let pairs = plan.pairs.iter().zip(by);
            let streams: Vec<Stream> = pairs.map(|(p, by)| stream(p, *by, plan.load)).collect();
            let portions = portions_of_streams(machine, figures, &streams).into_iter();
            let portions = portions.map(|one| if *own { one.with_own_servers() } else { one });
            HostPortions { host: name.clone(), portions: portions.collect() }
        });
    let answer = of_hosts(&portions.collect::<Vec<_>>());
    for (((_, _, plan), by), host) in hosts.iter_mut().zip(by).zip(answer.hosts) {
        let pairs = host.streams.into_iter().zip(by);
        let pairs = pairs.map(|(one, by)| PairExpected { by, expected: one.expected });
        plan.set_expected(pairs.collect(), host.total);
    }
    answer.total
}

/// Expected throughput of GPUs on the suggested arrays. Only members that share the load evenly,
/// without redundancy, can be computed as independent drives.
fn regrouped(
    machine: &Machine,
    figures: &Figures,
    pairing: &Pairing,
    regroup: &Regroup,
) -> Option<PairExpected> {
    if regroup.hindrance.is_some() || regroup.level.as_deref() != Some("raid0") {
        return None;
    }
    let near = regroup.groups.iter().all(|group| below_a_switch(group.class));
    let by = if near && has_nvidia_fs(machine) { By::Direct } else { By::HostMemory };
    let streams = regroup.groups.iter().flat_map(|group| {
        let own = |pair: &&Pair| pair.gpu.as_ref().is_some_and(|gpu| group.gpus.contains(gpu));
        pairing.pairs.iter().filter(own).map(move |pair| {
            let members = group.members.iter().map(|name| Storage::Device(name.clone()));
            Stream { storage: members.collect(), ..stream(pair, by, pairing.load) }
        })
    });
    let expected = of_machine(machine, figures, &streams.collect::<Vec<_>>()).total;
    Some(PairExpected { by, expected })
}

/// Direct if nvidia-fs is loaded, every drive or card shares a PCIe switch with the GPU, gdscheck
/// printed no such drive as unsupported, and nothing rules GDS out: no maker publishes peer-to-peer
/// rates through the processor.
fn transfer_by(machine: &Machine, pair: &Pair) -> By {
    let near = pair.stores.iter().all(|given| below_a_switch(given.farthest));
    let straight = near && !pair.stores.is_empty() && pair.gpu.is_some();
    let place = |given: &Given| match given.kind {
        StoreKind::Mount | StoreKind::NetworkMount => given.name.clone(),
        StoreKind::Array | StoreKind::Drive => {
            format!("/dev/{}", given.name.trim_start_matches("/dev/"))
        }
    };
    let is_excluded = |given: &Given| check::is_without_nvidia_fs(machine, &place(given));
    let served = || !pair.stores.iter().any(is_excluded);
    let direct = straight && has_nvidia_fs(machine) && served() && !is_ruled_out(machine, pair);
    if direct { By::Direct } else { By::HostMemory }
}

/// Whether GDS is off between the GPU and one of its mounts, as `gpuio why` concludes.
fn is_ruled_out(machine: &Machine, pair: &Pair) -> bool {
    let Some(gpu) = pair.pci.as_deref().and_then(|pci| check::gpu_of(machine, pci)) else {
        return false;
    };
    let mut mounts = pair.stores.iter().filter(|given| given.directory.is_some());
    mounts.any(|given| {
        check::mount_of(machine, &given.name).is_some_and(|mount| {
            let pair = check::Pair { machine, mount, gpu: check::Gpu::Real(gpu) };
            check::why::of(&check::verdict(&pair, &given.name)).gds == check::Answer::No
        })
    })
}

fn has_nvidia_fs(machine: &Machine) -> bool {
    machine.modules.iter().any(|module| module.name == "nvidia_fs" && module.loaded)
}

fn below_a_switch(class: Option<Class>) -> bool {
    class.is_some_and(|class| class <= Class::Pxb)
}

fn stream(pair: &Pair, by: By, load: Load) -> Stream {
    let storage = pair.stores.iter().map(|given| match given.kind {
        StoreKind::Mount | StoreKind::NetworkMount => Storage::Mount(given.name.clone()),
        StoreKind::Array | StoreKind::Drive => {
            Storage::Device(given.name.trim_start_matches("/dev/").to_owned())
        }
    });
    let first = pair.stores.first().map(|given| given.name.clone());
    Stream {
        name: pair.gpu.clone().or(first).unwrap_or_default(),
        storage: storage.collect(),
        end: match (&pair.gpu, &pair.pci) {
            (None, _) => End::Host,
            (Some(_), Some(pci)) => End::Gpu(pci.clone()),
            (Some(_), None) => End::Uncounted,
        },
        by: match by {
            By::Direct => gpuio_machine::flow::By::Direct,
            By::HostMemory => gpuio_machine::flow::By::Host,
        },
        towards: match load.direction {
            Direction::Read => Towards::Read,
            Direction::Write => Towards::Write,
        },
        block_bytes: load.block_bytes,
        pattern: if load.random { Pattern::Random } else { Pattern::Sequential },
        // Start values are chosen so that depth is not the limit.
        in_flight: None,
        requested_bytes_per_s: None,
    }
}
