//! Figures of several ranks together, against those of each rank and its times.

use std::collections::BTreeSet;

use gpuio_base::units::per_second;
use gpuio_record::merge::{JobTimes, stragglers, windows};
use gpuio_record::{
    EndedHow, JobResult, RankHost, RankJob, RankJobRates, RankRow, RanksResult, Record, TimeSpan,
    VerifyOutcome,
};

use super::{Recheck, word};
use crate::number::float;

impl Recheck {
    pub(super) fn ranks(&mut self, record: &Record, ranks: &RanksResult) {
        let rows = &ranks.rows;
        self.equal("ranks", "rows", rows.len() as u64, u64::from(ranks.ranks));
        let all = rows.iter().all(|row| row.ended == Some(EndedHow::Complete));
        self.check("the run", all || record.ended != EndedHow::Complete, || {
            "ended: Complete recorded, which its ranks rule out".to_owned()
        });
        ranks.hosts.iter().for_each(|host| self.of_host(host, rows));
        record.jobs.iter().for_each(|job| self.of_ranks(job, ranks));
        for total in &record.totals {
            let about = format!("the total of group {}", total.group);
            let jobs: Vec<_> = record.jobs.iter().filter(|job| job.group == total.group).collect();
            let spans = || jobs.iter().filter_map(|job| job.measured);
            let begin = spans().map(|span| span.begin_ns).min().unwrap_or(0);
            let end = spans().map(|span| span.end_ns).max().unwrap_or(0);
            self.equal(&about, "time, ns", total.last_done_ns, end.saturating_sub(begin));
            let busy = jobs.iter().map(|job| job.cpu.cores_busy).sum();
            self.close(&about, "processors kept busy", total.cpu.cores_busy, busy);
            // The time in which several jobs all ran is not known, and with it their rate.
            let alone = if let [job] = jobs.as_slice() { Some(*job) } else { None };
            let [reads, writes] = [alone.map(|job| &job.read), alone.map(|job| &job.write)];
            for (own, job) in [(&total.read, reads), (&total.write, writes)] {
                let whole = [job.map(|job| job.bytes_per_s), job.map(|job| job.iops)];
                self.check(&about, [own.bytes_per_s, own.iops] == whole, || {
                    format!(
                        "{} bytes per second recorded, {} by its job",
                        word(&own.bytes_per_s),
                        word(&whole[0])
                    )
                });
            }
        }
    }

    fn of_host(&mut self, host: &RankHost, rows: &[RankRow]) {
        let about = format!("host {}", host.name);
        let own = || rows.iter().filter(|row| row.host == host.name);
        let ranks = own().map(|row| row.rank).eq(host.ranks.iter().copied());
        self.check(&about, ranks, || "ranks: other ones than have it as their host".to_owned());
        let jobs = || own().flat_map(|row| &row.jobs);
        let bytes = jobs().map(|job| job.bytes).fold(0, u64::saturating_add);
        self.equal(&about, "bytes", host.bytes, bytes);
        for one in &host.expected {
            let rate = jobs().filter(|job| job.job == one.job).map(|job| job.bytes_per_s).sum();
            self.close(&about, "bytes per second", one.measured_bytes_per_s, rate);
            if let Some((percent, of)) = one.percent.zip(one.expected.bytes_per_s) {
                self.close(&about, "per cent of the expected rate", percent, rate / of * 100.0);
            }
        }
    }

    fn of_ranks(&mut self, job: &JobResult, ranks: &RanksResult) {
        let about = format!("job '{}' of all ranks", job.name);
        let parts = ranks.rows.iter().flat_map(|row| &row.jobs);
        let parts: Vec<&RankJob> = parts.filter(|one| one.job == job.name).collect();
        let sum =
            |of: fn(&RankJob) -> u64| parts.iter().map(|one| of(one)).fold(0, u64::saturating_add);
        let bytes = job.read.bytes.saturating_add(job.write.bytes);
        self.equal(&about, "bytes", bytes, sum(|one| one.bytes));
        let ios = job.read.ios.saturating_add(job.write.ios);
        self.equal(&about, "I/Os", ios, sum(|one| one.ios));
        self.equal(&about, "failed I/Os", job.failed, sum(|one| one.failed));
        let busy = parts.iter().map(|one| one.cores_busy).sum();
        self.close(&about, "processors kept busy", job.cpu.cores_busy, busy);
        let cost = |one: &&RankJob| Some(one.us_per_mib? * float(one.bytes) / float(1 << 20));
        if let Some(us) = parts.iter().map(cost).sum::<Option<f64>>() {
            let own = (job.cpu.user_s + job.cpu.system_s) * 1e6;
            self.close(&about, "CPU time, microseconds", own, us);
            self.per_mib(&about, &job.cpu, bytes);
        }
        let largest = [&job.read, &job.write].map(|side| side.latency.as_ref());
        if let [Some(latency), None] | [None, Some(latency)] = largest {
            let most = parts.iter().filter_map(|one| one.max_ns).max().unwrap_or(0);
            self.equal(&about, "largest latency, ns", latency.total.max_ns, most);
        }
        let verdicts: BTreeSet<&str> =
            parts.iter().filter_map(|one| one.verdict.as_deref()).collect();
        let whole = if verdicts.len() > 1 { Some("mixed") } else { verdicts.first().copied() };
        let own = job.proof.as_ref().map(|proof| proof.verdict.words.as_str());
        self.check(&about, own == whole, || {
            format!("path taken: {} recorded, {} by its ranks", word(&own), word(&whole))
        });
        let fine: Vec<bool> = parts.iter().filter_map(|one| one.verified).collect();
        let whole = (!fine.is_empty()).then(|| fine.iter().all(|fine| *fine));
        let own = job.verify.as_ref().map(VerifyOutcome::is_fine);
        self.check(&about, own == whole, || {
            format!("verified: {} recorded, {} by its ranks", word(&own), word(&whole))
        });
        self.times(&about, job, ranks, &parts);
    }

