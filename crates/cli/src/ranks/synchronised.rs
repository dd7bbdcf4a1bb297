//! A run that starts with those of other ranks: what is exchanged around each measured time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use gpuio_base::units::whole;
use gpuio_load::ranks::{ClockOffset, Ended, Ranks, Stage};
use gpuio_load::run::{Interval, OpenError, Peers, Ran, Start, Tick};
use gpuio_record::merge::{JobTimes, Moved, Windows, rates, skew, windows};
use gpuio_record::{EndedHow, JobPlan, JobResult, Plan, RankGroup, Record, Steady, TimeSpan};
use serde::{Deserialize, Serialize};

use super::finish::Learned;
use super::steady::Agreement;
use super::{Joined, hold, parse, to_bytes};
use crate::head::Head;

/// From the decision on a start to the start: the message has to reach every rank.
const LEAD: Duration = Duration::from_millis(50);
/// More for each rank: rank 0 sends one message after another.
const LEAD_PER_RANK: Duration = Duration::from_micros(200);
/// Between two journals of a running group.
const SNAPSHOT: Duration = Duration::from_secs(1);

/// The answer of exchange `start`, in this rank's own time.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Go {
    start_ns: u64,
    offset_ns: i64,
    bound_ns: u64,
}

/// A rank's message in exchange `times`: a job's time on rank 0's clock and its bytes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Times {
    begin_ns: u64,
    end_ns: u64,
    bytes: u64,
}

/// The answer: bounds on rank 0's clock, by job.
type Bounds = Vec<Option<(u64, u64)>>;
/// A rank's message in exchange `moved`: bytes until the two bounds, each with its error.
type Parts = Vec<[(u64, u64); 2]>;

/// The state of the running group, and of finished ones.
#[derive(Debug, Default)]
struct State {
    go: Go,
    agreed_ns: u64,
    clock_began_ns: u64,
    /// When I/Os are due: from here on, and (of loads with a rate) from there on that are in
    /// flight. Nanoseconds of this rank's clock.
    due_from_ns: u64,
    ended_by_ns: Option<u64>,
    moved: Vec<Moved>,
    ios: u64,
    saved_at: Option<Instant>,
    group: u32,
    steady: Agreement,
    /// On rank 0.
    offsets: Vec<ClockOffset>,
    skew: (u64, u64),
    groups: Vec<RankGroup>,
    times: Vec<BTreeMap<String, TimeSpan>>,
}

/// The other ranks, as a run sees them.
#[derive(Debug)]
pub(crate) struct Synchronised<'a> {
    ranks: &'a Ranks,
    head: &'a Head<'a>,
    plan: Plan,
    /// This rank, in words.
    name: String,
    snapshots: SyncSender<Record>,
    state: Mutex<State>,
}

fn shift(at: u64, by: i64) -> u64 {
    at.checked_add_signed(by).unwrap_or(0)
}

