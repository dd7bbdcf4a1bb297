//! Statements of a record against others of it: the plan's text against the plan, ceilings,
//! evidence against its readings, warnings that must be there.

use std::collections::{BTreeMap, BTreeSet};

use gpuio_job::spec::TakenKeys;
use gpuio_record::{
    Assessment, CeilingKind, CeilingSource, DirectionResult, EndedHow, JobPlan, JobResult,
    OfCeiling, Proof, Record, Route, Source, Towards, VerifyMode, VerifyOutcome, VerifySubject,
    Warning, WarningKind,
};

use super::{BUCKET, ROUNDING, Recheck, word};
use crate::number::float;

/// How the software GPU's driver calls its GPUs, with a number behind it.
const SOFTWARE_GPU: &str = "gpuio software GPU";

/// Evidence that counts bytes at storage.
const STORAGE: [&str; 4] = ["process_io", "block", "nfs", "nic"];

impl Recheck {
    pub(super) fn statements(&mut self, record: &Record) {
        self.software(record);
        let mut whole = record.expected.clone();
        gpuio_machine::flow::hold_against(&mut whole, &record.jobs);
        for (own, whole) in record.expected.iter().zip(&whole) {
            let fits = match (own.percent, whole.percent) {
                (Some(own), Some(whole)) => (own - whole).abs() <= whole.abs() * ROUNDING,
                (own, whole) => own == whole,
            };
            self.check(&format!("job '{}'", own.job), fits, || {
                format!(
                    "per cent of the expected rate: {} recorded, {} by its rate",
                    word(&own.percent),
                    word(&whole.percent)
                )
            });
        }
        // Merged records have the plan of one rank, and neither its ceilings nor its warnings.
        if record.ranks.is_some() {
            return;
        }
        // Other versions may write other words.
        if record.tool.version == env!("CARGO_PKG_VERSION") {
            self.plan_text(record);
        }
        self.ending(record);
        self.identity(record);
        self.storage(record);
        for (plan, job) in record.plan.jobs.iter().zip(&record.jobs) {
            self.of_ceilings(record, job);
            self.traffic(job);
            if let Some(proof) = job.proof.as_ref().filter(|proof| !proof.evidence.is_empty()) {
                self.evidence(job, proof);
                self.counted(plan, job, proof);
            }
        }
        self.ceilings(record);
        let keys = TakenKeys::of(&record.command, &record.plan.jobs);
        record.warnings.iter().for_each(|warning| self.worded(warning, &keys));
        let groups = |of: &mut dyn Iterator<Item = u32>| of.collect::<BTreeSet<u32>>().len();
        let (own, ran) = (
            groups(&mut record.totals.iter().map(|one| one.group)),
            groups(&mut record.jobs.iter().map(|one| one.group)),
        );
        if record.ended == EndedHow::Complete {
            self.equal("the run", "groups of jobs with a total", own as u64, ran as u64);
        }
    }

    /// The mark of the software GPU, by which no figure of it is taken for one of hardware.
    fn software(&mut self, record: &Record) {
        let marked = record.plan.software_gpu;
        let gpus = || record.plan.jobs.iter().flat_map(|job| &job.gpus);
        for gpu in gpus() {
            let by_name = gpu.name.starts_with(SOFTWARE_GPU);
            self.check(
                &format!("GPU {} ({})", gpu.index, gpu.name),
                gpu.software == by_name,
                || format!("software: {} recorded, which its name rules out", gpu.software),
            );
        }
        let flagged = gpus().any(|gpu| gpu.software);
        let proofs = record.jobs.iter().filter_map(|job| job.proof.as_ref());
        let said = proofs.map(|proof| proof.sentence.as_str()).chain(
            record.jobs.iter().filter_map(|job| Some(job.verify.as_ref()?.checked_in.as_str())),
        );
        let said = { said }.any(|text| text.contains("software GPU"));
        self.check("the plan", marked == flagged && (marked || !said), || {
            format!("software_gpu: {marked} recorded, its GPUs and evidence say otherwise")
        });
        let ended = record.ended == EndedHow::Complete;
        let warned = record.warnings.iter().any(|one| one.kind == WarningKind::SoftwareGpu);
        self.check("warnings", !ended || !flagged || warned, || {
            "software_gpu is missing, and a GPU is gpuio's software GPU".to_owned()
        });
    }

