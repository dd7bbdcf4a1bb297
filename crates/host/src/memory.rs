//! Memory: `/proc/meminfo` and the control group's limit.

use std::path::PathBuf;

use gpuio_record::facts::{CgroupLimit, HugePages, MemoryFacts};

use crate::parse::{count_field, keep, kib_field};
use crate::{HostError, LineFault, Root, cgroup, page_cache};

/// A version 1 limit at or above this means no limit: the kernel prints `LONG_MAX` cut to pages.
const V1_UNLIMITED: u64 = 1 << 62;

/// Reads memory sizes and limits. A value that cannot be understood goes to `problems`.
pub fn read(root: &Root, problems: &mut Vec<HostError>) -> MemoryFacts {
    let info = keep(meminfo(root), problems).unwrap_or_default();
    let cgroup = keep(cgroup_limit(root), problems);
    let limit = cgroup.as_ref().map(|group| group.limit_bytes);
    MemoryFacts {
        usable_bytes: [info.total_bytes, limit].into_iter().flatten().min(),
        cgroup,
        ..info
    }
}

/// Bytes that drivers and the kernel hold in memory by pins (`pin_user_pages(9)`): `nr_foll_pin_*`
/// of `/proc/vmstat`, Linux 5.7 and later. Drivers that pin in other ways are not counted. `None`
/// where the kernel does not say.
pub fn pinned_bytes(root: &Root) -> Option<u64> {
    let text = root.read("proc/vmstat").ok()??;
    let pages = text.parse(parse_pins).ok()??;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Pages whose pins were taken and not given back, by `/proc/vmstat`; `None` without these lines.
///
/// # Errors
/// [`LineFault`] when a line is there and its value has another form.
pub fn parse_pins(text: &str) -> Result<Option<u64>, LineFault> {
    let count = |name: &str| {
        let lines = text.lines().enumerate();
        let mut values = lines.filter_map(|(at, line)| Some((at, line.strip_prefix(name)?.trim())));
        let parsed = values.next().map(|(at, value)| {
            value.parse::<u64>().map_err(|_| LineFault::new(at, value, "an unsigned number"))
        });
        parsed.transpose()
    };
    let (taken, released) = (count("nr_foll_pin_acquired ")?, count("nr_foll_pin_released ")?);
    Ok(taken.zip(released).map(|(taken, released)| taken.saturating_sub(released)))
}

fn meminfo(root: &Root) -> Result<Option<MemoryFacts>, HostError> {
    let Some(text) = root.read("proc/meminfo")? else {
        return Ok(None);
    };
    text.parse(parse_meminfo).map(Some)
}

/// The sizes of `/proc/meminfo` (proc_meminfo(5)); `cgroup` and `usable_bytes` stay `None`.
///
/// # Errors
/// [`LineFault`] when a line is there and its value has another form.
pub fn parse_meminfo(text: &str) -> Result<MemoryFacts, LineFault> {
    let total = count_field(text, "HugePages_Total")?;
    let free = count_field(text, "HugePages_Free")?;
    let page_bytes = kib_field(text, "Hugepagesize")?;
    let huge_pages = match (total, free, page_bytes) {
        (Some(total), Some(free), Some(page_bytes)) => Some(HugePages { total, free, page_bytes }),
        _ => None,
    };
    Ok(MemoryFacts {
        total_bytes: kib_field(text, "MemTotal")?,
        available_bytes: kib_field(text, "MemAvailable")?,
        dirty_bytes: kib_field(text, "Dirty")?,
        huge_pages,
        cgroup: None,
        usable_bytes: None,
    })
}

/// Bytes of page cache that can be filled without swapping and without eviction of what was filled
/// before: `MemAvailable`, and in a control group no more than its limit without what is used there
/// by other things than files. Clean pages of files count as available in both. `None` where the
/// kernel does not say.
pub fn available_bytes(root: &Root) -> Option<u64> {
    let machine = page_cache::sample(root).ok()??.available?;
    let groups = limits(root).unwrap_or_default();
    groups.iter().filter_map(|limit| limit.available(root)).chain([machine]).min()
}

/// The tightest limit on this process.
fn cgroup_limit(root: &Root) -> Result<Option<CgroupLimit>, HostError> {
    let tightest = limits(root)?.into_iter().min_by_key(|limit| limit.bytes);
    Ok(tightest.map(|limit| CgroupLimit {
        version: if limit.unified { 2 } else { 1 },
        path: limit.path.to_string_lossy().into_owned(),
        limit_bytes: limit.bytes,
    }))
}

/// A limit of a control group.
struct Limit {
    /// Whether it is of the version 2 hierarchy.
    unified: bool,
    /// The group's directory.
    directory: PathBuf,
    /// The file that has it.
    path: PathBuf,
    bytes: u64,
}

impl Limit {
    fn available(&self, root: &Root) -> Option<u64> {
        let [used, start] = match self.unified {
            true => ["memory.current", ""],
            false => ["memory.usage_in_bytes", "total_"],
        };
        let used = root.number(self.directory.join(used)).ok()??;
        let stat = root.read(self.directory.join("memory.stat")).ok()??;
        let pages = |kind: &str| {
            let name = format!("{start}{kind}_file");
            let values = stat.body.lines().filter_map(|line| line.split_once(' '));
            values.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse::<u64>().ok())
        };
        let files = pages("active")?.saturating_add(pages("inactive")?);
        Some(self.bytes.saturating_sub(used.saturating_sub(files)))
    }
}

/// The limits on this process: of its own group and every group above it that is in sight, in
/// version 2 and version 1 hierarchies (a machine may have both).
fn limits(root: &Root) -> Result<Vec<Limit>, HostError> {
    let mut found = Vec::new();
    for (group, mount) in cgroup::groups(root, "memory")? {
        let unified = group.unified;
        let file = if unified { "memory.max" } else { "memory.limit_in_bytes" };
        for directory in group.directories(&mount) {
            let Some(text) = root.read(directory.join(file))? else {
                continue;
            };
            if let Some(bytes) = text.parse(parse_limit)? {
                found.push(Limit { unified, directory, path: text.path, bytes });
            }
        }
    }
    Ok(found)
}

/// A limit file's value in bytes; `None` for `max` and for version 1's huge number.
///
/// # Errors
/// [`LineFault`] when it is neither `max` nor a number.
pub fn parse_limit(text: &str) -> Result<Option<u64>, LineFault> {
    let word = text.trim();
    if word == "max" || word == "-1" {
        return Ok(None);
    }
    let limit: u64 = word.parse().map_err(|_| LineFault::new(0, word, "max or a number"))?;
    Ok((limit < V1_UNLIMITED).then_some(limit))
}
