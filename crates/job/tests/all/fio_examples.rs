//! docs/lab-book/fio-examples.md says of each of fio's example files whether it runs, and
//! fio-files.md of job files from public repositories: held against the options of each file.

use std::collections::BTreeMap;
use std::path::Path;

use gpuio_job::spec::{JobSpec, Origin, Status, apply, find};

/// Files of the page: name, and the option that is refused, if one is.
fn page(name: &str) -> BTreeMap<String, Option<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab-book").join(name);
    let text = std::fs::read_to_string(page).unwrap();
    // A later table holds amounts against fio's.
    let (outcomes, _) = text.split_once("\n### Amounts").unwrap_or((&text, ""));
    let rows = outcomes.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let refused = (cells[2] == "refused").then(|| cells[3].to_owned());
        assert!(refused.is_some() || cells[2] == "runs", "{row}");
        assert!(refused.is_none() || cells[4].len() > 10, "no reason: {row}");
        (cells[1].to_owned(), refused)
    })
    .collect()
}

/// Why an option is refused as such; nothing where a job file may hold it.
fn refusal(option: &str) -> Option<String> {
    // A target that is no file is known on the machine only.
    if matches!(option, "filename=/dev/null" | "filename=/dev/zero") {
        return Some("no storage".to_owned());
    }
    let (key, value) = option.split_once('=').unwrap_or((option, ""));
    let found = find(key)?;
    match found.status {
        Status::Known { why, .. } => Some(why.to_owned()),
        Status::NoEffect { .. } => None,
        Status::Supported(_) if value.is_empty() => None,
        Status::Supported(_) => {
            let set = apply(&mut JobSpec::new("a"), key, value, Origin::Flag("--x"));
            set.err().map(|error| error.to_string())
        }
    }
}

/// Lines of `list` are `NAME: OPTIONS`, facts about a file.
fn held_against(page_name: &str, list: &str) {
    let mut page = page(page_name);
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let (name, options) = line.split_once(": ").unwrap();
        let listed = page.remove(name).unwrap_or_else(|| panic!("{name} is not on the page"));
        let options: Vec<&str> = options.split(' ').collect();
        for option in &options {
            let key = option.split('=').next().unwrap();
            assert!(find(key).is_some(), "{name}: '{key}' is an option of fio's and not known");
        }
        let refused: Vec<&&str> =
            options.iter().filter(|option| refusal(option).is_some()).collect();
        match listed {
            None => assert!(refused.is_empty(), "{name} does not run: {refused:?}"),
            Some(by) => assert!(refused.contains(&&by.as_str()), "{name}: {by} is not refused"),
        }
    }
    assert!(page.is_empty(), "not in the list: {page:?}");
}

#[test]
fn each_example_of_fios_runs_or_is_refused_as_the_page_says() {
    held_against("fio-examples.md", include_str!("../fixtures/fio_examples.txt"));
}

#[test]
fn each_file_of_a_public_repository_runs_or_is_refused_as_the_page_says() {
    let list = include_str!("../fixtures/fio_files.txt");
    held_against("fio-files.md", list);
    let files = page("fio-files.md");
    let run = files.values().filter(|refused| refused.is_none()).count();
    assert!(files.len() == 60 && run >= 54, "{run} of {}", files.len());
}
