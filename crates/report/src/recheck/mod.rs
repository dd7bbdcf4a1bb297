//! Whether the figures of a record follow from its own counts.
//!
//! A reader who was given a record can't repeat the run. This recomputes what was derived when the
//! record was made (rates, percentiles, sums) from what was counted, and holds its statements (the
//! plan's text, evidence, ceilings, warnings, names) against each other. It finds a record that was
//! damaged or changed in one place, or that a faulty gpuio wrote. Who changes all figures alike is
//! not found: nothing here is evidence of a measurement.

mod derived;
mod identity;
mod ranks;
mod stated;
mod unknown;

use gpuio_base::stat::{Histogram, Percentile, Summary};
use gpuio_base::units::per_second;
use gpuio_record::{
    BlockShare, ContentDigest, CpuCost, DirectionResult, DirectionTotal, EndedHow, JobPlan,
    JobResult, Latency, Point, Record, Route, RunTotals, Towards, Verdict, VerifyMode,
    VerifyOutcome, WatchedGroup,
};

pub use unknown::unknown_fields;

/// The comparison, and the differences that it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recheck {
    /// How many figures were recomputed.
    pub compared: usize,
    /// Figures that do not follow, a sentence each: the job, the figure, and what it should be.
    pub wrong: Vec<String>,
    /// The one of `wrong` that says that the record is not as gpuio wrote it, by its digest.
    pub changed: Option<String>,
    /// The one of `wrong` that says that another record is in its place.
    pub misplaced: Option<String>,
    /// A sentence for each field of its file that records do not have ([`unknown_fields`]).
    pub unknown: Vec<String>,
    /// Why it is not known whether the record was changed, where that is so.
    pub unproved: Option<String>,
}

impl Recheck {
    /// A sentence on the gravest of what is wrong, each kind in its own words, or on what is not
    /// known.
    pub fn doubt(&self) -> Option<String> {
        let kinds = [self.misplaced_in_words(), self.changed_in_words(), self.contradiction()];
        let found: Vec<String> = kinds.into_iter().flatten().collect();
        if found.is_empty() { self.unproved_in_words() } else { Some(found.join(". ")) }
    }

    /// Why the record is known not to be what gpuio wrote there.
    pub fn forged(&self) -> Option<String> {
        self.misplaced_in_words().or_else(|| self.changed_in_words())
    }

    /// Why nothing may be concluded from the record's figures: it was changed, or contradicts
    /// itself.
    pub fn unfounded(&self) -> Option<String> {
        self.forged().or_else(|| self.contradiction())
    }

    /// Figures that do not follow from counts; the digest and the place are no figures.
    fn figures(&self) -> impl Iterator<Item = &String> {
        let other = [&self.changed, &self.misplaced];
        self.wrong.iter().filter(move |one| other.iter().all(|not| not.as_ref() != Some(*one)))
    }

    /// That figures do not follow from the counts.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let first = self.figures().next()?.trim_end_matches('.');
        Some(format!(
            "Figures do not follow from what the run counted ({} of {}): the record was changed or \
             damaged, or another build of gpuio wrote it. The first: {first}. `gpuio show RECORD \
             --check` names all",
            self.figures().count(),
            self.compared
        ))
    }

    /// That the record was changed after gpuio wrote it.
    pub(crate) fn changed_in_words(&self) -> Option<String> {
        let why = self.changed.as_ref()?;
        let why = why.strip_prefix(RECORD).unwrap_or(why);
        Some(format!("The record is not as gpuio wrote it: {why}{}", self.all_follow()))
    }

    /// That the record is not the one that its sweep made.
    pub(crate) fn misplaced_in_words(&self) -> Option<String> {
        let why = self.misplaced.as_ref()?;
        let why = why.strip_prefix(RECORD).unwrap_or(why);
        Some(format!(
            "Another record is in the place of one of the sweep: {why}{}",
            self.all_follow()
        ))
    }

    fn all_follow(&self) -> &'static str {
        match self.figures().next() {
            None => "; the figures that can be recomputed follow from its own counts",
            Some(_) => "",
        }
    }

    pub(crate) fn unproved_in_words(&self) -> Option<String> {
        let why = self.unproved.as_ref().filter(|_| self.wrong.is_empty())?;
        Some(format!("Whether the record was changed is not known: {why}"))
    }

    /// Counts that the record is not the one of its place, and says why.
    pub fn misplace(&mut self, why: Option<&str>) {
        self.check("the record", why.is_none(), || why.unwrap_or_default().to_owned());
        self.misplaced = self.wrong.last().filter(|_| why.is_some()).cloned();
    }
}

