//! The job file for the ranks of all hosts.

use gpuio_base::units::{format_bytes, host_list};

use super::{HostsPlan, ranks};
use crate::pair::format::{can_be_written, value};
use crate::pair::{Given, Pair};

/// Why there is no job file for all hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobFileRefusal {
    /// A host has nothing that a rank could open.
    #[error("{hosts}: no storage was found that a job could open; leave the captures out")]
    NoStorage { hosts: String },
    /// Some hosts have GPUs and others have none: all ranks run one load.
    #[error(
        "{hosts}: no GPU was found, and other hosts have some; all ranks run the same jobs: leave \
         the captures out, or plan those hosts by themselves"
    )]
    Mixed {
        /// The hosts without a GPU.
        hosts: String,
    },
    /// A name that a job file can't hold.
    #[error("host {host}: a job file can't have the name {name:?}")]
    Name { host: String, name: String },
}

/// The targets that a rank opens in one job, as lines of its place.
type Lines = String;

/// The job file: the same jobs for all ranks, and a section `[place HOSTS/NUMBER]` for what each
/// takes; hosts that take the same share it. A rank has one job for each store that every pair has
/// at least.
///
/// # Errors
/// [`JobFileRefusal`].
pub fn hosts_job_file(plan: &HostsPlan) -> Result<String, JobFileRefusal> {
    let all: Vec<(&str, u32, &Pair)> = plan
        .hosts
        .iter()
        .flat_map(|host| ranks(&host.plan).map(|(rank, pair)| (host.host.as_str(), rank, pair)))
        .collect();
    refuse(plan, &all)?;
    let stores = all.iter().map(|(.., pair)| pair.stores.len()).min().unwrap_or(1);
    let to_gpu = all.iter().any(|(.., pair)| pair.gpu.is_some());
    let mut out = head(plan, &all, stores);
    let most = |value: fn(&Pair) -> u32| all.iter().map(|(.., pair)| value(pair)).max();
    let threads = most(|pair| pair.start.threads).unwrap_or(1);
    let shares = u32::try_from(stores).unwrap_or(1);
    for number in 0..stores {
        out.push_str(&format!("\n[{}]\n", job_name(plan, number, stores)));
        out.push_str(if to_gpu { "path = auto\n" } else { "path = host\n" });
        if !to_gpu {
            let depth = most(|pair| pair.start.depth).unwrap_or(1);
            out.push_str(&format!("depth = {depth}\n"));
        }
        out.push_str(&format!("threads = {}\n", threads.div_ceil(shares)));
    }
    for (header, lines) in places(plan, &all, stores)? {
        out.push_str(&format!("\n[place {header}]\n{lines}"));
    }
    Ok(out)
}

fn refuse(plan: &HostsPlan, all: &[(&str, u32, &Pair)]) -> Result<(), JobFileRefusal> {
    let empty: Vec<&str> = plan
        .hosts
        .iter()
        .filter(|host| ranks(&host.plan).next().is_none())
        .map(|host| host.host.as_str())
        .collect();
    if !empty.is_empty() || all.is_empty() {
        return Err(JobFileRefusal::NoStorage { hosts: host_list(&empty) });
    }
    let mut without: Vec<&str> =
        all.iter().filter(|(.., pair)| pair.gpu.is_none()).map(|(host, ..)| *host).collect();
    without.dedup();
    if !without.is_empty() && without.len() < plan.hosts.len() {
        return Err(JobFileRefusal::Mixed { hosts: host_list(&without) });
    }
    Ok(())
}

