//! Splits Rust source into code and comments, so that rules do not trip over words in strings.

/// The same text twice: `code` without comments and without what is inside strings and
/// characters, `comments` with the comments only. What is left out is blank, so lines and
/// columns of both agree with the source.
#[derive(Debug)]
pub(super) struct Masked {
    pub(super) code: String,
    pub(super) comments: String,
}

/// Masks one source file. Broken source gives some answer, never a panic: the compiler says what
/// is wrong with it.
pub(super) fn mask(source: &str) -> Masked {
    let mut masker = Masker {
        chars: source.chars().collect(),
        at: 0,
        out: Masked { code: String::new(), comments: String::new() },
    };
    while masker.at < masker.chars.len() {
        masker.step();
    }
    masker.out
}

/// Whether a character can be part of a name.
pub(super) fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

struct Masker {
    chars: Vec<char>,
    at: usize,
    out: Masked,
}

#[derive(Clone, Copy, PartialEq)]
enum As {
    Code,
    Comment,
    Nothing,
}

impl Masker {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Takes one character.
    fn take(&mut self, kind: As) {
        let Some(c) = self.peek(0) else { return };
        let shown = |wanted| if c == '\n' || kind == wanted { c } else { ' ' };
        self.out.code.push(shown(As::Code));
        self.out.comments.push(shown(As::Comment));
        self.at += 1;
    }

    fn take_many(&mut self, count: usize, kind: As) {
        for _ in 0..count {
            self.take(kind);
        }
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (Some('/'), Some('/')) => {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.take(As::Comment);
                }
            }
            (Some('/'), Some('*')) => self.block_comment(),
            (Some('"'), _) => self.string(),
            (Some('r'), Some('"' | '#')) if self.raw_starts_here() => self.raw_string(),
            (Some('\''), _) => self.quote(),
            _ => self.take(As::Code),
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.take_many(2, As::Comment);
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.take_many(2, As::Comment);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.take(As::Comment),
            }
        }
    }

    fn string(&mut self) {
        self.take(As::Code);
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.take_many(2, As::Nothing),
                '"' => return self.take(As::Code),
                _ => self.take(As::Nothing),
            }
        }
    }

    /// At an `r` that is not the end of a name: `r"`, `r#"`, `br"`, `cr"`, and not `r#name`.
    fn raw_starts_here(&self) -> bool {
        let before = |back| self.at.checked_sub(back).map(|at| self.chars[at]);
        let prefix = matches!(before(1), Some('b' | 'c'));
        let name_before = before(if prefix { 2 } else { 1 }).is_some_and(is_name);
        let hashes = self.chars[self.at + 1..].iter().take_while(|c| **c == '#').count();
        !name_before && self.peek(1 + hashes) == Some('"')
    }

    fn raw_string(&mut self) {
        self.take(As::Code);
        let hashes = self.chars[self.at..].iter().take_while(|c| **c == '#').count();
        self.take_many(hashes + 1, As::Code);
        while self.at < self.chars.len() {
            let closes = self.peek(0) == Some('"')
                && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if closes {
                return self.take_many(1 + hashes, As::Code);
            }
            self.take(As::Nothing);
        }
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        let literal = self.peek(1) == Some('\\') || self.peek(2) == Some('\'');
        self.take(As::Code);
        if !literal {
            return;
        }
        if self.peek(0) == Some('\\') {
            self.take(As::Nothing);
        }
        // The first one may itself be a quote, after a backslash.
        self.take(As::Nothing);
        while self.peek(0).is_some_and(|c| c != '\'' && c != '\n') {
            self.take(As::Nothing);
        }
        self.take(As::Code);
    }
}
