//! Paragraphs within a width.

/// `text` in lines of at most `width` characters, the first after `first`, the others after as many
/// blanks. Lines break only at blanks: a longer word (a path) gets a line of its own. Ends in a
/// line feed.
pub(crate) fn paragraph(first: &str, text: &str, width: u16) -> String {
    let indent = first.chars().count();
    let width = usize::from(width);
    let mut out = first.to_owned();
    let mut used = indent;
    let mut fresh = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !fresh && used + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            used = indent;
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
        fresh = false;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::paragraph;

    #[test]
    fn lines_keep_the_width_and_hang_under_the_first_word() {
        let text = paragraph("- ", "one two three four five", 10);
        assert_eq!(text, "- one two\n  three\n  four\n  five\n");
        assert!(text.lines().all(|line| line.len() <= 10));
    }

    #[test]
    fn a_long_word_stays_whole_and_nothing_is_lost() {
        let text = paragraph("", "a /a/very/long/path b", 6);
        assert_eq!(text, "a\n/a/very/long/path\nb\n");
        assert_eq!(paragraph("x:", "", 6), "x:\n");
    }
}
