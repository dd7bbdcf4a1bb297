//! The words and tables of a report: sections that Markdown and the page share, and those that only
//! one of them has.

use gpuio_base::document::{
    Block, Cell, Columns, Document, Item, Layout, List, Section, Text, Tone, fragment, grouped,
    unique,
};
use gpuio_base::stat::Percentile;
use gpuio_base::units::markup;
use gpuio_record::metric::List as Metrics;
use gpuio_record::{Assessment, CpuCost, Evidence, JobPlan, Proof};

use super::axes::{shared_settings, with_settings};
use super::findings_text::{self, Weight};
use super::html::base64;
use super::rows::{Row, rows};
use super::summary::{Taken, summary};
use super::{Member, Picture, Set, conclusion, devices, plot};
use crate::format::text::{self, header::to_the_second};
use crate::number::{self, maybe_time};
use crate::workload::own_question;
use crate::{ceilings, expected, printable, ranks};

/// Limits of what a page lists of jobs, machines and commands, and of the rows that it shows
/// without a script.
const MOST: usize = 100;
/// Row limit of Markdown: a longer table would not help in an issue.
const MOST_IN_MARKDOWN: usize = 500;

/// Tables for an issue or a wiki.
pub(super) fn markdown(set: &Set) -> String {
    let set = &*set.for_people();
    let set = &*set.in_requested_units();
    let mut page = Document::new(set.title.as_str());
    let first = page.begin("", "");
    for text in set.banners() {
        first.paragraph(Text::default().and(Tone::Strong, text));
    }
    for sentence in conclusion::conclusion(set) {
        first.paragraph(sentence);
    }
    let facts = findings_text::where_and_how(set);
    first.list(facts_of(facts.into_iter().map(|(what, text)| Item::new(what, text))));
    first.blocks.extend(loads(set).blocks);
    first.blocks.extend(curve(set, false).blocks);
    first.blocks.extend(workloads(set).blocks);
    first.blocks.extend(all_rows(set).blocks);
    page.push(devices::section(set, MOST_IN_MARKDOWN));
    let findings = findings(set);
    if findings.blocks.iter().any(|block| matches!(block, Block::List(_))) {
        page.push(findings);
    }
    page.push(environment(set));
    if let Some(digests) = digests(set, MOST_IN_MARKDOWN) {
        page.push(digests);
    }
    let commands = page.begin("commands", "Commands");
    let item = |member: &Member| {
        let record = &member.record;
        let text = format!("{}, {}: ", member.name, to_the_second(&record.started_at));
        let command = findings_text::command(&record.command);
        Item::new("", Text::from(text).and(Tone::Code, command))
    };
    let items = set.members.iter().take(MOST_IN_MARKDOWN).map(item);
    commands.list(List::new(Layout::default(), items));
    format!("<!-- gpuio report -->\n{}", page.markdown())
}

