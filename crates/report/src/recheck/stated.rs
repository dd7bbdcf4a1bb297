//! Statements of a record against others of it: the plan's text against the plan, ceilings,
//! evidence against its readings, warnings that must be there.

use gpuio_record::{
    Assessment, CeilingKind, CeilingSource, DirectMode, DirectionResult, EndedHow, Evidence,
    JobPlan, JobResult, OfCeiling, Proof, Record, Route, Towards, VerifyMode, VerifyOutcome,
    WarningKind,
};

use super::{BUCKET, Recheck};
use crate::number::float;

/// How the software GPU's driver calls its GPUs, with a number behind it.
const SOFTWARE_GPU: &str = "gpuio software GPU";

impl Recheck {
    pub(super) fn statements(&mut self, record: &Record) {
        self.software(record);
        // Merged records have the plan of one rank, and neither its ceilings nor its warnings.
        if record.ranks.is_some() {
            return;
        }
        // Other versions may write other words.
        if record.tool.version == env!("CARGO_PKG_VERSION") {
            self.plan_text(record);
        }
        self.ending(record);
        for (plan, job) in record.plan.jobs.iter().zip(&record.jobs) {
            self.of_ceilings(record, job);
            self.traffic(job);
            if let Some(proof) = &job.proof {
                self.evidence(plan, job, proof);
            }
            if record.ended == EndedHow::Complete {
                self.warned(record, plan, job);
            }
        }
        self.ceilings(record);
    }

    /// The mark of the software GPU, by which no figure of it is taken for one of hardware.
    fn software(&mut self, record: &Record) {
        let marked = record.plan.software_gpu;
        let gpus = || record.plan.jobs.iter().flat_map(|job| &job.gpus);
        for gpu in gpus().filter(|gpu| gpu.name.starts_with(SOFTWARE_GPU)) {
            let words = || "software: false recorded, which its name rules out".to_owned();
            self.check(&format!("GPU {} ({})", gpu.index, gpu.name), gpu.software, words);
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

    fn plan_text(&mut self, record: &Record) {
        let whole = crate::plan_text(&record.plan);
        let mut lines = whole.lines().zip(record.plan_text.lines());
        let other = lines.find(|(by_plan, own)| by_plan != own);
        let (by_plan, own) = other.unwrap_or(("another length", "its lines"));
        self.check("plan_text", whole == record.plan_text, || {
            format!("'{own}' recorded, '{by_plan}' by the plan")
        });
    }

    /// How the run ended, by its jobs.
    fn ending(&mut self, record: &Record) {
        let any = |how| record.jobs.iter().any(|job| job.ended == how);
        let whole = record.jobs.len() == record.plan.jobs.len();
        let verified = record.jobs.iter().filter_map(|job| job.verify.as_ref());
        let all_verified = verified.fold(true, |all, one| all && one.complete);
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
            format!("ended: {:?} recorded, which its jobs and its error rule out", record.ended)
        });
    }