    /// The settings that both have: a record of before a key was added has none of it, and
    /// comments have been worded otherwise.
    fn plan_text(&mut self, record: &Record) {
        let whole = crate::plan_text(&record.plan);
        let (by_plan, own) = (settings(&whole), settings(&record.plan_text));
        let (planned, written) = (by_plan.len(), own.len());
        self.check("plan_text", planned == written, || {
            format!("{written} jobs recorded, {planned} by the plan")
        });
        for ((name, by_plan), (own_name, own)) in by_plan.iter().zip(&own) {
            let both = by_plan.iter().filter_map(|(key, is)| Some((*key, is, own.get(key)?)));
            let other = both.into_iter().find(|(_, by_plan, own)| by_plan != own);
            self.check("plan_text", name == own_name && other.is_none(), || match other {
                Some((key, by_plan, own)) => format!(
                    "[{name}]: '{key} = {}' recorded, '{}' by the plan",
                    own.join(" "),
                    by_plan.join(" ")
                ),
                None => format!("[{own_name}] recorded, [{name}] by the plan"),
            });
        }
    }

    /// How the run ended, by its jobs.
    fn ending(&mut self, record: &Record) {
        let any = |how| record.jobs.iter().any(|job| job.ended == how);
        let whole = record.jobs.len() == record.plan.jobs.len();
        let mut verified = record.jobs.iter().filter_map(|job| job.verify.as_ref());
        let all_verified = verified.all(|one| one.complete);
        let more = !record.plan.ceilings.is_empty()
            || record.plan.jobs.iter().any(|job| job.beside.is_some());
        let complete = whole && record.jobs.iter().all(|job| job.ended == EndedHow::Complete);
        let fits = match record.ended {
            EndedHow::Complete => complete && record.error.is_none(),
            EndedHow::Interrupted => !complete || !all_verified || more || record.error.is_some(),
            EndedHow::Failed => record.error.is_some() || any(EndedHow::Failed),
            EndedHow::Unfinished => true,
        };
        self.check("the run", fits, || {
            format!(
                "ended: {} recorded, which its jobs and its error rule out",
                word(&record.ended)
            )
        });
    }

    fn of_ceilings(&mut self, record: &Record, job: &JobResult) {
        for (direction, side, name) in sides(job) {
            let (own, whole) =
                (side.of_ceiling.as_ref(), OfCeiling::lowest(&record.ceilings, job, direction));
            let about = format!("job '{}', {name}s", job.name);
            match (own, whole) {
                (Some(own), Some(whole)) => {
                    self.check(&about, own.ceiling == whole.ceiling, || {
                        format!(
                            "ceiling: '{}' recorded, '{}' is lowest",
                            own.ceiling, whole.ceiling
                        )
                    });
                    self.close(&about, "per cent of the ceiling", own.percent, whole.percent);
                }
                (own, whole) => self.check(&about, own.is_some() == whole.is_some(), || {
                    "per cent of the ceiling: not of a ceiling that is recorded".to_owned()
                }),
            }
        }
    }

    /// Ceilings that are the result of a job, or a load of the same blocks.
    fn ceilings(&mut self, record: &Record) {
        for ceiling in &record.ceilings {
            let about = format!("ceiling '{}'", ceiling.plan.name);
            let Some(rate) = ceiling.bytes_per_s else { continue };
            let direction = ceiling.plan.direction;
            if let CeilingSource::Result { job } = &ceiling.plan.source
                && let Some(job) = record.jobs.iter().find(|one| one.name == *job)
            {
                let sum =
                    sides(job).into_iter().filter(|one| direction.is_none_or(|it| it == one.0));
                let sum: f64 = sum.map(|one| one.1.bytes_per_s).sum();
                self.close(&about, "bytes per second", rate, sum);
            }
            let own = |plan: &&JobPlan| ceiling.plan.jobs.first() == Some(&plan.name);
            let plan = record.plan.jobs.iter().find(own).filter(|plan| plan.has_size());
            if let (CeilingKind::Storage, Some(plan), Some(iops)) =
                (ceiling.plan.kind, plan, ceiling.iops.filter(|iops| *iops > 0.0))
            {
                let most = plan.sizes().map(|size| size.max_bytes).max().unwrap_or(u64::MAX);
                self.check(&about, rate / iops <= float(most) * BUCKET, || {
                    format!("{rate} bytes per second at {iops} IOPS, of blocks of at most {most}")
                });
            }
        }
    }

