//! Bytes that crossed the PCIe links of a job's GPUs, by NVML: whether bytes reached the GPU.

use gpuio_record::JobPlan;

use super::{JobFlow, Observation, Source, size};
use crate::evidence::group::{Flow, on_gpu};
use crate::evidence::pcie_meter::{Links, Meter};
use crate::evidence::verdict::{Observed, PathKind};

pub(super) const SOURCE: Source = Source {
    name: "gpu_pcie",
    source: "NVML fields 197 and 198 of the job's GPUs, all processes together",
    observe,
};

/// Begins to add up what the links of the jobs' GPUs carry.
pub(crate) fn meter(jobs: &[JobPlan]) -> Result<Meter, String> {
    let mut uuids: Vec<String> = jobs.iter().flat_map(real).collect();
    uuids.sort();
    uuids.dedup();
    match uuids.is_empty() {
        true => Err("no GPU with a PCIe link is in the group".to_owned()),
        false => Meter::start(uuids),
    }
}

/// UUIDs of a job's GPUs that are hardware.
fn real(job: &JobPlan) -> Vec<String> {
    let real = job.gpus.iter().filter(|gpu| !gpu.software);
    real.map(|gpu| gpu.uuid.clone()).collect()
}

/// The bytes on the links of several GPUs in one direction.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    bytes: u64,
    first: u64,
    last: u64,
    other_links: bool,
}

/// All links of `uuids` together, from the GPUs' side: they receive what is read from files.
fn sum(links: &Result<Links, String>, uuids: &[String], flow: Flow) -> Result<Sum, String> {
    let links = links.as_ref().map_err(String::clone)?;
    let at = usize::from(flow == Flow::Read);
    let mut sum = Sum { bytes: 0, first: 0, last: 0, other_links: false };
    for uuid in uuids {
        let link = links.iter().find(|(of, _)| of == uuid);
        let (_, carried) = link.ok_or_else(|| format!("{uuid} was not read"))?;
        let carried = carried.as_ref().map_err(String::clone)?;
        sum.bytes = sum.bytes.saturating_add(carried.bytes.as_ref().map_err(String::clone)?[at]);
        sum.first = sum.first.saturating_add(carried.first[at]);
        sum.last = sum.last.saturating_add(carried.last[at]);
        sum.other_links |= carried.other_links > 0;
    }
    Ok(sum)
}

/// Whether links that carried `moved` carried the job's `own` bytes, among `of` of all jobs.
fn interpret(moved: u64, own: u64, of: u64, other_links: bool) -> Observed {
    if own == 0 {
        Observed::Nothing
    } else if moved >= of.saturating_sub(own / 10) {
        Observed::Reached(true)
    } else if moved < own.div_ceil(20) && !other_links {
        Observed::Reached(false)
    } else {
        Observed::Nothing
    }
}

fn observe(one: &JobFlow<'_>) -> Observation {
    let job = one.job();
    let uuids = real(job);
    if uuids.is_empty() {
        return Observation::none("the job has no GPU with a PCIe link");
    }
    if !on_gpu(job) || PathKind::of(&job.path.choice.actual) == PathKind::User {
        return Observation::none("the bytes were requested in host memory");
    }
    if PathKind::of(&job.path.choice.actual) == PathKind::Relay {
        return Observation::none("between GPUs bytes may take NVLink, which is not PCIe");
    }
    let sum = match sum(&one.readings.links, &uuids, one.flow) {
        Ok(sum) => sum,
        Err(why) => return Observation::none(why),
    };
    let shares = |at: usize| real(&one.jobs[at]).iter().any(|uuid| uuids.contains(uuid));
    let (of, _) = one.share(sum.bytes, shares);
    let observed = interpret(sum.bytes, one.bytes(), of, sum.other_links);
    let what = if one.flow == Flow::Read { "received" } else { "sent" };
    Observation {
        before: Some(format!("{what} {}", sum.first)),
        after: Some(format!("{what} {}", sum.last)),
        moved: Some(sum.bytes),
        of: Some(of),
        observed,
        why: why(observed, &sum, of),
    }
}

fn why(observed: Observed, sum: &Sum, of: u64) -> String {
    let (carried, of) = (size(sum.bytes), size(of));
    match observed {
        Observed::Reached(true) => format!(
            "the GPU's link carried {carried} for {of} (headers and other traffic included); it \
             does not report the origin"
        ),
        Observed::Reached(_) => {
            format!("the GPU's link carried {carried} for {of}: they went elsewhere")
        }
        _ if sum.other_links => {
            format!("PCIe carried {carried} of {of}; this GPU also has links to a CPU")
        }
        _ => format!("the GPU's link carried {carried} of {of}: less than all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::pcie_meter::Carried;

    #[test]
    fn a_link_shows_whether_bytes_came_and_no_more() {
        assert_eq!(interpret(1080, 1000, 1000, false), Observed::Reached(true));
        assert_eq!(
            interpret(90_000, 1000, 1000, false),
            Observed::Reached(true),
            "others' traffic too"
        );
        assert_eq!(interpret(900, 1000, 1000, false), Observed::Reached(true));
        assert_eq!(interpret(800, 1000, 1000, false), Observed::Nothing);
        assert_eq!(interpret(40, 1000, 1000, false), Observed::Reached(false));
        assert_eq!(interpret(40, 1000, 1000, true), Observed::Nothing, "NVLink-C2C");
        assert_eq!(
            interpret(9_800, 1000, 10_000, false),
            Observed::Nothing,
            "a fifth may be missing"
        );
        assert_eq!(interpret(0, 0, 0, false), Observed::Nothing);
    }

    #[test]
    fn reads_are_received_and_links_are_summed() {
        let carried = |bytes| {
            let in_window = [0; 2];
            Carried { first: [1, 2], last: [3, 4], bytes, in_window, other_links: 0 }
        };
        let of = |uuid: &str, bytes| (uuid.to_owned(), Ok(carried(bytes)));
        let broken = ("c".to_owned(), Err("gone".to_owned()));
        let links = Ok(vec![of("a", Ok([10, 20])), of("b", Ok([30, 40])), broken]);
        let uuids = |names: &[&str]| names.iter().map(|&name| name.into()).collect::<Vec<String>>();
        let both = uuids(&["a", "b"]);
        let read = Sum { bytes: 60, first: 4, last: 8, other_links: false };
        assert_eq!(sum(&links, &both, Flow::Read), Ok(read));
        assert_eq!(sum(&links, &both, Flow::Write).map(|sum| sum.bytes), Ok(40));
        assert_eq!(sum(&links, &uuids(&["a", "c"]), Flow::Read), Err("gone".to_owned()));
        assert!(sum(&links, &uuids(&["d"]), Flow::Read).is_err());
    }
}