/// How what is wrong with the whole record begins.
const RECORD: &str = "the record: ";

/// Relative difference of two computed figures that is rounding.
const ROUNDING: f64 = 1e-6;

/// A value of a bucket by any other of it (`Histogram`).
const BUCKET: f64 = 1.0 + 1.0 / 128.0;

/// Probes whose rates are of counters that every sample reads.
const COUNTED: [&str; 2] = ["block", "interface"];

/// Recomputes the figures of a record. Looks at nothing but the record.
pub fn recheck(record: &Record) -> Recheck {
    let mut all = Recheck::default();
    all.digest(record);
    let (planned, ran) = (record.plan.jobs.len(), record.jobs.len());
    // A journal, and a run that errors or a signal ended, have results of the first jobs only.
    if record.ended == EndedHow::Complete {
        all.equal("the run", "results of jobs", ran as u64, planned as u64);
    }
    for (plan, job) in record.plan.jobs.iter().zip(&record.jobs) {
        all.job(plan, job, record.ranks.is_some());
    }
    for total in &record.totals {
        let jobs = || record.jobs.iter().filter(|job| job.group == total.group);
        for (side, total_of, of) in [
            ("reads", &total.read, (|job| &job.read) as fn(&JobResult) -> &DirectionResult),
            ("writes", &total.write, |job| &job.write),
        ] {
            let about = format!("the total of group {}, {side}", total.group);
            let sum = |figure: fn(&DirectionResult) -> u64| {
                jobs().map(|job| figure(of(job))).fold(0, u64::saturating_add)
            };
            all.equal(&about, "I/Os", total_of.ios, sum(|one| one.ios));
            all.equal(&about, "bytes", total_of.bytes, sum(|one| one.bytes));
            all.equal(&about, "failed I/Os", total_of.failed, sum(|one| one.failed));
            all.total(&about, total, total_of, jobs().map(of));
        }
        if record.ranks.is_none() {
            all.total_cost(total);
        }
    }
    if let Some(ranks) = &record.ranks {
        all.ranks(record, ranks);
    }
    for group in record.watched.iter().flat_map(|watched| &watched.groups) {
        all.devices(group);
    }
    all.statements(record);
    all
}

/// Why a record is not as gpuio wrote it, by its digest alone.
pub(crate) fn changed(record: &Record) -> Option<String> {
    let version = &record.tool.version;
    match &record.content_sha256 {
        ContentDigest::Changed(_) => Some(
            "its content is not that of its digest (content_sha256): it was changed after gpuio \
             wrote it"
                .to_owned(),
        ),
        ContentDigest::NoDigest if version == env!("CARGO_PKG_VERSION") => Some(format!(
            "it has no digest of its content (content_sha256), as each record of gpuio {version} \
             has: it was changed, or an unfinished {version} wrote it"
        )),
        ContentDigest::Intact | ContentDigest::NoDigest => None,
    }
}

impl Recheck {
    /// Holds the digest against the content, and a record without one against its version, each of
    /// whose records has one.
    fn digest(&mut self, record: &Record) {
        let version = &record.tool.version;
        let why = changed(record);
        if why.is_none() && record.content_sha256 == ContentDigest::NoDigest {
            self.unproved = Some(format!(
                "it names gpuio {version} and has no digest of its content (content_sha256)"
            ));
            return;
        }
        let holds = why.is_none();
        self.check("the record", holds, || why.unwrap_or_default());
        self.changed = self.wrong.last().filter(|_| !holds).cloned();
    }

