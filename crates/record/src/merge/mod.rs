//! Many records, one of each rank of a run, as one record.
//!
//! [`Merger`] takes records one after another and keeps sums, histograms and one row of each: a
//! thousand records need the memory of a few. Histograms are added bucket by bucket, so a
//! percentile of the merged record is that of all I/Os of all ranks. [`Moved`] and [`rates`] find
//! what was moved while all ranks ran.
//!
//! It must not hold messages, files, clocks, or text for people except the reasons of absent
//! figures.
//!
//! A figure that can't be merged is absent: percentiles of points of the series, device series,
//! GPUs by their index on a host. Each rank's own record has them. Expectations of single ranks
//! can't be added, as ranks share drives and servers: `flow` computes that of all ranks anew.

mod beside;
mod jobs;
mod moved;
mod proofs;
mod rank_list;
mod series;
#[cfg(test)]
mod tests;
mod warnings;

use std::collections::BTreeMap;

use crate::facts::TargetStorage;
use crate::{
    ContentDigest, CpuCost, CpuScope, EndedHow, JobPlan, JobResult, RankGroup, RankHost, RankJob,
    RankRow, RanksEnd, RanksResult, Record, RunTotals, SetupTimes, TimeSpan,
};

pub use moved::{JobTimes, Moved, Windows, rates, skew, stragglers, windows};
pub use proofs::MOST_PROOFS;
pub use rank_list::rank_list;

use jobs::JobSum;
use proofs::Proofs;
use warnings::Warnings;

/// The facts about a rank besides its record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankFacts {
    /// Its host.
    pub host: String,
    /// Its number among the ranks of its host.
    pub local_rank: u32,
    /// Its process.
    pub pid: u32,
    /// How far its clock is ahead of rank 0's, nanoseconds.
    pub clock_offset_ns: i64,
    /// The offset is at most this wrong.
    pub clock_bound_ns: u64,
    /// Its network cards that lead to its servers.
    pub nics: Vec<String>,
    /// Where its own results lie.
    pub saved: Option<String>,
    /// The times of its jobs on rank 0's clock, by job name.
    pub times: BTreeMap<String, TimeSpan>,
}

/// How the ranks were started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Started {
    /// The launcher.
    pub launcher: String,
    /// The MPI library.
    pub library: String,
}

/// Adds up records. The first must be that of rank 0: the plan and the machine of the merged
/// record are its.
#[derive(Debug)]
pub struct Merger {
    first: Record,
    facts: Vec<RankFacts>,
    jobs: Vec<JobSum>,
    hosts: Vec<RankHost>,
    rows: Vec<RankRow>,
    proofs: Proofs,
    warnings: Warnings,
    setup: SetupTimes,
    ended: EndedHow,
    error: Option<String>,
}

impl Merger {
    /// Begins with the record of rank 0 and the facts of all ranks, in order.
    pub fn new(first: Record, facts: Vec<RankFacts>) -> Merger {
        let many_hosts = facts.iter().any(|one| one.host != facts[0].host);
        let jobs = first.jobs.iter().map(|job| JobSum::new(job, many_hosts)).collect();
        let mut hosts: Vec<RankHost> = Vec::new();
        for (rank, one) in (0..).zip(&facts) {
            match hosts.iter_mut().find(|host| host.name == one.host) {
                Some(host) => host.ranks.push(rank),
                None => hosts.push(RankHost {
                    name: one.host.clone(),
                    ranks: vec![rank],
                    ..RankHost::default()
                }),
            }
        }
        let mut merger = Merger {
            facts,
            jobs,
            hosts,
            rows: Vec::new(),
            proofs: Proofs::default(),
            warnings: Warnings::default(),
            setup: SetupTimes::default(),
            ended: EndedHow::Complete,
            error: None,
            first,
        };
        let first = merger.first.clone();
        merger.add(0, &first);
        merger
    }

    /// Adds the record of a rank.
    pub fn add(&mut self, rank: u32, record: &Record) {
        let Some(facts) = self.facts.get(rank as usize).cloned() else { return };
        for sum in &mut self.jobs {
            if let Some(job) = record.jobs.iter().find(|job| job.name == sum.name()) {
                sum.add(rank, &facts, job);
            }
        }
        self.proofs.add(rank, &facts.host, &record.jobs);
        self.warnings.add(rank, &facts.host, &record.warnings);
        add_setup(&mut self.setup, &record.setup);
        if let Some(host) = self.hosts.iter_mut().find(|host| host.name == facts.host) {
            describe_host(host, record);
        }
        self.ended = worse(self.ended, record.ended);
        if let Some(error) = &record.error {
            let named = format!("rank {rank} ({}): {error}", facts.host);
            self.error.get_or_insert(named);
        }
        self.rows.push(row(rank, &facts, record));
    }