    /// The times over which rates are, by when each rank ran.
    fn times(&mut self, about: &str, job: &JobResult, ranks: &RanksResult, parts: &[&RankJob]) {
        let of = |one: &&RankJob| Some(JobTimes { span: one.measured?, bytes: one.bytes });
        let times: Option<Vec<JobTimes>> = parts.iter().map(of).collect();
        let times = times.unwrap_or_default();
        let Some(of) = windows(&times) else {
            let longest = job.workers.iter().map(|one| one.done_ns).max().unwrap_or(0);
            return self.equal(about, "last thread done, ns", job.last_done_ns, longest);
        };
        let whole = TimeSpan { begin_ns: of.first_begin_ns, end_ns: of.last_end_ns };
        self.check(about, job.measured == Some(whole), || {
            format!(
                "measured: {} recorded, {} by its ranks",
                word(&job.measured),
                word(&Some(whole))
            )
        });
        self.equal(about, "time measured, ns", job.last_done_ns, whole.length_ns());
        for (part, one) in parts.iter().zip(&times) {
            let rate = per_second(one.bytes, one.span.length_ns());
            self.close(about, "bytes per second of a rank", part.bytes_per_s, rate);
        }
        let groups = ranks.groups.iter().flat_map(|group| &group.jobs);
        for own in groups.filter(|own| own.job == job.name) {
            let bytes = |to| {
                let there = times.iter().filter(|one| one.span.end_ns <= to).map(|one| one.bytes);
                there.fold(0, u64::saturating_add)
            };
            self.windows(about, own, [bytes(of.first_end_ns), bytes(of.last_end_ns)]);
            for (figure, own, from, to) in [
                ("until first done", Some(own.until_first), of.first_begin_ns, of.first_end_ns),
                ("while all ran", own.while_all, of.last_begin_ns, of.first_end_ns),
                ("until last done", Some(own.until_last), of.first_begin_ns, of.last_end_ns),
            ] {
                let own = own.unwrap_or_default();
                let figure = format!("{figure}, ns");
                self.equal(about, &figure, own.time_ns, to.saturating_sub(from));
            }
            self.equal(about, "first done, ns", job.first_done_ns, own.until_first.time_ns);
            let bytes = own.until_first.bytes;
            self.equal(about, "bytes when the first was done", job.first_done_bytes, bytes);
            self.slow(about, own, &ranks.rows);
        }
    }

    /// Bytes and rates of the windows; `least` is what ranks that were done had moved.
    fn windows(&mut self, about: &str, own: &RankJobRates, [least, all]: [u64; 2]) {
        self.equal(about, "bytes until last done", own.until_last.bytes, all);
        let first = own.until_first.bytes;
        self.at_most(about, "bytes until first done", first, all);
        self.at_most(about, "bytes of ranks that were done", least, first);
        let together = own.while_all.unwrap_or_default();
        self.at_most(about, "bytes while all ran", together.bytes, first);
        for one in [own.until_first, together, own.until_last] {
            let rate = per_second(one.bytes, one.time_ns);
            self.close(about, "bytes per second of a part of the time", one.bytes_per_s, rate);
        }
    }

    fn slow(&mut self, about: &str, own: &RankJobRates, rows: &[RankRow]) {
        let (own, whole) = (&own.stragglers, stragglers(&own.job, rows));
        let same = own.iter().map(|one| one.rank).eq(whole.iter().map(|one| one.rank));
        self.check(about, same, || "slow ranks: other ones than by the rates of all".to_owned());
        for (own, whole) in own.iter().zip(&whole) {
            let about = format!("{about}, slow rank {}", own.rank);
            self.close(&about, "bytes per second", own.bytes_per_s, whole.bytes_per_s);
            self.close(&about, "part of the median", own.of_median, whole.of_median);
        }
    }
}