    /// Counts a figure, and says what is wrong where it does not hold.
    fn check(&mut self, about: &str, holds: bool, words: impl FnOnce() -> String) {
        self.compared += 1;
        if !holds {
            self.wrong.push(format!("{about}: {}", words()));
        }
    }

    fn equal(&mut self, about: &str, figure: &str, recorded: u64, counted: u64) {
        self.check(about, recorded == counted, || {
            format!("{figure}: {recorded} recorded, {counted} by its counts")
        });
    }

    fn close(&mut self, about: &str, figure: &str, recorded: f64, computed: f64) {
        let is_close = (recorded - computed).abs() <= computed.abs() * ROUNDING;
        self.check(about, is_close, || {
            format!("{figure}: {recorded} recorded, {computed} by its counts")
        });
    }

    /// The rate of a total is over the time in which all its jobs ran, and has their bytes of that
    /// time, which are not recorded: at most all of them. Its latencies are those of its jobs.
    fn total<'a>(
        &mut self,
        about: &str,
        totals: &RunTotals,
        total: &DirectionTotal,
        jobs: impl Iterator<Item = &'a DirectionResult>,
    ) {
        let time = totals.common.map(|common| common.length_ns()).filter(|time| *time > 0);
        if let Some(time) = time {
            self.most(about, "bytes per second", total.bytes_per_s, per_second(total.bytes, time));
            self.most(about, "IOPS", total.iops, per_second(total.ios, time));
        }
        self.latencies(about, total.ios, total.latency.as_ref());
        let Some(latency) = &total.latency else { return };
        let mut merged = Histogram::default();
        for one in jobs.filter_map(|job| job.latency.as_ref()) {
            merged.merge(&Histogram::from_summary(&one.total));
        }
        let figures = |all: &Summary| (all.count, all.min_ns, all.max_ns, all.buckets.clone());
        let holds = merged.summary().as_ref().map(figures) == Some(figures(&latency.total));
        self.check(about, holds, || "latency: other values than those of its jobs".to_owned());
    }

    fn most(&mut self, about: &str, figure: &str, recorded: Option<f64>, most: f64) {
        let recorded = recorded.unwrap_or_default();
        self.check(about, recorded <= most * (1.0 + ROUNDING), || {
            format!("{figure}: {recorded} recorded, at most {most}")
        });
    }

    fn job(&mut self, plan: &JobPlan, job: &JobResult, merged: bool) {
        let name = &job.name;
        self.directions(plan, job, merged);
        let about = format!("job '{name}'");
        if !job.series.is_empty() && plan.feed.is_none() {
            self.points(&about, plan, job);
        }
        if !merged && plan.feed.is_none() && plan.replay.is_none() {
            self.in_flight(&about, plan, job);
        }
        let bytes = job.read.bytes.saturating_add(job.write.bytes);
        let ios = job.read.ios.saturating_add(job.write.ios);
        self.cost(&about, job, bytes, merged);
        let parts = [
            ("threads", job.workers.iter().map(|it| (it.bytes, it.ios)).collect::<Vec<_>>()),
            ("GPUs", job.gpus.iter().map(|it| (it.bytes, it.ios)).collect()),
        ];
        for (name, parts) in parts.into_iter().filter(|(_, parts)| !parts.is_empty()) {
            let sum = parts.iter().fold((0, 0), |sum: (u64, u64), part| {
                (sum.0.saturating_add(part.0), sum.1.saturating_add(part.1))
            });
            self.equal(&about, &format!("bytes of its {name}"), sum.0, bytes);
            self.equal(&about, &format!("I/Os of its {name}"), sum.1, ios);
        }
        self.equal(
            &about,
            "failed I/Os",
            job.failed,
            job.read.failed.saturating_add(job.write.failed),
        );
        self.evidence_of(&about, plan, job, merged);
    }

    /// Each direction of a job.
    fn directions(&mut self, plan: &JobPlan, job: &JobResult, merged: bool) {
        let name = &job.name;
        let directions = [(Towards::Read, &job.read), (Towards::Write, &job.write)];
        for (towards, side) in directions {
            let about = format!(
                "job '{name}', {}",
                match towards {
                    Towards::Read => "reads",
                    Towards::Write => "writes",
                }
            );
            let over = job.last_done_ns;
            let rate = per_second(side.bytes, over);
            self.close(&about, "bytes per second", side.bytes_per_s, rate);
            self.close(&about, "IOPS", side.iops, per_second(side.ios, over));
            if plan.feed.is_none() && plan.replay.is_none() {
                self.sizes(&about, plan.sizes_of(towards == Towards::Write), side);
                if !merged && plan.ranges.is_none() {
                    self.least(&about, plan, towards, job);
                }
            }
            self.latencies(&about, side.ios, side.latency.as_ref());
        }
    }

    /// The path taken and the verification of a job.
    fn evidence_of(&mut self, about: &str, plan: &JobPlan, job: &JobResult, merged: bool) {
        if let Some(proof) = &job.proof {
            self.verdict(about, plan, &proof.verdict);
        }
        if !merged {
            self.derived(about, plan, job);
        }
        match &job.verify {
            Some(verify) => {
                self.verification(about, verify, merged);
                if !merged {
                    self.verified(about, plan, job);
                }
            }
            None => {
                let ran = plan.verify != VerifyMode::Off && job.ended == EndedHow::Complete;
                self.check(about, !ran, || "no result of the verification planned".to_owned());
            }
        }
    }

    /// The verdict's words follow from route and source, and these have to be possible on the path.
    fn verdict(&mut self, about: &str, plan: &JobPlan, verdict: &Verdict) {
        let Verdict { words, route, source } = verdict;
        let (reads, writes) = (plan.read_percent > 0, plan.read_percent < 100);
        let whole = Verdict::new(*route, *source, reads, writes).words;
        self.check(about, *words == whole, || {
            format!("path taken: '{words}' recorded, '{whole}' by its route and source")
        });
        // Memory of path host may be pinned by a GPU's driver.
        let to_gpu = !plan.gpus.is_empty() && plan.path.choice.actual != "host";
        let possible = match route {
            Route::Direct => !to_gpu || plan.register_buffer.is_some(),
            Route::HostMemory => !to_gpu,
            Route::BounceHost | Route::BounceGpu { .. } | Route::Mapped => to_gpu,
            Route::Mixed | Route::Unknown => true,
        };
        self.check(about, possible, || {
            format!(
                "path taken: '{words}' recorded, which path {} can't take",
                plan.path.choice.actual
            )
        });
    }

    fn verification(&mut self, about: &str, verify: &VerifyOutcome, merged: bool) {
        let (bad, kept) = (verify.bad_blocks, verify.mismatches.len() as u64);
        let most = VerifyOutcome::KEPT as u64;
        // One that was read again is kept again only if it was wrong in another way.
        let least = verify.bad_places.unwrap_or(bad).min(bad).min(most);
        // Each rank keeps its first ones.
        let most = if merged { bad } else { bad.min(most) };
        self.equal(about, "mismatches", kept, kept.clamp(least, most));
        let words = verify.mismatches.iter().map(|one| one.bad_words);
        let words = words.fold(0, u64::saturating_add);
        let all = if bad == kept { words } else { verify.bad_words.max(words) };
        self.equal(about, "wrong words", verify.bad_words, all);
        if let Some(places) = verify.bad_places {
            self.check(about, places.min(1) == bad.min(1) && places <= bad, || {
                format!("{places} different bad blocks recorded, of {bad} that were read")
            });
        }
        let checked = verify.timed_blocks.saturating_add(verify.pass_blocks);
        self.check(about, bad <= checked, || {
            format!("{bad} bad blocks among {checked} that were verified")
        });
    }

    /// A rate over the whole group is the mean of its intervals. The first of these began a little
    /// before the clock by which they end: by how much, which is the same for all, follows from the
    /// rates.
    fn devices(&mut self, group: &WatchedGroup) {
        let about = format!("devices of group {}", group.group);
        let figures = group.devices.iter().flat_map(|device| &device.figures);
        for figure in figures {
            let (values, intervals) = (figure.values.len(), group.ends_ns.len());
            self.equal(
                &about,
                &format!("samples of {}", figure.key),
                values as u64,
                intervals as u64,
            );
        }
        let ends = || group.ends_ns.iter().map(|end| crate::number::float(*end));
        let began = crate::number::float(group.began_ns);
        let (Some(first), Some(last)) = (
            ends().next().map(|end| end - began).filter(|length| *length > 0.0),
            ends().next_back().map(|end| end - began),
        ) else {
            return;
        };
        let lengths =
            || std::iter::once(first).chain(ends().zip(ends().skip(1)).map(|(a, b)| b - a));
        let counted = group.devices.iter().filter(|one| COUNTED.contains(&one.probe.as_str()));
        let rates = counted.flat_map(|device| {
            let rates = device.figures.iter().filter(|one| one.key.ends_with("_per_second"));
            rates.filter_map(|figure| {
                let values: Vec<f64> = figure.values.iter().copied().collect::<Option<_>>()?;
                let sum: f64 = values.iter().zip(lengths()).map(|(value, ns)| value * ns).sum();
                let about = format!("{about}, {}", device.device);
                Some((about, figure.key.as_str(), figure.whole?, *values.first()?, sum))
            })
        });
        let rates: Vec<_> = rates.filter(|(_, _, whole, ..)| *whole > 0.0).collect();
        let by = |(_, _, _, first, sum): &(_, _, f64, f64, f64), before: f64| {
            (sum + first * before) / (last + before)
        };
        let fits = |before: f64| {
            let fits = |one: &&(_, _, f64, f64, f64)| {
                let computed = by(one, before);
                (one.2 - computed).abs() <= computed.abs() * ROUNDING
            };
            rates.iter().filter(fits).count()
        };
        let differs = |(_, _, whole, first, _): &&(_, _, f64, f64, f64)| {
            (first - whole).abs() > whole * ROUNDING
        };
        let times = rates.iter().filter(differs);
        let times = times.map(|(_, _, whole, first, sum)| (whole * last - sum) / (first - whole));
        // The time that most rates have, or else the least: one that was changed has another.
        let better = |a: &f64, b: &f64| fits(*a).cmp(&fits(*b)).then(b.abs().total_cmp(&a.abs()));
        let before = times.max_by(better).unwrap_or(0.0);
        for one in &rates {
            self.close(&one.0, &format!("{}, whole", one.1), one.2, by(one, before));
        }
    }

    /// The process was also busy while no job's time ran.
    fn total_cost(&mut self, total: &RunTotals) {
        let about = format!("the total of group {}", total.group);
        self.per_mib(&about, &total.cpu, total.read.bytes.saturating_add(total.write.bytes));
        if total.last_done_ns > 0 {
            let busy = Some(total.cpu.cores_busy);
            self.most(&about, "processors kept busy", busy, cores(&total.cpu, total.last_done_ns));
        }
    }

    /// Little's law: latencies added up are at most the time of all I/Os in flight. One each may
    /// have begun before.
    fn in_flight(&mut self, about: &str, plan: &JobPlan, job: &JobResult) {
        let sums = [&job.read, &job.write].into_iter().filter_map(|side| side.latency.as_ref());
        let sums = sums.map(|latency| {
            let queue = latency.queue.as_ref().map_or(0.0, |queue| queue.mean_ns);
            let ios = crate::number::float(latency.total.count);
            ((latency.total.mean_ns - queue) * ios, latency.total.max_ns)
        });
        let (sum, longest) = sums.fold((0.0, 0), |all, one| (all.0 + one.0, all.1.max(one.1)));
        let time = crate::number::float(job.last_done_ns.saturating_add(longest));
        let most = f64::from(plan.threads) * f64::from(plan.depth.max(1)) * BUCKET;
        self.check(about, sum <= time * most, || {
            format!(
                "latency x IOPS: {:.1} I/Os in flight, of at most {}",
                sum / crate::number::float(job.last_done_ns.max(1)),
                plan.threads.saturating_mul(plan.depth)
            )
        });
    }

    fn cost(&mut self, about: &str, job: &JobResult, bytes: u64, merged: bool) {
        if merged || job.last_done_ns == 0 {
            return;
        }
        let busy = cores(&job.cpu, job.last_done_ns);
        self.close(about, "processors kept busy", job.cpu.cores_busy, busy);
        // A journal of a job that was not over has none.
        let has_cost = job.cpu.us_per_mib.is_some() == (bytes > 0);
        self.check(about, has_cost || job.ended != EndedHow::Complete, || {
            format!("CPU time per MiB: {} recorded, of {bytes} bytes", word(&job.cpu.us_per_mib))
        });
        self.per_mib(about, &job.cpu, bytes);
    }

    fn per_mib(&mut self, about: &str, cpu: &CpuCost, bytes: u64) {
        let Some(cost) = cpu.us_per_mib else { return };
        let mib = crate::number::float(bytes) / f64::from(1 << 20);
        self.close(about, "CPU time per MiB", cost, (cpu.user_s + cpu.system_s) * 1e6 / mib);
    }

    /// The series has all that the result has, and the ramp.
    fn points(&mut self, about: &str, plan: &JobPlan, job: &JobResult) {
        let sides = [(Towards::Read, &job.read, "reads"), (Towards::Write, &job.write, "writes")];
        for (towards, side, name) in sides {
            let latency = |point: &Point| match towards {
                Towards::Read => point.read_latency_ns,
                Towards::Write => point.write_latency_ns,
            };
            let all = side
                .latency
                .as_ref()
                .map_or(0.0, |of| of.total.mean_ns * crate::number::float(of.total.count));
            let sum = |figure: &dyn Fn(&Point) -> Option<u64>| {
                let all = job.series.iter().map(|point| figure(point).map(crate::number::float));
                all.sum::<Option<f64>>()
            };
            let [bytes, ios] = [side.bytes, side.ios].map(crate::number::float);
            for (figure, counted, off, sum) in [
                ("bytes", bytes, 0.0, sum(&|point| Some(point.bytes(towards)))),
                ("I/Os", ios, 0.0, sum(&|point| Some(point.ios(towards)))),
                ("ns of latencies", all, ROUNDING, sum(&latency)),
            ] {
                let Some(sum) = sum else { continue };
                let is_close = (sum - counted).abs() <= counted * off;
                self.check(about, is_close || (plan.ramp_ns > 0 && sum > counted), || {
                    format!("{counted} {figure} of {name}, but {sum} in its series")
                });
            }
        }
        for (nth, point) in job.series.iter().enumerate() {
            let near = &job.series[nth.saturating_sub(1)..job.series.len().min(nth + 2)];
            self.check(about, is_possible(point, near), || {
                format!(
                    "interval until {} ns: its percentiles and its largest latency do not fit the \
                     sum of its latencies",
                    point.at_ns
                )
            });
        }
    }

    /// Bytes by I/Os and the largest block. The last I/O of a file may be shorter.
    fn sizes(&mut self, about: &str, blocks: &[BlockShare], side: &DirectionResult) {
        let Some(size) = blocks.iter().map(|block| block.max_bytes).max() else { return };
        let (bytes, ios) = (side.bytes, side.ios);
        self.check(about, bytes <= ios.saturating_mul(size), || {
            format!("{bytes} bytes in {ios} I/Os of at most {size}")
        });
    }

    fn latencies(&mut self, about: &str, ios: u64, latency: Option<&Latency>) {
        let Some(latency) = latency else {
            return self.equal(about, "I/Os without latencies", ios, 0);
        };
        self.equal(about, "latencies", latency.total.count, ios);
        let parts = [
            ("latency", Some(&latency.total)),
            ("latency of the queue", latency.queue.as_ref()),
            ("latency of the file leg", latency.file.as_ref()),
            ("latency of the GPU leg", latency.gpu.as_ref()),
        ];
        for (figure, summary) in parts {
            if let Some(summary) = summary.filter(|it| !it.buckets.is_empty()) {
                self.summary(about, figure, summary);
            }
        }
    }

    fn summary(&mut self, about: &str, figure: &str, summary: &Summary) {
        let counted = summary.buckets.iter().fold(0, |sum: u64, it| sum.saturating_add(it.1));
        self.equal(about, &format!("{figure}: values"), summary.count, counted);
        if summary.count != counted {
            return;
        }
        let buckets = Histogram::from_summary(summary);
        for at in Percentile::ALL {
            let (recorded, computed) = (summary.percentile(at), buckets.percentile(at.quantile()));
            self.check(about, recorded == computed, || {
                format!(
                    "{figure}, {}: {} recorded, {} by its counts",
                    at.label(),
                    time(recorded),
                    time(computed)
                )
            });
        }
        let bucket = |value: u64| {
            let mut one = Histogram::default();
            one.record(value);
            one.summary().and_then(|one| Some(one.buckets.first()?.0))
        };
        let ends = [summary.buckets.first(), summary.buckets.last()];
        for (name, value, end) in
            [("least", summary.min_ns, ends[0]), ("largest", summary.max_ns, ends[1])]
        {
            self.check(about, bucket(value) == end.map(|end| end.0), || {
                format!("{figure}, {name}: {value} ns recorded, which its buckets rule out")
            });
        }
        let (mean, squares) =
            (summary.mean_ns, summary.mean_ns.powi(2) + summary.stddev_ns.powi(2));
        for (name, recorded, of, power) in
            [("mean", mean, mean, 1), ("deviation", summary.stddev_ns, squares, 2)]
        {
            let Some((least, most)) = buckets.mean_bounds(power) else { continue };
            let holds = (least * (1.0 - ROUNDING)..=most * (1.0 + ROUNDING)).contains(&of);
            self.check(about, holds, || {
                format!("{figure}, {name}: {recorded} ns recorded, which its buckets rule out")
            });
        }
    }
}

