//! Pages of the reference: commands, keys of job files, metrics, variables, exit codes, checks,
//! warnings, and the tables of `tables`.

use std::fmt::Write as _;

use gpuio_machine::check::RULES;
use gpuio_record::{WarningAbout, warning_kinds};

use super::variables::{DRIVER, LIBRARY, PROGRAM};
use super::{Page, command, tables};
use crate::failure::EXIT_CODES;
use crate::settings;

/// Columns of a help text on a page.
const WIDTH: usize = 100;

pub(super) fn pages() -> Vec<Page> {
    let mut pages = vec![
        ("commands.md".to_owned(), commands().into_bytes()),
        ("keys.md".to_owned(), job_keys().into_bytes()),
        ("metrics.md".to_owned(), metrics().into_bytes()),
        ("variables.md".to_owned(), variables().into_bytes()),
        ("exit-codes.md".to_owned(), exit_codes().into_bytes()),
        ("csv-columns.md".to_owned(), tables::csv_columns().into_bytes()),
        ("comparisons.md".to_owned(), tables::comparisons().into_bytes()),
        ("cufile-keys.md".to_owned(), tables::cufile_keys().into_bytes()),
        ("figures.md".to_owned(), tables::figures().into_bytes()),
        ("checks.md".to_owned(), checks().into_bytes()),
        ("texts.md".to_owned(), tables::texts().into_bytes()),
    ];
    let rules = RULES.iter().map(|rule| {
        let page = format!(
            "# Check `{}`\n\n{}\n\n**Why it matters.** {}\n\n**Fix.** {}\n\n\
             **Source.** {}\n\n```sh\ngpuio check --only {}\n```\n",
            rule.name, rule.question, rule.why, rule.fix, rule.source, rule.name
        );
        (format!("check-{}.md", rule.name), page.into_bytes())
    });
    pages.extend(rules);
    let kinds = warning_kinds();
    pages.push(("warnings.md".to_owned(), warnings(&kinds).into_bytes()));
    let page =
        |kind: &WarningAbout| (format!("warning-{}.md", kind.id), warning(kind).into_bytes());
    pages.extend(kinds.iter().map(page));
    pages
}

fn commands() -> String {
    let command = command();
    let mut page = "# Commands\n\nOutput of `gpuio --help` and `gpuio VERB --help`.\n".to_owned();
    let verbs = command.get_subcommands();
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
    let tables = gpuio_job::spec::markdown_table();
    format!(
        "# Keys of job files\n\nThe syntax, and what the keys mean together, are in [job \
         files](../job-file.md).\n\n{tables}"
    )
}

/// Where metrics are from, and the metadata lines of their families.
fn expositions() -> [(&'static str, &'static str, String); 3] {
    [
        (
            "Runs and processes",
            "`gpuio bench --serve` (this run) and `gpuio stats --serve` (all processes on gpuio's \
             libraries). Labels: `pid`, `program`, `gpu`, `pci`, `path`, `engine`, and `direction` \
             of counters and latencies.",
            gpuio_watch::page::format::openmetrics::text(&[], 0),
        ),
        ("Devices", "`gpuio top --serve`. Label: `device`.", gpuio_watch::openmetrics::heads()),
        (
            "Records",
            "`gpuio report --format openmetrics`. Labels: `record_number`, and the axes on which \
             the rows differ; of ranks also `job`, `rank`, `host`, `local_rank` or `window`.",
            gpuio_report::set::openmetrics_heads(),
        ),
    ]
}

