//! Finds the known word nearest to a mistyped one.

/// Words longer than this are not typing mistakes, and the distance is quadratic in the length.
const LONGEST: usize = 40;

/// The candidate with the fewest insertions, deletions, replacements and swaps of neighbours
/// (Damerau-Levenshtein), or `None` if all are too different.
///
/// A third of the letters may differ, at least one. Among equals the first candidate wins, so a
/// caller puts preferred suggestions first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().take(LONGEST + 1).count();
    if length == 0 || length > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let allowed = (length / 3).max(1);
    let mut best = None;
    for candidate in candidates {
        let distance = strsim::damerau_levenshtein(&word, candidate);
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Advice about a value that is not accepted: those that are, in words, and the nearest of them.
pub fn use_instead(value: &str, accepted: &[&str]) -> String {
    let near = nearest(value, accepted.iter().copied());
    let near = near.map(|near| format!("; nearest: {near}")).unwrap_or_default();
    let (last, others) = accepted.split_last().map_or(("", &[][..]), |(last, rest)| (*last, rest));
    format!("use {} or {last}{near}", others.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{nearest, use_instead};

    #[test]
    fn a_wrong_value_is_answered_with_those_accepted() {
        let drivers = ["system", "software", "the path of a library"];
        let answer = use_instead("softwar", &drivers);
        assert_eq!(answer, "use system, software or the path of a library; nearest: software");
        assert_eq!(use_instead("9", &["1150", "1200"]), "use 1150 or 1200");
    }

    #[test]
    fn swapped_and_missing_letters_are_found() {
        let words = ["iodepth", "numjobs", "size"];
        assert_eq!(nearest("iodeph", words), Some("iodepth"));
        assert_eq!(nearest("iodetph", words), Some("iodepth"));
        assert_eq!(nearest("NUMJOB", words), Some("numjobs"));
    }

    #[test]
    fn unlike_words_suggest_nothing() {
        assert_eq!(nearest("banana", ["iodepth", "size"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), ["x"]), None);
    }

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(nearest("rx", ["rw", "ra"]), Some("rw"));
    }
}
