//! Where functions and test code begin and end, by counting braces in masked code.

use super::mask::is_name;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Line of the `fn`, from 1.
    pub(super) line: usize,
    /// Lines from the `fn` to its closing brace, both counted.
    pub(super) lines: usize,
}

/// Every function with a body, in order, those inside others as well.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let chars: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut line = 1;
    for at in 0..chars.len() {
        if chars[at] == '\n' {
            line += 1;
        }
        if let Some(name) = name_after_fn(&chars, at)
            && let Some((open, close)) = body(&chars, at)
        {
            let lines = 1 + newlines(&chars[at..open]) + newlines(&chars[open..close]);
            found.push(Function { name, line, lines });
        }
    }
    found
}

/// For each line, whether it belongs to an item marked `#[test]` or `#[cfg(test)]`.
pub(super) fn test_lines(code: &str) -> Vec<bool> {
    let mut marked = vec![false; code.lines().count()];
    let chars: Vec<char> = code.chars().collect();
    let mut line = 0;
    for at in 0..chars.len() {
        if chars[at] == '\n' {
            line += 1;
        }
        if chars[at] == '#' && is_test_attribute(&chars[at..]) {
            let end = body(&chars, at).map_or(at, |(_, close)| close);
            let last = (line + newlines(&chars[at..end])).min(marked.len().saturating_sub(1));
            marked[line..=last].fill(true);
        }
    }
    marked
}

fn is_test_attribute(chars: &[char]) -> bool {
    ["#[test]", "#[cfg(test)]", "#[cfg(all(test,"]
        .iter()
        .any(|text| chars.iter().copied().take(text.len()).eq(text.chars()))
}

/// The name, when `fn name` (or `fn $name` in a macro) starts at `at`; a type `fn(u32)` has none.
fn name_after_fn(chars: &[char], at: usize) -> Option<String> {
    let starts = at == 0 || !is_name(chars[at - 1]);
    if !starts || chars[at] != 'f' || chars.get(at + 1) != Some(&'n') {
        return None;
    }
    let rest = &chars[at + 2..];
    let blanks = rest.iter().take_while(|c| c.is_whitespace()).count();
    let name: String = rest[blanks..].iter().take_while(|c| is_name(**c) || **c == '$').collect();
    (blanks > 0 && !name.is_empty()).then_some(name)
}

/// The braces of the first block after `from`, or none when a `;` ends the item before.
fn body(chars: &[char], from: usize) -> Option<(usize, usize)> {
    let mut nested = 0_i32;
    for at in from..chars.len() {
        match chars[at] {
            '(' | '[' => nested += 1,
            ')' | ']' => nested -= 1,
            ';' if nested == 0 => return None,
            '{' if nested == 0 => return closing(chars, at).map(|close| (at, close)),
            _ => {}
        }
    }
    None
}

fn closing(chars: &[char], open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in chars.iter().enumerate().skip(open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn newlines(chars: &[char]) -> usize {
    chars.iter().filter(|c| **c == '\n').count()
}
