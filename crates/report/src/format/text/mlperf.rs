//! Lines about the rules of MLPerf Storage that a run kept or broke.

use gpuio_base::document::{Section, grouped, unique};
use gpuio_record::{FeedRule, JobPlan, JobResult, Record};

use super::{checkpoint, of_jobs};
use crate::workload::jobs;

/// The rules of MLPerf that were kept or broken, by jobs that are feeds and by checkpoints; a line
/// that several share is printed once. On the `screen` their numbers.
pub(super) fn of_mlperf(record: &Record, screen: bool) -> Section {
    let rules = if screen { numbers } else { rules };
    let feed = |(plan, job): (&JobPlan, &JobResult)| {
        job.feed.as_ref().map(|found| (plan.name.clone(), rules(&found.rules)))
    };
    let checkpoints = checkpoint::rules(record).map(|(name, all)| (name, rules(&all)));
    let all: Vec<(String, Vec<String>)> =
        jobs(record).filter_map(feed).chain(checkpoints).collect();
    let lines = all.iter().flat_map(|(name, lines)| lines.iter().map(|line| (line, &**name)));
    let lines: Vec<(String, String)> = grouped(lines)
        .into_iter()
        .map(|(line, names)| match names.len() > 1 && names.len() == all.len() {
            true => ("all".to_owned(), line.clone()),
            false => (names.join(", "), line.clone()),
        })
        .collect();
    let lines = lines.iter().map(|(names, line)| (&**names, line.clone()));
    of_jobs(record, "rules of MLPerf Storage:", lines)
}

/// Findings of one rule. Those that end with the same flag, `key=value (--try)`, share it.
fn joined(found: &[&str]) -> String {
    let parts = found.iter().map(|one| match one.rsplit_once(" (") {
        Some((what, flag)) if found.len() > 1 => (flag.trim_end_matches(')'), what),
        _ => ("", *one),
    });
    let by_flag = grouped(parts).into_iter().map(|(flag, what)| match flag {
        "" => what.join(", "),
        flag => format!("{flag}: {}", what.join(", ")),
    });
    by_flag.collect::<Vec<_>>().join("; ")
}

/// How many of the rules were kept.
fn numbers(rules: &[FeedRule]) -> Vec<String> {
    let parts = [(Some(false), "broken"), (None, "unknown"), (Some(true), "kept")];
    let counted = parts.map(|(kept, word)| {
        let all = unique(rules.iter().filter(|rule| rule.kept == kept).map(|rule| &*rule.rule));
        (all.len(), word)
    });
    let [broken, unknown, kept] = counted.map(|(rules, _)| rules);
    let counted = counted.iter().filter(|(rules, _)| *rules > 0);
    let counted: Vec<String> = counted.map(|(rules, word)| format!("{rules} {word}")).collect();
    match (rules.is_empty(), broken + unknown) {
        (true, _) => Vec::new(),
        (false, 0) => vec![format!("all {kept} kept")],
        _ => vec![format!("{}: no result of MLPerf's", counted.join(", "))],
    }
}

/// The rules of MLPerf Storage that this run did not keep, each once.
fn rules(rules: &[FeedRule]) -> Vec<String> {
    let others = rules.iter().filter(|rule| rule.kept != Some(true));
    let others = grouped(others.map(|rule| ((rule.kept, rule.rule.as_str()), &*rule.found)));
    let words = |((kept, rule), found): ((Option<bool>, &str), Vec<&str>)| {
        let how = if kept.is_some() { "broken" } else { "unknown" };
        format!("MLPerf rule {how}: {rule} ({})", joined(&found))
    };
    let mut lines: Vec<String> = others.into_iter().map(words).collect();
    let kept: Vec<&str> = rules
        .iter()
        .filter(|rule| rule.kept == Some(true))
        .map(|rule| rule.rule.as_str())
        .collect();
    if !kept.is_empty() {
        lines.push(format!("MLPerf rules kept: {}", kept.join("; ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_broken_in_several_ways_is_one_line() {
        let broken = |rule: &str, found: &str| FeedRule {
            rule: rule.to_owned(),
            found: found.to_owned(),
            kept: Some(false),
        };
        let (parameters, data) = ("the parameters of a workload of MLPerf's", "the whole data set");
        let all = [
            broken(parameters, "epochs=1 (--try)"),
            broken(parameters, "readers=2 (--try)"),
            broken(data, "scale 0.1: 1 of 10 files (of mine)"),
            broken(parameters, "seed=3 (--seed)"),
        ];
        let lines = [
            "MLPerf rule broken: the parameters of a workload of MLPerf's (--try: epochs=1, \
             readers=2; --seed: seed=3)",
            "MLPerf rule broken: the whole data set (scale 0.1: 1 of 10 files (of mine))",
        ];
        assert_eq!(rules(&all), lines);
    }
}
