//! Pages of Markdown: markup that the program's source has, and texts that are never markup.

use crate::units::{printable, printable_short};

/// A page in the making. Markup comes from the source alone ([`MarkdownPage::markup`] takes a
/// `&'static str`); any other text is escaped, so that nothing of it is markup, HTML, a link, a
/// mention or a reference (CommonMark 0.31, sections 2.4, 4 to 6; GitHub's tables, autolinks and
/// mentions). Hidden characters are escapes, and long texts are cut, as [`printable_short`] does.
#[derive(Debug, Default)]
pub(crate) struct MarkdownPage {
    out: String,
}

impl MarkdownPage {
    /// Markup, which is printed as it is.
    pub(crate) fn markup(&mut self, markup: &'static str) -> &mut MarkdownPage {
        self.out.push_str(markup);
        self
    }

    /// A text inside a paragraph, a list or a cell of a table.
    pub(crate) fn text(&mut self, text: &str) -> &mut MarkdownPage {
        let shown = printable_short(text);
        // Where a block begins, some characters make it another block: a list, a quote, a line.
        let line = self.out.rsplit('\n').next().map(str::trim_start);
        let begun = matches!(line, Some("" | "- " | "# " | "## " | "### "));
        let blank = if begun { shown.len() - shown.trim_start().len() } else { 0 };
        let shown = &shown[blank..];
        let numbered = shown.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = shown.len() - numbered.len();
        for (at, c) in shown.char_indices() {
            let opens = match c {
                '-' | '+' | '=' | '>' => begun && at == 0,
                '.' | ')' => {
                    let ends = shown[at + 1..].chars().next().is_none_or(char::is_whitespace);
                    begun && number > 0 && at == number && ends
                }
                _ => false,
            };
            match c {
                '<' => self.out.push_str("&lt;"),
                '&' => self.out.push_str("&amp;"),
                '@' => self.out.push_str("&#64;"),
                ':' if shown[at..].starts_with("://") => self.out.push_str("&#58;"),
                '.' if ends_with_www(&shown[..at]) => self.out.push_str("&#46;"),
                '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' | '!' | '$' => {
                    self.out.extend(['\\', c]);
                }
                c if opens => self.out.extend(['\\', c]),
                c => self.out.push(c),
            }
        }
        self
    }

    /// A text as a code span, outside a table: its fence is longer than every run of backquotes in
    /// it (CommonMark 0.31, section 6.1).
    pub(crate) fn code(&mut self, text: &str) -> &mut MarkdownPage {
        let text = printable_short(text);
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest + 1);
        // A blank at both ends is not shown; without them these texts would lose their own.
        let bare = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty();
        let pad = if bare { " " } else { "" };
        self.out.push_str(&format!("{fence}{pad}{text}{pad}{fence}"));
        self
    }

    /// Lines as they are, behind a fence that none of them closes (section 4.5).
    pub(crate) fn lines(&mut self, text: &str) -> &mut MarkdownPage {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        self.out.push_str(&format!("{fence}\n"));
        for line in text.trim_end().lines() {
            self.out.push_str(&printable(line));
            self.out.push('\n');
        }
        self.out.push_str(&format!("{fence}\n"));
        self
    }

    /// Whether there is nothing on it.
    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

fn ends_with_www(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len().checked_sub(3).is_some_and(|from| bytes[from..].eq_ignore_ascii_case(b"www"))
}

#[cfg(test)]
mod tests {
    use crate::units::is_hidden;
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        let mut page = MarkdownPage::default();
        page.text(text);
        page.finish()
    }

    #[test]
    fn nothing_is_markup_or_a_second_line() {
        let shown = shown("<script>|&amp; @all #1 `x`\n# b\u{202e}\x1b");
        assert!(!shown.contains(['<', '\n', '\u{202e}', '\x1b']), "{shown}");
        assert!(shown.starts_with("&lt;script>\\|&amp;amp; &#64;all \\#1 \\`x\\`"), "{shown}");
    }

    #[test]
    fn no_text_opens_a_block_or_becomes_a_link() {
        for (text, page) in [
            ("- a", "\\- a"),
            ("+ a", "\\+ a"),
            ("> a", "\\> a"),
            ("---", "\\---"),
            ("===", "\\==="),
            ("12. a", "12\\. a"),
            ("1) a", "1\\) a"),
            ("    a", "a"),
            ("1.5 GiB", "1.5 GiB"),
            ("-1.5", "\\-1.5"),
            ("see https://x.org", "see https&#58;//x.org"),
            ("WWW.x.org", "WWW&#46;x.org"),
            ("[a](b)", "\\[a\\](b)"),
            ("$x$", "\\$x\\$"),
        ] {
            assert_eq!(shown(text), page);
        }
        let mut page = MarkdownPage::default();
        page.markup("- ").text("- a").markup("\n  - ").text("1. a").markup("\n| ").text("- a|b");
        assert_eq!(page.finish(), "- \\- a\n  - 1\\. a\n| - a\\|b");
    }

    #[test]
    fn a_code_span_holds_any_text() {
        let mut page = MarkdownPage::default();
        page.code("a `` b");
        page.code("`").code(" ");
        assert_eq!(page.finish(), "```a `` b````` ` ```   `");
        let mut page = MarkdownPage::default();
        page.lines("a\n````\n<b>\n");
        assert_eq!(page.finish(), "`````\na\n````\n<b>\n`````\n");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in proptest::collection::vec(any::<char>(), 0..60)) {
            let shown = shown(&String::from_iter(text));
            prop_assert!(!shown.contains(is_hidden) && !shown.contains('<'));
        }
    }
}
