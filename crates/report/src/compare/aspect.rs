//! The properties that two results must have in common, or may differ in.

use gpuio_record::Order;

use crate::foreign::{Direction, Reading};

use crate::compare::job::{AROUND_THE_CACHE, Job, block_words, order_words, rate_words};
use crate::compare::keys::is_load;

/// The meaning of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Part of the request: results are paired by it, and a pair that differs is refused.
    Load,
    /// Something else that affects the figures: refused.
    Matters,
    /// Worth knowing: shown.
    Note,
}

/// A property of a result that can differ from that of another result.
#[derive(Debug, Clone, Copy)]
pub struct Aspect {
    /// Its key: in JSON, after `--despite`, and where results are split by it.
    pub key: &'static str,
    /// The value of `--despite` that permits it and related ones to differ.
    pub flag: &'static str,
    /// The meaning of a difference.
    pub kind: Kind,
    pub what: &'static str,
    /// The value that both sides must have, if only one is valid.
    pub must_be: Option<&'static str>,
    /// The value that is compatible with any other, if there is one.
    pub(crate) open: Option<&'static str>,
    /// The share by which two numbers may differ and still be the same.
    pub(crate) near: f64,
    /// Its value in a record's job.
    pub(crate) of_job: fn(&Job<'_>) -> Option<String>,
    /// Its value in another tool's result.
    pub(crate) of_reading: fn(&Reading) -> Option<String>,
}

impl Aspect {
    /// The narrowest value of `--despite` for it: for the load the key; for the rest the flag,
    /// whose keys describe one thing in several ways.
    pub(crate) fn word(&self) -> &'static str {
        if self.kind == Kind::Load { self.key } else { self.flag }
    }

    /// Whether two values are the same, or may be.
    pub(crate) fn agree(&self, a: &str, b: &str) -> bool {
        let either = || a.split(EITHER).any(|one| b.split(EITHER).any(|other| one == other));
        a == b || self.key == ORDER && either()
    }
}

