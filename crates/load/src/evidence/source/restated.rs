//! The proofs of a record, concluded again from the readings that its evidence has. Pure.
//!
//! gpuio's own counts, those of the process, of one block device and of NFS mounts, and the page
//! cache give their whole entry again. Each outcome that the assessment of another leaves open is
//! tried: the path taken and its sentence have to follow from one of them.

use gpuio_host::block::BlockSample;
use gpuio_host::nfs_ops::MountSample;
use gpuio_host::proc_io::ProcessIoSample;
use gpuio_record::facts::{BlockFacts, BlockKind, DeviceNumber, ProcessIo};
use gpuio_record::{Assessment, EndedHow, Evidence, JobPlan, JobResult, Proof, Record, Verdict};
use gpuio_watch::{Counters, Sample};
use serde::Serialize;

use super::{
    JobFlow, block, cufile_stats, entry, flows, nfs, observations, own, page_cache, process_io,
    requested, requested_path,
};
use crate::evidence::block_stack::{Stack, add, add_leaves};
use crate::evidence::group::Flow;
use crate::evidence::layout::{JobLayout, Kept, Layout};
use crate::evidence::reconcile::Counted;
use crate::evidence::snapshot::{Readings, Snapshot};
use crate::evidence::verdict::{
    self, DirectionVerdict, LibraryRoute, Observed, PathKind, Requested, Share, assess, size,
};

/// The statements of the proofs of a group's jobs, each with a sentence where it does not follow.
pub(crate) fn restated(
    record: &Record,
    jobs: &[JobPlan],
    results: &[JobResult],
) -> Vec<Option<String>> {
    (0..jobs.len()).flat_map(|at| of_job(record, jobs, results, at)).collect()
}

fn of_job(
    record: &Record,
    jobs: &[JobPlan],
    results: &[JobResult],
    at: usize,
) -> Vec<Option<String>> {
    let (job, result) = (&jobs[at], &results[at]);
    let about = format!("job '{}'", job.name);
    let Some(proof) = result.proof.as_ref().filter(|proof| !proof.evidence.is_empty()) else {
        // A journal of a group that ran has none.
        let missing = record.ended != EndedHow::Unfinished;
        return vec![missing.then(|| format!("{about}: the evidence of its path is missing"))];
    };
    let path = requested_path(job);
    let mut said = vec![(proof.requested != path).then(|| {
        format!("{about}: requested path: '{}' recorded, '{path}' by the plan", proof.requested)
    })];
    // The directions one after the other, each with every verdict that its evidence can give.
    let mut all: Vec<Vec<(Flow, DirectionVerdict)>> = vec![Vec::new()];
    for flow in flows(job) {
        let recorded = |name: &str| recorded(proof, name, flow);
        let readings = readings(record, results, at, flow);
        let of = JobFlow { readings: &readings, jobs, results, at, flow };
        let requested = requested(&of);
        let observations = observations(&of);
        // The path's own counts are part of `own`, with the legs.
        let via = result.via.as_ref().map(|via| own::relayed(via, flow, of.bytes()));
        let mut observed = vec![via.map(|one| (own::SOURCE.name, one)).into_iter().collect()];
        let caused = recorded(process_io::SOURCE.name).and_then(|one| one.observed_bytes);
        for (source, observation) in observations {
            let Some(one) = recorded(source.name) else { continue };
            let about = format!("{about}, evidence {} of {}s", one.name, one.direction);
            let possible = if is_whole(record, one) {
                let observed = observation.observed;
                let whole = entry(source, &requested, observation);
                said.push(difference(one, &whole).map(|why| format!("{about}: {why}")));
                vec![observed]
            } else {
                said.push(other_reason(one).map(|whole| {
                    format!("{about}: '{}' recorded, '{whole}' by its readings", one.why)
                }));
                said.push(stray_size(one, caused).map(|size| {
                    format!("{about}: '{}' recorded, and no count of it is {size}", one.why)
                }));
                possible(&requested, one)
            };
            let possible: Vec<_> = possible.into_iter().map(|one| (source.name, one)).collect();
            observed = product(&observed, &possible);
        }
        let mut verdicts: Vec<DirectionVerdict> = Vec::new();
        for one in observed {
            let counts = |name: &str| {
                recorded(name).and_then(|one| one.observed_bytes.zip(one.expected_bytes))
            };
            let requested = Requested { shortfall: verdict::shortfall(&one, counts), ..requested };
            let verdict = verdict::of_direction(&requested, &one);
            if !verdicts.contains(&verdict) {
                verdicts.push(verdict);
            }
        }
        let verdicts: Vec<_> = verdicts.into_iter().map(|one| (flow, one)).collect();
        all = product(&all, &verdicts);
    }
    let together: Vec<_> =
        all.into_iter().map(|one| verdict::together(one, jobs.len() > 1)).collect();
    said.extend(conclusion(&about, proof, &together));
    said
}