/// The sections of the page above its plots, and those below.
pub(super) fn of_page(set: &Set, rows: &[Row<'_>]) -> [String; 2] {
    let mut below = vec![
        findings(set),
        evidence(rows),
        of_ranks(set),
        devices::section(set, MOST),
        topology(set),
        environment(set),
        commands(set),
        absent(set, rows),
    ];
    below.extend(digests(set, usize::MAX));
    [fragment(&[loads(set), curve(set, true), workloads(set)]), fragment(&below)]
}

fn facts_of(items: impl IntoIterator<Item = Item>) -> List {
    List { items: items.into_iter().collect(), facts: true, ..List::default() }
}

/// The number that was cut, if any.
fn cut(section: &mut Section, all: usize) {
    if all > MOST {
        let all = number::count(all as u64);
        let text = format!("The first {MOST} of {all}; the others are in the records.");
        section.emphasized("note", text);
    }
}

/// A row per load, or per path if there are many loads.
fn loads(set: &Set) -> Section {
    let mut section = Section::new("summary", "Summary");
    let summary = summary(set);
    let of_points = summary.of_points;
    let taken = |taken: &Option<Taken>| match taken {
        Some((words, is, unmeasured)) => {
            let (tone, as_requested) = match is {
                Some(true) if *unmeasured => (Tone::Plain, ", as requested"),
                Some(true) => (Tone::Good, ", as requested"),
                Some(false) => (Tone::Bad, ", not as requested"),
                None => (Tone::Plain, ", not proved"),
            };
            let storage = if *unmeasured { "; storage not measured" } else { "" };
            let words = Text::default().and(tone, words);
            words.and(Tone::Plain, format!("{as_requested}{storage}"))
        }
        None => "unknown".into(),
    };
    let columns = Columns::<super::summary::Line>::new()
        .mark(|line| line.path.clone())
        .words(if of_points { "load" } else { "path" }, |line| {
            Cell::from(line.about.as_str()).note(line.notes.as_str())
        })
        .when(of_points, |columns| columns.words("path", |line| line.path.clone()))
        .figures(if of_points { "n" } else { "runs" }, |line| line.runs)
        .title("runs");
    let heads = summary.heads.iter().enumerate().filter(|_| of_points);
    let columns = heads.fold(columns, |columns, (nth, head)| {
        columns.figures(head.clone(), move |line| line.medians.get(nth).cloned()).if_any()
    });
    let limited = summary.lines.iter().any(|line| line.within_limit.is_some());
    let columns = columns
        .when(of_points, |columns| {
            let column = columns.figures("95 %", |line| line.interval.clone()).if_any();
            column.title("95 % interval of the mean rate")
        })
        .when(limited, |columns| {
            columns.words("within limit", |line| {
                let word = line.within_limit.as_deref().unwrap_or(number::NONE);
                let tone = if word == "no" { Tone::Bad } else { Tone::Plain };
                Text::default().and(tone, word)
            })
        })
        .words("path taken", |line| Cell::from(taken(&line.taken)).because(line.evidence.as_str()));
    section.table(columns.table("summary", &summary.lines).class("summary"));
    for text in &summary.below {
        section.emphasized("quiet", text.as_str());
    }
    section
}

/// Latency against throughput, with the knees.
fn curve(set: &Set, draws: bool) -> Section {
    let mut section = Section::new("curve", "Latency against throughput");
    let Some((plot, words)) = plot::curve(set) else { return section };
    for sentence in words {
        section.paragraph(sentence);
    }
    if draws {
        section.push(Block::Markup(format!(
            "<figure class=\"curve\"><figcaption>{}</figcaption>{}</figure>\n",
            markup(&plot.title),
            plot::inside(&plot)
        )));
        section.emphasized("quiet", plot.note_with("not in it"));
    }
    section
}

/// The results of loads that have a question of their own, as the text of each record has them.
fn workloads(set: &Set) -> Section {
    let mut section = Section::new("workloads", "Results of workloads");
    let is_own = |plan: &JobPlan| own_question(plan).is_some();
    let all = set.members.iter().filter(|one| one.record.plan.jobs.iter().any(is_own));
    // Each of several with what it came to; its own page has the rest.
    let several = set.members.len() > 1;
    let all =
        all.map(|member| (member, text::of_loads(&printable::record(&member.record), several)));
    // A computation may run beside any load.
    let all: Vec<_> =
        all.filter(|(_, parts)| parts[1..].iter().any(|part| !part.is_empty())).collect();
    cut(&mut section, all.len());
    for (member, parts) in all.into_iter().take(MOST) {
        if several {
            section.paragraph(format!("{}:", member.name));
        }
        let few = set.members.len() <= conclusion::ANSWERS_MOST;
        let answers = (!few).then(|| text::answers(&printable::record(&member.record)));
        let [parts @ .., rules] = parts;
        // The rules are many, and what a run came to does not follow from them.
        let rules = if several { rules } else { rules.fold(false) };
        let parts = answers.into_iter().flatten().chain(parts).chain([rules]);
        section.blocks.extend(parts.filter(|part| !part.is_empty()).map(Block::Section));
    }
    section
}

fn cost(cpu: &CpuCost) -> Option<Cell> {
    let sign = cpu.scope.sign();
    cpu.us_per_mib.map(|cost| Cell::shown(format!("{sign}{cost:.1}"), cost))
}

fn verdict(row: &Row<'_>) -> String {
    row.result.proof.as_ref().map_or_else(|| "unknown".to_owned(), |one| one.verdict.words.clone())
}

/// The meaning of the column of disturbances, if any row has one.
fn disturbances(rows: &[Row<'_>]) -> Option<&'static str> {
    rows.iter().any(|row| !row.disturbed().is_empty()).then_some(
        "disturbed: partial, the run did not end as planned; too short, for its rate or \
         percentiles; stood still, the process was stopped or the machine slept; others, the share \
         of the drive's bytes that other programs or write-back moved, and of the CPUs' time that \
         others took.",
    )
}

/// A row per job and direction: rates and percentiles, then costs and shares.
fn all_rows(set: &Set) -> Section {
    let mut section = Section::default();
    let rows = rows(set);
    let shared = shared_settings(&rows);
    let disturbances = disturbances(&rows);
    let columns = Columns::<Row<'_>>::new()
        .words("record", |row| row.member.name.clone())
        .words("job", |row| row.plan.name.clone())
        .words("path", |row| row.plan.path.choice.actual.clone())
        .words("path taken", verdict)
        .words("load", |row| with_settings(row.load(), row, &shared))
        .when(disturbances.is_some(), |columns| columns.words("disturbed", Row::disturbed))
        .figures("throughput", |row| {
            Cell::shown(row.rate() + &row.marks(), row.figures().bytes_per_s)
        })
        .figures("IOPS", |row| Cell::count(row.figures().iops));
    let percentiles = Percentile::shown(&set.percentiles(), &Percentile::TABLE);
    let columns = percentiles.into_iter().fold(columns, |columns, at| {
        columns.figures(at.label(), move |row| {
            let total = row.figures().latency.as_ref().map(|legs| &legs.total);
            maybe_time(total.and_then(|all| all.percentile(at)))
        })
    });
    let mut table = columns
        .figures("µs/MiB", |row| cost(&row.result.cpu))
        .figures("% of ceiling", |row| ceilings::cell(row.figures().of_ceiling.as_ref()))
        .figures("% of expected", |row| expected::cell(row.expected()))
        .table("all rows", rows);
    let more = table.cut(MOST_IN_MARKDOWN);
    section.table(table);
    if let Some(meaning) = disturbances {
        section.paragraph(meaning);
    }
    if more > 0 {
        let more = number::many(more as u64, "more row");
        let text = Text::from(format!("{more}: use ")).and(Tone::Code, "--format csv");
        section
            .paragraph(text.and(Tone::Plain, " or ").and(Tone::Code, "html").and(Tone::Plain, "."));
    }
    section
}

/// The first rows of the table that the page's scripts draw anew.
pub(super) fn first_rows(set: &Set, rows: &[Row<'_>]) -> String {
    let several = set.members.len() > 1;
    let all = number::count(rows.len() as u64);
    let title = Text::from("All rows ").and(Tone::Quiet, all.as_str());
    let mut section = Section::new("table", title).fold(false);
    if rows.len() > MOST {
        section.push(Block::Markup(format!(
            "<noscript><p class=\"note\">These are the first {MOST} of {all} rows; all are in the \
             data of this file.</p></noscript>\n"
        )));
    }
    let shared = shared_settings(rows);
    let columns = Columns::<Row<'_>>::new()
        .mark(|row| row.plan.path.choice.actual.clone())
        .words("job", |row| findings_text::name(row, several))
        .key("name")
        .words("path", |row| row.plan.path.choice.actual.clone())
        .words("path taken", verdict)
        .key("taken")
        .words("load", |row| with_settings(row.load(), row, &shared))
        .key("loads");
    let disturbances = disturbances(rows);
    let columns = columns.when(disturbances.is_some(), |columns| {
        columns.words("disturbed", Row::disturbed).key("disturbed")
    });
    // Columns in which some row has a figure.
    let mut metrics = set.metrics(Metrics::Table);
    metrics.retain(|metric| rows.iter().any(|row| metric.of(row).is_some()));
    let columns = metrics.into_iter().fold(columns, |columns, metric| {
        let (key, title) = (metric.key(), metric.title());
        let value = move |row: &Row<'_>| {
            metric.of(row).map(|value| Cell::shown(metric.print(value), value))
        };
        columns.figures(metric.label(), value).key(key).title(title)
    });
    let rows = rows.iter().take(MOST);
    section.table(columns.table("One row per job and direction", rows).id("rows"));
    if let Some(meaning) = disturbances {
        section.emphasized("quiet", meaning);
    }
    section.push(Block::Markup("<p class=\"pages\" hidden></p>\n".to_owned()));
    fragment(&[section])
}

/// How many errors and warnings there are, and notes if any.
pub(super) fn counts(set: &Set) -> String {
    let findings = findings_text::findings(set);
    let of = |weight| findings.iter().filter(|finding| finding.weight == weight).count() as u64;
    let (bad, warnings) = (of(Weight::Bad), of(Weight::Warning));
    let notes = match of(Weight::Note) {
        0 => String::new(),
        notes => format!(", {}", number::many(notes, "note")),
    };
    format!("{}, {}{notes}", number::many(bad, "error"), number::many(warnings, "warning"))
}

fn findings(set: &Set) -> Section {
    let title = Text::from("Findings").and(Tone::Aside, format!(" {}", counts(set)));
    let findings = findings_text::findings(set);
    let bad = findings.iter().any(|finding| finding.weight == Weight::Bad);
    let mut section = Section::new("findings", title).fold(bad);
    let item = |finding: findings_text::Finding| {
        let word = finding.weight.word();
        Item { about: finding.about, class: word, ..Item::new(word, finding.text) }
    };
    let items: Vec<Item> = findings.into_iter().map(item).collect();
    if items.is_empty() {
        section.paragraph("The records have no errors and no warnings.");
    }
    section.list(List { items, class: "findings", ..List::default() });
    section
}

/// The verdict of each job, with its evidence.
fn evidence(rows: &[Row<'_>]) -> Section {
    let title = "Evidence: which path the bytes took";
    let mut section = Section::new("evidence", title).fold(false);
    let proofs = findings_text::proofs(rows);
    cut(&mut section, proofs.len());
    let several = rows.iter().any(|row| row.nth > 0);
    for (row, proof) in proofs.iter().take(MOST) {
        let tone = match proof.is_as_requested() {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Plain,
        };
        let title = Text::from(format!("{}: ", findings_text::name(row, several)));
        let title = title.and(tone, proof.verdict.words.as_str());
        section.push(Block::Section(of_proof(proof, title)));
    }
    section
}

fn of_proof(proof: &Proof, title: Text) -> Section {
    let mut section = Section::new("", title).fold(!proof.as_requested);
    section.paragraph(proof.sentence.as_str());
    let facts = [("requested", &proof.requested), ("actual", &proof.actual)];
    section.list(facts_of(facts.map(|(what, text)| Item::new(what, text.as_str()))));
    let table = Columns::<Evidence>::new()
        .words("evidence source", |one| Cell::from(one.name.as_str()).because(one.source.as_str()))
        .words("direction", |one| one.direction.clone())
        .figures("observed", |one| one.observed_bytes.map(Cell::bytes))
        .figures("of", |one| one.expected_bytes.map(Cell::bytes))
        .words("result", findings_text::assessment_text)
        .words("why", |one| one.why.clone());
    // A source that has nothing to do with the job says so in a word.
    let apart = |one: &&Evidence| {
        one.assessment == Assessment::Inconclusive && one.observed_bytes.is_none()
    };
    let (silent, of_job): (Vec<&Evidence>, Vec<&Evidence>) = proof.evidence.iter().partition(apart);
    section.table(table.table("evidence", of_job));
    let silent = grouped(silent.iter().map(|one| (one.why.as_str(), one.name.as_str())));
    let silent =
        silent.into_iter().map(|(why, names)| format!("{} ({why})", unique(names).join(", ")));
    let silent = silent.collect::<Vec<_>>().join("; ");
    if !silent.is_empty() {
        section.emphasized("quiet", format!("No evidence from {silent}."));
    }
    if proof.evidence.is_empty() {
        section.emphasized("quiet", "No evidence.");
    }
    section
}

/// Runs on several ranks: hosts, rates together, slow ranks, a row per rank.
fn of_ranks(set: &Set) -> Section {
    let members = set.members.iter();
    let all: Vec<_> =
        members.filter_map(|one| one.record.ranks.as_ref().map(|ranks| (one, ranks))).collect();
    let mut section = Section::new("ranks", "Hosts and ranks").fold(all.len() == 1);
    cut(&mut section, all.len());
    for (member, ranks) in all.iter().take(MOST) {
        let title = format!("{}: {}", member.name, ranks::title(ranks));
        let mut of_record = Section::new("", title).fold(all.len() == 1);
        let text = format!("Started by {}.", ranks::started_by(ranks));
        of_record.emphasized("quiet", text);
        for part in ranks::sections(ranks, Some(&member.record.jobs), true) {
            of_record.push(Block::Section(part));
        }
        section.push(Block::Section(of_record));
    }
    section
}

/// The picture, as an image: nothing in it can run.
fn topology(set: &Set) -> Section {
    let mut section = Section::new("topology", "Topology").fold(false);
    match &set.topology {
        Picture::Absent(why) => section.paragraph(format!("No picture: {why}.")),
        Picture::Svg { svg, about } => section
            .push(Block::Markup(format!(
                "<figure><img alt=\"PCIe tree of the machine\" \
                 src=\"data:image/svg+xml;base64,{}\"></figure>\n",
                base64::base64(svg.as_bytes())
            )))
            .emphasized("quiet", about.as_str()),
    };
    section
}

/// The facts of each machine, and the number of its records.
fn environment(set: &Set) -> Section {
    let mut section = Section::new("environment", "Environment").fold(false);
    let items = findings_text::machines(set).into_iter().flat_map(|(facts, names)| {
        let several = set.members.len() > names.len();
        let which = match names.as_slice() {
            [first, rest @ ..] if several && !rest.is_empty() => {
                format!(" ({first} and {} more)", rest.len())
            }
            [one] if several => format!(" ({one})"),
            _ => String::new(),
        };
        let count = Text::from(names.len().to_string()).and(Tone::Aside, which);
        let facts = facts.into_iter().map(|(what, text)| Item::new(what, text));
        facts.chain([Item::new("records", count)]).collect::<Vec<Item>>()
    });
    section.list(facts_of(items));
    section
}

/// The records by the digests of their files.
fn digests(set: &Set, most: usize) -> Option<Section> {
    let line = |member: &Member| Some(format!("{}  {}", member.digest.as_ref()?, member.file));
    let lines: Vec<String> = set.members.iter().filter_map(line).take(most).collect();
    let mut section = Section::new("digests", "SHA-256 of the records").fold(false);
    section.push(Block::Lines(lines.join("\n")));
    (!lines.is_empty()).then_some(section)
}

fn commands(set: &Set) -> Section {
    let mut section = Section::new("commands", "Commands").fold(false);
    for sweep in &set.sweeps {
        section.paragraph(format!(
            "Sweep {}, begun {}:",
            sweep.name,
            to_the_second(&sweep.started_at)
        ));
        section.push(Block::Lines(findings_text::command(&sweep.command)));
    }
    cut(&mut section, set.members.len());
    for member in set.members.iter().take(MOST) {
        let record = &member.record;
        let title = Text::from(format!("{} ", member.name));
        let title = title.and(Tone::Quiet, to_the_second(&record.started_at));
        let mut one = Section::new("", title).fold(set.members.len() == 1);
        one.push(Block::Lines(findings_text::command(&record.command)));
        let title = "The resolved plan, as a job file that repeats the run";
        let mut plan = Section::new("", title).fold(false);
        plan.push(Block::Lines(record.plan_text.clone()));
        one.push(Block::Section(plan));
        section.push(Block::Section(one));
    }
    section
}

/// The parts that the report does not contain, and why.
fn absent(set: &Set, rows: &[Row<'_>]) -> Section {
    let mut lines: Vec<String> = Vec::new();
    let none = |test: fn(&Row<'_>) -> bool| !rows.iter().any(test);
    if rows.is_empty() {
        lines.push("Figures: no job of these records has a result.".to_owned());
    }
    if none(|row| row.figures().of_ceiling.is_some()) {
        lines.push("Percentage of ceilings: none was measured (bench --ceilings).".to_owned());
    }
    if none(|row| row.result.proof.is_some()) {
        lines.push("Path taken: these records are too old to have it.".to_owned());
    }
    if none(|row| !row.result.series.is_empty()) {
        lines.push("Time series: no record has points.".to_owned());
    }
    lines.extend(devices::absent(set));
    if none(|row| !row.plan.gpus.is_empty()) {
        lines.push("GPU × drive: no job used a GPU.".to_owned());
    }
    lines.push(
        "Latency distributions cover the whole I/O, from due to completed, in a coarser \
         resolution than the records; percentiles of the legs are among the figures."
            .to_owned(),
    );
    let mut section = Section::new("absent", "Not in this report").fold(false);
    section.list(List::of(0, lines));
    section.push(Block::Markup(
        "<p id=\"no-records\" class=\"note\" hidden>The records themselves: compressed, they \
         exceed the limit of this page (report --embed-limit). All figures are in it.</p>\n"
            .to_owned(),
    ));
    section
}
