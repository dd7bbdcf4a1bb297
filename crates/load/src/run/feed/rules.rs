//! The rules of MLPerf Storage for training and key-value caches, and whether a run kept them.

use gpuio_base::units::{digits, human_bytes, human_ns};
use gpuio_record::facts::HostFacts;
use gpuio_record::{
    DirectMode, EpochResult, FeedCompute, FeedPlan, FeedResult, FeedRule, JobPlan, JobResult,
    SampleOrder, TierResult,
};

use super::outcome::Found;
use super::reads_alone;

/// The data set has at least this many times the memory of the client.
const MEMORIES: u64 = 5;
/// Steps of an epoch, at least.
const STEPS: u64 = 500;
/// Runs that count.
const RUNS: u32 = 5;
/// Share of the files that may be in the page cache before.
const WARM: f64 = 0.01;
/// Share of an epoch's bytes that has to come from storage.
const FROM_STORAGE: f64 = 0.9;

/// How long each option of a key-value cache runs.
const CACHE_NS: u64 = 300_000_000_000;
/// Its seed.
const CACHE_SEED: u64 = 42;

/// The facts that the rules are held against.
pub(super) struct Ruled<'a> {
    pub(super) plan: &'a FeedPlan,
    pub(super) found: Found<'a>,
    /// Whether all that the process reads from storage is read for this job.
    pub(super) reads_alone: bool,
    pub(super) tier: Option<TierResult>,
    pub(super) utilisation_percent: Option<f64>,
    /// From the first read to the end of the last step.
    pub(super) span_ns: u64,
}

/// The rules of a feed by its recorded result, that of the job `at` of its group.
pub(in crate::run) fn again(
    (jobs, at): (&[JobPlan], usize),
    result: &JobResult,
    host: &HostFacts,
) -> Option<Vec<FeedRule>> {
    let (job, cache) = (&jobs[at], &result.cache);
    let (plan, feed) = job.feed.as_ref().zip(result.feed.as_ref())?;
    let FeedResult { tier, utilisation_percent, span_ns, .. } = *feed;
    let (found, reads_alone) = (Found { job, host, cache }, reads_alone(jobs, at));
    let ruled = Ruled { plan, found, reads_alone, tier, utilisation_percent, span_ns };
    Some(all(&ruled, &feed.epochs))
}

/// All rules, in order.
pub(super) fn all(ruled: &Ruled<'_>, epochs: &[EpochResult]) -> Vec<FeedRule> {
    let plan = ruled.plan;
    let mut rules = match plan.is_cache() {
        true => of_cache(ruled, epochs),
        false if plan.writes || plan.order == SampleOrder::Reverse || plan.slo.is_some() => {
            return Vec::new();
        }
        false => of_training(ruled, epochs),
    };
    // Another workload may break rules, and keeps none.
    if !plan.changed.is_empty() {
        rules.retain(|rule| rule.kept != Some(true));
        let changed = |one: &String| FeedRule {
            rule: "the parameters of a workload of MLPerf's".to_owned(),
            found: one.clone(),
            kept: Some(false),
        };
        rules.splice(0..0, plan.changed.iter().map(changed));
    }
    rules
}

fn of_training(ruled: &Ruled<'_>, epochs: &[EpochResult]) -> Vec<FeedRule> {
    let mut rules = vec![whole(ruled, "the whole data set", "files"), size(ruled), steps(ruled)];
    rules.extend([cold(ruled), from_storage(ruled, epochs), once(ruled, epochs)]);
    rules.extend(utilisation(ruled));
    rules.push(computed(ruled));
    let runs = format!("a warm-up, then {RUNS} runs, each with another seed");
    rules.push(broken(&runs, "one run"));
    rules
}

