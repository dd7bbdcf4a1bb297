//! Takes the prose out of files: comments and string literals of Rust sources, paragraphs of
//! Markdown pages; and what is left of a Rust source without its prose.
//!
//! The lexer knows as much of Rust as that takes: comments, literals of strings and characters,
//! and lifetimes. Code in fences of pages and comments is no prose.

/// Lines that read on, each with its number from 1.
pub(super) type Paragraph = Vec<(usize, String)>;

const FENCE: &str = "```";

/// Comments and string literals. A line feed in a string ends a paragraph.
pub(super) fn of_rust(text: &str) -> Vec<Paragraph> {
    let mut lexer = Lexer::read(text);
    lexer.prose.end();
    lexer.prose.all
}

/// The code, with a blank for each comment and literal of a string or a character.
pub(super) fn code_of_rust(text: &str) -> String {
    Lexer::read(text).code
}

/// Lines of a page outside fences. Headings, list items and rows of tables are paragraphs.
pub(super) fn of_markdown(text: &str) -> Vec<Paragraph> {
    let mut prose = Prose::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let alone = line.starts_with(['#', '|']);
        if alone || ["- ", "* ", "> "].iter().any(|mark| line.starts_with(mark)) {
            prose.end();
        }
        prose.line(index + 1, line);
        if alone {
            prose.end();
        }
    }
    prose.end();
    prose.all
}

#[derive(Default)]
struct Prose {
    all: Vec<Paragraph>,
    open: Paragraph,
    fenced: bool,
}

impl Prose {
    fn line(&mut self, number: usize, text: &str) {
        let text = text.trim();
        let fence = text.starts_with(FENCE);
        self.fenced ^= fence;
        if fence || self.fenced || text.is_empty() {
            self.end();
        } else {
            self.open.push((number, text.to_owned()));
        }
    }

    fn end(&mut self) {
        if !self.open.is_empty() {
            self.all.push(std::mem::take(&mut self.open));
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    prose: Prose,
    /// Marker and line of the last comment.
    comment: (&'static str, usize),
    code: String,
}

impl<'a> Lexer<'a> {
    fn read(text: &'a str) -> Self {
        let (prose, code) = (Prose::default(), String::with_capacity(text.len()));
        let mut lexer = Lexer { rest: text, line: 1, prose, comment: ("", 0), code };
        while !lexer.rest.is_empty() {
            lexer.step();
        }
        lexer
    }

    /// Takes one comment or literal, or what is before the next.
    fn step(&mut self) {
        let rest = self.rest;
        let hashes =
            rest.strip_prefix('r').map(|tail| tail.len() - tail.trim_start_matches('#').len());
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let comment = self.take(end);
            self.comment(comment);
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
            self.take(end);
        } else if rest.starts_with('"') {
            self.take(1);
            self.string();
        } else if let Some(count) = hashes.filter(|count| rest[1 + count..].starts_with('"')) {
            self.take(count + 2);
            let end = self.rest.find(&format!("\"{}", "#".repeat(count)));
            let from = self.line;
            let text = self.take(end.unwrap_or(self.rest.len()));
            self.take((count + 1).min(self.rest.len()));
            let lines = text.lines().enumerate();
            self.literal(lines.map(|(nth, line)| vec![(from + nth, line.to_owned())]).collect());
        } else if let Some(length) = character(rest) {
            self.take(length);
        } else {
            // Nothing else begins a comment or a literal.
            let next = rest.bytes().skip(1).position(|byte| b"/\"'r".contains(&byte));
            let code = self.take(next.map_or(rest.len(), |at| at + 1));
            self.code.push_str(code);
            return;
        }
        self.code.push(' ');
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn comment(&mut self, comment: &str) {
        let markers = ["///", "//!", "//"];
        let marker = markers.into_iter().find(|marker| comment.starts_with(marker)).unwrap_or("//");
        if self.comment != (marker, self.line - 1) {
            self.prose.end();
            self.prose.fenced = false;
        }
        self.comment = (marker, self.line);
        self.prose.line(self.line, &comment[marker.len()..]);
    }

    /// A string behind its opening quote.
    fn string(&mut self) {
        let mut ended = Vec::new();
        let mut open = Paragraph::new();
        let mut text = String::new();
        while !self.rest.is_empty() && !self.rest.starts_with('"') {
            let line = self.line;
            let escape = usize::from(self.rest.starts_with('\\'));
            let next = self.rest[escape..].chars().next();
            match self.take(escape + next.map_or(0, char::len_utf8)) {
                "\\\n" => {
                    open.push((line, std::mem::take(&mut text)));
                    let blanks = self.rest.len() - self.rest.trim_start().len();
                    self.take(blanks);
                }
                "\\n" | "\n" => {
                    open.push((line, std::mem::take(&mut text)));
                    ended.push(std::mem::take(&mut open));
                }
                taken => text.push_str(&taken[escape..]),
            }
        }
        open.push((self.line, text));
        ended.push(open);
        self.take(1.min(self.rest.len()));
        self.literal(ended);
    }

    fn literal(&mut self, paragraphs: Vec<Paragraph>) {
        self.prose.end();
        self.prose.all.extend(paragraphs);
    }
}

/// The length of a literal of a character; none for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let escaped = inside.starts_with('\\');
    let skipped = if escaped { 2 } else { inside.chars().next()?.len_utf8() };
    let end = inside.get(skipped..)?.find('\'')?;
    (escaped || end == 0).then_some(1 + skipped + end + 1)
}
