//! The table of kinds, and its samples.

use gpuio_capture::KINDS;

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