/// Those of key-value caches (mlcommons/storage, Rules.md, chapter 6), of a job that reads contexts
/// or writes them. Its epochs overlap, so that only their sums are known.
fn of_cache(ruled: &Ruled<'_>, epochs: &[EpochResult]) -> Vec<FeedRule> {
    let (job, plan) = (ruled.found.job, ruled.plan);
    let mut rules = vec![whole(ruled, "all users of the option", "users")];
    rules.push(FeedRule {
        rule: format!("contexts are read and written for {} s", CACHE_NS / 1_000_000_000),
        found: human_ns(ruled.span_ns as f64),
        kept: Some(ruled.span_ns >= CACHE_NS / 100 * 99),
    });
    rules.push(FeedRule {
        rule: format!("seed {CACHE_SEED}"),
        found: job.seed.to_string(),
        kept: Some(job.seed == CACHE_SEED),
    });
    rules.push(match plan.writes {
        true => FeedRule {
            rule: "each context is flushed as it is written".to_owned(),
            found: if job.sync { "each write waits (O_DSYNC)" } else { "no flush" }.to_owned(),
            kept: Some(job.sync),
        },
        false => {
            let sum = |of: fn(&EpochResult) -> Option<u64>| epochs.iter().map(of).sum();
            let all = EpochResult {
                moved_bytes: epochs.iter().map(|epoch| epoch.moved_bytes).sum(),
                storage_read_bytes: sum(|epoch| epoch.storage_read_bytes),
                ..EpochResult::default()
            };
            stored(ruled, &[all], "what no tier has is read from storage".to_owned())
        }
    });
    rules.push(broken("3 options, 3 trials of each, 90 s apart", "one run of one option"));
    let own = "a load of gpuio's: contexts of one length, as many written as are read in a round";
    rules.push(broken("the load of mlpstorage's kv-cache.py", own));
    rules.push(FeedRule {
        rule: "results on another file system than the cache".to_owned(),
        found: "not checked".to_owned(),
        kept: None,
    });
    rules
}

fn broken(rule: &str, found: &str) -> FeedRule {
    FeedRule { rule: rule.to_owned(), found: found.to_owned(), kept: Some(false) }
}

fn bytes(bytes: u64) -> String {
    human_bytes(bytes as f64)
}

fn whole(ruled: &Ruled<'_>, rule: &str, what: &str) -> FeedRule {
    let plan = ruled.plan;
    FeedRule {
        rule: rule.to_owned(),
        found: format!("scale {}: {} of {} {what}", plan.scale, plan.files, plan.full_files),
        kept: Some(plan.files >= plan.full_files),
    }
}

fn size(ruled: &Ruled<'_>) -> FeedRule {
    let targets = ruled.found.job.targets.iter().map(|target| target.length_bytes);
    let set = targets.fold(0, u64::saturating_add);
    let memory = &ruled.found.host.memory;
    let memory = memory.usable_bytes.or(memory.total_bytes);
    FeedRule {
        rule: format!("data of at least {MEMORIES} times the memory"),
        found: match memory {
            Some(memory) => format!("{} of data, {} of memory", bytes(set), bytes(memory)),
            None => format!("{} of data; the memory is unknown", bytes(set)),
        },
        kept: memory.map(|memory| set / MEMORIES >= memory),
    }
}

fn steps(ruled: &Ruled<'_>) -> FeedRule {
    let steps = ruled.plan.steps();
    FeedRule {
        rule: format!("at least {STEPS} steps an epoch"),
        found: digits(steps),
        kept: Some(steps >= STEPS),
    }
}

fn cold(ruled: &Ruled<'_>) -> FeedRule {
    let before = ruled.found.cache.resident_before;
    FeedRule {
        rule: "a cold cache before the first epoch".to_owned(),
        found: match before {
            Some(share) => format!("{:.1} % of the data in the page cache", share * 100.0),
            None => "what was in the page cache is unknown".to_owned(),
        },
        kept: before.map(|share| share <= WARM),
    }
}

/// The epoch with the smallest share that storage delivered.
fn from_storage(ruled: &Ruled<'_>, epochs: &[EpochResult]) -> FeedRule {
    let rule = "every epoch is read from storage".to_owned();
    if let Some(tier) = ruled.tier.filter(|tier| tier.hits > 0) {
        let all = tier.memory_bytes.saturating_add(tier.storage_bytes);
        let share = tier.memory_bytes as f64 * 100.0 / all.max(1) as f64;
        let found = format!("{share:.1} % of the bytes came from the tier in CPU memory");
        return FeedRule { rule, found, kept: Some(false) };
    }
    stored(ruled, epochs, rule)
}

