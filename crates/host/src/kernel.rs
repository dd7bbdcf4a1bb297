//! The kernel's release and the settings that decide which I/O it supports.
//!
//! The host's name is left out on purpose: records are meant to be shared.

use gpuio_record::facts::{Containment, KernelFacts, ResourceLimit};

use crate::parse::{chosen, field, keep};
use crate::{HostError, LineFault, Root};

/// Reads the kernel's facts. A value that cannot be understood goes to `problems` and stays `None`.
pub fn read(root: &Root, problems: &mut Vec<HostError>) -> KernelFacts {
    let limits = keep(root.read("proc/self/limits"), problems);
    let mut limit = |name: &str| {
        let text = limits.as_ref()?;
        keep(text.parse(|body| parse_limit(body, name)), problems)
    };
    let (memlock_bytes, open_files) = (limit("Max locked memory"), limit("Max open files"));
    let thp = keep(root.read("sys/kernel/mm/transparent_hugepage/enabled"), problems);
    KernelFacts {
        release: keep(root.word("proc/sys/kernel/osrelease"), problems),
        version: keep(root.word("proc/sys/kernel/version"), problems),
        io_uring_disabled: keep(root.number("proc/sys/kernel/io_uring_disabled"), problems),
        aio_max_events: keep(root.number("proc/sys/fs/aio-max-nr"), problems),
        aio_used_events: keep(root.number("proc/sys/fs/aio-nr"), problems),
        memlock_bytes,
        capabilities: capabilities(root, problems),
        open_files,
        transparent_huge_pages: thp.and_then(|text| chosen(&text.body)),
        containment: containment(root, problems),
    }
}

/// One line of `/proc/self/limits` (proc_pid_limits(5)): name, soft, hard, unit, in columns.
///
/// # Errors
/// [`LineFault`] when the line is there and its values are neither numbers nor `unlimited`.
pub fn parse_limit(limits: &str, name: &str) -> Result<Option<ResourceLimit>, LineFault> {
    for (index, line) in limits.lines().enumerate() {
        let Some(rest) = line.strip_prefix(name) else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let mut value = || match words.next() {
            Some("unlimited") => Ok(None),
            Some(word) => word.parse().map(Some).map_err(|_| ()),
            None => Err(()),
        };
        let malformed = |()| LineFault::new(index, line, "a soft and a hard limit");
        let soft = value().map_err(malformed)?;
        let hard = value().map_err(malformed)?;
        return Ok(Some(ResourceLimit { soft, hard }));
    }
    Ok(None)
}

/// `CapEff`, or none where this process is in a user namespace of its own.
fn capabilities(root: &Root, problems: &mut Vec<HostError>) -> Option<u64> {
    let status = keep(root.read("proc/self/status"), problems)?;
    let effective = keep(status.parse(parse_capabilities), problems)?;
    let map = keep(root.read("proc/self/uid_map"), problems)?;
    Some(if is_initial_namespace(&map.body) { effective } else { 0 })
}

/// `CapEff` of `/proc/self/status` (proc_pid_status(5)): a mask of bits in hexadecimal.
///
/// # Errors
/// [`LineFault`] when the line is there and holds no such number.
pub fn parse_capabilities(status: &str) -> Result<Option<u64>, LineFault> {
    let Some((index, mask)) = field(status, "CapEff") else { return Ok(None) };
    let malformed = |_| LineFault::new(index, mask, "a mask in hexadecimal");
    u64::from_str_radix(mask, 16).map(Some).map_err(malformed)
}

/// Whether `/proc/self/uid_map` is that of the first user namespace: all users as themselves
/// (user_namespaces(7)).
fn is_initial_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn containment(root: &Root, problems: &mut Vec<HostError>) -> Containment {
    let cpuinfo = keep(root.read("proc/cpuinfo"), problems);
    let dmi = "sys/class/dmi/id";
    Containment {
        container: keep(container(root), problems),
        hypervisor: cpuinfo.and_then(|text| parse_hypervisor(&text.body)),
        system_vendor: keep(root.word(format!("{dmi}/sys_vendor")), problems),
        product: keep(root.word(format!("{dmi}/product_name")), problems),
    }
}

/// Whether the first processor's `flags` hold `hypervisor`; `None` when there is no such line,
/// as on Arm.
pub fn parse_hypervisor(cpuinfo: &str) -> Option<bool> {
    let (_, flags) = field(cpuinfo, "flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The container's kind by the marks that its engine leaves. Kubernetes comes first, as its pods
/// carry their engine's marks too.
fn container(root: &Root) -> Result<Option<String>, HostError> {
    let marks = [
        ("var/run/secrets/kubernetes.io", "kubernetes"),
        ("run/secrets/kubernetes.io", "kubernetes"),
        ("run/.containerenv", "podman"),
        (".dockerenv", "docker"),
    ];
    if let Some((_, name)) = marks.iter().find(|(path, _)| root.exists(path)) {
        return Ok(Some((*name).to_owned()));
    }
    if let Some(container) = root.word("run/systemd/container")? {
        return Ok(Some(container));
    }
    let groups = root.read("proc/self/cgroup")?;
    Ok(groups.and_then(|text| container_of_cgroup(&text.body)).map(str::to_owned))
}

/// The container's kind by the names of this process's control groups.
pub fn container_of_cgroup(cgroup: &str) -> Option<&'static str> {
    let names =
        [("kubepods", "kubernetes"), ("libpod", "podman"), ("docker", "docker"), ("lxc", "lxc")];
    // `docker.service` is the engine itself, which runs on the bare machine.
    let belongs = |part: &str, name: &str| part.contains(name) && !part.ends_with(".service");
    names.iter().find_map(|(name, kind)| {
        let found = cgroup.lines().any(|line| line.split('/').any(|part| belongs(part, name)));
        found.then_some(*kind)
    })
}