    /// Notes a rank of which nothing was received.
    pub fn lost(&mut self, rank: u32, why: &str) {
        let Some(facts) = self.facts.get(rank as usize) else { return };
        self.ended = EndedHow::Failed;
        let mut row = row_of(rank, facts);
        row.error = Some(why.to_owned());
        self.rows.push(row);
    }

    /// The merged record. `groups` are the groups that all ranks finished; `error` is why the run
    /// was ended, where it was.
    pub fn finish(
        mut self,
        started: Started,
        mut groups: Vec<RankGroup>,
        error: Option<String>,
    ) -> Record {
        self.rows.sort_by_key(|row| row.rank);
        for job in groups.iter_mut().flat_map(|group| &mut group.jobs) {
            job.stragglers = moved::stragglers(&job.job, &self.rows);
            let plan = self.first.plan.jobs.iter().find(|plan| plan.name == job.job);
            job.ends_by = plan.map(|plan| RanksEnd::of(&plan.stop));
        }
        let jobs: Vec<JobResult> =
            self.jobs.into_iter().map(|sum| sum.finish(&self.facts, &groups)).collect();
        let totals = totals(&self.first.plan.jobs, &jobs);
        let received = self.rows.iter().filter(|row| row.ended.is_some()).count();
        let failed = error.is_some() || self.ended == EndedHow::Failed;
        Record {
            ended: if failed { EndedHow::Failed } else { self.ended },
            error: error.or(self.error),
            setup: self.setup,
            jobs,
            totals,
            ceilings: Vec::new(),
            expected: Vec::new(),
            watched: None,
            warnings: self.warnings.finish(received, self.facts.len(), self.hosts.len() > 1),
            content_sha256: ContentDigest::Intact,
            rank: None,
            ranks: Some(RanksResult {
                ranks: u32::try_from(self.facts.len()).unwrap_or(u32::MAX),
                launcher: started.launcher,
                library: started.library,
                hosts: self.hosts,
                groups,
                rows: self.rows,
                evidence: self.proofs.finish(),
            }),
            ..self.first
        }
    }
}

fn worse(a: EndedHow, b: EndedHow) -> EndedHow {
    let rank = |how: &EndedHow| match how {
        EndedHow::Complete => 0,
        EndedHow::Unfinished => 1,
        EndedHow::Interrupted => 2,
        EndedHow::Failed => 3,
    };
    if rank(&a) >= rank(&b) { a } else { b }
}

/// The longest of each, since ranks prepare at the same time; bytes are added.
fn add_setup(sum: &mut SetupTimes, one: &SetupTimes) {
    sum.data_set_ns = sum.data_set_ns.max(one.data_set_ns);
    sum.laid_out_bytes += one.laid_out_bytes;
    sum.open_ns = sum.open_ns.max(one.open_ns);
    sum.verify_ns = sum.verify_ns.max(one.verify_ns);
    sum.ceilings_ns = sum.ceilings_ns.max(one.ceilings_ns);
    sum.alone_ns = sum.alone_ns.max(one.alone_ns);
    sum.close_ns = sum.close_ns.max(one.close_ns);
}

fn describe_host(host: &mut RankHost, record: &Record) {
    let add = |all: &mut Vec<String>, one: String| {
        if !all.contains(&one) {
            all.push(one);
        }
    };
    host.kernel.clone_from(&record.host.kernel.release);
    host.cpu.clone_from(&record.host.cpu.model);
    for job in &record.jobs {
        host.bytes += job.read.bytes + job.write.bytes;
        if let Some(proof) = &job.proof {
            add(&mut host.verdicts, proof.verdict.words.clone());
        }
    }
    devices(&record.storage).into_iter().for_each(|one| add(&mut host.devices, one));
    host.warnings += u32::try_from(record.warnings.len()).unwrap_or(u32::MAX);
}

/// The block devices behind some targets, or what the mount is of where there is none.
fn devices(storage: &[TargetStorage]) -> Vec<String> {
    let of = |one: &TargetStorage| {
        let device = one.device.as_ref().map(|device| device.name.clone());
        device.or_else(|| one.mount.as_ref().map(|mount| mount.source.clone()))
    };
    storage.iter().filter_map(of).collect()
}

