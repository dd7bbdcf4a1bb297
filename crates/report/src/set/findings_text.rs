//! Findings and facts of a set in words, shared by the formats for people.

use gpuio_base::document::{grouped, unique};
use gpuio_base::units::shell_word;
use gpuio_record::{
    Assessment, CufileUsed, DirectMode, EndedHow, Evidence, JobResult, Proof, Record, Severity,
    Source, WarningKind,
};

use super::rows::Row;
use super::{Member, Set};
use crate::format::text::{header, proof, warnings::marked};
use crate::number::many;
use crate::verification;

/// Between the names of a record and of its job.
const BETWEEN: &str = " · ";

/// The source of a row: its job, and its record if there are several.
pub(super) fn name(row: &Row<'_>, several: bool) -> String {
    match several {
        true => format!("{}{BETWEEN}{}", row.member.name, row.plan.name),
        false => row.plan.name.clone(),
    }
}

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Bad,
    Warning,
    Note,
}

impl Weight {
    pub(super) fn word(self) -> &'static str {
        match self {
            Weight::Bad => "error",
            Weight::Warning => "warning",
            Weight::Note => "note",
        }
    }
}

/// A problem, and what it concerns.
pub(super) struct Finding {
    kind: Kind,
    pub(super) weight: Weight,
    pub(super) text: String,
    /// Records and jobs, each once.
    pub(super) about: Vec<String>,
}

/// Errors, failed I/Os, wrong data and warnings of all records, each text once, worst first.
pub(super) fn findings(set: &Set) -> Vec<Finding> {
    let several = set.members.len() > 1;
    let mut all: Vec<Finding> = Vec::new();
    let mut add = |weight: Weight, kind: Kind, text: String, about: String| match all
        .iter_mut()
        .find(|known| known.text == text)
    {
        // Records come in order, so only the last name can be equal.
        Some(known) if about.is_empty() || known.about.last() == Some(&about) => {}
        Some(known) => known.about.push(about),
        None => {
            let about = if about.is_empty() { Vec::new() } else { vec![about] };
            all.push(Finding { kind, weight, text, about });
        }
    };
    for member in &set.members {
        let record = &member.record;
        let about = |job: Option<&str>| match (several, job) {
            (true, Some(job)) => format!("{}{BETWEEN}{job}", member.name),
            (true, None) => member.name.clone(),
            (false, job) => job.unwrap_or_default().to_owned(),
        };
        for (weight, job, text) in of_member(member) {
            add(weight, None, text, about(job.as_deref()));
        }
        for warning in &record.warnings {
            let kind = Some(std::mem::discriminant(&warning.kind));
            let text = format!("{}{}", warning.text, marked(&warning.kind));
            let weight = match warning.kind.severity() {
                Severity::Note => Weight::Note,
                _ => Weight::Warning,
            };
            add(weight, kind, text, about(warning.job.as_deref()));
        }
    }
    for text in set.not_here() {
        add(Weight::Warning, None, text, String::new());
    }
    for text in set.left_out.iter().chain(&set.unread) {
        add(Weight::Note, None, text.clone(), String::new());
    }
    all.sort_by_key(|finding| finding.weight);
    merged(all, several)
}

/// Merges findings of one kind that differ only in figures, if there are more than three. `several`
/// is whether records have names.
fn merged(all: Vec<Finding>, several: bool) -> Vec<Finding> {
    let alike = |finding: &Finding| {
        let words = finding.text.split(|c: char| c.is_ascii_digit()).next().unwrap_or("");
        (finding.weight, finding.kind, words.to_owned())
    };
    let kinds = grouped(all.into_iter().map(|finding| (alike(&finding), finding)));
    let merge = |mut group: Vec<Finding>| {
        if group.len() <= 3 {
            return group;
        }
        let others = group.split_off(1);
        let first = &mut group[0];
        let texts = others.len() + 1;
        let about = std::mem::take(&mut first.about).into_iter();
        first.about = unique(about.chain(others.into_iter().flat_map(|other| other.about)));
        // The names behind it are counted, too: a text may concern several, and several one.
        let jobs = first.about.len();
        let of_records = several && !first.about.iter().any(|name| name.contains(BETWEEN));
        let noun = if of_records { "record" } else { "job" };
        let of = match jobs == texts || jobs == 0 {
            true => texts.to_string(),
            false => format!("{texts} texts about {}", many(jobs as u64, noun)),
        };
        first.text.push_str(&format!(" (The first of {of}, which differ only in their figures.)"));
        group
    };
    kinds.into_iter().flat_map(|(_, group)| merge(group)).collect()
}

