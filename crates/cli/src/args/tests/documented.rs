//! Every command line of gpuio in README and docs is one that this program accepts.

use clap::error::ErrorKind;

use super::pages::{commands, pages, words};
use crate::args::parse;

#[test]
fn documented_commands_are_accepted() {
    let mut found = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        for line in commands(&page) {
            let mut words = words(&line);
            words.iter_mut().filter(|word| *word == "PID").for_each(|word| *word = "1".to_owned());
            // `…` and `[…]` stand for more words of the reader's own.
            if words.iter().any(|word| word.contains(['…', '[', '<'])) {
                continue;
            }
            found += 1;
            if let Err(error) = parse(&words) {
                let shown =
                    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
                assert!(shown, "{}: {line}\n{error}", path.display());
            }
        }
    }
    assert!(found > 0, "no page has a command");
}

#[test]
fn examples_of_the_help_are_accepted() {
    let command = crate::args::command();
    for verb in command.get_subcommands().filter(|verb| verb.get_after_help().is_some()) {
        let help = verb.get_after_help().unwrap().to_string();
        let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with("gpuio "));
        let mut found = 0;
        for line in lines {
            found += 1;
            let parsed = parse(words(line));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
        assert!(found > 0, "{} has no example", verb.get_name());
    }
}

#[test]
fn lines_are_split_as_by_a_shell() {
    assert_eq!(
        words("gpuio sweep --vary 'bs=4k, 8k' # why"),
        ["gpuio", "sweep", "--vary", "bs=4k, 8k"]
    );
    assert_eq!(words("gpuio show a.json | less"), ["gpuio", "show", "a.json"]);
    assert_eq!(words("gpuio bench a#b"), ["gpuio", "bench", "a#b"]);
    let page = "gpuio no\n```sh\n$ gpuio bench \\\n  --bs 4k\nother\n```\n\
                gpuio no\n```text\ngpuio no\n$ gpuio top\n```\n";
    assert_eq!(commands(page), ["gpuio bench  --bs 4k", "gpuio top"]);
}