/// The fields of a proof's conclusion, each with a sentence where it does not follow. The
/// possible conclusion with most of the recorded fields counts.
fn conclusion(
    about: &str,
    proof: &Proof,
    possible: &[(Verdict, bool, String)],
) -> Vec<Option<String>> {
    let fields = |verdict: &Verdict, as_requested: bool, sentence: &str| {
        [
            ("verdict.words", verdict.words.clone()),
            ("verdict.route", word(verdict.route)),
            ("verdict.source", word(verdict.source)),
            ("as_requested", as_requested.to_string()),
            ("sentence", sentence.to_owned()),
        ]
    };
    let own = fields(&proof.verdict, proof.as_requested, &proof.sentence);
    let others = |whole: &[(&str, String); 5]| -> Vec<Option<String>> {
        let both = own.iter().zip(whole);
        let other = both.map(|((field, own), (_, whole))| {
            (own != whole).then(|| {
                format!("{about}: path taken: {field}: '{own}' recorded, '{whole}' by its evidence")
            })
        });
        other.collect()
    };
    let possible = possible
        .iter()
        .map(|(verdict, as_requested, sentence)| others(&fields(verdict, *as_requested, sentence)));
    possible.min_by_key(|all| all.iter().flatten().count()).unwrap_or_else(|| {
        let own = &proof.sentence;
        vec![Some(format!("{about}: path taken: '{own}' recorded, none fits all of its evidence"))]
    })
}

/// A value as the record spells it.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(value) => value.to_string(),
        Err(error) => error.to_string(),
    }
}

fn recorded<'a>(proof: &'a Proof, name: &str, flow: Flow) -> Option<&'a Evidence> {
    proof.evidence.iter().find(|one| one.name == name && one.direction == flow.name())
}

/// Each of `all` with each of `more` behind it.
fn product<T: Clone>(all: &[Vec<T>], more: &[T]) -> Vec<Vec<T>> {
    let with = |one: &Vec<T>, next: &T| one.iter().chain([next]).cloned().collect();
    all.iter().flat_map(|one| more.iter().map(move |next| with(one, next))).collect()
}

/// The readings that the evidence of a job has, and where its group's files are by that.
fn readings(record: &Record, results: &[JobResult], at: usize, flow: Flow) -> Readings {
    let evidence = |name: &str| counted(&results[at], name, flow);
    let snapshot = |moment: fn(&Evidence) -> &Option<String>| {
        let read = |name: &str, key: &str| {
            let one = evidence(name)?;
            let text = moment(&one).clone()?;
            let words: Vec<&str> = text.split(' ').collect();
            let place = words.iter().position(|word| *word == key)?;
            let number = if key == "sectors" { place.checked_sub(1)? } else { place + 1 };
            Some((one, words.get(number)?.parse::<u64>().ok()?))
        };
        let process = |key| read(process_io::SOURCE.name, key).map(|(_, bytes)| bytes);
        let (reads, writes) = (process("read_bytes"), process("write_bytes"));
        let total = ProcessIo {
            storage_read_bytes: reads.unwrap_or_default(),
            storage_write_bytes: writes.unwrap_or_default(),
            ..ProcessIo::default()
        };
        let block = read(block::SOURCE.name, "sectors").and_then(|(one, sectors)| {
            let sample = BlockSample {
                read_sectors: sectors,
                write_sectors: sectors,
                ..BlockSample::default()
            };
            Some((names(&one)?, sample))
        });
        let mount = read(nfs::SOURCE.name, flow.name()).and_then(|(one, bytes)| {
            Some(MountSample {
                mount_point: one.before?,
                read_bytes: bytes,
                written_bytes: bytes,
                ..MountSample::default()
            })
        });
        let devices = Counters {
            block: block.into_iter().collect(),
            mounts: mount.into_iter().collect(),
            ..Counters::default()
        };
        Snapshot {
            process: reads.or(writes).map(|_| ProcessIoSample { total }).ok_or_else(String::new),
            devices,
            sample: Sample { at_ns: 0, probes: Vec::new() },
            cufile: Err(String::new()),
            processors: None,
            resident: Vec::new(),
        }
    };
    Readings {
        layout: Layout {
            jobs: results.iter().map(|result| layout(record, result, flow)).collect(),
            ..Layout::default()
        },
        before: snapshot(|one| &one.before),
        counts: None,
        after: snapshot(|one| &one.after),
        links: Err(String::new()),
        counted: Counted::default(),
        series: None,
    }
}

/// Evidence of a job that has readings.
fn counted(result: &JobResult, name: &str, flow: Flow) -> Option<Evidence> {
    recorded(result.proof.as_ref()?, name, flow).filter(|one| one.before.is_some()).cloned()
}

/// Where the files of a job are, by its evidence.
fn layout(record: &Record, result: &JobResult, flow: Flow) -> JobLayout {
    let evidence = |name: &str| counted(result, name, flow);
    let nfs = evidence(nfs::SOURCE.name);
    let elsewhere = evidence(process_io::SOURCE.name)
        .and_then(|one| Some(process_io::elsewhere(&one.why)?.to_owned()));
    let kept = match (nfs, elsewhere) {
        // Mounts have no name in a reading: those of one count are one.
        (Some(one), _) => Kept::Nfs(one.before.into_iter().collect()),
        (None, Some(what)) => Kept::Elsewhere(what),
        (None, None) => Kept::Devices,
    };
    let block = evidence(block::SOURCE.name);
    let stack = block.and_then(|one| Some(stack(record, &names(&one)?)));
    JobLayout {
        kept,
        stack: stack.ok_or_else(String::new),
        net_devices: Err(String::new()),
        holes: None,
        content: None,
        unknown: Vec::new(),
    }
}

