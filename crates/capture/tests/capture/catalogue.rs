//! The table of kinds: its page, and its samples.

use std::fmt::Write as _;

use gpuio_capture::KINDS;
use gpuio_testkit::docs::documented;

#[test]
fn the_page_has_every_kind_of_text() {
    let mut table = String::from("| Text | Gives |\n| --- | --- |\n");
    for kind in &KINDS {
        writeln!(table, "| `{}` | {} |", kind.command, kind.gives).unwrap();
    }
    documented("machines.md", "texts", &table);
}

#[test]
fn rules_name_texts_that_are_read() {
    for rule in gpuio_machine::check::RULES {
        let known = KINDS.iter().any(|kind| kind.command == rule.shown_by);
        assert!(known, "{}: {}", rule.name, rule.shown_by);
    }
}

#[test]
fn commands_are_listed_once() {
    for (at, kind) in KINDS.iter().enumerate() {
        assert!(KINDS[..at].iter().all(|one| one.command != kind.command), "{}", kind.command);
        assert!(!kind.gives.is_empty() && !kind.gives.ends_with('.'), "{}", kind.gives);
    }
}