/// Processors that were busy in a time.
fn cores(cpu: &CpuCost, time_ns: u64) -> f64 {
    (cpu.user_s + cpu.system_s) * 1e9 / crate::number::float(time_ns)
}

/// Whether the latencies of an interval can have its percentiles, its largest and its sum. `near`:
/// it and its neighbours, one of which may have the latencies of I/Os that ended while counters
/// were read. Intervals of several ranks have no percentiles, and their counts are spread evenly.
fn is_possible(point: &Point, near: &[Point]) -> bool {
    use crate::number::float;
    let sum = |point: &Point| {
        let sums = point.read_latency_ns.zip(point.write_latency_ns);
        sums.map(|(reads, writes)| float(reads.saturating_add(writes)))
    };
    let (Some(own), Some(max), Some(p50)) = (sum(point), point.max_ns.map(float), point.p50_ns)
    else {
        return true;
    };
    let ios = |point: &Point| float(point.read_ios.saturating_add(point.write_ios));
    let sums: f64 = near.iter().filter_map(sum).sum();
    let of_neighbours: f64 =
        near.iter().map(|one| ios(one) * one.max_ns.map_or(0.0, float)).sum::<f64>()
            - ios(point) * max;
    let fits = |at: Percentile| {
        let Some(value) = point.percentile(at).map(float) else { return true };
        let rank = (at.quantile() * ios(point)).ceil().max(1.0);
        let least = value * (ios(point) - rank + 1.0);
        let most = value * rank + max * (ios(point) - rank) + of_neighbours;
        value <= max && least <= sums * BUCKET && own <= most * BUCKET
    };
    fits(Percentile::MEDIAN) && fits(Percentile::TAIL) && point.p99_ns.is_none_or(|p99| p50 <= p99)
}

