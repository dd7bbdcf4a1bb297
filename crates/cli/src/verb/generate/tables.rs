//! Pages of the reference that are a table each: figures of drives and network cards, keys of
//! cuFile's configuration, columns of CSV, what comparisons refuse, texts that are read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gpuio_machine::flow::Figures;
use gpuio_report::compare::{ASPECTS, Kind};

pub(super) fn figures() -> String {
    format!(
        "# Figures of drives and network cards\n\n\
         The figures that the [expectation](../expectation.md#figures) takes from its built-in \
         tables, and where they are from. `*` in a model stands for any characters.\n\n\
         *Confirmed* says whether somebody read the figures in a published page: *yes* (the source \
         is a link to that page, of the maker, a reviewer, a dealer or a copy), *yes, not linked* \
         (a document is named, its address was not kept), *all but …* (only the others are on that \
         page), *no* (the figures were written down without the document, which is named as the \
         one that should have them). The words beside an expectation say the same. Better figures: \
         your own with `--spec`, or an issue with the address of a page.\n\n{}",
        drives_and_cards()
    )
}

/// How far the figures of an entry are confirmed.
fn confirmed(source: &str, page: &str) -> String {
    let estimate = source.strip_prefix("estimate, ").unwrap_or_default();
    if estimate.contains("not confirmed by a document") {
        return "no".to_owned();
    }
    if let Some((_, rest)) = estimate.split_once("; not confirmed: ") {
        let what = rest.split_once(": ").map_or(rest, |(what, _)| what);
        return format!("all but {what}").replace("all but all but", "only");
    }
    if page.is_empty() { "yes, not linked".to_owned() } else { "yes".to_owned() }
}

/// The source without the mark of an estimate and without its host, as a link where it has a page.
fn linked(source: &str, page: &str) -> String {
    let name = source.strip_prefix("estimate, ").map_or(source, |rest| {
        let rest = rest.split_once("not confirmed: ").map_or(rest, |(_, rest)| rest);
        rest.split_once(": ").map_or(rest, |(_, name)| name)
    });
    let name = name.replace('|', "/");
    if page.is_empty() {
        return name;
    }
    let name = name.rsplit_once(", ").map_or(name.as_str(), |(name, _)| name);
    format!("[{name}]({page})")
}

/// Drives and cards in the order of the files, and how many are confirmed.
fn drives_and_cards() -> String {
    let figures = Figures::built_in();
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut count = |confirmed: &str| {
        let kinds = ["yes", "yes, not linked", "no"];
        let kind = kinds.into_iter().find(|kind| *kind == confirmed).unwrap_or("in part");
        *counts.entry(kind).or_default() += 1;
    };
    let rate =
        |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{:.2} GB/s", rate / 1e9));
    let ios = |ios: Option<f64>| ios.map_or("-".to_owned(), |ios| format!("{:.0} k", ios / 1e3));
    let mut drives = "| Drive | Reads | Writes | Reads of 4 KiB per second | Writes of 4 KiB per \
                      second | Confirmed | Source |\n| --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for drive in figures.drives() {
        let confirmed = confirmed(&drive.source, &drive.page);
        count(&confirmed);
        let _ = writeln!(
            drives,
            "| `{}` | {} | {} | {} | {} | {confirmed} | {} |",
            drive.matches,
            rate(drive.read),
            rate(drive.write),
            ios(drive.read_iops),
            ios(drive.write_iops),
            linked(&drive.source, &drive.page)
        );
    }
    let mut nics =
        "| Card | Fastest port | Confirmed | Source |\n| --- | --- | --- | --- |\n".to_owned();
    for nic in figures.nics() {
        let confirmed = confirmed(&nic.source, &nic.page);
        count(&confirmed);
        let gigabits = nic.megabits as f64 / 1e3;
        let source = linked(&nic.source, &nic.page);
        let _ = writeln!(nics, "| `{}` | {gigabits} Gb/s | {confirmed} | {source} |", nic.matches);
    }
    let of = |kind: &str| counts.get(kind).copied().unwrap_or(0);
    format!(
        "**{} entries: {} confirmed, with a link; {} confirmed, not linked; {} confirmed in part; \
         {} not confirmed.**\n\n## Drives\n\n{drives}\n## Network cards\n\n{nics}",
        figures.drives().len() + figures.nics().len(),
        of("yes"),
        of("yes, not linked"),
        of("in part"),
        of("no")
    )
}