impl<'a> Synchronised<'a> {
    pub(crate) fn new(
        joined: &'a Joined,
        head: &'a Head<'a>,
        plan: Plan,
        snapshots: SyncSender<Record>,
    ) -> Synchronised<'a> {
        let ranks = &joined.ranks;
        ranks.activity().enter(Stage::Working);
        let name = super::rank_name(ranks.rank(), joined.own());
        Synchronised { ranks, head, plan, name, snapshots, state: Mutex::default() }
    }

    /// The facts that rank 0 learned; empty on others.
    pub(crate) fn learned(self) -> Learned {
        let State { offsets, groups, times, .. } =
            self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Learned { offsets, groups, times, portions: Vec::new() }
    }

    /// The rate of all ranks together, for rank 0's progress.
    pub(crate) fn tick(&self, tick: &Tick) -> Tick {
        self.ranks.activity().moves(whole(tick.bytes_per_s), whole(tick.iops), tick.failed);
        let all = self.ranks.overall();
        if all.running < 2 {
            return *tick;
        }
        let (bytes_per_s, iops) = (all.bytes_per_s, all.iops);
        Tick { bytes_per_s, iops, failed: all.failed, tail_ns: None, ..*tick }
    }

    /// Something was done outside the measured time.
    pub(crate) fn step(&self) {
        self.ranks.activity().step();
    }

    /// Why a rank can't open these jobs, where one can't: the first one's words.
    fn can_open(&self, jobs: &[JobPlan], own: Option<&str>) -> Result<Option<String>, Ended> {
        let group = jobs.first().map_or(0, |job| job.group);
        hold(&self.state).group = group;
        let own = own.map(|why| format!("{}: {why}", self.name));
        let what = format!("opened of group {group}");
        let answer = self.ranks.exchange(&what, to_bytes(&own), |all| {
            let first = all.iter().find_map(|one| parse::<Option<String>>(one).flatten());
            Ok(vec![to_bytes(&first); all.len()])
        });
        Ok(parse::<Option<String>>(&answer?).flatten())
    }

    /// The results of a group: whether a job failed, and the rates of all ranks together.
    pub(crate) fn group_done(&self, plan: &Plan, ran: &Ran) {
        let group = ran.totals.last().map_or(0, |total| total.group);
        let jobs: Vec<&JobResult> = ran.jobs.iter().filter(|job| job.group == group).collect();
        if let Some(failed) = jobs.iter().find(|job| job.ended == EndedHow::Failed) {
            let first = failed.failures.first();
            let what = first.map_or_else(
                || "a thread ended without a result".to_owned(),
                |first| format!("{}, offset {}: {}", first.path, first.offset, first.what),
            );
            self.ranks.fail(&format!("job '{}' failed: {what}", failed.name), 1);
            return;
        }
        // Ended meanwhile: each has its own results, and there are no common ones.
        let _ = self.rates(plan, group, &jobs);
    }

    fn rates(&self, plan: &Plan, group: u32, jobs: &[&JobResult]) -> Result<(), Ended> {
        let (go, clock_began) = {
            let state = hold(&self.state);
            (state.go, state.clock_began_ns)
        };
        let spans: Vec<Option<JobTimes>> = jobs
            .iter()
            .map(|job| {
                let on_first = |at: u64| shift(at + clock_began, -go.offset_ns);
                let span = job.measured?;
                let (begin_ns, end_ns) = (on_first(span.begin_ns), on_first(span.end_ns));
                let bytes = job.read.bytes + job.write.bytes;
                Some(JobTimes { span: TimeSpan { begin_ns, end_ns }, bytes })
            })
            .collect();
        let wire = |one: &Option<JobTimes>| {
            one.map(|one| Times {
                begin_ns: one.span.begin_ns,
                end_ns: one.span.end_ns,
                bytes: one.bytes,
            })
        };
        let own: Vec<Option<Times>> = spans.iter().map(wire).collect();
        let names: Vec<String> =
            plan.jobs.iter().filter(|job| job.group == group).map(|job| job.name.clone()).collect();
        let mut common: Vec<Option<(Windows, u64)>> = Vec::new();
        let bounds = self.ranks.exchange("times", to_bytes(&own), |all| {
            let all: Vec<Vec<Option<Times>>> =
                all.iter().map(|one| parse(one).unwrap_or_default()).collect();
            common = (0..names.len()).map(|job| self.common(&all, job)).collect();
            self.note_times(&all, &names);
            let bounds: Bounds = common
                .iter()
                .map(|one| one.map(|(w, _)| (w.last_begin_ns, w.first_end_ns)))
                .collect();
            Ok(vec![to_bytes(&bounds); all.len()])
        })?;
        let bounds: Bounds = parse(&bounds).unwrap_or_default();
        let parts = to_bytes(&self.parts(&bounds, &spans));
        self.ranks.exchange("moved", parts, |all| {
            let all: Vec<Parts> = all.iter().map(|one| parse(one).unwrap_or_default()).collect();
            let mut state = hold(&self.state);
            let jobs = names.iter().zip(&common).enumerate();
            let jobs = jobs.filter_map(|(job, (name, common))| {
                let (windows, bytes) = (*common)?;
                let parts: Vec<[(u64, u64); 2]> =
                    all.iter().filter_map(|of| of.get(job).copied()).collect();
                Some(rates(name, windows, &parts, bytes))
            });
            let jobs = jobs.collect();
            let (start_skew_ns, skew_bound_ns) = state.skew;
            state.groups.push(RankGroup { group, start_skew_ns, skew_bound_ns, jobs });
            Ok(vec![Vec::new(); all.len()])
        })?;
        Ok(())
    }

    /// The windows of one job, where every rank has its time, and what all moved.
    fn common(&self, all: &[Vec<Option<Times>>], job: usize) -> Option<(Windows, u64)> {
        let times: Option<Vec<JobTimes>> = all
            .iter()
            .map(|of| {
                let Times { begin_ns, end_ns, bytes } = (*of.get(job)?)?;
                Some(JobTimes { span: TimeSpan { begin_ns, end_ns }, bytes })
            })
            .collect();
        let times = times?;
        Some((windows(&times)?, times.iter().map(|one| one.bytes).sum()))
    }

    fn note_times(&self, all: &[Vec<Option<Times>>], names: &[String]) {
        let mut state = hold(&self.state);
        state.times.resize(all.len(), BTreeMap::new());
        for (of_rank, times) in state.times.iter_mut().zip(all) {
            for (name, time) in names.iter().zip(times) {
                if let Some(Times { begin_ns, end_ns, .. }) = *time {
                    of_rank.insert(name.clone(), TimeSpan { begin_ns, end_ns });
                }
            }
        }
    }

    /// The bytes that this rank moved until the bounds, which are on rank 0's clock as the readings
    /// are.
    fn parts(&self, bounds: &Bounds, spans: &[Option<JobTimes>]) -> Parts {
        let state = hold(&self.state);
        let each = bounds.iter().zip(spans).zip(&state.moved);
        each.map(|((bound, span), moved)| {
            let (Some((begin, end)), Some(job)) = (bound, span) else { return [(0, 0); 2] };
            [*begin, *end].map(|at| moved.until(at, job.span, job.bytes))
        })
        .collect()
    }

    fn decide_start(&self, ranks: usize) -> Result<Vec<Vec<u8>>, Ended> {
        let offsets = self.ranks.clock_offsets()?;
        let lead = LEAD + LEAD_PER_RANK * u32::try_from(ranks).unwrap_or(u32::MAX);
        let start = self.ranks.now() + u64::try_from(lead.as_nanos()).unwrap_or(0);
        let go = |offset: &ClockOffset| Go {
            start_ns: shift(start, offset.offset_ns),
            offset_ns: offset.offset_ns,
            bound_ns: offset.bound_ns,
        };
        let all = offsets.iter().map(|offset| to_bytes(&go(offset))).collect();
        hold(&self.state).offsets = offsets;
        Ok(all)
    }
}