/// A recorded value as the record spells it; `nothing` where it is absent.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Null) | Err(_) => "nothing".to_owned(),
        Ok(value) => value.to_string(),
    }
}

/// To the nanosecond, where rounded times would be the same.
fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "nothing".to_owned(), |ns| format!("{ns} ns"))
}

#[cfg(test)]
mod tests {
    use gpuio_record::{DeviceSeries, FigureSeries};

    use super::*;

    fn figure(key: &str, values: [f64; 3], whole: f64) -> FigureSeries {
        let values = values.map(Some).to_vec();
        FigureSeries { key: key.to_owned(), whole: Some(whole), values }
    }

    /// The findings about a drive with these figures, sampled at 100, 200 and 300 ns.
    fn wrong_of(figures: Vec<FigureSeries>) -> Vec<String> {
        let (probe, device) = ("block".to_owned(), "nvme0n1".to_owned());
        let devices = vec![DeviceSeries { probe, device, figures }];
        let ends_ns = vec![100, 200, 300];
        let mut all = Recheck::default();
        all.devices(&WatchedGroup { ends_ns, devices, ..WatchedGroup::default() });
        all.wrong
    }

    /// A counter read at -2, 100, 200 and 300 ns, of another rate in each interval.
    #[test]
    fn a_changed_sample_of_a_device_is_found() {
        let recheck = |changed: f64| {
            wrong_of(vec![
                figure("reads_per_second", [10.0, 40.0, changed], 8020.0 / 302.0),
                figure("read_bytes_per_second", [1e6, 2e6, 3e6], 602e6 / 302.0),
                figure("queue", [1.0, 2.0, 3.0], 9.0),
            ])
        };
        assert_eq!(recheck(30.0), [""; 0]);
        let wrong = recheck(31.0);
        assert!(wrong[0].starts_with("devices of group 0, nvme0n1: "), "{wrong:?}");
    }