fn row_of(rank: u32, facts: &RankFacts) -> RankRow {
    RankRow {
        rank,
        host: facts.host.clone(),
        local_rank: facts.local_rank,
        pid: facts.pid,
        clock_offset_ns: facts.clock_offset_ns,
        clock_bound_ns: facts.clock_bound_ns,
        gpus: Vec::new(),
        numa_nodes: Vec::new(),
        target: String::new(),
        devices: Vec::new(),
        nics: facts.nics.clone(),
        ended: None,
        error: None,
        saved: facts.saved.clone(),
        jobs: Vec::new(),
    }
}

fn row(rank: u32, facts: &RankFacts, record: &Record) -> RankRow {
    let mut row = row_of(rank, facts);
    for job in &record.plan.jobs {
        for gpu in &job.gpus {
            let text = format!("{} {} {}", gpu.index, gpu.name, gpu.pci);
            if !row.gpus.contains(&text) {
                row.gpus.push(text);
            }
        }
        let nodes = job.workers.iter().filter_map(|worker| worker.numa_node);
        row.numa_nodes.extend(nodes);
    }
    row.numa_nodes.sort_unstable();
    row.numa_nodes.dedup();
    row.target = record.plan.jobs.first().map(target_of).unwrap_or_default();
    row.devices = devices(&record.storage);
    row.ended = Some(record.ended);
    row.error.clone_from(&record.error);
    row.jobs = record.jobs.iter().map(|job| rank_job(job, facts)).collect();
    row
}

/// The directory of a job, or its first file or device.
pub fn target_of(job: &JobPlan) -> String {
    let first = || job.targets.first().map(|target| target.path.clone());
    job.directory.clone().or_else(first).unwrap_or_default()
}

fn rank_job(job: &JobResult, facts: &RankFacts) -> RankJob {
    let latency = job.read.latency.as_ref().or(job.write.latency.as_ref());
    RankJob {
        job: job.name.clone(),
        bytes: job.read.bytes + job.write.bytes,
        ios: job.read.ios + job.write.ios,
        failed: job.failed,
        bytes_per_s: job.read.bytes_per_s + job.write.bytes_per_s,
        measured: facts.times.get(&job.name).copied(),
        p99_ns: latency.and_then(|latency| latency.total.p99_ns),
        max_ns: latency.map(|latency| latency.total.max_ns),
        cores_busy: job.cpu.cores_busy,
        us_per_mib: job.cpu.us_per_mib,
        verdict: job.proof.as_ref().map(|proof| proof.verdict.words.clone()),
        sentence: job.proof.as_ref().map(|proof| proof.sentence.clone()),
        verified: job.verify.as_ref().map(crate::VerifyOutcome::is_fine),
    }
}

/// Totals of groups. A group of one job has that job's rates; the time in which several jobs of
/// several ranks all ran is not measured.
fn totals(plans: &[JobPlan], jobs: &[JobResult]) -> Vec<RunTotals> {
    let total = |plans: &[JobPlan]| {
        let of = |name: &str| jobs.iter().find(|job| job.name == name);
        let jobs: Vec<&JobResult> = plans.iter().filter_map(|plan| of(&plan.name)).collect();
        let (first, alone) = (jobs.first()?, jobs.len() == 1);
        let begin = jobs.iter().filter_map(|job| job.measured).map(|span| span.begin_ns).min();
        let end = jobs.iter().filter_map(|job| job.measured).map(|span| span.end_ns).max();
        let mut cpu = CpuCost { scope: CpuScope::AllThreads, ..CpuCost::default() };
        jobs.iter().for_each(|job| jobs::add_cpu(&mut cpu, &job.cpu));
        cpu.us_per_mib = first.cpu.us_per_mib.filter(|_| alone);
        let why = "several jobs on several ranks: the time in which all ran is not measured; see \
            the rates of each job";
        Some(RunTotals {
            group: first.group,
            read: jobs::direction_total(jobs.iter().map(|job| &job.read), alone),
            write: jobs::direction_total(jobs.iter().map(|job| &job.write), alone),
            first_done_ns: jobs.iter().map(|job| job.first_done_ns).min()?,
            last_done_ns: end.unwrap_or(0).saturating_sub(begin.unwrap_or(0)),
            common: first.measured.filter(|_| alone),
            why_no_rate: (!alone).then(|| why.to_owned()),
            cpu,
        })
    };
    plans.chunk_by(|a, b| a.group == b.group).filter_map(total).collect()
}