fn head(plan: &HostsPlan, all: &[(&str, u32, &Pair)], stores: usize) -> String {
    let load = plan.load;
    let mut out = format!(
        "# Made by gpuio plan --hosts for {} on {}. A rank takes the place of its host and of its\n\
         # number there. Look first: add --dry-run. With Open MPI:\n\
         #   mpirun --bind-to none -np {} --host {} gpuio bench FILE\n",
        count(all.len(), "rank"),
        count(plan.hosts.len(), "host"),
        all.len(),
        slots(plan),
    );
    if all.iter().any(|(.., pair)| pair.gpu.is_some()) {
        out.push_str(
            "# GPU numbers are nvidia-smi's: with GPUs of several kinds set \
             CUDA_DEVICE_ORDER=PCI_BUS_ID.\n",
        );
    }
    let left: Vec<&str> = all
        .iter()
        .filter(|(.., pair)| pair.stores.len() > stores)
        .map(|(host, ..)| *host)
        .collect();
    if !left.is_empty() {
        let mut hosts = left.clone();
        hosts.dedup();
        out.push_str(&format!(
            "# Not all storage is used: {} of {} have more stores than the {stores} of every \
             rank.\n",
            count(left.len(), "rank"),
            host_list(&hosts),
        ));
    }
    out.push_str(&format!(
        "\n[global]\nrw = {}\nbs = {}\nruntime = 30s\n",
        load.rw(),
        format_bytes(load.block_bytes)
    ));
    out
}

/// `worker001:2,worker002:2`.
pub(super) fn slots(plan: &HostsPlan) -> String {
    let slots =
        plan.hosts.iter().map(|host| format!("{}:{}", host.host, ranks(&host.plan).count()));
    slots.collect::<Vec<_>>().join(",")
}

pub(super) fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

fn job_name(plan: &HostsPlan, number: usize, stores: usize) -> String {
    match stores {
        1 => plan.load.rw().to_owned(),
        _ => format!("{}-{}", plan.load.rw(), number + 1),
    }
}

/// Headers and lines, by local rank; hosts that take the same stand in one header.
fn places(
    plan: &HostsPlan,
    all: &[(&str, u32, &Pair)],
    stores: usize,
) -> Result<Vec<(String, Lines)>, JobFileRefusal> {
    let mut places: Vec<(u32, usize, Lines, Vec<&str>)> = Vec::new();
    for (host, rank, pair) in all {
        for (number, given) in pair.stores.iter().enumerate().take(stores) {
            let lines = lines(host, pair, given)?;
            let same = |known: &&mut (u32, usize, Lines, Vec<&str>)| {
                (known.0, known.1, &known.2) == (*rank, number, &lines)
            };
            match places.iter_mut().find(same) {
                Some(known) => known.3.push(host),
                None => places.push((*rank, number, lines, vec![host])),
            }
        }
    }
    places.sort_by_key(|(rank, number, ..)| (*rank, *number));
    let header = |(rank, number, lines, hosts): (u32, usize, Lines, Vec<&str>)| {
        let job = match stores {
            1 => String::new(),
            _ => format!(" {}", job_name(plan, number, stores)),
        };
        (format!("{}/{rank}{job}", hosts.join(",")), lines)
    };
    Ok(places.into_iter().map(header).collect())
}

fn lines(host: &str, pair: &Pair, given: &Given) -> Result<Lines, JobFileRefusal> {
    let target = given.directory.as_deref().unwrap_or(&given.name);
    let fit = |name: &str| can_be_written(name) && !name.contains(['[', ']', '{', '}']);
    for name in [target, host] {
        if !fit(name) || (name == host && name.contains([',', '/', '*', ' '])) {
            return Err(JobFileRefusal::Name { host: host.to_owned(), name: name.to_owned() });
        }
    }
    let mut out = String::new();
    if let Some(nic) = &given.nic {
        out.push_str(&format!("# over {nic}\n"));
    }
    match (&pair.gpu, pair.node) {
        (Some(gpu), _) => {
            let digits = gpu.trim_start_matches(|c: char| !c.is_ascii_digit());
            out.push_str(&format!("gpu = {digits}\n"));
        }
        (None, Some(node)) => out.push_str(&format!("numa = {node}\n")),
        (None, None) => {}
    }
    out.push_str(&match &given.directory {
        Some(directory) => format!("directory = {}\n", value(&directory.replace(':', "\\:"))),
        None => format!("filename = {}\n", value(&given.name).replace(':', "\\:")),
    });
    Ok(out)
}
