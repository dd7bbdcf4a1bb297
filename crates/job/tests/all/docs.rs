//! docs/job-file.md holds the table of keys as the crate prints it.

use std::path::Path;

use gpuio_job::spec::markdown_table;

const BEGIN: &str = "<!-- keys: begin -->\n";
const END: &str = "<!-- keys: end -->\n";

#[test]
fn the_documented_keys_are_the_keys() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-file.md");
    let text = std::fs::read_to_string(page).unwrap();
    let begin = text.find(BEGIN).unwrap() + BEGIN.len();
    let end = text.find(END).unwrap();
    let table = markdown_table();
    for (line, (documented, printed)) in text[begin..end].lines().zip(table.lines()).enumerate() {
        assert_eq!(documented, printed, "line {line} of the tables in docs/job-file.md");
    }
    assert!(
        text[begin..end] == table,
        "the tables in docs/job-file.md are too long or too short; what belongs between the \
         markers is printed by `cargo run -p gpuio-job --example keys`"
    );
}
