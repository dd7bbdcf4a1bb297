//! Draws the screen from two snapshots of kernel files that the tests create.

use std::path::Path;
use std::time::Duration;

use gpuio_host::{Entry, Root, Tree};
use gpuio_watch::{Interval, Selection, Watcher};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Color;

use super::super::state::{Act, State};
use super::screen;

fn tree(disks: &str, errors: u32) -> Root {
    let mut tree = Tree::default();
    let mut put = |name: &str, text: String| {
        tree.put(Path::new(name), Entry::File(text.into_bytes()));
    };
    put("proc/diskstats", disks.to_owned());
    put("proc/net/dev", format!("a\nb\nib0: 9 9 {errors} 0 0 0 0 0 9 9 0 0 0 0 0 0\n"));
    put("proc/meminfo", "MemFree: 1048576 kB\nCached: 2097152 kB\nDirty: 3072 kB\n".to_owned());
    Root::of(tree)
}

fn state() -> State {
    let before = "259 0 nvme0n1 1 0 8 1 0 0 0 0 0 1 1\n259 1 nvme1n1 1 0 8 1 0 0 0 0 0 1 1\n";
    let after = "259 0 nvme0n1 1001 0 256008 201 0 0 0 0 0 301 201\n\
                 259 1 nvme1n1 28001 0 7168008 25201 0 0 0 0 4 1001 27201\n";
    let mut watcher = Watcher::new(tree(before, 0), Vec::new(), Selection::default());
    let first = watcher.sample_at(0);
    watcher.look_at(tree(after, 2));
    let mut state = State::new(Duration::from_secs(1), true, "node7".to_owned());
    let interval = Interval::between(&first, &watcher.sample_at(1_000_000_000));
    state.take(interval, "2026-11-25 08:09:10".to_owned());
    state
}

fn drawn(state: &State, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen(frame, state)).unwrap();
    terminal
}

fn text(state: &State, width: u16, height: u16) -> Vec<String> {
    let terminal = drawn(state, width, height);
    let buffer = terminal.backend().buffer();
    let cell = |x, y| buffer[(x, y)].symbol().to_owned();
    let line = |y| (0..width).map(|x| cell(x, y)).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

#[test]
fn a_narrow_terminal_shows_what_matters() {
    let lines = text(&state(), 80, 24);
    let head = "Block devices             r/s      w/s   rMiB/s   wMiB/s   aqu-sz    %util";
    assert_eq!(lines[1], head);
    let busy = "nvme1n1                 28000        0  3500.00     0.00    27.20    100.0";
    assert_eq!(lines[3], busy);
    assert!(lines[23].starts_with("q quit"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("GPUs: ")), "{lines:#?}");
}

#[test]
fn a_wide_one_shows_all_columns() {
    let lines = text(&state(), 190, 24);
    for heading in ["r_await ms", "rareq KiB", "wrqm/s"] {
        assert!(lines[1].contains(heading), "{}", lines[1]);
    }
    assert!(lines[3].contains(" 0.90 ") && lines[3].contains(" 128.00 "), "{}", lines[3]);
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(1, 1), (10, 3), (80, 2), (20, 200)] {
        assert_eq!(text(&state(), width, height).len(), usize::from(height));
    }
    let empty = State::new(Duration::from_secs(1), true, String::new());
    assert!(text(&empty, 40, 5)[0].contains("first interval"));
}

#[test]
fn keys_sort_move_pause_and_end() {
    let mut state = state();
    assert_eq!(state.key(KeyCode::Char('s')), Act::Draw);
    let lines = text(&state, 80, 24);
    assert!(lines[1].contains("▼r/s") && lines[2].starts_with("nvme1n1"), "{lines:#?}");
    state.key(KeyCode::Down);
    assert!(text(&state, 80, 24)[2].starts_with("nvme0n1"));
    state.key(KeyCode::Tab);
    assert_eq!((state.table, state.sort, state.first), (1, None, 0));
    state.key(KeyCode::BackTab);
    assert_eq!(state.table, 0);
    assert_eq!(state.key(KeyCode::Char('+')), Act::Again);
    assert_eq!(state.every, Duration::from_secs(2));
    state.key(KeyCode::Char('p'));
    assert!(text(&state, 80, 24)[0].ends_with("PAUSED"));
    assert_eq!(state.key(KeyCode::Char('q')), Act::End);
}

#[test]
fn colours_mean_something_and_can_be_off() {
    let colors = |state: &State| {
        let terminal = drawn(state, 80, 24);
        let cells = terminal.backend().buffer().content.clone();
        let of = |color| cells.iter().filter(|cell| cell.fg == color).count();
        (of(Color::Yellow) > 0, of(Color::Red) > 0)
    };
    let mut state = state();
    assert_eq!(colors(&state), (true, true), "a busy drive, two errors");
    state.color = false;
    assert_eq!(colors(&state), (false, false));
}

#[test]
fn the_heading_has_host_and_clock_and_rows_their_history() {
    let lines = text(&state(), 120, 24);
    assert!(lines[0].contains("node7  2026-11-25 08:09:10  every 1 s"), "{}", lines[0]);
    assert!(lines[1].ends_with("last 24, MiB/s      most"), "{}", lines[1]);
    assert!(lines[3].ends_with("█   3500.00"), "{}", lines[3]);
    assert!(!text(&state(), 80, 24)[3].contains('█'), "no room for it");
}

#[test]
fn help_explains_keys_and_columns_and_shows_whole_reasons() {
    let mut state = state();
    assert_eq!(state.key(KeyCode::Char('?')), Act::Draw);
    let page = text(&state, 60, 60).join("\n");
    for words in ["Keys", "sort it by the next column", "r_await ms       read await"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("await seconds"), "the unit of JSON: {page}");
    // Every word of a reason that is longer than a line is there.
    let tables = state.interval.as_ref().unwrap().tables.iter();
    let why = tables.filter_map(|table| table.absent.clone()).max_by_key(String::len).unwrap();
    let flat = page.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(flat.contains(&why.split_whitespace().collect::<Vec<&str>>().join(" ")), "{page}");
    assert_eq!(state.key(KeyCode::Esc), Act::Draw, "it closes the page");
    assert!(!state.help);
}
