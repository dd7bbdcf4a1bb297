//! Shapes as text.

use std::fmt::Write as _;

use gpuio_base::units::markup;

/// Width of a character at a size, in tenths of it.
const CHAR_TENTHS: u32 = 6;

/// The drawing so far.
#[derive(Debug, Default)]
pub(super) struct Draw {
    pub(super) out: String,
}

impl Draw {
    /// Begins a group with a title, which viewers show next to the pointer.
    pub(super) fn open(&mut self, title: &str) {
        self.put(format_args!("<g><title>{}</title>", markup(title)));
    }

    /// The same with attributes, by which the page's script knows what a shape is. Values are
    /// numbers, or escaped here.
    pub(super) fn open_as(&mut self, class: &str, data: &[(&str, &str)], title: &str) {
        self.put(format_args!("<g class=\"{class}\""));
        for (name, value) in data {
            self.put(format_args!(" data-{name}=\"{}\"", markup(value)));
        }
        self.put(format_args!("><title>{}</title>", markup(title)));
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

    /// Text that reads upwards, its middle at `at`.
    pub(super) fn upright(&mut self, style: &str, at: (u32, u32), text: &str) {
        let (x, y) = at;
        let text = markup(text);
        self.put(format_args!(
            "<text class=\"{style} gt-up\" \
             transform=\"translate({x} {y}) rotate(-90)\">{text}</text>"
        ));
    }

    /// From the right edge of one box down or up to the left of another.
    pub(super) fn elbow(&mut self, style: &str, from: (u32, u32), turn: u32, to: (u32, u32)) {
        let ((x, y), (end, below)) = (from, to);
        self.put(format_args!("<path class=\"gt-line\" d=\"M{x} {y}H{turn}V{below}\"/>"));
        self.put(format_args!("<path class=\"gt-line {style}\" d=\"M{turn} {below}H{end}\"/>"));
    }

    /// From the right edge of one box out to `turn`, and back to that of another.
    pub(super) fn bracket(&mut self, style: &str, right: u32, turn: u32, rows: (u32, u32)) {
        let (from, to) = rows;
        self.put(format_args!(
            "<path class=\"gt-line {style}\" d=\"M{right} {from}H{turn}V{to}H{right}\"/>"
        ));
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
