//! Printed text where the locale has ASCII alone (`LC_ALL=C`): the signs that gpuio uses are
//! spelled in ASCII. Files, and formats that programs read, stay UTF-8.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use gpuio_guard::objects::environment;

/// Signs, and how they are spelled. Others become `?`.
const SPELLED: [(&str, &str); 13] = [
    ("×", "x"),
    ("µμ", "u"),
    ("…", "..."),
    ("±", "+-"),
    ("÷", "/"),
    ("·•", "*"),
    ("→", "->"),
    ("←", "<-"),
    ("↔", "<->"),
    ("≥", ">="),
    ("≤", "<="),
    ("–—─━┄┈═", "-"),
    ("│┃║", "|"),
];
/// Blocks of bars: full, or less than half of a cell.
const FULL: &str = "█▉▊▋▌▓▇▆▅▄■";

/// Formats that people read. Others are for programs, which read what is there to its end.
pub(crate) const FOR_PEOPLE: [&str; 2] = ["summary", "text"];

/// Whether programs read what goes to standard output.
static DATA: AtomicBool = AtomicBool::new(false);

/// From now on standard output has this format.
pub(crate) fn printed_as(format: &str) {
    DATA.store(!FOR_PEOPLE.contains(&format), Ordering::Relaxed);
}

/// Whether standard output has a format for programs.
pub(crate) fn is_data() -> bool {
    DATA.load(Ordering::Relaxed)
}

/// Whether the locale says that text is not UTF-8: by the first of three variables that is set
/// (POSIX.1-2024, Base Definitions, 8.2). Where none is, nothing is said.
pub(crate) fn is_ascii() -> bool {
    static ASCII: OnceLock<bool> = OnceLock::new();
    *ASCII.get_or_init(|| {
        let set = |name: &&str| environment::text(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
        locale.is_some_and(|name| !is_utf8(&name))
    })
}

fn is_utf8(locale: &str) -> bool {
    let name = locale.to_ascii_lowercase();
    name.contains("utf-8") || name.contains("utf8")
}

/// The text as a terminal of this locale can show it.
pub(crate) fn shown(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.is_ascii() || !is_ascii() { text } else { Cow::Owned(spelled(&text)) }
}

fn spelled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match SPELLED.iter().find(|(signs, _)| signs.contains(sign)) {
            _ if sign.is_ascii() => out.push(sign),
            Some((_, ascii)) => out.push_str(ascii),
            None if FULL.contains(sign) => out.push('#'),
            // Lines of boxes, and the rest of the blocks.
            None if ('─'..='▟').contains(&sign) => out.push('+'),
            None => out.push('?'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_spelled_in_ascii() {
        assert_eq!(spelled("2×32, 12.3 µs ±4 % → █▏ é…"), "2x32, 12.3 us +-4 % -> #+ ?...");
        assert!(is_utf8("C.UTF-8") && is_utf8("de_DE.utf8"));
        assert!(!is_utf8("C") && !is_utf8("POSIX") && !is_utf8("de_DE.ISO-8859-1"));
    }
}
