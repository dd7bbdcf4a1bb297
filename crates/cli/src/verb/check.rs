//! `gpuio check`: what is wrong with a machine for I/O between storage and GPUs.

use std::process::ExitCode;

use crate::args::Check;
use crate::captured;
use crate::failure::Failure;
use crate::output;
use crate::ui::terminal_width;
use gpuio_check::{Finding, RULES, Rule, Severity, json, text};

pub(crate) fn run(check: &Check) -> Result<ExitCode, Failure> {
    let width = usize::from(terminal_width());
    if let Some(name) = &check.explain {
        output::put(&text::explain(find("--explain", name)?, width))?;
        return Ok(ExitCode::SUCCESS);
    }
    let json = match check.format.as_deref().unwrap_or("text") {
        "text" => false,
        "json" => true,
        other => {
            return Err(Failure::Usage(format!("--format {other}: formats are text, json")));
        }
    };
    let rules = rules(check)?;
    let machine = gpuio_load::machine::read(&captured::root(check.from.as_deref())?);
    let findings = gpuio_check::check(&machine, &rules);
    output::put(&if json { json::render(&findings) } else { text::render(&findings, width) })?;
    let failed = |finding: &Finding| finding.severity == Severity::Fail;
    Ok(if findings.iter().any(failed) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// The rules that were asked for, in the order in which they run.
fn rules(check: &Check) -> Result<Vec<&'static Rule>, Failure> {
    let only = names("--only", &check.only)?;
    let skip = names("--skip", &check.skip)?;
    let wanted =
        |rule: &&Rule| (only.is_empty() || only.contains(&rule.name)) && !skip.contains(&rule.name);
    let rules: Vec<&Rule> = RULES.iter().filter(wanted).collect();
    if rules.is_empty() {
        return Err(Failure::Usage("--only and --skip leave no rule".to_owned()));
    }
    Ok(rules)
}

/// The names behind a flag, each one of a rule.
fn names(flag: &str, given: &[String]) -> Result<Vec<&'static str>, Failure> {
    given.iter().map(|name| find(flag, name).map(|rule| rule.name)).collect()
}

fn find(flag: &str, name: &str) -> Result<&'static Rule, Failure> {
    gpuio_check::find(name).ok_or_else(|| {
        let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        Failure::Usage(format!("{flag} {name}: rules are {}", known.join(", ")))
    })
}