#[cfg(test)]
mod tests {
    use gpuio_record::RankGroup;
    use gpuio_record::merge::{Merger, RankFacts, Started, rates};
    use serde_json::{Value, json};

    use super::*;
    use crate::recheck;

    /// Two ranks that began 5 us apart; the first was done 5 us before the second.
    fn record() -> Value {
        let text = include_str!("../../../record/tests/record/merge/one_rank.json");
        let one: Record = serde_json::from_str(text).unwrap();
        let (own, bytes) = (one.jobs[0].measured.unwrap(), one.jobs[0].read.bytes);
        let moved = |by: u64| {
            let span = TimeSpan { begin_ns: own.begin_ns + by, end_ns: own.end_ns + by };
            JobTimes { span, bytes }
        };
        let times = [moved(0), moved(5000)];
        let facts = times.map(|one| RankFacts {
            host: "n0".to_owned(),
            times: [("job".to_owned(), one.span)].into(),
            ..RankFacts::default()
        });
        let parts = [[(1000, 0), (bytes, 0)], [(0, 0), (bytes - 1000, 0)]];
        let jobs = vec![rates("job", windows(&times).unwrap(), &parts, 2 * bytes)];
        let group = RankGroup { group: 0, start_skew_ns: 5000, skew_bound_ns: 9, jobs };
        let mut merger = Merger::new(one.clone(), facts.to_vec());
        merger.add(1, &one);
        serde_json::to_value(merger.finish(Started::default(), vec![group], None)).unwrap()
    }

    #[test]
    fn figures_of_all_ranks_follow_from_each() {
        let wrong = |record: &Value| {
            recheck(&serde_json::from_value(record.clone()).unwrap()).wrong.join("; ")
        };
        assert_eq!(wrong(&record()), "");
        let group = "/ranks/groups/0/jobs/0";
        for (place, value, of) in [
            ("/jobs/0/read/bytes_per_s", json!(1e12), "reads: bytes per second: 1000000000000 rec"),
            ("/jobs/0/read/iops", json!(1e12), "reads: IOPS: 1000000000000 recorded"),
            ("/jobs/0/last_done_ns", json!(7), "time measured, ns: 7 recorded"),
            ("/jobs/0/measured/end_ns", json!(7), "measured: {\"begin_ns\":"),
            ("/jobs/0/first_done_ns", json!(7), "first done, ns: 7 recorded"),
            ("/jobs/0/first_done_bytes", json!(7), "bytes when the first was done: 7 recorded"),
            ("/jobs/0/cpu/us_per_mib", json!(7), "CPU time per MiB: 7 recorded"),
            ("/jobs/0/cpu/user_s", json!(7), "CPU time, microseconds: "),
            ("/jobs/0/proof/verdict/words", json!("other"), "path taken: other recorded"),
            ("/totals/0/read/bytes_per_s", json!(7), "7.0 bytes per second recorded"),
            ("/totals/0/last_done_ns", json!(7), "time, ns: 7 recorded"),
            ("/ranks/hosts/0/bytes", json!(7), "host n0: bytes: 7 recorded"),
            ("/ranks/hosts/0/ranks", json!([0]), "host n0: ranks: other ones"),
            ("/ranks/rows/1/jobs/0/bytes", json!(7), "of all ranks: bytes: "),
            (
                "/ranks/rows/1/jobs/0/bytes_per_s",
                json!(7),
                "bytes per second of a rank: 7 recorded",
            ),
            ("/ranks/rows/1/jobs/0/cores_busy", json!(7), "of all ranks: processors kept busy: "),
            ("/ranks/rows/1/jobs/0/max_ns", json!(1_u64 << 60), "largest latency, ns: "),
            ("/ranks/rows/1/ended", json!("failed"), "ended: Complete recorded, which its ranks"),
            (
                &format!("{group}/until_last/bytes_per_s"),
                json!(1e10),
                "of a part of the time: 1000",
            ),
            (&format!("{group}/until_last/bytes"), json!(7), "bytes until last done: 7 recorded"),
            (&format!("{group}/until_first/time_ns"), json!(7), "until first done, ns: 7 recorded"),
            (&format!("{group}/until_first/bytes"), json!(7), "bytes of ranks that were done: "),
            (&format!("{group}/while_all"), json!(null), "while all ran, ns: 0 recorded"),
            (&format!("{group}/while_all/bytes"), json!(1_u64 << 60), "bytes while all ran: 1152"),
        ] {
            let mut changed = record();
            *changed.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
            let found = wrong(&changed);
            assert!(found.contains(of), "{place}: {found}");
        }
    }
}