    /// Bytes at storage as the process's evidence has them.
    fn traffic(&mut self, job: &JobResult) {
        let evidence = || job.proof.iter().flat_map(|proof| &proof.evidence);
        for (direction, figure, recorded) in [
            ("read", "process_read_bytes", job.cache.process_read_bytes),
            ("write", "process_write_bytes", job.cache.process_write_bytes),
        ] {
            let own = evidence().find(|one| one.name == "process_io" && one.direction == direction);
            if let Some(counted) = own.and_then(|one| one.observed_bytes) {
                let about = format!("job '{}'", job.name);
                self.check(&about, recorded == Some(counted), || {
                    format!(
                        "{figure}: {} recorded, {counted} by evidence process_io",
                        word(&recorded)
                    )
                });
            }
        }
    }

    /// Counts and routes of evidence against its readings, where the record has not all that the
    /// entry follows from.
    fn evidence(&mut self, job: &JobResult, proof: &Proof) {
        for one in &proof.evidence {
            let about = format!("job '{}', evidence {} of {}s", job.name, one.name, one.direction);
            let change =
                |key: &str| reading(&one.after, key)?.checked_sub(reading(&one.before, key)?);
            let counted = match one.name.as_str() {
                "cufile_stats" | "nvidia_fs" => change("bytes"),
                "block" => change("").map(|sectors| sectors.saturating_mul(512)),
                "nic" => change(""),
                _ => None,
            };
            if let Some((observed, counted)) = one.observed_bytes.zip(counted) {
                self.equal(&about, "bytes", observed, counted);
            }
            let all = one.observed_bytes.zip(one.expected_bytes);
            let all = all.is_none_or(|(is, of)| is.abs_diff(of) <= of / 10);
            let library = (one.name == "cufile_stats")
                .then(|| Some((change("n")?, change("posix")?, change("nvfs")?)));
            let fits = match (one.name.as_str(), one.assessment, library.flatten()) {
                ("cufile_properties", Assessment::Supports, _) => false,
                ("nvidia_fs", Assessment::Supports, _) => all,
                (_, Assessment::Supports, Some((all, host, past))) => {
                    let past = past.saturating_add(change("p2p").unwrap_or(0));
                    host == 0 && past == all
                }
                (_, Assessment::Contradicts, Some((_, host, _))) => host > 0,
                _ => true,
            };
            self.check(&about, fits, || {
                format!("{} recorded, which its counts rule out", word(&one.assessment))
            });
        }
    }

    /// The path taken against what gpuio itself counted, and what was counted at storage.
    fn counted(&mut self, plan: &JobPlan, job: &JobResult, proof: &Proof) {
        let about = format!("job '{}'", job.name);
        let actual = Proof::actual_path(plan, job);
        self.check(&about, proof.actual == actual, || {
            format!("path: '{}' recorded, '{actual}' by its result", proof.actual)
        });
        for towards in plan.directions() {
            let own = || proof.evidence.iter().filter(|one| one.direction == towards.name());
            let has_own = own().any(|one| one.name == "own");
            self.check(&about, has_own || !proof.as_requested, || {
                format!("path as requested, without gpuio's own counts of {}s", towards.name())
            });
            let storage = || {
                let counts = own().filter(|one| STORAGE.contains(&one.name.as_str()));
                counts.filter_map(|one| one.observed_bytes.zip(one.expected_bytes))
            };
            let all = storage().any(|(is, of)| is.abs_diff(of) <= of / 10);
            let little = storage().any(|(is, of)| is < of.div_ceil(20));
            let fits = match proof.verdict.source {
                Source::Storage | Source::StorageThroughPageCache => all,
                Source::PageCache => little || proof.verdict.route == Route::Mapped,
                Source::Mixed | Source::Holes | Source::Unknown => true,
            };
            self.check(&about, fits, || {
                format!(
                    "path taken: source {} recorded, by no count of bytes at storage",
                    word(&proof.verdict.source)
                )
            });
        }
    }

