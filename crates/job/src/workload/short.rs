//! A workload that ends soon: less data, fewer passes and a shorter time, by what a machine has.

use std::collections::BTreeMap;

use gpuio_base::document::unique;
use gpuio_base::units::{format_duration_ns, whole};
use gpuio_record::VerifyMode;

use crate::spec::{FeedRequest, JobSpec, Origin, Rw, Spec, apply};

/// The bounds of a short run.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    /// Bytes of files that are made.
    pub bytes: u64,
    /// Processors of this process.
    pub cpus: u32,
    /// GPUs, among which samples are shared out.
    pub gpus: u32,
    /// So many times as many accelerators have enough steps with the same data.
    pub room: u32,
}

/// How a workload was scaled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortened {
    /// Bytes of its files as they were, where fewer are used now. The plan says how many these are:
    /// blocks and samples are whole.
    pub data_bytes: Option<u64>,
    /// The keys that have another value: `epochs 5 -> 1`, `runtime 5m -> 10s (prefill)`.
    pub words: Vec<String>,
}

/// The origin of what is set here.
pub const FLAG: &str = "--try";

/// Longest run time of a job, and longest computation of an epoch.
const RUNTIME_NS: u64 = 10_000_000_000;
/// Longest pause before a job.
const DELAY_NS: u64 = 1_000_000_000;
/// Files of a data set: more take longer to make than their bytes say.
const FILES_MOST: u64 = 2_000;
/// Files and steps below which a feed says nothing: utilisation needs three steps.
const FEW: u64 = 4;
/// Steps of a feed for each batch that may be read ahead: utilisation then counts mostly steps that
/// had to wait for storage where that is too slow.
const STEPS_OF_AHEAD: u64 = 12;

/// Scales the jobs so that they end soon, and says how; nothing where they do as they are.
///
/// A value that a flag of the command line gave stays, as do the sizes of samples and blocks.
pub fn shorten(spec: &mut Spec, means: Means) -> Shortened {
    let sets = unique(spec.jobs.iter().map(|job| job.file_prefix.clone())).len() as u64;
    let means = Means { bytes: means.bytes / sets.max(1), ..means };
    let groups = 1 + spec.jobs.iter().skip(1).filter(|job| job.stonewall == Some(true)).count();
    let runtime_ns = (2 * RUNTIME_NS / groups as u64).clamp(RUNTIME_NS / 10, RUNTIME_NS);
    let (mut words, mut data) = (Vec::new(), BTreeMap::new());
    for group in spec.jobs.chunk_by_mut(|_, next| next.stonewall != Some(true)) {
        let mut shorts: Vec<Short<'_>> =
            group.iter_mut().map(|job| Short { job, data: None, words: Vec::new() }).collect();
        for short in &mut shorts {
            if short.job.feed.files.is_some() {
                short.feed(means);
            } else if short.job.ranges.is_none() {
                short.blocks(means);
            }
        }
        // Samples are written once: others that are read meanwhile by the clock are read for as
        // much less time, or most of it would be beside no writes.
        let writes = |job: &JobSpec| job.feed.files.is_some() && job.rw == Some(Rw::Write);
        let written = shorts.iter().filter(|one| writes(one.job));
        let share = written.filter_map(|one| one.job.scale).fold(1.0, f64::min);
        for mut short in shorts {
            let share = if writes(short.job) { 1.0 } else { share };
            let part = short.job.runtime_ns.map_or(0, |time| whole(time as f64 * share));
            short.times(runtime_ns.min(part.max(RUNTIME_NS / 10)));
            short.checks();
            let saves = matches!(short.job.rw, Some(Rw::Write | Rw::RandWrite));
            let name = match saves && short.job.stage == Some(true) {
                true => format!("{0}-stall, {0}-drain", short.job.name),
                false => short.job.name.clone(),
            };
            words.extend(short.words.into_iter().map(|word| (name.clone(), word)));
            // Jobs of the same files use the same bytes.
            data.extend(short.data.map(|bytes| (short.job.file_prefix.clone(), bytes)));
        }
    }
    let data_bytes = data.into_values().reduce(u64::saturating_add);
    Shortened { data_bytes, words: of_all(&words) }
}