    /// The rate over a group that was changed is blamed, and no rate of another device or counter.
    #[test]
    fn a_changed_rate_over_a_whole_group_is_the_one_that_is_wrong() {
        for factor in [0.5, 0.999, 1.01, 3.0] {
            let wrong = wrong_of(vec![
                figure("reads_per_second", [10.0, 40.0, 30.0], 8020.0 / 302.0 * factor),
                figure("read_bytes_per_second", [1e6, 2e6, 3e6], 602e6 / 302.0),
                figure("writes_per_second", [5.0, 5.0, 6.0], 1610.0 / 302.0),
            ]);
            let [one] = wrong.as_slice() else { panic!("{factor}: {wrong:?}") };
            assert!(one.contains("nvme0n1: reads_per_second, whole: "), "{one}");
        }
    }

    /// Texts for people have no forms of Rust (tidy looks for them), and times that differ differ
    /// when they are printed.
    #[test]
    fn a_changed_percentile_is_reported_in_words() {
        let mut latencies = Histogram::default();
        (0..200).for_each(|nth| latencies.record(4_000_000 + nth * 5000));
        let mut summary = latencies.summary().unwrap();
        summary.p99_ns = Some(4_000_000);
        let mut all = Recheck::default();
        all.summary("job 'a'", "latency", &summary);
        let text = all.wrong.join("; ");
        assert!(text.contains("p99: 4000000 ns recorded, ") && !text.contains("Some"), "{text}");
        let words = [word(&EndedHow::Complete), word(&None::<u64>), word(&Some(3))];
        assert_eq!(words, ["complete", "nothing", "3"]);
    }
}