    /// A warning's text by its figures, where it is worded as today.
    fn worded(&mut self, warning: &Warning, keys: &TakenKeys) {
        let bare = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
        let (own, whole) = (&*warning.text, warning.kind.text(&|key| keys.spelled(key)));
        self.check("warnings", bare(own) != bare(&whole) || own == whole, || {
            format!("{}: '{own}' recorded, '{whole}' by its figures", warning.kind.id())
        });
    }

    /// No more was verified than was moved, or than the plan has.
    pub(super) fn verified(&mut self, about: &str, plan: &JobPlan, job: &JobResult) {
        let Some(found) = &job.verify else { return };
        let VerifyOutcome { timed_bytes, pass_bytes, filled_bytes, subject, .. } = found;
        let (whole, place) = (VerifySubject::of(plan), VerifyOutcome::place(plan));
        let is_old = *subject == VerifySubject::Unspecified;
        self.check(about, *subject == whole || is_old, || {
            format!("verified {} recorded, {} by the plan", word(subject), word(&whole))
        });
        self.check(about, found.checked_in == place, || {
            format!("verified in '{}' recorded, '{place}' by the plan", found.checked_in)
        });
        let size = plan.sizes().map(|size| size.max_bytes).max().unwrap_or(0);
        let size = if plan.feed.is_none() && plan.replay.is_none() { size } else { u64::MAX };
        for (bytes, blocks) in [(timed_bytes, found.timed_blocks), (pass_bytes, found.pass_blocks)]
        {
            let fits = *bytes <= blocks.saturating_mul(size) && (*bytes > 0) == (blocks > 0);
            self.check(about, fits, || {
                format!("{bytes} bytes verified in {blocks} blocks of at most {size}")
            });
        }
        if let Some(all) = found.sample_of_bytes {
            self.check(about, all >= *pass_bytes, || {
                format!("{pass_bytes} bytes verified recorded, a sample of {all}")
            });
        }
        // Checks between I/Os are of what was read.
        let inline = plan.verify == VerifyMode::Inline;
        let writes = |bytes: u64| if inline { 0 } else { bytes };
        let leg = job.file_leg.read_bytes.saturating_add(writes(job.file_leg.write_bytes));
        let moved = leg.max(job.read.bytes.saturating_add(writes(job.write.bytes)));
        // Each GPU has all of it on path fan-out.
        let gpus = job.fan_out.as_ref().map_or(1, |of| u64::from(of.gpus.max(1)));
        let tier = job.feed.as_ref().and_then(|feed| feed.tier);
        let from_tier = tier.map_or(0, |tier| tier.memory_bytes);
        let most = moved.saturating_add(from_tier).saturating_mul(gpus);
        self.check(about, *timed_bytes <= most || job.mapped.is_some(), || {
            format!("{timed_bytes} bytes of the load were verified, and at most {most} were moved")
        });
        let regions = plan.workers.iter().flat_map(|worker| &worker.regions);
        let mut spans: Vec<_> = regions.map(|one| (one.target, one.offset, one.length)).collect();
        spans.sort_unstable();
        spans.dedup();
        let all = spans.iter().fold(0, |sum: u64, one| sum.saturating_add(one.2));
        let pass = pass_bytes.saturating_add(*filled_bytes);
        self.check(about, !plan.has_size() || pass <= all.saturating_mul(gpus), || {
            format!("{pass} bytes were verified after the load, and its files have {all}")
        });
    }

    /// Bytes by I/Os and the block, where regions are cut into blocks of one size without rest. A
    /// thread's last I/O may be shorter.
    pub(super) fn least(&mut self, about: &str, plan: &JobPlan, towards: Towards, job: &JobResult) {
        let blocks = plan.sizes_of(towards == Towards::Write);
        let mut regions = plan.workers.iter().flat_map(|worker| &worker.regions);
        let least = blocks.iter().map(|one| one.min_bytes).min().unwrap_or(0);
        let most = blocks.iter().map(|one| one.max_bytes).max().unwrap_or(0);
        let even = least == most
            && most > 0
            && plan.skew_bytes == 0
            && plan.align_bytes >= most
            && regions.all(|one| one.length % most == 0 && one.stripe.is_none());
        let side = towards.of(job);
        let whole = side.ios.saturating_sub(u64::from(plan.threads)).saturating_mul(least);
        self.check(about, !even || side.bytes >= whole, || {
            format!("{} bytes in {} I/Os of {least}", side.bytes, side.ios)
        });
    }
}

