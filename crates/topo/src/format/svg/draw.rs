//! Shapes as text.

use std::fmt::Write as _;

use gpuio_units::markup;

/// Width of a character at a size, in tenths of it.
const CHAR_TENTHS: u32 = 6;

/// What is drawn so far.
#[derive(Debug, Default)]
pub(super) struct Draw {
    pub(super) out: String,
}

impl Draw {
    /// Begins a group with a title, which viewers show next to the pointer.
    pub(super) fn open(&mut self, title: &str) {
        self.put(format_args!("<g><title>{}</title>", markup(title)));
    }

    pub(super) fn close(&mut self) {
        self.put(format_args!("</g>\n"));
    }

    pub(super) fn rect(&mut self, style: &str, at: (u32, u32), size: (u32, u32), round: u32) {
        let ((x, y), (width, height)) = (at, size);
        self.put(format_args!(
            "<rect class=\"{style}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             rx=\"{round}\"/>"
        ));
    }

    /// Text whose line stands at `at`.
    pub(super) fn text(&mut self, style: &str, at: (u32, u32), text: &str) {
        let (x, y) = at;
        let text = markup(text);
        self.put(format_args!("<text class=\"{style}\" x=\"{x}\" y=\"{y}\">{text}</text>"));
    }

    /// From the right edge of one box down or up to the left of another.
    pub(super) fn elbow(&mut self, style: &str, from: (u32, u32), turn: u32, to: (u32, u32)) {
        let ((x, y), (end, below)) = (from, to);
        self.put(format_args!("<path class=\"gt-line\" d=\"M{x} {y}H{turn}V{below}\"/>"));
        self.put(format_args!("<path class=\"gt-line {style}\" d=\"M{turn} {below}H{end}\"/>"));
    }

    fn put(&mut self, piece: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.out.write_fmt(piece);
    }
}

/// How wide a text of this size is, in pixels.
pub(super) fn width(text: &str, size: u32) -> u32 {
    let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX / 100);
    (chars * size * CHAR_TENTHS).div_ceil(10)
}

/// A text that is cut where it is longer than the space.
pub(super) fn fit(text: &str, size: u32, space: u32) -> String {
    if width(text, size) <= space {
        return text.to_owned();
    }
    let chars = (space * 10 / (size * CHAR_TENTHS)).saturating_sub(1) as usize;
    text.chars().take(chars).chain(['…']).collect()
}
