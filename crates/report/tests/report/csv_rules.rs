//! CSV: quoting, and one row per job and direction.

use crate::records;

use gpuio_report::find;
use gpuio_report::format::TEXT_WIDTH;
use gpuio_report::format::csv::columns;
use gpuio_report::format::text::Show;

/// A reader of RFC 4180, for this test only.
fn read(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => row.last_mut().unwrap().push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            c => row.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted, "a quote is open at the end");
    assert_eq!(rows.pop(), Some(vec![String::new()]), "the last line ends");
    rows
}

fn cell<'a>(rows: &'a [Vec<String>], row: usize, name: &str) -> &'a str {
    let place = rows[0].iter().position(|column| column == name).unwrap();
    &rows[row][place]
}

#[test]
fn one_row_per_job_and_direction_and_every_row_is_whole() {
    let render = |record| (find("csv").unwrap().render)(record, TEXT_WIDTH, Show::default());
    let rows = read(&render(&records::host_quick()));
    assert_eq!(rows.len(), 1 + 5, "four jobs, one of them mixed");
    assert!(rows.iter().all(|row| row.len() == columns(&[]).len() + 1));
    assert_eq!(cell(&rows, 4, "direction"), "read");
    assert_eq!(cell(&rows, 5, "direction"), "write");
    assert_eq!(cell(&rows, 5, "rw"), "randrw");
    assert_eq!(cell(&rows, 5, "ios"), "8777");
    assert_eq!(cell(&rows, 1, "gpu_p50_ns"), "");
    assert_eq!(cell(&rows, 1, "warnings"), "split_by_block_layer");
    assert_eq!(cell(&rows, 2, "warnings"), "");
}

#[test]
fn quotes_and_commas_survive_and_line_feeds_are_shown() {
    let render = |record| (find("csv").unwrap().render)(record, TEXT_WIDTH, Show::default());
    let mut record = records::staged_in_trouble();
    record.plan.jobs[0].name = "a \"b\",\nc".to_owned();
    let rows = read(&render(&record));
    assert_eq!(cell(&rows, 1, "job"), "a \"b\",\\nc");
    assert_eq!(cell(&rows, 1, "verify_bad_blocks"), "3");
    assert_eq!(cell(&rows, 1, "verify_complete"), "0");
    assert_eq!(cell(&rows, 1, "gpus"), "0 1");
    assert_eq!(cell(&rows, 2, "job"), "to storage, \"fast\"");
    assert_eq!(cell(&rows, 2, "ended"), "interrupted");
}

#[test]
fn column_names_are_distinct_plain_words() {
    let columns = columns(&[]);
    for (nth, column) in columns.iter().enumerate() {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(column.name.chars().all(plain), "{}", column.name);
        assert!(columns[..nth].iter().all(|other| other.name != column.name), "{}", column.name);
        assert!(!column.meaning.is_empty());
    }
}