/// The kind of a finding: a kind of warning, or one of this module's.
type Kind = Option<std::mem::Discriminant<WarningKind>>;

fn of_member(member: &Member) -> Vec<(Weight, Option<String>, String)> {
    let (record, mut found) = (&member.record, Vec::new());
    if let Some(doubt) = member.recheck.doubt() {
        found.push((Weight::Bad, None, format!("{doubt}.")));
    }
    if let Some(error) = &record.error {
        found.push((Weight::Bad, None, format!("The run ended early: {error}")));
    }
    match record.ended {
        EndedHow::Complete | EndedHow::Failed => {}
        EndedHow::Interrupted => {
            let text = "Interrupted before its end: figures cover only the completed part.";
            found.push((Weight::Bad, None, text.to_owned()));
        }
        EndedHow::Unfinished => {
            let text = "Not finished when it was saved: jobs after the last one shown never \
                ended.";
            found.push((Weight::Bad, None, text.to_owned()));
        }
    }
    for (plan, job) in crate::workload::jobs(record) {
        let mut bad = |text: String| found.push((Weight::Bad, Some(job.name.clone()), text));
        if job.failed > 0 {
            let first = job.failures.first();
            let first = first.map(verification::failure_place);
            let first = first.map(|first| format!("; the first: {first}"));
            bad(format!("{} failed{}.", many(job.failed, "I/O"), first.unwrap_or_default()));
        }
        if let Some(trouble) = job.verify.as_ref().and_then(verification::trouble) {
            let first = verification::first_place(job.verify.as_ref());
            let first = first.map(|first| format!("; the first: {first}"));
            bad(format!("Verification: {trouble}{}.", first.unwrap_or_default()));
        }
        let finding = job.proof.as_ref().and_then(|one| proof::finding(plan, one));
        if let Some((known, text)) = finding {
            let weight = if known { Weight::Bad } else { Weight::Warning };
            found.push((weight, Some(job.name.clone()), text));
        }
    }
    let left_out = record.plan.left_out.iter().map(|out| (out.why.as_str(), out.path.as_str()));
    for (why, paths) in grouped(left_out) {
        let text = match paths.as_slice() {
            [path] => format!("Path {path} was left out: {why}"),
            paths => format!("Paths {} were left out: {why}", paths.join(", ")),
        };
        found.push((Weight::Note, None, text));
    }
    found
}

