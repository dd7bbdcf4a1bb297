//! Tests of `spec`, through its public face only.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests: a panic is how they fail")]

mod errors;
mod files;
mod fio_examples;
mod fuzz;
mod gdsio;
mod keys;
mod place;

/// The fixtures, by name and text.
const FIXTURES: [(&str, &str); 5] = [
    ("four_gpus_random_read.gdsio", include_str!("../fixtures/four_gpus_random_read.gdsio")),
    ("eight_gpus_large_read.gdsio", include_str!("../fixtures/eight_gpus_large_read.gdsio")),
    ("shell_made.gdsio", include_str!("../fixtures/shell_made.gdsio")),
    ("random_read.fio", include_str!("../fixtures/random_read.fio")),
    ("block_device.fio", include_str!("../fixtures/block_device.fio")),
];

/// The environment of all tests.
fn env(name: &str) -> Option<String> {
    let value = match name {
        "DIRECTION" => "write",
        "THREADS" => "12",
        "MOUNT" => "/mnt/lustre",
        "DATA_DIR" => "/data",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

/// A fixture's text.
fn fixture(name: &str) -> &'static str {
    FIXTURES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).unwrap()
}

/// Messages as lines of at most 88 columns, the later lines of each indented. Snapshots hold
/// this, so that they can be read beside the code.
fn wrapped(messages: impl IntoIterator<Item = String>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for message in messages {
        let mut line = String::new();
        for word in message.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > 88 {
                lines.push(std::mem::replace(&mut line, "   ".to_owned()));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}
