//! Text from outside, made fit to be shown: one module for every terminal, table and file of text.
//!
//! A name out of a record, a capture or another tool's result can hold characters that a terminal
//! obeys (ESC and its kin), that reorder the text next to them (bidirectional controls), or that
//! are invisible (zero width). All of them are shown as escapes: `\x1b`, `\n`, `\u202e`. Those
//! beyond ASCII are spelled as JSON spells them, so that a JSON text stays the same JSON text.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};

/// Longest text that [`printable_short`] leaves whole, in characters.
pub const MOST_SHOWN: usize = 2000;

/// Whether a character must not reach a terminal or a text file as it is: C0, DEL and C1 controls
/// (ISO 6429), line and paragraph separators, bidirectional controls (Unicode Standard Annex 9),
/// and characters without a width of their own that change or hide what is read (Unicode 16,
/// `Default_Ignorable_Code_Point`, with annotation marks and noncharacters).
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text in one line: every hidden character is an escape, line feeds too.
///
/// ```
/// assert_eq!(gpuio_base::units::printable("a\x1b[2Jb\n"), "a\\x1b[2Jb\\n");
/// assert_eq!(gpuio_base::units::printable("\u{202e}gpj.exe"), "\\u202egpj.exe");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Text that is laid out already: line feeds stay, every other hidden character is an escape.
/// This is the last gate before a terminal or a file; a value inside a line takes [`printable`].
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_hidden(c))
}

/// As [`printable`], and of a text longer than [`MOST_SHOWN`] characters its beginning and length.
pub fn printable_short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST_SHOWN) {
        None => printable(text),
        Some((end, _)) => {
            let all = text.chars().count();
            Cow::Owned(format!("{}… ({all} characters in all)", printable(&text[..end])))
        }
    }
}

/// The text inside an element of HTML or XML, or inside an attribute in quotes (Extensible Markup
/// Language 1.0, sections 2.2 and 2.4). Hidden characters, of which XML can't hold some, are
/// escapes, as in [`printable`].
///
/// ```
/// let safe = "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\\x00";
/// assert_eq!(gpuio_base::units::markup("<a b=\"c\">&'\0"), safe);
/// ```
pub fn markup(text: &str) -> Cow<'_, str> {
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

/// The text as a field of CSV, before quoting: hidden characters are escapes, and a text that a
/// spreadsheet would run as a formula (it begins with `=`, `+`, `-` or `@` and is no number) gets
/// an apostrophe before it (OWASP, "CSV Injection"). Nothing is cut.
///
/// ```
/// assert_eq!(gpuio_base::units::csv_text("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
/// assert_eq!(gpuio_base::units::csv_text("-1.5"), "-1.5");
/// assert_eq!(gpuio_base::units::csv_text("-"), "-");
/// ```
pub fn csv_text(text: &str) -> Cow<'_, str> {
    let shown = printable(text);
    let signed = shown.starts_with(['=', '+', '-', '@']);
    if signed && shown != "-" && !is_number(&shown) { format!("'{shown}").into() } else { shown }
}

fn is_number(text: &str) -> bool {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e'));
    digits && text.parse::<f64>().is_ok()
}

