//! The requested options of a fio job, as repeated in its JSON.

use gpuio_base::units::parse_bytes;
use serde_json::Value;

use crate::foreign::Reading;

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
        let rw = self.get(&["rw", "readwrite"]).unwrap_or("read");
        let rw = rw.split(':').next().unwrap_or(rw);
        reading.random = Some(rw.starts_with("rand"));
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
        if key != "mixed" && matches!(rw, "rw" | "readwrite" | "randrw") {
            let percent = |keys: &[&str]| self.get(keys).map(|text| text.parse::<u8>().ok());
            let writes = percent(&["rwmixwrite"]).map(|share| 100_u8.checked_sub(share?));
            let reads = percent(&["rwmixread"]).or(writes).unwrap_or(Some(50));
            reading.mix = Some(reads.filter(|share| *share <= 100));
        }
    }

    /// An option that is 0 or 1; given without a value, it is 1.
    fn truth(&self, key: &str) -> bool {
        match self.get(&[key]) {
            Some(text) => !matches!(text, "0" | "none" | "false"),
            None => self.has(key),
        }
    }
}
