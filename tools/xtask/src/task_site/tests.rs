use super::*;

fn pages(of: &[(&str, &str)]) -> Pages {
    of.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn links_lead_to_pages_headings_and_files() {
    let good = pages(&[
        ("SUMMARY.md", "[A](a.md)\n- [B](b/c.md)\n"),
        ("a.md", "# A\n[b](b/c.md#the-2nd-one-1) [x](x.svg) [w](https://none.example/)\n"),
        ("b/c.md", "## The `2nd` one\n```\n# no [x](none.md)\n```\n## The 2nd one\n[a](../a.md#a)"),
    ]);
    assert_eq!(links::check(&good, &|path| path == "x.svg"), Vec::<String>::new());
    let bad = pages(&[
        ("SUMMARY.md", "[A](a.md)\n"),
        ("a.md", "# A\n[b](none.md) [c](#b) [d](c.md#no) `[e](none.md)`\n"),
        ("c.md", "# C\n"),
    ]);
    assert_eq!(
        links::check(&bad, &|_| false),
        [
            "a.md: none.md leads to no page",
            "a.md: a.md has no heading #b",
            "a.md: c.md has no heading #no",
            "SUMMARY.md: c.md is not listed",
        ]
    );
}

#[test]
fn generated_pages_get_their_place_in_the_contents() {
    let generated = pages(&[
        ("reference/commands.md", "# Commands\n"),
        ("reference/keys.md", "# Keys\n"),
        ("reference/csv-columns.md", "# Columns of CSV\n"),
        ("reference/comparisons.md", "# Comparisons\n"),
        ("reference/cufile-keys.md", "# Keys of cuFile's configuration\n"),
        ("reference/figures.md", "# Figures\n"),
        ("reference/texts.md", "# Texts\n"),
        ("reference/metrics.md", "# Metrics\n"),
        ("reference/variables.md", "# Environment variables\n"),
        ("reference/exit-codes.md", "# Exit codes\n"),
        ("reference/checks.md", "# Checks\n"),
        ("reference/check-acs.md", "# Check `acs`\n"),
        ("reference/warnings.md", "# Warnings\n"),
        ("lab-book/fio.md", "# Against fio\n"),
    ]);
    let contents = contents_with("<!-- reference -->\n<!-- outside -->\n", &generated).unwrap();
    assert!(
        contents.contains(
            "- [Checks](reference/checks.md)\n  - [Check `acs`](reference/check-acs.md)\n"
        )
    );
    assert!(
        contents.ends_with(
            "- [Examples](examples.md)\n\
             - [Benchmarks](benchmarks.md)\n  - [Against fio](lab-book/fio.md)\n\
             - [Changes](changelog.md)\n- [Contributing](contributing.md)\n\
             - [Architecture](architecture.md)\n"
        ),
        "{contents}"
    );
    assert!(contents_with("", &generated).is_err());
}

#[test]
fn links_to_pages_of_the_root_lead_into_the_book() {
    let page = "[a](../BENCHMARKS.md#b) [c](../CONTRIBUTING.md)";
    assert_eq!(linked(page, "../", ""), "[a](benchmarks.md#b) [c](contributing.md)");
    let page = "[a](../../BENCHMARKS.md) [b](../paths.md)";
    assert_eq!(linked(page, "../../", "../"), "[a](../benchmarks.md) [b](../paths.md)");
}
