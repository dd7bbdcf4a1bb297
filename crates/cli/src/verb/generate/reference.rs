//! Pages of the reference: commands, keys of job files, checks, exit codes.

use std::fmt::Write as _;

use gpuio_check::RULES;
use gpuio_spec::{Key, Status, keys};

use super::{Page, command};

/// Columns of a help text on a page.
const WIDTH: usize = 100;

pub(super) fn pages() -> Vec<Page> {
    let mut pages = vec![
        ("commands.md".to_owned(), commands().into_bytes()),
        ("keys.md".to_owned(), job_keys().into_bytes()),
        ("checks.md".to_owned(), checks().into_bytes()),
    ];
    let rules = RULES.iter().map(|rule| {
        let page = format!(
            "# Check `{}`\n\n{}\n\n**Why it matters.** {}\n\n**What to do.** {}\n\n\
             **Source.** {}\n\n```sh\ngpuio check --only {}\n```\n",
            rule.name, rule.question, rule.why, rule.fix, rule.source, rule.name
        );
        (format!("check-{}.md", rule.name), page.into_bytes())
    });
    pages.extend(rules);
    pages
}

fn commands() -> String {
    let command = command();
    let mut page = "# Commands\n\nWhat `gpuio --help` and `gpuio VERB --help` print.\n".to_owned();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let own = std::iter::once(command.clone());
    for mut verb in own.chain(verbs.filter(|verb| verb.get_name() != "help").cloned()) {
        let name = match verb.get_name() {
            "gpuio" => "gpuio".to_owned(),
            name => format!("gpuio {name}"),
        };
        verb = verb.bin_name(&name).term_width(WIDTH);
        let help = verb.render_long_help().to_string();
        let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    }
    page
}

/// In a table a bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn job_keys() -> String {
    let mut page = "# Keys of job files\n\nThe syntax, and what the keys mean together, are in \
                    [job files](../job-file.md).\n\n| Key | From | What it does |\n\
                    | --- | --- | --- |\n"
        .to_owned();
    let mut all: Vec<&Key> = keys().collect();
    all.sort_by_key(|key| (key.name, key.dialect.name()));
    for key in all {
        let what = match key.status {
            Status::Supported(_) => key.summary.to_owned(),
            Status::NoEffect { why } => format!("{} Accepted without effect: {why}", key.summary),
            Status::Known { why, instead } => format!("Refused: {why}. Instead: {instead}"),
        };
        let others: String = key.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
        let _ = writeln!(
            page,
            "| `{}`{others} | {} | {} |",
            key.name,
            key.dialect.name(),
            cell(what.trim())
        );
    }
    page
}

fn checks() -> String {
    let mut page = "# Checks\n\nThe rules of [`gpuio check`](../check.md), by name. `gpuio check \
                    --explain NAME` prints the same.\n\n| Check | Question |\n| --- | --- |\n"
        .to_owned();
    for rule in RULES {
        let name = rule.name;
        let _ = writeln!(page, "| [`{name}`](check-{name}.md) | {} |", cell(rule.question));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_and_each_verb_has_its_place() {
        let pages = pages();
        assert_eq!(pages.len(), RULES.len() + 3);
        let commands = commands();
        for verb in ["bench", "check", "exec", "gdsio", "why"] {
            assert!(commands.contains(&format!("\n## gpuio {verb}\n")), "{verb}");
        }
        assert!(!commands.contains("gpuio generate"), "it is for packages");
        let keys = job_keys();
        assert!(keys.contains("\n| `bs`"), "{keys}");
        let rows = keys.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, gpuio_spec::keys().count());
    }
}