/// The words of all jobs, each once. Each value of a key with several names its jobs.
fn of_all(words: &[(String, String)]) -> Vec<String> {
    let key = |word: &str| word.split(' ').next().unwrap_or_default().to_owned();
    let of = |word: &String| {
        let is_other = |(_, other): &&(String, String)| other != word && key(other) == key(word);
        if !words.iter().any(|one| is_other(&one)) {
            return word.clone();
        }
        let own = words.iter().filter(|(_, other)| other == word);
        let jobs = unique(own.map(|(job, _)| job.clone()));
        format!("{word} ({})", jobs.join(", "))
    };
    unique(words.iter().map(|(_, word)| of(word)))
}

/// A job on its way, and what was changed in it.
struct Short<'a> {
    job: &'a mut JobSpec,
    /// Bytes of its files before, where it has fewer.
    data: Option<u64>,
    words: Vec<String>,
}

impl Short<'_> {
    /// Whether a flag has given a key its value.
    fn is_given(&self, key: &'static str) -> bool {
        let field = crate::spec::find(key).and_then(crate::spec::Key::field).unwrap_or_default();
        matches!(self.job.origin(field), Some(Origin::Flag(_)))
    }

    /// Gives a key another value, unless a flag has given it one.
    fn set(&mut self, key: &'static str, value: &str) -> bool {
        !self.is_given(key) && apply(self.job, key, value, Origin::Flag(FLAG)).is_ok()
    }

    /// Gives a number that is too large a smaller value; the number that it then is.
    fn lower(&mut self, key: &'static str, from: u64, to: u64) -> u64 {
        let to = to.max(1);
        if to >= from || !self.set(key, &to.to_string()) {
            return from;
        }
        self.words.push(format!("{key} {from} -> {to}"));
        to
    }

    /// Gives a time that is too long a shorter value.
    fn shorten(&mut self, key: &'static str, time: Option<u64>, most_ns: u64) {
        let Some(time) = time.filter(|time| *time > most_ns) else { return };
        let [from, to] = [time, most_ns].map(format_duration_ns);
        if self.set(key, &to) {
            self.words.push(format!("{key} {from} -> {to}"));
        }
    }

    /// Samples of a step, with the time of its computation: the accelerators need as many bytes a
    /// second as before. Where a flag gave that time, both stay.
    fn batch(&mut self, from: u64, to: u64) -> u64 {
        let time = self.job.feed.compute_ns;
        if time.is_some() && self.is_given("compute_time") {
            return from;
        }
        let batch = self.lower("batch_samples", from, to);
        // Three digits: every output has them.
        let scaled = |time: u64| {
            let time = whole(time as f64 * batch as f64 / from as f64).max(1);
            let last = 10_u64.pow(time.ilog10().saturating_sub(2));
            (time + last / 2) / last * last
        };
        self.shorten("compute_time", time, time.map_or(0, scaled));
        batch
    }

    /// The share of the data that is used: cut after three digits, since every output has it.
    fn scale(&mut self, whole: u64, part: u64, bytes: u64) {
        if part >= whole || self.job.scale.is_some() {
            return;
        }
        let digits = (whole / part).ilog10() as usize + 3;
        let mut share = format!("{:.*}", digits + 3, part as f64 / whole as f64);
        share.truncate(digits + 2);
        self.data = self.set("scale", share.trim_end_matches('0')).then_some(bytes);
    }

    fn feed(&mut self, means: Means) {
        let FeedRequest { files, sample_size, samples_per_file, sample_group, ratio, .. } =
            self.job.feed.clone();
        let (Some(files), Some(sample)) = (files, sample_size) else { return };
        let sample_bytes = whole(sample.mean_bytes as f64 / ratio.unwrap_or(1.0)).max(1);
        let accelerators = u64::from(self.job.feed.accelerators.unwrap_or(means.gpus)).max(1);
        let (mut per_file, group) = (samples_per_file.unwrap_or(1), sample_group.unwrap_or(1));
        let file_most = means.bytes / FEW;
        if per_file.saturating_mul(sample_bytes) > file_most {
            let groups = file_most / sample_bytes.saturating_mul(group).max(1);
            per_file = self.lower("samples_per_file", per_file, groups.max(1) * group);
        }
        let file_bytes = per_file.saturating_mul(sample_bytes);
        let mut used = (means.bytes / file_bytes).clamp(1, FILES_MOST).min(files);
        let batch = self.job.feed.batch_samples.unwrap_or(1);
        let few = FEW * u64::from(means.room.max(1));
        let batch = self.batch(batch, used * per_file / (few * accelerators));
        // An epoch computes no longer than a job runs.
        let each = self.job.feed.sample_compute_ns.unwrap_or(0).saturating_mul(batch);
        let step_ns = self.job.feed.compute_ns.unwrap_or(0).saturating_add(each);
        if let Some(steps) = RUNTIME_NS.checked_div(step_ns) {
            let samples = steps.max(few).saturating_mul(batch).saturating_mul(accelerators);
            // However slow the storage is: with fewer steps nothing would be known.
            let least = few.saturating_mul(batch).saturating_mul(accelerators).div_ceil(per_file);
            used = used.min(samples.div_ceil(per_file)).max(least).min(files);
        }
        let whole = samples_per_file.unwrap_or(1).saturating_mul(sample_bytes);
        self.scale(files, used, files.saturating_mul(whole));
        let readers = u64::from(self.job.feed.readers.unwrap_or(4));
        let readers = self.lower("readers", readers, u64::from(means.cpus) * 2 / accelerators);
        let prefetch = u64::from(self.job.feed.prefetch.unwrap_or(2));
        let all = used * per_file / batch.saturating_mul(accelerators).max(1);
        let steps = all / u64::from(means.room.max(1));
        let epochs = self.job.feed.epochs.unwrap_or(1);
        let epochs = match self.job.runtime_ns {
            Some(_) => epochs,
            // As many as have steps enough, and compute no longer than a job runs.
            None => {
                let ahead = if step_ns > 0 { readers.saturating_mul(prefetch) } else { 0 };
                let enough = ahead.saturating_mul(STEPS_OF_AHEAD).div_ceil(steps.max(1));
                let most = RUNTIME_NS.checked_div(all.saturating_mul(step_ns)).unwrap_or(1);
                self.lower("epochs", epochs, enough.min(most))
            }
        };
        // Where all batches are read ahead, utilisation says nothing of storage.
        let ahead = epochs.saturating_mul(steps) / 2;
        let prefetch = self.lower("prefetch", prefetch, ahead / readers);
        self.lower("readers", readers, ahead / prefetch);
    }

    fn blocks(&mut self, means: Means) {
        let Some(size) = self.job.size else { return };
        let all = u64::from(self.job.threads.unwrap_or(1));
        let threads = self.lower("threads", all, u64::from(means.cpus.max(means.gpus)) * 2);
        // Jobs that run several times are those that run one after the other: twice is enough.
        let times = u64::from(self.job.repeat.unwrap_or(1));
        self.lower("repeat", times, 2);
        // Each of them has the bytes of a run: of fewer it would not be known what others did.
        let part = (means.bytes / threads).clamp(1, size);
        self.scale(size, part, size.saturating_mul(all * times));
    }

    /// Blocks are checked after the run, and those of saves written anew for it: to check one on
    /// arrival, or to make one that is read back, takes the workers' time, and nothing would be
    /// known of the storage.
    fn checks(&mut self) {
        let writes = match self.job.rw {
            None | Some(Rw::Read | Rw::RandRead) => false,
            Some(Rw::Write | Rw::RandWrite) if !self.job.is_feed() => true,
            _ => return,
        };
        let between = if writes { VerifyMode::Pass } else { VerifyMode::Inline };
        let is_between = self.job.verify == Some(between) && self.job.fio_headers.is_none();
        let after = VerifyMode::after_the_run(writes).word();
        if is_between && self.set("verify", after) {
            self.words.push(format!("verify {} -> {after}", between.word()));
        }
    }

    fn times(&mut self, runtime_ns: u64) {
        self.shorten("runtime", self.job.runtime_ns, runtime_ns);
        self.shorten("start_delay", self.job.start_delay_ns, DELAY_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::preset::PRESETS;

    fn preset(name: &str, text: &str) -> Spec {
        crate::spec::parse_job_file(name, text.as_bytes(), &|_| None).unwrap()
    }

    /// Bytes of the data set that a job makes.
    fn made(job: &JobSpec) -> u64 {
        let share = job.scale.unwrap_or(1.0);
        let FeedRequest { files, sample_size, samples_per_file, ratio, .. } = job.feed.clone();
        let all = match (files, sample_size) {
            (Some(files), Some(sample)) => {
                let file = sample.mean_bytes as f64 / ratio.unwrap_or(1.0);
                let files = (files as f64 * share).round().max(1.0);
                return whole(files * file * samples_per_file.unwrap_or(1) as f64);
            }
            _ => {
                let each = job.size.unwrap_or(0) * u64::from(job.threads.unwrap_or(1));
                each * u64::from(job.repeat.unwrap_or(1))
            }
        };
        whole(all as f64 * share)
    }

    #[test]
    fn every_preset_ends_soon() {
        let means = Means { bytes: 1 << 30, cpus: 4, gpus: 2, room: 1 };
        for preset_row in PRESETS.iter().filter(|preset| !preset.reads_files()) {
            let name = preset_row.name;
            let mut spec = preset(name, preset_row.text);
            let Shortened { data_bytes, words } = shorten(&mut spec, means);
            assert!(data_bytes > Some(1 << 30), "{name}: {data_bytes:?}");
            for job in &spec.jobs {
                let feed = &job.feed;
                if let Some(files) = feed.files.filter(|_| job.runtime_ns.is_none()) {
                    let used = (files as f64 * job.scale.unwrap_or(1.0)).round();
                    let samples = used * feed.samples_per_file.unwrap_or(1) as f64;
                    let each = feed.batch_samples.unwrap_or(1)
                        * u64::from(feed.accelerators.unwrap_or(means.gpus));
                    let ahead = feed.readers.unwrap_or(4) * feed.prefetch.unwrap_or(2);
                    let steps = samples / each as f64 * feed.epochs.unwrap_or(1) as f64;
                    assert!(steps > f64::from(ahead), "{name}: {words:?}");
                }
                // A file of a sample can't be shorter.
                let file = job.feed.sample_size.map_or(0, |sample| sample.mean_bytes);
                let bytes = made(job) / u64::from(job.repeat.unwrap_or(1));
                assert!(bytes <= (1 << 30) + file, "{name} {}: {bytes}, {words:?}", job.name);
                assert!(job.runtime_ns.is_none_or(|time| time <= RUNTIME_NS), "{name}");
                assert!(job.repeat.unwrap_or(1) <= 2, "{name}");
                let steps = made(job) / file.max(1) / feed.batch_samples.unwrap_or(1);
                let all_ns = steps * feed.epochs.unwrap_or(1) * feed.compute_ns.unwrap_or(0);
                let once = feed.epochs.unwrap_or(1) == 1;
                let soon = all_ns > 0 && all_ns <= 2 * RUNTIME_NS;
                assert!(once || job.runtime_ns.is_some() || soon, "{name}: {all_ns} ns");
            }
            // A value that is short already stays as it is.
            let (before, again) = (spec.clone(), shorten(&mut spec, means));
            assert_eq!((before, again), (spec, Shortened::default()), "{name}");
        }
    }

    /// Contexts are written once: were others read for as long as ever, most of that time would
    /// have no writes beside it.
    #[test]
    fn what_is_read_beside_writes_keeps_its_proportion() {
        let row = crate::workload::preset::find("kv-cache-llama3-8b").unwrap();
        let mut spec = preset(row.name, row.text);
        let words = shorten(&mut spec, Means { bytes: 1 << 30, cpus: 4, gpus: 1, room: 1 }).words;
        let [decode, prefill] = spec.jobs.as_slice() else { panic!("{:?}", spec.jobs) };
        // Two of 200 contexts, and so much of 300 s.
        assert_eq!((prefill.scale, decode.runtime_ns), (Some(0.01), Some(3_000_000_000)));
        for word in ["runtime 5m -> 3s (decode)", "runtime 5m -> 10s (prefill)"] {
            assert!(words.contains(&word.to_owned()), "{word}: {words:?}");
        }
        // All of it is written, however slowly.
        assert_eq!(prefill.runtime_ns, Some(RUNTIME_NS));
    }

    #[test]
    fn what_a_flag_gives_stays() {
        let row = crate::workload::preset::find("unet3d-h100").unwrap();
        let mut spec = preset(row.name, row.text);
        apply(&mut spec.jobs[0], "epochs", "3", Origin::Flag("--epochs")).unwrap();
        apply(&mut spec.jobs[0], "scale", "0.5", Origin::Flag("--scale")).unwrap();
        let words = shorten(&mut spec, Means { bytes: 1 << 30, cpus: 1, gpus: 1, room: 1 }).words;
        assert_eq!((spec.jobs[0].feed.epochs, spec.jobs[0].scale), (Some(3), Some(0.5)));
        let changed = ["batch_samples 7 -> 1", "compute_time 323ms -> 46.1ms", "readers 4 -> 2"];
        assert_eq!(words[..3], changed);
        assert_eq!(words[3..], ["verify inline -> pass"]);
        apply(&mut spec.jobs[0], "verify", "inline", Origin::Flag("--verify")).unwrap();
        let short = shorten(&mut spec, Means { bytes: 1 << 30, cpus: 1, gpus: 1, room: 1 });
        assert_eq!(short, Shortened::default(), "the user's verification");
    }

    /// Saves that are read back carry a pattern, which takes longer to make than to write.
    #[test]
    fn saves_are_written_anew_to_be_checked() {
        let row = crate::workload::preset::find("checkpoint-llama3-8b").unwrap();
        let mut spec = preset(row.name, row.text);
        let words = shorten(&mut spec, Means { bytes: 1 << 30, cpus: 4, gpus: 1, room: 1 }).words;
        let modes: Vec<_> = spec.jobs.iter().map(|job| job.verify).collect();
        assert_eq!(modes, [Some(VerifyMode::Rewrite), Some(VerifyMode::Pass)]);
        assert!(words.contains(&"verify pass -> rewrite (save)".to_owned()), "{words:?}");
        // A save by staged pages is two jobs.
        let mut staged = preset(row.name, row.text);
        staged.jobs.iter_mut().for_each(|job| job.stage = Some(true));
        let words = shorten(&mut staged, Means { bytes: 1 << 30, cpus: 4, gpus: 1, room: 1 }).words;
        for word in
            ["verify pass -> rewrite (save-stall, save-drain)", "verify inline -> pass (restore)"]
        {
            assert!(words.contains(&word.to_owned()), "{word}: {words:?}");
        }
    }

    /// Where the most accelerators are searched, all tries have the same data.
    #[test]
    fn a_search_has_steps_for_more_accelerators() {
        let row = crate::workload::preset::find("unet3d-h100").unwrap();
        for room in [1, 8] {
            let mut spec = preset(row.name, row.text);
            shorten(&mut spec, Means { bytes: 8 << 30, cpus: 4, gpus: 1, room });
            let job = &spec.jobs[0];
            let samples = job.feed.files.unwrap_or(0) as f64 * job.scale.unwrap_or(1.0);
            let steps = samples / job.feed.batch_samples.unwrap_or(1) as f64;
            assert!(steps + 0.5 >= f64::from(4 * room), "{room}: {steps} steps");
            let ahead = job.feed.readers.unwrap_or(4) * job.feed.prefetch.unwrap_or(2);
            let steps = steps * job.feed.epochs.unwrap_or(1) as f64 / f64::from(room);
            assert!(steps > f64::from(ahead), "{room}: {ahead} of {steps}");
        }
    }

    /// The bytes per second that the accelerators need, and three steps of each, also where the
    /// storage takes next to nothing.
    #[test]
    fn steps_need_the_bytes_of_the_whole() {
        let means = |bytes| Means { bytes, cpus: 4, gpus: 2, room: 1 };
        for preset_row in PRESETS {
            let whole = preset(preset_row.name, preset_row.text);
            for bytes in [1 << 20, 1 << 27, 1 << 30] {
                let mut spec = whole.clone();
                shorten(&mut spec, means(bytes));
                for (job, whole) in spec.jobs.iter().zip(&whole.jobs) {
                    let (feed, before) = (&job.feed, &whole.feed);
                    let Some(batch) = feed.batch_samples.filter(|_| feed.compute_ns.is_some())
                    else {
                        continue;
                    };
                    let step = |feed: &FeedRequest| {
                        let samples = feed.batch_samples.unwrap_or(1) as f64;
                        feed.compute_ns.map(|time| time as f64 / samples)
                    };
                    let same = step(feed).zip(step(before)).map_or(1.0, |(now, then)| now / then);
                    let name = preset_row.name;
                    assert!((same - 1.0).abs() < 5e-3, "{name}: {same} of the time of a sample");
                    let files = (feed.files.unwrap_or(0) as f64 * job.scale.unwrap_or(1.0)).round();
                    let samples = files * feed.samples_per_file.unwrap_or(1) as f64;
                    let each = batch * u64::from(feed.accelerators.unwrap_or(2));
                    assert!(samples >= (3 * each) as f64, "{name}, {bytes}: {samples} samples");
                }
            }
        }
    }

    #[test]
    fn a_computation_that_a_flag_gives_keeps_its_batch() {
        let row = crate::workload::preset::find("unet3d-h100").unwrap();
        let mut spec = preset(row.name, row.text);
        apply(&mut spec.jobs[0], "compute_time", "50ms", Origin::Flag("--compute-time")).unwrap();
        shorten(&mut spec, Means { bytes: 1 << 20, cpus: 1, gpus: 1, room: 1 });
        let (files, scale) = (spec.jobs[0].feed.files.unwrap(), spec.jobs[0].scale.unwrap());
        assert_eq!(spec.jobs[0].feed.batch_samples, Some(7));
        assert_eq!(whole((files as f64 * scale).round()), 28, "four steps");
    }

    /// Two jobs with files of their own make twice the bytes.
    #[test]
    fn the_data_of_all_jobs_is_said_once() {
        let row = crate::workload::preset::find("kv-cache-llama3-8b").unwrap();
        let mut spec = preset(row.name, row.text);
        let all = spec.jobs.iter().map(made).sum::<u64>();
        let short = shorten(&mut spec, Means { bytes: 1 << 30, cpus: 4, gpus: 1, room: 1 });
        assert_eq!(short.data_bytes, Some(all));
        assert_eq!(spec.jobs.iter().map(made).sum::<u64>(), 1 << 30);
    }

    #[test]
    fn a_large_machine_changes_little() {
        let row = crate::workload::preset::find("unet3d-h100").unwrap();
        let mut spec = preset(row.name, row.text);
        let words = shorten(&mut spec, Means { bytes: 1 << 40, cpus: 64, gpus: 1, room: 1 }).words;
        assert_eq!(words, ["epochs 5 -> 1", "verify inline -> pass"]);
        assert_eq!(spec.jobs[0].feed.batch_samples, Some(7));
    }
}