/// The settings of each job of a plan's text, those of `[global]` included.
fn settings(text: &str) -> Vec<(&str, BTreeMap<&str, Vec<&str>>)> {
    let mut all: Vec<(&str, BTreeMap<&str, Vec<&str>>)> = vec![("global", BTreeMap::new())];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let section = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        if let Some(name) = section.filter(|name| *name != "global") {
            let shared = all[0].1.clone();
            all.push((name, shared));
        } else if let (Some((key, value)), Some((_, keys))) =
            (line.split_once(" = "), all.last_mut())
        {
            keys.entry(key).or_default().push(value);
        }
    }
    all
}

fn sides(job: &JobResult) -> [(Towards, &DirectionResult, &'static str); 2] {
    [(Towards::Read, &job.read, "read"), (Towards::Write, &job.write, "write")]
}

/// A count of a reading: `read_bytes 12`, or `n=4 posix=4 bytes=9`; without a key the first.
fn reading(text: &Option<String>, key: &str) -> Option<u64> {
    let words: Vec<&str> = text.as_deref()?.split([' ', '=']).collect();
    if key.is_empty() {
        return words.iter().find_map(|word| word.parse().ok());
    }
    words.windows(2).find(|pair| pair[0] == key)?[1].parse().ok()
}

#[cfg(test)]
mod tests {
    use gpuio_record::{Evidence, Verdict};
    use gpuio_testkit::jobs;

    use super::*;

    /// The faults of evidence on a job that reads by cuFile.
    fn of(name: &str, assessment: Assessment, after: &str) -> String {
        let plan = jobs::job("rw=read");
        let evidence = Evidence {
            name: name.to_owned(),
            direction: "read".to_owned(),
            source: "a counter".to_owned(),
            before: Some("read_bytes 0 n=0 posix=0 nvfs=0 p2p=0 bytes=0".to_owned()),
            after: Some(after.to_owned()),
            observed_bytes: Some(40960),
            expected_bytes: Some(81920),
            assessment,
            why: String::new(),
        };
        let proof = Proof {
            requested: String::new(),
            actual: String::new(),
            verdict: Verdict::new(Route::Direct, Source::Storage, true, false),
            as_requested: true,
            sentence: String::new(),
            evidence: vec![evidence],
        };
        let mut all = Recheck::default();
        all.evidence(&jobs::result(&plan, 10), &proof);
        all.wrong.join("; ")
    }

    #[test]
    fn blocks_of_one_size_have_its_bytes() {
        let plan = jobs::job("bs=64k\nsize=1m\nrw=randread");
        let wrong = |bytes: u64| {
            let mut job = jobs::result(&plan, 10);
            job.read.bytes = bytes;
            let mut all = Recheck::default();
            all.least("reads", &plan, Towards::Read, &job);
            all.wrong.join("; ")
        };
        assert_eq!(wrong(10 << 16), "");
        assert_eq!(wrong(5 << 16), "reads: 327680 bytes in 10 I/Os of 65536");
    }

    #[test]
    fn evidence_is_held_against_its_readings() {
        use Assessment::{Contradicts, Supports};
        let direct = "n=10 posix=0 nvfs=8 p2p=2 bytes=40960";
        assert_eq!(of("cufile_stats", Supports, direct), "");
        for (name, assessment, after, said) in [
            ("cufile_stats", Supports, "n=10 posix=10 nvfs=0 bytes=40960", "supports recorded,"),
            ("cufile_stats", Supports, "n=10 posix=0 nvfs=9 bytes=40960", "supports recorded,"),
            ("cufile_stats", Contradicts, direct, "contradicts recorded, which its counts"),
            ("cufile_stats", Supports, "n=1 posix=0 nvfs=1 bytes=5", "40960 recorded, 5 by its"),
            ("cufile_properties", Supports, "", "supports recorded, which its counts rule out"),
            ("nvidia_fs", Supports, "bytes=40960", "supports recorded, which its counts rule out"),
        ] {
            let found = of(name, assessment, after);
            assert!(found.contains(said), "{name} {after}: {found}");
        }
    }
}