/// The devices of a reading, `16 sectors of 512 B (sda+sdb)`.
fn names(one: &Evidence) -> Option<String> {
    Some(one.before.as_deref()?.split_once('(')?.1.trim_end_matches(')').to_owned())
}

fn stack(record: &Record, names: &str) -> Stack {
    let mut stack = Stack::default();
    for name in names.split('+') {
        let unread = BlockFacts::unread(name, DeviceNumber::default(), BlockKind::Disk);
        let facts = facts(record, name).unwrap_or(&unread);
        add(&mut stack.tops, facts);
        add_leaves(&mut stack.leaves, facts);
    }
    stack
}

/// The record's facts of a device that files lie on.
fn facts<'a>(record: &'a Record, name: &str) -> Option<&'a BlockFacts> {
    let devices = record.storage.iter().filter_map(|storage| storage.device.as_ref());
    { devices }.find(|device| device.name == name && device.members.is_empty())
}

/// Whether the record has all that this evidence follows from.
fn is_whole(record: &Record, one: &Evidence) -> bool {
    match &one.name {
        name if name == own::SOURCE.name || name == page_cache::SOURCE.name => true,
        name if name == process_io::SOURCE.name || name == nfs::SOURCE.name => one.before.is_some(),
        name if name == block::SOURCE.name => {
            names(one).is_some_and(|name| facts(record, &name).is_some())
        }
        _ => false,
    }
}

/// The first part of an entry that is other than it follows.
fn difference(own: &Evidence, whole: &Evidence) -> Option<String> {
    let parts = |one: &Evidence| {
        let assessment = word(one.assessment);
        let [observed, expected] = [one.observed_bytes, one.expected_bytes]
            .map(|bytes| bytes.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string()));
        let [before, after] =
            [&one.before, &one.after].map(|text| text.clone().unwrap_or_default());
        [
            ("source", one.source.clone()),
            ("before", before),
            ("after", after),
            ("bytes", observed),
            ("bytes expected", expected),
            ("assessment", assessment),
            ("reason", one.why.clone()),
        ]
    };
    let other = parts(own).into_iter().zip(parts(whole)).find(|(own, whole)| own != whole);
    other.map(|((part, own), (_, whole))| {
        format!("{part}: '{own}' recorded, '{whole}' by its readings")
    })
}

/// The reason of cuFile's counts where they show a route, and another one is recorded.
fn other_reason(one: &Evidence) -> Option<String> {
    let shows = one.name == cufile_stats::SOURCE.name && one.assessment != Assessment::Inconclusive;
    let (before, after) = one.before.as_ref().zip(one.after.as_ref()).filter(|_| shows)?;
    cufile_stats::reason(before, after).filter(|whole| *whole != one.why)
}

/// A size in the reason of an entry that is none of its counts. The device above others has a count
/// that no entry has.
fn stray_size(one: &Evidence, caused: Option<u64>) -> Option<String> {
    let (observed, expected) = (one.observed_bytes, one.expected_bytes);
    let over = observed.zip(caused).map(|(observed, caused)| observed.saturating_sub(caused));
    let counts: Vec<String> = [observed, expected, over].into_iter().flatten().map(size).collect();
    let text = one.why.split(" above it ").next().unwrap_or_default();
    let words: Vec<&str> = text.split([' ', ',', ';', ':']).collect();
    let sizes = words.windows(2).filter(|pair| {
        pair[0].parse::<f64>().is_ok() && (pair[1] == "B" || pair[1].ends_with("iB"))
    });
    sizes.map(|pair| pair.join(" ")).find(|size| observed.is_some() && !counts.contains(size))
}

/// The outcomes that an entry's assessment leaves open. Reports of a foreign library count only
/// where it decides on the path.
fn possible(requested: &Requested, one: &Evidence) -> Vec<Observed> {
    let foreign = requested.kind == PathKind::Foreign;
    let past = |straight| LibraryRoute::Past { straight };
    let outcomes = match one.name.as_str() {
        "block" | "nfs" | "nic" => {
            [Share::All, Share::Part, Share::Little].map(Observed::Storage).to_vec()
        }
        "nvidia_fs" if foreign => vec![Observed::NvidiaFs(Share::All)],
        "cufile_stats" | "cufile_properties" if foreign => {
            [LibraryRoute::Host, LibraryRoute::Both, past(false), past(true)]
                .map(Observed::Library)
                .to_vec()
        }
        "gpu_pcie" => [true, false].map(Observed::Reached).to_vec(),
        _ => Vec::new(),
    };
    let is_read = one.before.is_some() || one.observed_bytes.is_some();
    let outcomes = outcomes.into_iter().filter(|_| is_read).chain([Observed::Nothing]);
    outcomes.filter(|outcome| assess(requested, *outcome) == one.assessment).collect()
}