pub(super) fn cufile_keys() -> String {
    format!(
        "# Keys of cuFile's configuration\n\n`gpuio check` (rule `cufile-json`) checks cuFile's \
         configuration against this table; [what the columns \
         mean](../check.md#cufiles-configuration).\n\n{}",
        gpuio_base::cufilejson::markdown_table()
    )
}

pub(super) fn csv_columns() -> String {
    let mut page = "# Columns of CSV\n\nThe columns of `--format csv`, in their order; [what the \
                    figures mean](../formats.md#meaning-of-the-figures).\n\n\
                    | Column | Meaning |\n| --- | --- |\n"
        .to_owned();
    for column in gpuio_report::format::csv::columns(&[]) {
        let _ = writeln!(page, "| `{}` | {} |", column.name, column.meaning);
    }
    page
}

pub(super) fn comparisons() -> String {
    let mut page =
        "# Comparisons that are refused\n\nA difference in one of these decides the figures, \
                    and `gpuio compare` [refuses it](../compare.md#refused-comparisons) unless a \
                    flag permits it; without a flag it is shown.\n\n\
                    | Key | What | Lets it differ |\n| --- | --- | --- |\n"
            .to_owned();
    for aspect in ASPECTS {
        let flag = match aspect.kind {
            Kind::Note => "-".to_owned(),
            _ => format!("`--despite {}`", aspect.flag),
        };
        let _ = writeln!(page, "| `{}` | {} | {flag} |", aspect.key, aspect.what);
    }
    page
}

pub(super) fn texts() -> String {
    let mut page = "# Texts that are read\n\nOutput of these commands, and these files, as \
                    [`--from`](../machines.md) takes them.\n\n\
                    | Text | Gives |\n| --- | --- |\n"
        .to_owned();
    for kind in &gpuio_capture::KINDS {
        let _ = writeln!(page, "| `{}` | {} |", kind.command, kind.gives);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(page: &str) -> usize {
        page.lines().filter(|line| line.starts_with("| `")).count()
    }

    #[test]
    fn each_figure_has_a_row_with_its_source() {
        let page = figures();
        let built_in = Figures::built_in();
        let entries = built_in.drives().len() + built_in.nics().len();
        assert_eq!(rows(&page), entries);
        assert!(page.contains(&format!("**{entries} entries: ")), "{page}");
        let micron = "| `Micron_9200*` | 3.50 GB/s | 3.50 GB/s | 840 k | 285 k | yes, not linked | \
                      Micron 9200 NVMe SSDs data sheet, the best of its capacities |";
        assert!(page.contains(micron), "{page}");
        let empty = page.lines().filter(|line| line.ends_with("|  |") || line.contains("[]("));
        assert_eq!(empty.count(), 0, "{page}");
    }

    #[test]
    fn each_key_and_each_column_has_a_row() {
        let page = cufile_keys();
        assert_eq!(rows(&page), gpuio_base::cufilejson::KEYS.len());
        assert!(page.contains(
            "| `properties.gpu_bounce_buffer_slab_config.slab_count` | list of numbers from 1 | \
             `[128, 8, 4, 2]` | since 1.17 |\n"
        ));
        let page = csv_columns();
        assert_eq!(rows(&page), gpuio_report::format::csv::columns(&[]).len());
        assert!(page.contains("| `job` | name of the job |\n"), "{page}");
        let page = comparisons();
        assert_eq!(rows(&page), ASPECTS.len());
        for row in ["| `bs` | block size | `--despite load` |\n", "| `tool` | tool | - |\n"] {
            assert!(page.contains(row), "{page}");
        }
    }
}
