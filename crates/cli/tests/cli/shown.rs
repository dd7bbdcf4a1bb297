//! Output that pages show, held against what the program prints on the software GPU: the same lines
//! in the same order, whatever their figures. `…` on a page stands for lines that are left out.

use gpuio_testkit::repository;

use crate::tool::{command, finish, gpuio, scratch, words};

/// Words that stand for the size of a figure, which differs from run to run.
const UNITS: [&str; 14] = [
    "B", "B/s", "GiB", "GiB/s", "IOPS", "IOPS,", "KiB", "KiB/s", "MiB", "MiB/s", "k", "ms", "s",
    "µs",
];

/// A line without its figures and without the width of its columns.
fn shape(line: &str) -> String {
    let is_word = |word: &&str| {
        let figure = word.contains(|c: char| c.is_ascii_digit()) || *word == "-";
        !figure && !UNITS.contains(word)
    };
    line.split_whitespace().filter(is_word).collect::<Vec<_>>().join(" ")
}

/// Lines with how they are compared: heads and rows of tables by their first word, since what else
/// they hold depends on the width and the machine; others whole.
fn compared(text: &str) -> Vec<(&str, String)> {
    let is_rule = |line: &str| line.len() > 3 && line.bytes().all(|b| b == b'-');
    let mut in_table = false;
    let mut compared = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_head = lines.peek().is_some_and(|next| is_rule(next));
        in_table = is_head || in_table && !matches!(line.trim(), "" | "…");
        if line.trim().is_empty() || line.trim() == "…" || is_rule(line) {
            continue;
        }
        let first = line.split_whitespace().next().unwrap_or_default();
        compared.push((line, if in_table { first.to_owned() } else { shape(line) }));
    }
    compared
}

/// Fails unless the lines that `docs/first-result.md` shows below this command are printed.
#[track_caller]
pub(crate) fn holds(command: &str, printed: &str) {
    let page = std::fs::read_to_string(repository("docs/first-result.md")).unwrap();
    let (_, shown) = page.split_once(&format!("$ {command}\n")).expect("the page has the command");
    let (shown, _) = shown.split_once("```").unwrap();
    let printed_lines = compared(printed);
    let mut lines = printed_lines.iter();
    let shown = compared(shown);
    assert!(shown.len() > 4, "{shown:?}");
    for (line, shape) in shown {
        let found = lines.any(|(_, other)| *other == shape);
        assert!(found, "not printed, or not there: {line} ({shape})\n{printed}");
    }
}

#[test]
fn the_first_load_prints_what_the_page_shows() {
    let dir = scratch();
    let command = "gpuio bench --path host,staged --gpu software --rw read --bs 1M --size 256M \
                   --runtime 2 -o first.json";
    let small = command.replace("--size 256M --runtime 2", "--size 4M --runtime 300ms");
    let ran = gpuio(dir.path(), small.strip_prefix("gpuio ").unwrap()).exits(0);
    holds(command, &ran.out);
}

/// The part that a run leaves out is in the record of the last run, or nothing is left out.
#[test]
fn the_rest_of_a_run_is_one_command_away() {
    let dir = scratch();
    let line = "bench --gpu software --path staged --rw read --bs 64k --size 1M --runtime 200ms";
    let run = |line: &str, state: &str| {
        let mut gpuio = command(dir.path());
        gpuio.args(words(line)).env("XDG_STATE_HOME", dir.path().join(state));
        finish(&mut gpuio).exits(0).out
    };
    const REST: [&str; 4] = ["command: ", "legs of an I/O", "outside the measured", "workers done"];
    let has = |text: &str, all: bool| REST.iter().all(|words| text.contains(words) == all);
    let screen = run(&format!("{line} --directory d"), "s");
    assert!(has(&screen, false) && screen.contains("page cache before"), "{screen}");
    assert!(screen.contains("until the next run: gpuio show last\n"), "{screen}");
    let last = run("show last", "s");
    assert!(has(&last, true), "{last}");
    // A warning of one sentence there is whole here.
    assert!(screen.contains(" [run_too_short]") && last.len() > screen.len(), "{screen}");
    assert!(run("show last --check", "s").contains("checks hold"));
    let saved = run(&format!("{line} --directory d -o r.json"), "s");
    assert!(has(&saved, false) && saved.contains("\nThe rest: gpuio show r.json\n"), "{saved}");
    for all in ["--details", "--format text"] {
        assert!(has(&run(&format!("{line} --directory d {all}"), "s"), true), "{all}");
    }
    // It can't be kept: a file is where its directory would be.
    std::fs::write(dir.path().join("f"), "").unwrap();
    let whole = run(&format!("{line} --directory d"), "f");
    assert!(has(&whole, true) && !whole.contains("show last"), "{whole}");
    // A file of the user's goes before it.
    std::fs::rename(dir.path().join("r.json"), dir.path().join("last")).unwrap();
    assert!(run("show last", "s").contains("-o r.json"));
}

#[test]
fn shapes_have_no_figures() {
    let rows =
        compared("path  rate\n----------\nhost  1.66 GiB/s  ok\n\nTook 3.5 s of 12 k IOPS.\n…\n");
    let shapes: Vec<&str> = rows.iter().map(|(_, shape)| shape.as_str()).collect();
    assert_eq!(shapes, ["path", "host", "Took of IOPS."]);
}
