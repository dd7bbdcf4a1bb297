//! `gpuio explain`: what a warning of a run or a rule of `check` means, by its name.

use std::process::ExitCode;

use gpuio_base::units::paragraph;
use gpuio_machine::check::{RULES, text};
use gpuio_record::{WarningAbout, warning_kinds};

use crate::args::Explain;
use crate::failure::Failure;
use crate::output;
use crate::ui::terminal_width;

pub(crate) fn run(args: &Explain) -> Result<ExitCode, Failure> {
    let width = usize::from(terminal_width());
    let text = match &args.name {
        None => list(width),
        Some(name) => about(name, width)?,
    };
    output::put(text.trim_end()).map(|()| ExitCode::SUCCESS)
}

/// Names have `_` in records and `-` in `check`; both are understood.
fn about(name: &str, width: usize) -> Result<String, Failure> {
    let plain = |name: &str| name.trim_matches(['[', ']']).to_lowercase().replace('_', "-");
    let wanted = plain(name);
    if let Some(rule) = RULES.iter().find(|rule| plain(rule.name) == wanted) {
        return Ok(text::explain(rule, width));
    }
    let kind = warning_kinds().into_iter().find(|kind| plain(&kind.id) == wanted);
    kind.map(|kind| warning(&kind, width)).ok_or_else(|| {
        Failure::Usage(format!(
            "{name}: no warning and no rule of check has this name; gpuio explain lists them"
        ))
    })
}

fn warning(kind: &WarningAbout, width: usize) -> String {
    let hanging = |head: &str, text: &str| paragraph(head, head.chars().count(), text, width);
    let mut out = hanging(&format!("{}: ", kind.id), &kind.meaning);
    out.push_str(&hanging("  for example: ", &kind.example));
    for (nth, (field, meaning)) in kind.fields.iter().enumerate() {
        let head = if nth == 0 { "  in records:  " } else { "               " };
        out.push_str(&hanging(head, &format!("{field}: {meaning}")));
    }
    out
}

fn list(width: usize) -> String {
    let kinds = warning_kinds();
    let warnings = kinds.iter().map(|kind| (kind.id.as_str(), kind.meaning.as_str()));
    let rules = RULES.iter().map(|rule| (rule.name, rule.question));
    let all: Vec<(&str, &str)> = warnings.chain(rules).collect();
    let column = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = "Warnings of runs:\n".to_owned();
    for (nth, (name, meaning)) in all.iter().enumerate() {
        if nth == kinds.len() {
            out.push_str("\nRules of gpuio check:\n");
        }
        out.push_str(&paragraph(&format!("  {name:column$}  "), column + 4, meaning, width));
    }
    out
}