type OfJob = fn(&Job<'_>) -> Option<String>;
type OfReading = fn(&Reading) -> Option<String>;

const fn aspect(
    (key, flag): (&'static str, &'static str),
    kind: Kind,
    what: &'static str,
    of_job: OfJob,
    of_reading: OfReading,
) -> Aspect {
    Aspect { key, flag, kind, what, must_be: None, open: None, near: 0.0, of_job, of_reading }
}

const fn load(key: &'static str, what: &'static str, job: OfJob, reading: OfReading) -> Aspect {
    aspect((key, "load"), Kind::Load, what, job, reading)
}

const fn matters(
    key: &'static str,
    flag: &'static str,
    what: &'static str,
    job: OfJob,
    reading: OfReading,
) -> Aspect {
    aspect((key, flag), Kind::Matters, what, job, reading)
}

const fn note(key: &'static str, what: &'static str, job: OfJob, reading: OfReading) -> Aspect {
    aspect((key, ""), Kind::Note, what, job, reading)
}

/// The aspect of the GPU's kind, and its value for results without a hardware GPU.
pub(crate) const SOFTWARE_GPU: &str = "software-gpu";
pub(crate) const SOFTWARE: &str = "software GPU";

/// The key of cuFile's settings, and their value for a path without it.
pub(crate) const CUFILE_SETTINGS: &str = "cufile-settings";
pub(crate) const WITHOUT_CUFILE: &str = "without cuFile";

/// The key of the order of offsets, and what separates the two that a result may have had.
pub(crate) const ORDER: &str = "order";
const EITHER: &str = " or ";

/// The key of the moment from which latencies count, and its values.
pub(crate) const SINCE: &str = "latency-since";
pub(crate) const DUE: &str = "when an I/O was due";

/// The value of `beside` if no computation keeps the GPUs busy, as with other tools.
pub(crate) const NOTHING: &str = "nothing";

/// Other tools do not report it.
const NOT_REPORTED: OfReading = |_| None;

/// Every aspect, in the order in which differences are shown. They are of results and not of keys
/// of job files; which key is in one is tested where the keys are (`distinguished` in `job`).
pub const ASPECTS: &[Aspect] = &[
    Aspect {
        key: "ended",
        flag: "ended",
        kind: Kind::Matters,
        what: "how it ended",
        must_be: Some("complete"),
        open: None,
        near: 0.0,
        of_job: |job| Some(job.ended()),
        of_reading: |reading| reading.failed.clone(),
    },
    matters(
        SOFTWARE_GPU,
        SOFTWARE_GPU,
        "hardware or software GPU",
        |job| Some(job.gpu_kind()),
        |reading| if reading.software_gpu { Some(SOFTWARE.to_owned()) } else { None },
    ),
    load("rw", "reads or writes", |job| Some(job.rw()), reading_rw),
    load(
        "bs",
        "block size",
        |job| job.block(),
        |r| r.block_bytes.map(gpuio_base::units::format_bytes).or_else(|| block_words(&r.blocks)),
    ),
    load("ranks", "processes (ranks)", |job| Some(job.ranks()), NOT_REPORTED),
    load("threads", "threads", |job| Some(job.plan.threads.to_string()), |r| number(r.threads)),
    load(
        "depth",
        "I/Os in flight per thread",
        |job| Some(job.plan.depth.to_string()),
        |r| number(r.depth),
    ),
    load("engine", "engine", |job| job.engine(), |r| r.engine.clone()),
    load("memory", "kind of destination memory", |job| job.memory(), NOT_REPORTED),
    load(ORDER, "order of offsets", |job| Some(job.order()), reading_order),
    load(
        "rate",
        "requested rate",
        |job| Some(job.rate()),
        |r| Some(rate_words(Some(r.pacing.as_ref()?))),
    ),
    load(
        "beside",
        "computation during the run",
        |job| Some(job.beside()),
        |_| Some(NOTHING.to_owned()),
    ),
    load("data", "data that repeats", |job| job.data(), reading_data),
    load("part", "part of a larger load", |job| Some(job.part()), |_| Some(NOTHING.to_owned())),
    load("replay", "repeated calls", |job| Some(job.replay()), |_| Some(NOTHING.to_owned())),
    load("feed", "training feed", |job| Some(job.feed()), |_| Some(NOTHING.to_owned())),
    load(
        "sync",
        "writes wait for stable storage",
        |job| job.sync(),
        |r| {
            let writes = r.direction != Direction::Read;
            r.sync.filter(|_| writes).map(|sync| yes_no(sync).to_owned())
        },
    ),
    matters("path", "path", "requested path", |job| Some(job.path()), |r| r.path.clone()),
    matters("taken", "path", "actual path", |job| job.taken(), NOT_REPORTED),
    matters("source", "cache", "source of the bytes", |job| job.source(), NOT_REPORTED),
    Aspect {
        open: Some(AROUND_THE_CACHE),
        ..matters(
            "resident",
            "cache",
            "in the page cache before",
            |job| job.resident(),
            NOT_REPORTED,
        )
    },
    matters(
        "direct",
        "direct",
        "direct or buffered",
        |job| Some(job.direct()),
        |r| r.direct.map(|direct| if direct { "direct" } else { "buffered" }.to_owned()),
    ),
    matters("verify", "verify", "verified between I/Os", |job| Some(job.verify()), NOT_REPORTED),
    matters("inject", "inject", "injected faults", |job| Some(job.inject()), NOT_REPORTED),
    Aspect {
        // Jobs that do not use cuFile are compatible with any of its settings.
        open: Some(WITHOUT_CUFILE),
        ..matters(
            CUFILE_SETTINGS,
            "cufile",
            "settings of cuFile",
            |job| job.settings(),
            NOT_REPORTED,
        )
    },
    matters("filesystem", "filesystem", "file system", |job| job.filesystem(), NOT_REPORTED),
    matters("device", "device", "storage device", |job| job.device(), NOT_REPORTED),
    Aspect {
        // Comparing a path that ends in host memory with one that ends in GPU memory is a
        // difference of the path.
        open: Some("none"),
        ..matters("gpu", "gpu", "GPUs", |job| Some(job.gpus()), NOT_REPORTED)
    },
    matters("hosts", "hosts", "hosts", |job| Some(job.hosts()), NOT_REPORTED),
    matters("cpu", "cpu", "processors", |job| job.cpus(), NOT_REPORTED),
    Aspect {
        // The kernel's own part of it changes from boot to boot.
        near: 0.02,
        ..matters(
            "machine-memory",
            "cpu",
            "memory of the machine",
            |job| job.machine_memory(),
            NOT_REPORTED,
        )
    },
    matters("kernel", "kernel", "kernel", |job| job.kernel(), NOT_REPORTED),
    note(
        "boot",
        "boot id (a restart, or another machine)",
        |job| Some(job.record.boot.clone().unwrap_or_else(|| "unknown".to_owned())),
        NOT_REPORTED,
    ),
    note("host-names", "names of the hosts", |job| job.host_names(), NOT_REPORTED),
    note("gpu-uuids", "GPUs by their UUIDs", |job| job.gpu_uuids(), NOT_REPORTED),
    note("release", "kernel release", |job| job.release(), NOT_REPORTED),
    note("cuda", "CUDA driver", |job| job.cuda(), NOT_REPORTED),
    note("cufile", "cuFile and nvidia-fs", |job| job.cufile(), NOT_REPORTED),
    note("disk", "name of the device", |job| job.disk(), NOT_REPORTED),
    note(
        "size",
        "size of each thread's region",
        |job| Some(job.size()),
        |r| r.size_bytes.map(gpuio_base::units::format_bytes),
    ),
    note("stop", "when it stops", |job| Some(job.stop()), NOT_REPORTED),
    note(SINCE, "latencies count from", |job| job.since(), |r| r.since.map(str::to_owned)),
    note("tuning", "streams and batches", |job| job.tuning(), NOT_REPORTED),
    note("container", "container", |job| job.container(), NOT_REPORTED),
    note("tool", "tool", |job| Some(job.tool()), |r| Some(r.tool.clone())),
];

/// Values of `--despite`, each once, in the order of the table: flags, and the load's keys.
pub fn flags() -> Vec<&'static str> {
    let relevant = ASPECTS.iter().filter(|aspect| aspect.kind != Kind::Note);
    let words = relevant.flat_map(|aspect| [aspect.flag, aspect.word()]);
    gpuio_base::document::unique(words.chain(["all"]))
}