/// The rule about what is read from files, as the kernel counts it.
fn stored(ruled: &Ruled<'_>, epochs: &[EpochResult], rule: String) -> FeedRule {
    let job = ruled.found.job;
    let block = job.sizes().map(|block| block.max_bytes).max().unwrap_or(0);
    // Bytes that storage had delivered and that were not back when an epoch was over are not
    // counted as moved.
    let in_flight = block.saturating_mul(u64::from(job.depth) * u64::from(job.threads));
    let share = |epoch: &EpochResult| {
        let (stored, moved) = (epoch.storage_read_bytes?, epoch.moved_bytes);
        let known = (stored as f64 / moved as f64).min(1.0);
        let is_kept = stored.saturating_add(in_flight) >= moved || known >= FROM_STORAGE;
        Some((known, is_kept))
    };
    // All of an epoch that was cut short may have been read ahead, in the time of the one before.
    let moving = epochs.iter().filter(|epoch| epoch.moved_bytes > 0);
    let shares: Option<Vec<(f64, bool)>> = moving.map(share).collect();
    let shares = shares.filter(|all| !all.is_empty());
    let mode = match job.direct {
        DirectMode::Direct => "",
        DirectMode::Buffered => ", read through the page cache",
    };
    let least = shares.as_ref().map(|all| all.iter().map(|(share, _)| *share).fold(1.0, f64::min));
    FeedRule {
        rule,
        found: match least {
            Some(share) => {
                let least = if epochs.len() > 1 { "in the epoch with the least, " } else { "" };
                format!("{least}{:.1} % of the bytes came from storage{mode}", share * 100.0)
            }
            None if !ruled.reads_alone => {
                "what came from storage is unknown: another job reads at the same time, and the \
                 kernel counts for the process"
                    .to_owned()
            }
            None => format!("what came from storage is unknown{mode}"),
        },
        kept: shares.map(|all| all.iter().all(|(_, is_kept)| *is_kept)),
    }
}

fn once(ruled: &Ruled<'_>, epochs: &[EpochResult]) -> FeedRule {
    let rule = "every sample is read exactly once an epoch".to_owned();
    let order = ruled.plan.order;
    if order.draws() {
        let found = format!("samples are drawn ({}), some often and others never", order.key());
        return FeedRule { rule, found, kept: Some(false) };
    }
    let wanted = ruled.plan.samples();
    let wrong = epochs.iter().filter(|epoch| epoch.once != wanted).count();
    let count = epochs.len();
    let mut found = match wrong {
        0 => format!("{wanted} samples once in each of {count} epochs"),
        wrong => format!("not so in {wrong} of {count} epochs"),
    };
    let missing = ruled.plan.epochs.saturating_sub(count as u64);
    if missing > 0 {
        found.push_str(&format!(", {missing} never began"));
    }
    // Nothing is known of those that never began.
    let kept = (wrong == 0 && count > 0 && missing == 0).then_some(true);
    FeedRule { rule, found, kept: if wrong > 0 { Some(false) } else { kept } }
}

fn utilisation(ruled: &Ruled<'_>) -> Option<FeedRule> {
    let plan = ruled.plan;
    let least = plan.least_utilisation_percent?;
    let percent = ruled.utilisation_percent;
    let is_ahead = plan.all_ahead().is_some() && plan.compute != FeedCompute::None;
    let mut found = percent.map_or_else(|| "unknown".to_owned(), |one| format!("{one:.1} %"));
    if is_ahead {
        found.push_str(", with all batches read ahead");
    }
    Some(FeedRule {
        rule: format!("accelerator utilisation of at least {least} %"),
        found,
        kept: percent.map(|percent| percent >= least).filter(|_| !is_ahead),
    })
}

/// Not a rule of MLPerf's, whose accelerators always sleep; said all the same.
fn computed(ruled: &Ruled<'_>) -> FeedRule {
    let compute = ruled.plan.compute;
    FeedRule {
        rule: "accelerators compute for the time of each step".to_owned(),
        found: match compute {
            FeedCompute::Kernel { .. } => format!("a kernel on the GPU ({})", compute.key()),
            FeedCompute::Sleep => "they sleep, as MLPerf's do".to_owned(),
            FeedCompute::None => "nothing is computed".to_owned(),
        },
        kept: Some(compute != FeedCompute::None),
    }
}
