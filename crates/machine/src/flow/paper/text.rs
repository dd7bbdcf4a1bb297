//! The answer as text.

use std::fmt::Write;

use gpuio_record::Expected;
use gpuio_table::{Grid, figures, words};

use super::{Answer, JobAnswer, Scaled, TierAnswer};

/// The answer for people: the tiers of each job with what each allows and how much of it is used,
/// what to expect and where the bottleneck is, and a table over numbers of storage nodes.
#[must_use]
pub fn text(answer: &Answer) -> String {
    let mut out = String::new();
    for job in &answer.jobs {
        job_text(&mut out, job);
    }
    if answer.jobs.len() > 1 {
        let _ = writeln!(out, "all jobs together: {}", rate_text(&answer.total));
    }
    if !answer.scale.is_empty() {
        let by_clients = answer.scale.iter().any(|one| one.clients.is_some());
        let mut columns = vec![figures("nodes"), figures("expected"), words("bottleneck")];
        if by_clients {
            columns.insert(0, figures("clients"));
        }
        let row = |one: &Scaled| {
            let total = &one.total;
            let rate = match (total.bytes_per_s, total.at_most) {
                (Some(rate), _) => gpuio_base::units::human_decimal_rate(rate),
                (None, Some(most)) => format!("≤ {}", gpuio_base::units::human_decimal_rate(most)),
                (None, None) => "unknown".to_owned(),
            };
            let clients = one.clients.map(|clients| clients.to_string());
            let bottleneck = total.bottleneck.clone().unwrap_or_default();
            clients.into_iter().chain([one.nodes.to_string(), rate, bottleneck]).collect()
        };
        let rows = answer.scale.iter().map(row).collect();
        out.push_str(&Grid { columns, rows }.at_any_width(u16::MAX));
    }
    out
}

fn job_text(out: &mut String, job: &JobAnswer) {
    let _ = writeln!(out, "{}: {}", job.name, job.what);
    let columns = vec![words("tier"), figures("allows"), figures("used"), words("figure")];
    let row = |tier: &TierAnswer| {
        let allows = gpuio_base::units::human_decimal_rate(tier.allows_bytes_per_s);
        let used = format!("{:.0} %", tier.used * 100.0);
        vec![tier.name.clone(), allows, used, tier.figure.clone()]
    };
    let rows = job.tiers.iter().map(row).collect();
    for line in (Grid { columns, rows }).at_any_width(u16::MAX).lines() {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(out, "  {}", rate_text(&job.expected));
    if let Some(bottleneck) = &job.expected.bottleneck {
        let _ = writeln!(out, "  bottleneck: {bottleneck}");
    }
    if let Some(why) = &job.expected.unknown {
        let _ = writeln!(out, "  unknown: {why}");
    }
    if let Some(floor) = job.expected.latency_floor_ns {
        let _ = writeln!(out, "  latency: {} at least", gpuio_base::units::human_ns(floor));
    }
    out.push('\n');
}

/// `expected 57.4 GB/s (109 k I/Os per second)`.
fn rate_text(expected: &Expected) -> String {
    match (expected.bytes_per_s, expected.at_most) {
        (Some(rate), _) => {
            let ios = expected
                .iops
                .map(|iops| format!(" ({} I/Os per second)", gpuio_base::units::human_count(iops)));
            let rate = gpuio_base::units::human_decimal_rate(rate);
            format!("expected {rate}{}", ios.unwrap_or_default())
        }
        (None, Some(most)) => {
            format!("at most {}", gpuio_base::units::human_decimal_rate(most))
        }
        (None, None) => "expected: unknown".to_owned(),
    }
}
