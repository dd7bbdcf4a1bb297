//! The requested options of a fio job, as repeated in its JSON.

use std::collections::BTreeMap;

use gpuio_base::units::parse_bytes;
use gpuio_job::plan::order_of;
use gpuio_job::spec::{self, Dialect, JobSpec, Origin};
use gpuio_record::{Arrivals, Order, Pacing};
use serde_json::Value;

use super::number;
use crate::foreign::Reading;

/// Time of a thread beyond its I/Os that says nothing of another section.
const SETTING_UP_MS: f64 = 100.0;

/// Options that are read here: a value that is none of gpuio's is another engine, or unknown.
const READ: &[&str] = &["cuda_io", "directory", "filename", "ioengine", "name", "sync"];

/// A job's own options before the global ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options<'a> {
    global: &'a Value,
    job: &'a Value,
}

impl<'a> Options<'a> {
    pub(super) fn new(global: &'a Value, job: &'a Value) -> Options<'a> {
        Options { global, job }
    }

    fn get(&self, keys: &[&str]) -> Option<&'a str> {
        let one = |from: &'a Value| keys.iter().find_map(|key| from[*key].as_str());
        one(self.job).or_else(|| one(self.global))
    }

    /// Whether an option is there, with whatever value.
    fn has(&self, key: &str) -> bool {
        self.job.get(key).is_some() || self.global.get(key).is_some()
    }

    /// Copies them into a reading; `key` is `read` or `write`.
    pub(super) fn report(&self, reading: &mut Reading, key: &str) {
        // Results of clients, and of old releases, list none.
        if !self.job.is_object() {
            return;
        }
        self.report_keys(reading);
        reading.random = Some(self.rw().starts_with("rand"));
        reading.threads = self.get(&["numjobs"]).map_or(Some(1), |text| text.parse().ok());
        reading.depth = self.get(&["iodepth"]).map_or(Some(1), |text| text.parse().ok());
        if !self.has("bssplit") && !self.has("bsrange") {
            let bs = self.get(&["bs", "blocksize"]).unwrap_or("4k");
            // `bs=4k,8k`: reads, then writes.
            let parts: Vec<&str> = bs.split(',').collect();
            let own = match key {
                "write" => parts.get(1).or(parts.first()),
                // Both directions are one figure: of one size, or of none.
                "mixed" if parts.windows(2).any(|two| two[0] != two[1]) => None,
                _ => parts.first(),
            };
            reading.block_bytes = own.and_then(|text| parse_bytes(text).ok());
        }
        reading.pacing = self.pacing(key);
        reading.size_bytes =
            self.get(&["size", "filesize"]).and_then(|text| parse_bytes(text).ok());
        reading.direct = Some(self.truth("direct") || self.truth("odirect"));
        reading.sync = Some(self.truth("sync"));
        let target = self.get(&["filename"]).or_else(|| self.get(&["directory"]));
        reading.target = target.map(str::to_owned);
        let engine = self.get(&["ioengine"]).unwrap_or("psync");
        reading.engine = Some(engine.to_owned());
        reading.path = match engine {
            // HOWTO, "libcufile": posix reads into host memory and copies, cufile (the default)
            // asks NVIDIA's library.
            "libcufile" if self.get(&["cuda_io"]) == Some("posix") => Some("staged".to_owned()),
            "libcufile" => Some("gds".to_owned()),
            "libhipfile" => None,
            _ => Some("host".to_owned()),
        };
        if engine == "libcufile" {
            reading.depth = Some(1);
        }
        if key != "mixed" && self.is_mix() {
            let percent = |keys: &[&str]| self.get(keys).map(|text| text.parse::<u8>().ok());
            let writes = percent(&["rwmixwrite"]).map(|share| 100_u8.checked_sub(share?));
            let reads = percent(&["rwmixread"]).or(writes).unwrap_or(Some(50));
            reading.mix = Some(reads.filter(|share| *share <= 100));
        }
    }

    /// Reads the options by the table of keys, as a job file of fio's.
    fn report_keys(&self, reading: &mut Reading) {
        let mut job = JobSpec { dialect: Some(Dialect::Fio), ..JobSpec::new("") };
        let mut given = BTreeMap::new();
        let all = [self.global, self.job].into_iter().filter_map(Value::as_object).flatten();
        for (name, value) in all.collect::<BTreeMap<&String, &Value>>() {
            let text = value.as_str().unwrap_or_default();
            let read = spec::apply(&mut job, name, text, Origin::Flag(""));
            match spec::find(name).filter(|_| read.is_ok()) {
                Some(key) => _ = given.insert(key.name, text.to_owned()),
                None if READ.contains(&name.as_str()) => {}
                None => reading.unread.push(format!("{name}={text}")),
            }
        }
        if !matches!(self.rw(), "read" | "randread") {
            reading.unread.extend(job.for_writes.iter().map(|one| one.name.to_owned()));
        }
        // A list for each direction is left out: reads and writes have one field.
        let split = ["bssplit", "bsrange"].into_iter().find_map(|key| self.get(&[key]));
        if split.is_some_and(|text| !text.contains(',')) {
            reading.blocks = job.blocks.clone().unwrap_or_default();
        }
        let repeats_known = self.has("norandommap") || self.lists_bare() || !self.draws(&job);
        reading.order = Some(order_of(&job));
        reading.repeats_unknown = !repeats_known;
        reading.given = Some(given);
    }

    /// Whether options without a value are listed: not every release of fio lists them, and in what
    /// one of those wrote, an absent switch may have been set.
    fn lists_bare(&self) -> bool {
        let all = [self.global, self.job].into_iter().filter_map(Value::as_object).flatten();
        all.into_iter().any(|(_, value)| value.as_str() == Some(""))
    }

    /// Whether `norandommap` decides if blocks repeat.
    fn draws(&self, job: &JobSpec) -> bool {
        let covers = |(order, _): (Order, _)| matches!(order, Order::Random { coverage: true, .. });
        self.rw().starts_with("rand") && covers(order_of(job))
    }

    /// The rate of each thread in one direction; `None` where its text is no plain number.
    fn pacing(&self, key: &str) -> Option<Pacing> {
        let mut parts = [None; 2];
        for (part, option) in parts.iter_mut().zip(["rate", "rate_iops"]) {
            let Some(text) = self.get(&[option]) else { continue };
            let mut sides = text.split(',');
            let reads = sides.next()?;
            let own = if key == "write" { sides.next().unwrap_or(reads) } else { reads };
            *part = match (own, option) {
                ("" | "0", _) => None,
                (own, "rate") => Some(parse_bytes(own).ok()?),
                (own, _) => Some(own.parse().ok()?),
            };
        }
        let [bytes_per_s, iops] = parts;
        let poisson = self.get(&["rate_process"]) == Some("poisson");
        let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Steady };
        // Each direction of a mix keeps its own rate, and gpuio's both together.
        let is_mix = matches!(key, "mixed") || self.is_mix();
        (!is_mix).then_some(Pacing { bytes_per_s, iops, arrivals })
    }

    fn rw(&self) -> &'a str {
        let rw = self.get(&["rw", "readwrite"]).unwrap_or("read");
        rw.split(':').next().unwrap_or(rw)
    }

    fn is_mix(&self) -> bool {
        matches!(self.rw(), "rw" | "readwrite" | "randrw")
    }

    /// Whether the entry of a group has I/Os of several sections. Its options are then those of
    /// one of them: they contradict its directions, threads or block size.
    pub(super) fn contradict(&self, job: &Value) -> bool {
        // Verification reads what was written.
        if !self.has("group_reporting") || !self.job.is_object() || self.has("verify") {
            return false;
        }
        let rw = self.rw();
        let only = |word: &str| rw.ends_with(word) && !self.is_mix();
        let ios = |key: &str| number(&job[key]["total_ios"]);
        let threads = self.get(&["numjobs"]).map_or(Some(1.0), |text| text.parse().ok());
        let longest = ["read", "write", "mixed"].map(|key| number(&job[key]["runtime"]));
        let longest = longest.into_iter().fold(0.0, f64::max);
        let threads = threads.is_some_and(|threads: f64| {
            number(&job["job_runtime"]) > (threads + 0.5) * longest + SETTING_UP_MS
        });
        let sizes = ["read", "write"].into_iter().any(|key| {
            let mut reading = Reading::default();
            self.report(&mut reading, key);
            let mean = super::units::bytes(&job[key]) / ios(key);
            let block = reading.block_bytes.map_or(f64::NAN, |bytes| bytes as f64);
            (mean / block - 1.0).abs() > 0.05
        });
        threads || sizes || only("read") && ios("write") > 0.0 || only("write") && ios("read") > 0.0
    }

    /// An option that is 0 or 1; given without a value, it is 1.
    fn truth(&self, key: &str) -> bool {
        match self.get(&[key]) {
            Some(text) => !matches!(text, "0" | "none" | "false"),
            None => self.has(key),
        }
    }
}
