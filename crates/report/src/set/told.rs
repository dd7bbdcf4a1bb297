//! What a set says in words, shared by the formats for people.

use gpuio_record::{EndedHow, Proof, Record, Says, WarningKind, Witness};

use super::Set;
use super::rows::{Row, rows};
use crate::ceilings;
use crate::expected;
use crate::format::text::header;
use crate::number::{count, iops, time};
use crate::workload::verified;

/// Above this many rows the summary speaks of paths, not of jobs.
const TELL_EACH: usize = 16;

/// One line of the summary.
pub(super) struct Line {
    /// What it is about: a job, or a path.
    pub(super) about: String,
    /// Its path, for its colour.
    pub(super) path: String,
    /// What was reached, in a sentence.
    pub(super) sentence: String,
    /// The way that the bytes took, as few words, and whether it is the one asked for; absent where
    /// nobody took it down.
    pub(super) taken: Option<(String, bool)>,
    /// What the verdict rests on.
    pub(super) evidence: String,
}

/// The summary: a line per row, or per path and direction where there are many.
pub(super) fn summary(set: &Set) -> Vec<Line> {
    let rows = rows(set);
    if rows.len() <= TELL_EACH {
        let several = set.members.len() > 1;
        return rows.iter().map(|row| of_row(row, several)).collect();
    }
    let mut groups: Vec<Vec<Row<'_>>> = Vec::new();
    for row in rows {
        let same = |group: &&mut Vec<Row<'_>>| {
            let first = group[0];
            first.plan.path.choice.got == row.plan.path.choice.got
                && first.direction == row.direction
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.iter().map(|group| of_group(group)).collect()
}

/// Where a row is from: its job, and its record where there are several.
pub(super) fn name(row: &Row<'_>, several: bool) -> String {
    match several {
        true => format!("{} · {}", row.member.name, row.plan.name),
        false => row.plan.name.clone(),
    }
}

fn of_row(row: &Row<'_>, several: bool) -> Line {
    let side = row.side();
    let mut sentence = format!("{}, {} IOPS", row.rate(), iops(side.iops));
    if let Some(legs) = &side.latency {
        let (p50, p99) = (time(legs.total.p50_ns), time(legs.total.p99_ns));
        sentence.push_str(&format!("; latency {p50} median, {p99} at the 99th percentile"));
    }
    match &side.of_ceiling {
        Some(of) => {
            let percent = ceilings::percent(of.percent);
            let kind = ceilings::word(of.kind);
            let rate = ceilings::rate(row.record(), of).map(crate::number::throughput);
            let rate = rate.map(|rate| format!(" ({rate})")).unwrap_or_default();
            sentence.push_str(&format!("; {percent} % of its lowest ceiling, {kind}{rate}"));
        }
        None => sentence.push_str("; no ceiling was found"),
    }
    sentence.push_str(&format!("; {}.", expected::clause(row.expected())));
    let ended = row.result.ended;
    if ended != EndedHow::Complete {
        sentence.push_str(" The job did not end as planned: its figures cover what was done.");
    }
    let failed = side.failed;
    if failed > 0 {
        sentence.push_str(&format!(" {} I/Os failed.", count(failed)));
    }
    if row.result.verify.is_some() {
        sentence.push_str(&format!(" Verified: {}.", verified(row.result.verify.as_ref())));
    }
    let proof = row.result.proof.as_ref();
    Line {
        about: format!("{} ({})", name(row, several), row.load()),
        path: row.plan.path.choice.got.clone(),
        sentence,
        taken: proof.map(|proof| (proof.verdict.words.clone(), proof.as_asked)),
        evidence: proof.map_or_else(
            || "The record does not say which way the bytes took.".to_owned(),
            |proof| proof.sentence.clone(),
        ),
    }
}

fn of_group(group: &[Row<'_>]) -> Line {
    let rate = |row: &&Row<'_>| row.side().bytes_per_s;
    let by = |a: &&Row<'_>, b: &&Row<'_>| rate(a).total_cmp(&rate(b));
    let (low, high) = (group.iter().min_by(by), group.iter().max_by(by));
    let (low, high) = (low.unwrap_or(&group[0]), high.unwrap_or(&group[0]));
    let first = group[0];
    let mut words: Vec<(String, bool, usize)> = Vec::new();
    for row in group {
        let Some(proof) = &row.result.proof else { continue };
        match words.iter_mut().find(|(word, _, _)| *word == proof.verdict.words) {
            Some((_, as_asked, times)) => {
                *times += 1;
                *as_asked &= proof.as_asked;
            }
            None => words.push((proof.verdict.words.clone(), proof.as_asked, 1)),
        }
    }
    words.sort_by_key(|word| std::cmp::Reverse(word.2));
    let told: usize = words.iter().map(|word| word.2).sum();
    let all = group.len();
    let each: Vec<String> =
        words.iter().map(|(w, _, n)| format!("{w} in {}", points(*n))).collect();
    let evidence = match each.len() {
        0 => "No record says which way the bytes took.".to_owned(),
        _ if told < all => format!("{}; not recorded in {}", each.join(", "), points(all - told)),
        _ => each.join(", "),
    };
    let taken = match words.as_slice() {
        [] => None,
        [(word, as_asked, _)] if told == all => Some((word.clone(), *as_asked)),
        several => Some(("differs".to_owned(), several.iter().all(|word| word.1))),
    };
    Line {
        about: format!("{}, {}", first.plan.path.choice.got, first.direction.name()),
        path: first.plan.path.choice.got.clone(),
        sentence: format!(
            "from {} ({}) to {} ({}) over {}.",
            low.rate(),
            low.load(),
            high.rate(),
            high.load(),
            points(all)
        ),
        taken,
        evidence: format!("Path taken: {evidence}."),
    }
}

fn points(number: usize) -> String {
    match number {
        1 => "1 point".to_owned(),
        _ => format!("{number} points"),
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

/// Something to beware of, and whom it concerns.
pub(super) struct Finding {
    kind: Kind,
    pub(super) weight: Weight,
    pub(super) text: String,
    /// Records and jobs, each once.
    pub(super) about: Vec<String>,
}

/// Errors, failed I/Os, wrong bytes and warnings of all records, each text once, worst first.
pub(super) fn findings(set: &Set) -> Vec<Finding> {
    let several = set.members.len() > 1;
    let mut all: Vec<Finding> = Vec::new();
    let mut add = |weight: Weight, kind: Kind, text: String, about: String| match all
        .iter_mut()
        .find(|known| known.text == text)
    {
        // Records come in order, so that the same name can only be the last.
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
            (true, Some(job)) => format!("{} · {job}", member.name),
            (true, None) => member.name.clone(),
            (false, job) => job.unwrap_or_default().to_owned(),
        };
        for (weight, job, text) in of_record(record) {
            add(weight, None, text, about(job.as_deref()));
        }
        for warning in &record.warnings {
            let kind = Some(std::mem::discriminant(&warning.kind));
            add(Weight::Warning, kind, warning.text.clone(), about(warning.job.as_deref()));
        }
    }
    for text in &set.left_out {
        add(Weight::Note, None, text.clone(), String::new());
    }
    all.sort_by_key(|finding| finding.weight);
    merged(all)
}

/// Findings of one kind that differ in figures alone stand as one where there are more than three.
fn merged(all: Vec<Finding>) -> Vec<Finding> {
    let alike = |finding: &Finding| {
        let words = finding.text.split(|c: char| c.is_ascii_digit()).next().unwrap_or("");
        (finding.weight, finding.kind, words.to_owned())
    };
    let mut kinds: Vec<((Weight, Kind, String), Vec<Finding>)> = Vec::new();
    for finding in all {
        let key = alike(&finding);
        match kinds.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(finding),
            None => kinds.push((key, vec![finding])),
        }
    }
    let merge = |mut group: Vec<Finding>| {
        if group.len() <= 3 {
            return group;
        }
        let others = group.split_off(1);
        let first = &mut group[0];
        let more = others.len();
        first.text.push_str(&format!(
            " (The first of {}; {more} more say it of other figures.)",
            more + 1
        ));
        for name in others.into_iter().flat_map(|other| other.about) {
            if !first.about.contains(&name) {
                first.about.push(name);
            }
        }
        group
    };
    kinds.into_iter().flat_map(|(_, group)| merge(group)).collect()
}

/// What a finding is of: a kind of warning, or our own.
type Kind = Option<std::mem::Discriminant<WarningKind>>;

fn of_record(record: &Record) -> Vec<(Weight, Option<String>, String)> {
    let mut found = Vec::new();
    if let Some(error) = &record.error {
        found.push((Weight::Bad, None, format!("The run ended early: {error}")));
    }
    match record.ended {
        EndedHow::Complete | EndedHow::Failed => {}
        EndedHow::Interrupted => {
            let text = "Interrupted before its end: figures cover only what had been done.";
            found.push((Weight::Bad, None, text.to_owned()));
        }
        EndedHow::Unfinished => {
            let text = "Not over when it was saved: jobs after the last one shown never ended.";
            found.push((Weight::Bad, None, text.to_owned()));
        }
    }
    for job in &record.jobs {
        let mut bad = |text: String| found.push((Weight::Bad, Some(job.name.clone()), text));
        if job.failed > 0 {
            let first = job.failures.first();
            let first = first.map(|failure| {
                let (op, path, offset) = (&failure.op, &failure.path, failure.offset);
                format!("; the first: {op} at {offset} of {path}: {}", failure.what)
            });
            bad(format!("{} I/Os failed{}.", count(job.failed), first.unwrap_or_default()));
        }
        if let Some(verify) = job.verify.as_ref().filter(|verify| verify.bad_blocks > 0) {
            bad(format!("Wrong data in {} blocks.", count(verify.bad_blocks)));
        }
        if let Some(proof) = job.proof.as_ref().filter(|proof| !proof.as_asked) {
            bad(format!("The bytes took another way than asked. {}", proof.sentence));
        }
    }
    for out in &record.plan.left_out {
        let text = format!("Path {} was left out: {}", out.path, out.why);
        found.push((Weight::Note, None, text));
    }
    found
}

/// What is known of a machine, by kind.
type Facts = Vec<(&'static str, String)>;

/// The machines of a set: what each is, and the records from there.
pub(super) fn machines(set: &Set) -> Vec<(Facts, Vec<String>)> {
    let mut all: Vec<(Facts, Vec<String>)> = Vec::new();
    for member in &set.members {
        let facts = machine(&member.record);
        match all.iter_mut().find(|(known, _)| *known == facts) {
            Some((_, names)) => names.push(member.name.clone()),
            None => all.push((facts, vec![member.name.clone()])),
        }
    }
    all
}

fn machine(record: &Record) -> Facts {
    let mut facts = vec![("machine", header::host(&record.host))];
    facts.extend(record.storage.iter().map(|place| ("storage", header::storage(place))));
    facts.extend(header::gpus(record).into_iter().map(|gpu| ("GPU", gpu)));
    if let Some(library) = &record.cufile {
        let library = serde_json::to_value(library).unwrap_or_default();
        let told = library.as_object().into_iter().flatten();
        let told = told.filter_map(|(key, value)| Some(format!("{key} {}", value.as_str()?)));
        facts.push(("cuFile", told.collect::<Vec<String>>().join(", ")));
    }
    let tool = &record.tool;
    facts.push(("tool", format!("{} {}", tool.name, tool.version)));
    let problems = &record.host.problems;
    facts.extend(problems.iter().map(|p| ("not read", format!("{}: {}", p.path, p.message))));
    facts
}

/// A command line as a shell takes it.
pub(super) fn command(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    quoted.collect::<Vec<String>>().join(" ")
}

/// The first and the last moment at which a record of the set was begun.
pub(super) fn times(set: &Set) -> Option<(String, String)> {
    let moments =
        || set.members.iter().map(|member| header::to_the_second(&member.record.started_at));
    Some((moments().min()?, moments().max()?))
}

/// The jobs whose way is proven or not, with what was asked and got.
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

/// What a witness says, as a word.
pub(super) fn says(witness: &Witness) -> &'static str {
    match witness.says {
        Says::For => "for",
        Says::Against => "against",
        Says::CantTell => "can't tell",
    }
}