    fn of_ceilings(&mut self, record: &Record, job: &JobResult) {
        for (direction, side, name) in sides(job) {
            let (own, whole) = (
                side.of_ceiling.as_ref(),
                OfCeiling::lowest(&record.ceilings, &job.name, direction, side),
            );
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
                    format!("{figure}: {recorded:?} recorded, {counted} by evidence process_io")
                });
            }
        }
    }

    /// What evidence counted against its two readings, and its assessment against that.
    fn evidence(&mut self, plan: &JobPlan, job: &JobResult, proof: &Proof) {
        // Past host memory is known by cuFile's own counts alone.
        let straight =
            |one: &Evidence| one.name == "cufile_stats" && one.assessment == Assessment::Supports;
        let to_gpu = !plan.gpus.is_empty() && plan.register_buffer.is_some();
        let direct = to_gpu && proof.verdict.route == Route::Direct;
        let about = format!("job '{}'", job.name);
        self.check(&about, !direct || proof.evidence.iter().any(straight), || {
            format!("path taken: '{}' recorded, without a count that shows it", proof.verdict.words)
        });
        for one in &proof.evidence {
            let about = format!("job '{}', evidence {} of {}s", job.name, one.name, one.direction);
            let change =
                |key: &str| reading(&one.after, key)?.checked_sub(reading(&one.before, key)?);
            let counted = match one.name.as_str() {
                "process_io" => change("read_bytes").or_else(|| change("write_bytes")),
                "cufile_stats" => change("bytes"),
                _ => None,
            };
            if let Some((observed, counted)) = one.observed_bytes.zip(counted) {
                self.equal(&about, "bytes", observed, counted);
            }
            let is_own = one.name == "own" && plan.engine.actual != "null";
            let side = sides(job).into_iter().find(|side| side.2 == one.direction);
            if let (true, Some(expected), Some((_, side, _))) = (is_own, one.expected_bytes, side) {
                self.equal(&about, "bytes that completed", expected, side.bytes);
            }
            let never = matches!(
                (one.name.as_str(), one.assessment),
                ("cufile_properties", Assessment::Supports)
                    | ("nvidia_fs", Assessment::Contradicts)
            );
            self.check(&about, !never && !contradicts_its_bytes(plan, one), || {
                format!("{:?} recorded, which its counts rule out", one.assessment)
            });
            let [all, host, past] = ["n", "posix", "nvfs"].map(change);
            let (Some(all), Some(host), Some(past)) = (all, host, past) else { continue };
            if one.name != "cufile_stats" {
                continue;
            }
            let past = past.saturating_add(change("p2p").unwrap_or(0));
            let fits = match one.assessment {
                Assessment::Supports => host == 0 && past == all,
                Assessment::Contradicts => host > 0,
                Assessment::Inconclusive => true,
            };
            self.check(&about, fits, || {
                format!(
                    "{:?} recorded, of {all} transfers {host} by POSIX calls and {past} past host \
                     memory",
                    one.assessment
                )
            });
            let said = one.why.contains("all ") && one.why.ends_with("through host memory");
            self.check(
                &about,
                !said || host == all && one.assessment != Assessment::Supports,
                || format!("{:?} recorded, and its reason: {}", one.assessment, one.why),
            );
        }
    }

    /// Warnings that follow from plan and result alone.
    fn warned(&mut self, record: &Record, plan: &JobPlan, job: &JobResult) {
        let has = |fits: &dyn Fn(&WarningKind) -> bool| {
            let mut own = record.warnings.iter().filter(|one| one.job.as_ref() == Some(&plan.name));
            own.any(|one| fits(&one.kind))
        };
        let stepped = job.engine.iter().any(|engine| !engine.steps_down.is_empty());
        for (name, due, there) in [
            (
                "engine_stepped_down",
                stepped,
                has(&|kind| matches!(kind, WarningKind::EngineSteppedDown { .. })),
            ),
            (
                "faults_injected",
                plan.inject.is_some(),
                has(&|kind| matches!(kind, WarningKind::FaultsInjected { .. })),
            ),
            ("note", !plan.notes.is_empty(), has(&|kind| matches!(kind, WarningKind::Note { .. }))),
        ] {
            self.check("warnings", !due || there || plan.engine.actual == "null", || {
                format!("{name} of job '{}' is missing", plan.name)
            });
        }
    }

    /// No more was verified than was moved, or than the plan has.
    pub(super) fn verified(&mut self, about: &str, plan: &JobPlan, job: &JobResult) {
        let Some(VerifyOutcome { timed_bytes, pass_bytes, filled_bytes, .. }) = &job.verify else {
            return;
        };
        // Checks between I/Os are of what was read.
        let inline = plan.verify == VerifyMode::Inline;
        let writes = |bytes: u64| if inline { 0 } else { bytes };
        let leg = job.file_leg.read_bytes.saturating_add(writes(job.file_leg.write_bytes));
        let moved = leg.max(job.read.bytes.saturating_add(writes(job.write.bytes)));
        // Each GPU has all of it on path fan-out.
        let gpus = job.fan_out.as_ref().map_or(1, |of| u64::from(of.gpus.max(1)));
        let most = moved.saturating_mul(gpus);
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

    /// Bytes by I/Os and the smallest block. An I/O at the end of a region may be shorter: one of
    /// those that a pass has, twice as many where offsets are random; and the last of a thread.
    pub(super) fn least(&mut self, about: &str, plan: &JobPlan, towards: Towards, job: &JobResult) {
        let blocks = plan.sizes_of(towards == Towards::Write);
        let regions = || plan.workers.iter().flat_map(|worker| &worker.regions);
        let side = if towards == Towards::Write { &job.write } else { &job.read };
        let (Some(least), Some(most), Some(length)) = (
            blocks.iter().map(|one| one.min_bytes).min(),
            blocks.iter().map(|one| one.max_bytes).max(),
            regions().map(|one| one.length).min().filter(|length| *length > 0),
        ) else {
            return;
        };
        let even = least == most
            && plan.skew_bytes == 0
            && plan.align_bytes >= most
            && regions().all(|one| one.length % most == 0);
        let short = if even { 0.0 } else { 2.0 * float(most) / float(length) };
        if regions().any(|one| one.stripe.is_some()) {
            return;
        }
        let whole = float(side.ios) * (1.0 - short) - f64::from(plan.threads);
        self.check(about, float(side.bytes) >= whole * float(least), || {
            format!("{} bytes in {} I/Os of at least {least}", side.bytes, side.ios)
        });
    }
}

