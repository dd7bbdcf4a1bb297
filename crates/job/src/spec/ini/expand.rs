//! `${NAME}` in values.

use super::{JobFileFault, position};

/// A value after its variables were replaced, with the columns of the original line.
pub(super) struct Expanded {
    pub(super) text: String,
    /// For each byte of `text`, and for its end, the column it came from.
    columns: Vec<u32>,
}

impl Expanded {
    /// The original column of the byte `at` of the text; for a byte from a variable, the start of
    /// the variable.
    pub(super) fn column(&self, at: usize) -> u32 {
        let last = self.columns.len().saturating_sub(1);
        self.columns.get(at.min(last)).copied().unwrap_or(1)
    }

    fn push(&mut self, text: &str, column: u32) {
        self.text.push_str(text);
        self.columns.resize(self.text.len(), column);
    }
}

/// fio's words for numbers of the machine. `env` knows them by these names.
pub const MACHINE: [&str; 3] = ["$ncpus", "$pagesize", "$mb_memory"];

/// Replaces `${NAME}` by the value from `env`, and `$${` by `${`; and fio's words for numbers of
/// the machine, which may stand in a product, as in `2*$ncpus`. The value of a variable is not
/// expanded again. `column` is where `raw` begins; an error has the column of its `$`.
pub(super) fn expand(
    raw: &str,
    column: u32,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Expanded, (u32, JobFileFault)> {
    let mut out = Expanded {
        text: String::with_capacity(raw.len()),
        columns: Vec::with_capacity(raw.len() + 1),
    };
    let mut at = column;
    let mut rest = raw;
    let mut counts = false;
    while let Some(c) = rest.chars().next() {
        let taken = if rest.starts_with("$${") {
            out.push("${", at);
            "$${".len()
        } else if let Some(after) = rest.strip_prefix("${") {
            let name = variable(after).ok_or((at, JobFileFault::BadVariable))?;
            let Some(value) = env(name) else {
                let name = name.to_owned();
                return Err((at, JobFileFault::UnsetVariable { name }));
            };
            if value.contains('\0') {
                return Err((at, JobFileFault::Nul));
            }
            out.push(&value, at);
            "${}".len() + name.len()
        } else if let Some(word) = MACHINE.iter().find(|word| is_word(rest, word)) {
            let unknown = || JobFileFault::UnknownNumber { word };
            out.push(&env(word).ok_or_else(|| (at, unknown()))?, at);
            counts = true;
            word.len()
        } else {
            out.push(&rest[..c.len_utf8()], at);
            c.len_utf8()
        };
        // Characters, not bytes: the part just read may hold any text.
        let passed = position(rest[..taken].chars().count()) - 1;
        at = at.saturating_add(passed);
        rest = &rest[taken..];
    }
    out.columns.push(at);
    match product(&out.text).filter(|_| counts) {
        Some(number) => {
            let text = number.to_string();
            Ok(Expanded { columns: vec![column; text.len() + 1], text })
        }
        None => Ok(out),
    }
}

fn is_word(rest: &str, word: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    rest.strip_prefix(word).is_some_and(ends)
}

/// The product of whole numbers, such as `2*16`.
fn product(text: &str) -> Option<u64> {
    let factors = text.split('*').map(|factor| factor.trim().parse::<u64>().ok());
    factors.reduce(|all, one| all?.checked_mul(one?))?
}

/// The name up to `}`.
fn variable(after: &str) -> Option<&str> {
    let (name, _) = after.split_once('}')?;
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let ok = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    (ok && name.chars().all(letter)).then_some(name)
}
