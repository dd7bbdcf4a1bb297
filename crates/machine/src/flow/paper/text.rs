//! The answer as text.

use gpuio_base::document::{Cell, Columns, Document, List, Look, Section};
use gpuio_base::units::{human_decimal_rate, human_ns};
use gpuio_record::Expected;

use crate::flow::uncounted_depth;

use super::{Answer, JobAnswer, Scaled, TierAnswer};

/// The answer for people: the tiers of each job with what each allows and how much of it is used,
/// what to expect and where the bottleneck is, and a table over numbers of storage nodes.
pub fn document(answer: &Answer) -> Document {
    let mut page = Document::new("Expected performance");
    if answer.jobs.len() > 1 {
        page.begin("", "").paragraph(format!(
            "{} jobs at once, which share the parts: {}, all jobs together. A job's own rate needs \
             a file with this [job] alone.",
            answer.jobs.len(),
            rate_text(&answer.total)
        ));
    }
    for job in &answer.jobs {
        page.push(of_job(job));
    }
    let all = page.begin("", "");
    let rate = |one: &Scaled| match (one.total.bytes_per_s, one.total.at_most) {
        (Some(rate), _) => Cell::decimal_rate(rate),
        (None, Some(most)) => format!("≤ {}", human_decimal_rate(most)).into(),
        (None, None) => "unknown".into(),
    };
    let by_clients = answer.scale.iter().any(|one| one.clients.is_some());
    let table = Columns::<Scaled>::new()
        .when(by_clients, |columns| columns.figures("clients", |one| one.clients))
        .figures("nodes", |one| one.nodes)
        .figures("expected", rate)
        .words("bottleneck", |one| one.total.bottleneck.clone().unwrap_or_default());
    all.table(table.table("storage nodes", &answer.scale).look(Look::RuledBy(0)));
    page
}

fn of_job(job: &JobAnswer) -> Section {
    let mut section = Section::new("", format!("{}: {}", job.name, job.what));
    let table = Columns::<TierAnswer>::new()
        .words("tier", |tier| tier.name.clone())
        .figures("allows", |tier| Cell::decimal_rate(tier.allows_bytes_per_s))
        .figures("used", |tier| Cell::percent(tier.used * 100.0, 0))
        .words("figure", |tier| tier.figure.clone());
    section.table(table.table("tiers", &job.tiers).look(Look::RuledBy(2)));
    let expected = &job.expected;
    let bottleneck = expected.bottleneck.iter().map(|part| format!("bottleneck: {part}"));
    let unknown = expected.unknown.iter().map(|why| format!("unknown: {why}"));
    let floor = expected.latency_floor_ns;
    let floor = floor.map(|floor| format!("latency: {} at least", human_ns(floor)));
    let not_counted = uncounted_depth(expected).filter(|_| expected.unknown.is_none());
    let not_counted = not_counted.map(str::to_owned);
    let lines = [rate_text(expected)].into_iter().chain(bottleneck).chain(unknown);
    let lines = lines.chain(not_counted).chain(floor);
    section.list(List::of(2, lines));
    section
}

/// `expected 57.4 GB/s (109 k I/Os per second)`.
fn rate_text(expected: &Expected) -> String {
    match (expected.bytes_per_s, expected.at_most) {
        (Some(rate), _) => {
            let ios = expected
                .iops
                .map(|iops| format!(" ({} I/Os per second)", gpuio_base::units::human_count(iops)));
            let rate = human_decimal_rate(rate);
            format!("expected {rate}{}", ios.unwrap_or_default())
        }
        (None, Some(most)) => {
            format!("at most {}", human_decimal_rate(most))
        }
        (None, None) => "expected: unknown".to_owned(),
    }
}