fn sides(job: &JobResult) -> [(Towards, &DirectionResult, &'static str); 2] {
    [(Towards::Read, &job.read, "read"), (Towards::Write, &job.write, "write")]
}

/// A count of a reading: `read_bytes 12`, or `n=4 posix=4 bytes=9`.
fn reading(text: &Option<String>, key: &str) -> Option<u64> {
    let words: Vec<&str> = text.as_deref()?.split([' ', '=']).collect();
    words.windows(2).find(|pair| pair[0] == key)?[1].parse().ok()
}

/// Whether the bytes that a counter has rule its assessment out. Within a tenth they are all.
fn contradicts_its_bytes(plan: &JobPlan, one: &Evidence) -> bool {
    let (Some(observed), Some(expected)) = (one.observed_bytes, one.expected_bytes) else {
        return false;
    };
    let all = observed.abs_diff(expected) <= expected / 10;
    let direct = plan.direct == DirectMode::Direct;
    match (one.name.as_str(), one.assessment) {
        ("process_io", Assessment::Supports) if !direct => observed >= expected,
        ("process_io" | "nvidia_fs", Assessment::Supports) => !all,
        ("process_io", Assessment::Contradicts) => observed >= expected,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::{Source, Verdict};
    use gpuio_testkit::jobs;

    use super::*;

    /// What is wrong with evidence on a job that reads by cuFile into a GPU's memory.
    fn of(name: &str, assessment: Assessment, after: &str, why: &str) -> String {
        let plan = jobs::job("path=gds\ndirect=1\ngpus=0\nrw=read");
        let evidence = Evidence {
            name: name.to_owned(),
            direction: "read".to_owned(),
            source: "a counter".to_owned(),
            before: Some("read_bytes 0 n=0 posix=0 nvfs=0 p2p=0 bytes=0".to_owned()),
            after: Some(after.to_owned()),
            observed_bytes: Some(40960),
            expected_bytes: Some(40960),
            assessment,
            why: why.to_owned(),
        };
        let proof = Proof {
            requested: String::new(),
            actual: String::new(),
            verdict: Verdict::new(Route::Direct, Source::Storage, true, false),
            as_requested: true,
            sentence: "direct: nvidia-fs moved all bytes.".to_owned(),
            evidence: vec![evidence],
        };
        let mut all = Recheck::default();
        all.evidence(&plan, &jobs::result(&plan, 10), &proof);
        all.wrong.join("; ")
    }

    #[test]
    fn evidence_is_held_against_its_readings() {
        use Assessment::{Contradicts, Supports};
        let (host, past) = ("n=10 posix=10 nvfs=0 p2p=0 bytes=40960", "by POSIX calls: through");
        let forged = of("cufile_stats", Supports, host, &format!("all 10 {past} host memory"));
        for words in ["10 by POSIX calls and 0 past", "and its reason"] {
            assert!(forged.contains(words), "{words}: {forged}");
        }
        let direct = "n=10 posix=0 nvfs=10 p2p=0 bytes=40960";
        assert_eq!(of("cufile_stats", Supports, direct, "all 10 transfers by nvidia-fs"), "");
        let other = of("cufile_stats", Contradicts, direct, "");
        for words in ["0 by POSIX calls", "path taken: 'direct' recorded, without a count"] {
            assert!(other.contains(words), "{words}: {other}");
        }
        assert!(of("cufile_properties", Supports, "", "").contains("its counts rule out"));
        let other = of("process_io", Supports, "read_bytes 5", "");
        assert!(other.contains("bytes: 40960 recorded, 5 by its counts"), "{other}");
        assert!(of("process_io", Contradicts, "", "").contains("Contradicts recorded"));
    }
}
