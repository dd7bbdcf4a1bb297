//! Text inside XML.

use std::borrow::Cow;

use gpuio_units::printable;

/// A text as content or attribute (Extensible Markup Language 1.0, sections 2.2 and 2.4): control
/// characters, which XML can't hold, and all invisible ones are shown as escapes.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let text = printable(text);
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_spelled_and_controls_go() {
        assert_eq!(escape("GPU0"), "GPU0");
        assert_eq!(
            escape("<a b=\"c\">&'\u{0}\u{7f}ß"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\\x00\\u007fß"
        );
    }
}