/// From when on some I/O of the jobs is due all the time, and the planned end of all, after which
/// those in flight are awaited. Only the end is known where one may rest, else only the first.
fn due(jobs: &[JobPlan]) -> (Option<u64>, Option<u64>) {
    let end = |job: &JobPlan| job.time_over_ns().filter(|_| !job.stop.wear_out);
    match jobs.iter().any(JobPlan::may_rest) {
        true => (None, jobs.iter().map(end).max().flatten()),
        false => (jobs.iter().map(JobPlan::latest_first_io_ns).max(), None),
    }
}

impl Peers for Synchronised<'_> {
    fn first_says(&self, what: &str, own: Vec<u8>) -> Result<Vec<u8>, String> {
        let said = self.ranks.exchange(what, own, |mut all| {
            let first = std::mem::take(&mut all[0]);
            Ok(vec![first; all.len()])
        });
        said.map_err(|ended| ended.0)
    }

    fn all(&self, what: &str, yes: bool) -> Result<bool, String> {
        let said = self.ranks.exchange(what, vec![u8::from(yes)], |all| {
            let every = all.iter().all(|one| one.as_slice() == [1]);
            Ok(vec![vec![u8::from(every)]; all.len()])
        });
        said.map(|said| said == [1]).map_err(|ended| ended.0)
    }

    fn fail(&self, why: &str) {
        self.ranks.fail(why, 1);
    }

    fn opened(&self, jobs: &[JobPlan]) -> Result<(), OpenError> {
        match self.can_open(jobs, None) {
            Err(ended) => Err(OpenError::Ended(ended.0)),
            Ok(Some(why)) => Err(OpenError::Elsewhere(why)),
            Ok(None) => Ok(()),
        }
    }

    fn not_opened(&self, jobs: &[JobPlan], why: &str) {
        // Where the run was ended, the next exchange says so.
        let _ = self.can_open(jobs, Some(why));
    }

    fn start(&self, jobs: &[JobPlan]) -> Result<u64, String> {
        let what = format!("start of group {}", hold(&self.state).group);
        let go = self.ranks.exchange(&what, Vec::new(), |all| self.decide_start(all.len()));
        let go: Go = parse(&go.map_err(|ended| ended.0)?).ok_or("the start can't be read")?;
        let (from, end) = due(jobs);
        let mut state = hold(&self.state);
        state.go = go;
        state.agreed_ns = go.start_ns;
        state.due_from_ns = from.map_or(u64::MAX, |from| go.start_ns + from);
        state.ended_by_ns = end.map(|end| go.start_ns + end);
        state.moved = vec![Moved::default(); jobs.len()];
        state.ios = 0;
        state.steady.begin(jobs, self.ranks.rank() == 0);
        state.saved_at = Some(Instant::now());
        self.ranks.activity().expect_ios(false);
        self.ranks.activity().enter(Stage::Running);
        Ok(go.start_ns)
    }

    fn moved(&self, at_ns: u64, bytes: &[u64], ios: u64) {
        let mut state = hold(&self.state);
        let at = shift(at_ns, -state.go.offset_ns);
        for (moved, bytes) in state.moved.iter_mut().zip(bytes) {
            moved.read(at, *bytes);
        }
        let late = state.ended_by_ns.is_some_and(|end| at_ns > end);
        let activity = self.ranks.activity();
        activity.expect_ios(at_ns > state.due_from_ns || late);
        if ios != state.ios {
            state.ios = ios;
            activity.step();
        }
    }

    fn interval(&self, job: usize, nth: u64, part: Interval) {
        hold(&self.state).steady.counted(self.ranks, job, nth, part);
    }

    fn steady(&self, job: usize) -> Option<Steady> {
        hold(&self.state).steady.of(self.ranks, job)
    }

    fn at_stonewall(&self, job: usize, bytes: u64) {
        hold(&self.state).steady.at_stonewall(self.ranks, job, bytes);
    }

    fn wear_out(&self, job: usize) -> Option<u64> {
        hold(&self.state).steady.wear_out(self.ranks, job)
    }

    fn wants_results(&self) -> bool {
        hold(&self.state).saved_at.is_none_or(|at| at.elapsed() >= SNAPSHOT)
    }

    fn so_far(&self, ran: &Ran, jobs: Vec<JobResult>) {
        hold(&self.state).saved_at = Some(Instant::now());
        let mut ran = ran.clone();
        ran.jobs.extend(jobs);
        let record = Record { ended: EndedHow::Unfinished, ..self.head.record(&self.plan, &ran) };
        // One that is still being written is enough.
        if let Err(TrySendError::Disconnected(_)) = self.snapshots.try_send(record) {
            self.ranks.activity().step();
        }
    }

    fn stopped(&self, start: Start) -> Result<(), String> {
        self.ranks.activity().enter(Stage::Working);
        let go = {
            let mut state = hold(&self.state);
            state.clock_began_ns = start.clock_began_ns;
            state.go
        };
        let began = (shift(start.last_began_ns, -go.offset_ns), go.bound_ns);
        let what = format!("stopped of group {}", hold(&self.state).group);
        let done = self.ranks.exchange(&what, to_bytes(&began), |all| {
            let all: Vec<(u64, u64)> = all.iter().filter_map(|one| parse(one)).collect();
            hold(&self.state).skew = skew(&all);
            Ok(vec![Vec::new(); all.len()])
        });
        done.map(drop).map_err(|ended| ended.0)
    }
}