/// Whether `--despite` accepts this value: a flag, a key, or `all`.
pub fn is_flag(word: &str) -> bool {
    let relevant = || ASPECTS.iter().filter(|aspect| aspect.kind != Kind::Note);
    let aspect = relevant().any(|aspect| aspect.flag == word || aspect.key == word);
    word == "all" || aspect || is_load(word)
}

/// `yes` or `no`.
pub(crate) fn yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn number(value: Option<u64>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// How much of the data repeats, by fio's options; their default chunk is 512 bytes.
fn reading_data(reading: &Reading) -> Option<String> {
    let given = reading.given.as_ref()?;
    let Some(percent) = given.get("buffer_compress_percentage").filter(|it| *it != "0") else {
        return Some(NOTHING.to_owned());
    };
    let chunk = given.get("buffer_compress_chunk").map_or("512", String::as_str);
    Some(format!("{percent} % of each {} bytes", gpuio_base::units::parse_bytes(chunk).ok()?))
}

/// The order of offsets, or both that it may have been.
fn reading_order(reading: &Reading) -> Option<String> {
    let (order, follow) = reading.order.as_ref()?;
    let mut words = order_words(order, *follow);
    if let Order::Random { distribution, .. } = order
        && reading.repeats_unknown
    {
        let drawn = Order::Random { distribution: distribution.clone(), coverage: false };
        words = [words, order_words(&drawn, *follow)].join(EITHER);
    }
    Some(words)
}

/// `randread` and similar; of a mix the load with its shares, if they are known.
fn reading_rw(reading: &Reading) -> Option<String> {
    let share = match reading.mix {
        Some(share) => Some(share?),
        None => None,
    };
    Some(rw_words(reading.direction, reading.random?, share))
}

/// One direction of a load: `randread`, or of a mix `randrw 70/30 reads`.
pub(crate) fn rw_words(direction: Direction, random: bool, mix: Option<u8>) -> String {
    let order = if random { "rand" } else { "" };
    match mix {
        None if direction == Direction::Both => format!("{order}rw"),
        None => format!("{order}{}", direction.name()),
        Some(reads) => {
            format!("{order}rw {reads}/{} {}s", 100_u8.saturating_sub(reads), direction.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_flags_are_words() {
        for (nth, aspect) in ASPECTS.iter().enumerate() {
            assert!(ASPECTS[..nth].iter().all(|other| other.key != aspect.key), "{}", aspect.key);
            assert_eq!(aspect.flag.is_empty(), aspect.kind == Kind::Note, "{}", aspect.key);
            assert!(aspect.kind == Kind::Note || is_flag(aspect.flag));
        }
        // Refusals name the narrowest one, so it is on the list that an unknown one gets.
        let known = flags();
        let refused = ASPECTS.iter().filter(|aspect| aspect.kind != Kind::Note);
        assert!(refused.clone().all(|aspect| known.contains(&aspect.word())), "{known:?}");
        assert!(
            known.contains(&"rate") && known.contains(&"depth") && known.last() == Some(&"all")
        );
        assert!(is_flag("all") && is_flag("bs") && !is_flag("disk") && !is_flag(""));
    }
}