/// The text as the value of a label (OpenMetrics 1.0, "Escaping"): hidden characters are escapes,
/// and backslash and quote are escaped.
///
/// ```
/// assert_eq!(gpuio_base::units::label_value("a\"b\u{202e}"), "a\\\"b\\\\u202e");
/// ```
pub fn label_value(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// A word of a command line, in quotes where a POSIX shell needs them.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

/// A command for a person to paste into a shell. Each word that is added is quoted: names of files
/// are others' to choose.
///
/// ```
/// # use gpuio_base::units::ShellLine;
/// assert_eq!(ShellLine::new("rm").file("a'b").file("-f").to_string(), r"rm 'a'\''b' ./-f");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLine(String);

impl ShellLine {
    /// Begins with the program, a verb or flags as they are.
    pub fn new(command: &'static str) -> ShellLine {
        ShellLine(command.to_owned())
    }

    #[must_use]
    pub fn word(mut self, word: impl AsRef<OsStr>) -> ShellLine {
        self.0.push(' ');
        self.0.push_str(&shell_word(&word.as_ref().to_string_lossy()));
        self
    }

    #[must_use]
    pub fn words(self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> ShellLine {
        words.into_iter().fold(self, ShellLine::word)
    }

    /// A file's name, which no program takes for a flag.
    #[must_use]
    pub fn file(self, path: impl AsRef<OsStr>) -> ShellLine {
        let path = path.as_ref();
        match path.as_encoded_bytes().starts_with(b"-") {
            true => self.word(format!("./{}", path.to_string_lossy())),
            false => self.word(path),
        }
    }

    #[must_use]
    pub fn files(self, paths: impl IntoIterator<Item = impl AsRef<OsStr>>) -> ShellLine {
        paths.into_iter().fold(self, ShellLine::file)
    }
}

impl fmt::Display for ShellLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&hidden) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if hidden(c) {
            escape(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn escape(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // JSON never has these as they are, so that its spelling is not needed.
        '\0'..='\x1f' => {
            // A String takes every write, here and below.
            let _ = write!(out, "\\x{:02x}", u32::from(c));
        }
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOSTILE: &str = "a\0\x07\x1b]0;t\x07\x7f\u{9b}31m\u{85}\u{61c}\u{200b}\u{200e}\u{2028}\
                           \u{202e}b\u{2066}\u{feff}\u{e0041}\r\n\tc";

    #[test]
    fn what_a_terminal_obeys_is_spelled() {
        let all = "a\\x00\\x07\\x1b]0;t\\x07\\u007f\\u009b31m\\u0085\\u061c\\u200b\\u200e\\u2028\
                   \\u202eb\\u2066\\ufeff\\udb40\\udc41\\r\\n\\tc";
        assert_eq!(printable(HOSTILE), all);
        assert_eq!(printable_lines("a\nb\r\n"), "a\nb\\r\n");
        assert!(matches!(printable("Größe 東京 🚀 \\x1b"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_texts_are_cut_with_their_length() {
        assert_eq!(printable_short(&"é".repeat(MOST_SHOWN)).chars().count(), MOST_SHOWN);
        let cut = printable_short(&"é".repeat(5000)).into_owned();
        assert!(cut.ends_with("é… (5000 characters in all)"), "{cut}");
        assert_eq!(cut.matches('é').count(), MOST_SHOWN);
    }

    #[test]
    fn words_of_a_shell_are_quoted_where_they_must_be() {
        assert_eq!(shell_word("--size=1.5G"), "--size=1.5G");
        assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("~"), "'~'");
        let name = "x'; touch PWNED; echo '.json";
        let line = ShellLine::new("gpuio show").file(name).words(["--a=b c", "-d"]).files(["-e"]);
        let said = r"gpuio show 'x'\''; touch PWNED; echo '\''.json' '--a=b c' -d ./-e";
        assert_eq!(line.to_string(), said);
    }

    #[test]
    fn fields_are_never_formulas() {
        let plain = ["", "4096", "-1.5", "+3", "1e-9", "read", "a b", "a,b", "a\"b"];
        plain.into_iter().for_each(|text| assert_eq!(csv_text(text), text));
        for (text, field) in [
            ("a\nb", "a\\nb"),
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-1+2", "'-1+2"),
            ("\t=1", "\\t=1"),
        ] {
            assert_eq!(csv_text(text), field);
        }
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in proptest::collection::vec(any::<char>(), 0..60)) {
            let text = String::from_iter(text);
            prop_assert!(!printable(&text).contains(is_hidden));
            prop_assert!(!printable_lines(&text).replace('\n', "").contains(is_hidden));
            prop_assert!(!csv_text(&text).contains(is_hidden));
            prop_assert!(!label_value(&text).contains(is_hidden));
        }
    }
}