/// The facts about a machine, by kind.
type Facts = Vec<(&'static str, String)>;

/// The machines of a set: the facts, and the records from each.
pub(super) fn machines(set: &Set) -> Vec<(Facts, Vec<String>)> {
    grouped(set.members.iter().map(|member| (machine(&member.record), member.name.clone())))
}

fn machine(record: &Record) -> Facts {
    let mut facts = vec![("machine", header::host(&record.host))];
    facts.extend(record.storage.iter().map(|place| ("storage", header::storage(place))));
    facts.extend(header::gpus(record).into_iter().map(|gpu| ("GPU", gpu)));
    if let Some(library) = &record.cufile {
        let library = serde_json::to_value(library).unwrap_or_default();
        let findings_text = library.as_object().into_iter().flatten();
        let findings_text =
            findings_text.filter_map(|(key, value)| Some(format!("{key} {}", value.as_str()?)));
        facts.push(("cuFile", findings_text.collect::<Vec<String>>().join(", ")));
    }
    let tool = &record.tool;
    facts.push(("tool", format!("{} {}", tool.name, tool.version)));
    let problems = &record.host.problems;
    facts.extend(problems.iter().map(|p| ("not read", format!("{}: {}", p.path, p.message))));
    facts
}

/// The facts that a reader must know before any figure: machine, GPU, drive, and the state of the
/// page cache.
pub(super) fn where_and_how(set: &Set) -> Facts {
    let each = |of: &dyn Fn(&Record) -> Vec<String>| {
        unique(set.members.iter().flat_map(|member| of(&member.record)))
    };
    let some = |what, found: Vec<String>, none: &str| match found.len() {
        0 => (what, none.to_owned()),
        1..=4 => (what, found.join("; ")),
        many => (what, format!("{}; and {} more (Environment)", found[..3].join("; "), many - 3)),
    };
    if set.members.is_empty() {
        return Vec::new();
    }
    let processors = |record: &Record| {
        let words = [Some(header::processors(&record.host)), header::containment(&record.host)];
        let words: Vec<String> =
            words.into_iter().flatten().filter(|one| !one.is_empty()).collect();
        if words.is_empty() { Vec::new() } else { vec![words.join(", ")] }
    };
    let drives = |record: &Record| {
        let known = record.storage.iter().map(|place| match (&place.device, &place.mount) {
            (Some(block), _) => header::device(block),
            (None, Some(mount)) => format!("unknown, mounted from {}", mount.source),
            (None, None) => "unknown".to_owned(),
        });
        known.collect()
    };
    let file_systems = |record: &Record| {
        let mounts = record.storage.iter().filter_map(|place| place.mount.as_ref());
        mounts.map(|mount| format!("{} at {}", mount.fs_type, mount.mount_point)).collect()
    };
    let kernel = |record: &Record| {
        record.host.kernel.release.iter().map(|release| format!("Linux {release}")).collect()
    };
    let driver = |record: &Record| {
        let cuda = record.driver_version.map(|(major, minor)| format!("CUDA {major}.{minor}"));
        cuda.into_iter().chain(record.cufile.as_ref().map(cufile)).collect()
    };
    vec![
        ("date", dates(set)),
        some("CPU", each(&processors), "unknown"),
        some("GPU", each(&header::gpus_alone), "none was used"),
        some("drives", each(&drives), "unknown"),
        some("file system", each(&file_systems), "none, or unknown"),
        some("kernel", each(&kernel), "unknown"),
        some("driver", each(&driver), "none was used"),
        ("page cache", page_cache(set)),
    ]
}

/// The cuFile library of a run and the kernel module below it.
fn cufile(used: &CufileUsed) -> String {
    let library = match (used.stand_in, used.gpuio, used.version) {
        (true, _, _) => "gpuio's stand-in for cuFile".to_owned(),
        (_, true, _) => "gpuio's libcufile".to_owned(),
        (_, _, Some((major, minor))) => format!("cuFile {major}.{minor}"),
        (_, _, None) => "cuFile".to_owned(),
    };
    match used.nvidia_fs {
        Some((major, minor)) => format!("{library} with nvidia-fs {major}.{minor}"),
        None => format!("{library} without nvidia-fs"),
    }
}

/// When the first and the last record began.
fn dates(set: &Set) -> String {
    match times(set) {
        Some((first, last)) if first != last => format!("{first} to {last}"),
        Some((first, _)) => first,
        None => "unknown".to_owned(),
    }
}

/// Above the first share of a job's files in the page cache, it counts as warm, up to the second as
/// cold: metadata and a first block are cached for any file that was opened.
const WARM: f64 = 0.99;
const COLD: f64 = 0.01;

const NULL: &str = "not involved (engine null moves no bytes)";

/// How jobs used the page cache, and whether they found their files in it, as far as records tell.
fn page_cache(set: &Set) -> String {
    let jobs: Vec<&JobResult> = set.members.iter().flat_map(|member| &member.record.jobs).collect();
    let from_cache = |job: &JobResult| {
        job.proof.as_ref().is_some_and(|proof| proof.verdict.source == Source::PageCache)
    };
    let how = |job: &JobResult| match job.direct_actual {
        _ if job.engine.iter().any(|engine| engine.actual == "null") => NULL,
        DirectMode::Direct if from_cache(job) => "not bypassed, though files had O_DIRECT,",
        DirectMode::Direct => "bypassed with O_DIRECT",
        DirectMode::Buffered if job.reads_around_cache() => "used for what it held",
        DirectMode::Buffered => "used",
    };
    let groups = grouped(jobs.iter().map(|job| (how(job), *job)));
    let text = match groups.as_slice() {
        [] => "no job has a result".to_owned(),
        [(how, _)] if *how == NULL => format!("{how} in all jobs"),
        [(how, jobs)] => format!("{how} in all jobs; {}", state(jobs)),
        several => {
            let each = several.iter().map(|(how, jobs)| {
                format!("{how} in {} ({})", many(jobs.len() as u64, "job"), state(jobs))
            });
            each.collect::<Vec<_>>().join("; ")
        }
    };
    let requested: Vec<&str> =
        set.sweeps.iter().filter_map(|sweep| sweep.cache.as_deref()).collect();
    let requested = match requested.first() {
        Some(words) => format!(". Requested: {words}"),
        None => String::new(),
    };
    let warm = !jobs.is_empty() && jobs.iter().all(|job| from_cache(job));
    let meaning = if warm { ". So the rates are those of memory, not of a drive" } else { "" };
    format!("{text}{requested}{meaning}")
}

fn state(jobs: &[&JobResult]) -> String {
    let known: Vec<f64> = jobs.iter().filter_map(|job| job.cache.resident_before).collect();
    let low = known.iter().copied().fold(f64::INFINITY, f64::min);
    let high = known.iter().copied().fold(0.0, f64::max);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let state = match known.len() {
        0 => return "its content before is unknown".to_owned(),
        _ if low >= WARM => "warm: it held the files before".to_owned(),
        _ if high <= COLD => "cold: it held nothing of the files before".to_owned(),
        _ => format!("it held {} to {} of the files before", percent(low), percent(high)),
    };
    match jobs.len() - known.len() {
        0 => state,
        rest => format!("{state}; unknown for {rest} of {} jobs", jobs.len()),
    }
}

/// A command line, quoted for a shell.
pub(super) fn command(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// Characters of a command in the first lines of a report; all of it is further down.
const COMMAND_MOST: usize = 240;

/// The command that made the set, and how many more did: those of its sweeps, else of its records.
/// `None` where none was recorded.
pub(super) fn made_by(set: &Set) -> Option<(String, String)> {
    let of_records = || set.members.iter().map(|member| &member.record.command);
    let all = match set.sweeps.as_slice() {
        [] => unique(of_records()),
        sweeps => unique(sweeps.iter().map(|sweep| &sweep.command)),
    };
    let all: Vec<&Vec<String>> = all.into_iter().filter(|words| !words.is_empty()).collect();
    let (program, arguments) = all.first()?.split_first()?;
    // Where the program lies is further down, too.
    let program = program.rsplit('/').next().unwrap_or(program).to_owned();
    let whole = command(&[&[program], arguments].concat());
    let mut short: String = whole.chars().take(COMMAND_MOST).collect();
    if short.len() < whole.len() {
        short.push('…');
    }
    let more = match all.len() - 1 {
        0 => String::new(),
        more => format!(" and {}", many(more as u64, "more command")),
    };
    Some((short, more))
}

/// The first and the last start time of the set's records.
pub(super) fn times(set: &Set) -> Option<(String, String)> {
    let moments =
        || set.members.iter().map(|member| header::to_the_second(&member.record.started_at));
    Some((moments().min()?, moments().max()?))
}

/// The jobs with a verdict, with the requested and the actual path.
pub(super) fn proofs<'a>(rows: &[Row<'a>]) -> Vec<(Row<'a>, &'a Proof)> {
    let mut seen = Vec::new();
    let mut proofs = Vec::new();
    for row in rows {
        let key = (row.nth, row.job);
        if let (false, Some(proof)) = (seen.contains(&key), row.result.proof.as_ref()) {
            proofs.push((*row, proof));
        }
        seen = vec![key];
    }
    proofs
}

/// The report of an evidence source, as a word.
pub(super) fn assessment_text(item: &Evidence) -> &'static str {
    match item.assessment {
        Assessment::Supports => "for",
        Assessment::Contradicts => "against",
        Assessment::Inconclusive => "inconclusive",
    }
}
