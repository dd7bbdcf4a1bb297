//! The legend: colours, lines and notes.

use super::draw::{Draw, width};
use super::style::of_class;
use super::{EDGE, SMALL};
use crate::topo::{Class, Topology};

/// Width that the longest line of the legend needs.
pub(super) const LEAST_WIDTH: u32 = 900;

/// Height of a line.
const LINE: u32 = 20;
/// Width of a sample.
const CELL: u32 = 44;

/// Draws below `top`; where it ends.
pub(super) fn draw(
    topology: &Topology,
    nvlinks: &str,
    top: u32,
    wide: u32,
    draw: &mut Draw,
) -> u32 {
    let mut y = top;
    let mut cell = |style: &str, name: &str, meaning: &str| {
        draw.rect(style, (EDGE, y - 11), (CELL - 2, 15), 2);
        draw.text("gt-in", (EDGE + CELL / 2 - 1, y), name);
        draw.text("gt-small gt-soft", (EDGE + CELL + 6, y), meaning);
        y += LINE;
    };
    for class in Class::ALL {
        cell(of_class(class), class.name(), class.meaning());
    }
    cell("gt-nv", "NV#", "that many NVLinks, which go before PCIe");
    cell("gt-none", "?", "not known");
    let lines = y;
    marks(wide / 2, top, draw);
    // The sentence says it.
    let said = |note: &&String| note.starts_with("NVLinks between GPUs unknown");
    let others = topology.notes.iter().filter(|note| !said(note)).map(String::as_str);
    let all = std::iter::once(nvlinks).chain(others);
    notes(all, lines + LINE / 2, wide, draw)
}

/// The legend's right half: kinds of devices, and links.
fn marks(left: u32, top: u32, draw: &mut Draw) {
    let mut y = top;
    for (style, words) in [("gt-gpu", "GPU"), ("gt-nic", "network card"), ("gt-drive", "drive")] {
        draw.rect(style, (left, y - 11), (CELL - 2, 15), 4);
        draw.text("gt-small gt-soft", (left + CELL + 6, y), words);
        y += LINE;
    }
    for (style, words) in [
        ("", "link, as it is now: generation, lanes, GB/s each way"),
        ("gt-slow", "slower or narrower than both ends could (idle devices may)"),
        ("gt-port", "the device could do more in a better slot"),
    ] {
        draw.elbow(style, (left, y - 4), left, (left + CELL - 2, y - 4));
        draw.text("gt-small gt-soft", (left + CELL + 6, y), words);
        y += LINE;
    }
}

fn notes<'n>(all: impl Iterator<Item = &'n str>, top: u32, wide: u32, draw: &mut Draw) -> u32 {
    let mut y = top;
    for note in all {
        for line in wrapped(note, wide - 2 * EDGE) {
            draw.text("gt-small gt-note", (EDGE, y), &line);
            y += LINE - 3;
        }
    }
    y
}

/// Words in lines that fit.
fn wrapped(text: &str, space: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, SMALL) + width(word, SMALL) + 7 <= space => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(super::draw::fit(word, SMALL, space)),
        }
    }
    lines
}