fn metrics() -> String {
    let mut page =
        "# Metrics\n\nNames in OpenMetrics text. A counter's samples end in `_total`, an \
                    info's in `_info`; a histogram has `_bucket`, `_sum` and `_count`, a summary \
                    quantiles, `_sum` and `_count`.\n"
            .to_owned();
    for (title, about, heads) in expositions() {
        let _ = write!(page, "\n## {title}\n\n{about}\n\n| Family | Type | Unit | Meaning |\n");
        page.push_str("| --- | --- | --- | --- |\n");
        let mut unit = "";
        let mut family = ("", "");
        for line in heads.lines() {
            let mut words = line.splitn(4, ' ').skip(1);
            let (what, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let rest = words.next().unwrap_or("");
            match what {
                "TYPE" => (family, unit) = ((name, rest), ""),
                "UNIT" => unit = rest,
                "HELP" => {
                    let (name, kind) = family;
                    let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {} |", cell(rest));
                }
                _ => {}
            }
        }
    }
    page
}

fn variables() -> String {
    let mut page =
        "# Environment variables\n\nHow they work together, and the configuration file: \
                    see [settings](../settings.md).\n\n## Defaults of flags\n\n\
                    | Variable | Flag | Verbs |\n| --- | --- | --- |\n"
            .to_owned();
    for (variable, flag, verbs) in settings::variables() {
        let _ = writeln!(page, "| `{variable}` | `--{flag}` | {verbs} |");
    }
    page.push_str("\n## Others\n\n| Variable | Read by | Effect |\n| --- | --- | --- |\n");
    for row in &PROGRAM {
        let names: Vec<String> = row.names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {} | {} | {} |", names.join(", "), row.read_by, row.effect);
    }
    page.push_str(
        "\n## gpuio's libcufile\n\nDefaults and details are in [cuFile programs](../cufile.md).\n\n\
         | Variable | Effect |\n| --- | --- |\n",
    );
    for (name, effect) in LIBRARY.iter().chain([&DRIVER]) {
        let _ = writeln!(page, "| `{name}` | {effect} |");
    }
    page
}

fn exit_codes() -> String {
    let mut page = "# Exit codes\n\n| Code | Meaning |\n| --- | --- |\n".to_owned();
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(page, "| {code} | {meaning} |");
    }
    page.push_str(
        "\n`exec` passes on the exit code of the program that it runs; 126: it can't be executed, \
         127: it does not exist.\n",
    );
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

fn warnings(kinds: &[WarningAbout]) -> String {
    let mut page = "# Warnings\n\nThe warnings of `gpuio bench`, by the names that records \
                    (`warnings`) and the column `warnings` of CSV have. `gpuio explain NAME` \
                    prints the same.\n\n| Warning | Meaning |\n| --- | --- |\n"
        .to_owned();
    for WarningAbout { id, meaning, .. } in kinds {
        let _ = writeln!(page, "| [`{id}`](warning-{id}.md) | {} |", cell(meaning));
    }
    page
}

fn warning(kind: &WarningAbout) -> String {
    let mut page = format!(
        "# Warning `{}`\n\n{}\n\n**Severity.** {}\n\n**For example.** {}\n\n**Ignore it if** \
         this holds: {}\n",
        kind.id,
        kind.meaning,
        kind.severity.meaning(),
        kind.example,
        kind.ignore_if
    );
    if !kind.fields.is_empty() {
        page.push_str("\n| Field in the record | Meaning |\n| --- | --- |\n");
    }
    for (field, meaning) in &kind.fields {
        let _ = writeln!(page, "| `{field}` | {} |", cell(meaning));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_and_each_verb_has_its_place() {
        let pages = pages();
        assert_eq!(pages.len(), RULES.len() + warning_kinds().len() + 12);
        let (_, holes) = pages.iter().find(|(name, _)| name == "warning-holes.md").unwrap();
        let holes = String::from_utf8_lossy(holes);
        assert!(holes.contains("| `hole_bytes` |") && holes.contains("--directory"), "{holes}");
        let commands = commands();
        for verb in ["bench", "check", "exec", "gdsio", "generate", "why"] {
            assert!(commands.contains(&format!("\n## gpuio {verb}\n")), "{verb}");
        }
        let keys = job_keys();
        assert!(keys.contains("\n| `bs`"), "{keys}");
        let rows = keys.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, gpuio_job::spec::keys().count());
    }

    #[test]
    fn each_variable_has_a_row() {
        let page = variables();
        for (variable, flag, _) in settings::variables() {
            assert!(page.contains(&format!("| `{variable}` | `--{flag}` | ")), "{variable}");
        }
        for row in &PROGRAM {
            let name = format!("`{}`", row.names[0]);
            assert!(page.contains(&format!("| {} | {} |", row.read_by, row.effect)), "{name}");
            assert!(page.contains(&name), "{name}");
        }
        for (name, effect) in LIBRARY.iter().chain([&DRIVER]) {
            assert!(page.contains(&format!("| `{name}` | {effect} |")), "{name}");
        }
    }

    #[test]
    fn each_family_has_a_row() {
        let page = metrics();
        let rows = page.lines().filter(|line| line.starts_with("| `gpuio_")).count();
        let families: usize = expositions()
            .iter()
            .map(|(.., heads)| heads.lines().filter(|line| line.starts_with("# TYPE")).count())
            .sum();
        assert_eq!(rows, families);
        for row in [
            "| `gpuio_io_bytes` | counter | bytes | Bytes of I/Os that completed in full. |",
            "| `gpuio_block_read_bytes` | counter | bytes |",
            "| `gpuio_rank_busy_cpus` | gauge | cpus |",
        ] {
            assert!(page.contains(row), "{row}\n{page}");
        }
    }
}
