//! Words of tables and reports: the terms of the glossary, and heads and verdicts besides.

/// The terms: a table of Markdown, terms and meaning.
const GLOSSARY: &str = include_str!("../../../../../docs/glossary.md");
/// Other words, and behind a tab their meaning.
const WORDS: &str = include_str!("words.tsv");

/// Each line of both: its words, and what they mean.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let table = GLOSSARY
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let terms = table.filter(|(term, _)| !term.starts_with("---") && *term != "Term");
    terms.chain(WORDS.lines().filter_map(|line| line.split_once('\t')))
}

/// The words of a line.
fn words_of(words: &str) -> impl Iterator<Item = String> {
    words.split(", ").map(|word| word.trim_matches('`').to_owned())
}

/// Every word.
pub(super) fn all() -> impl Iterator<Item = String> {
    lines().flat_map(|(words, _)| words_of(words))
}

/// A word in the form in which words are the same.
fn plain(word: &str) -> String {
    word.trim_matches(['[', ']', '`']).to_lowercase().replace(['_', '-'], " ")
}

/// A word as it is written, and its meaning. `bounce (host)` is `bounce`.
pub(super) fn find(word: &str) -> Option<(String, String)> {
    let of = |wanted: String| {
        lines().find_map(|(words, meaning)| {
            words_of(words).find(|known| plain(known) == wanted).map(|known| (known, meaning))
        })
    };
    let bare = word.split(" (").next().unwrap_or_default();
    let (known, meaning) = of(plain(word)).or_else(|| of(plain(bare)))?;
    Some((known, text(meaning)))
}

/// Markdown as plain text: `[paths.md](paths.md#io)` is docs/paths.md.
fn text(meaning: &str) -> String {
    let mut text = meaning.replace(['`', '*'], "");
    while let Some((before, after)) = text.split_once("](") {
        let Some((link, after)) = after.split_once(')') else { break };
        let Some((before, _)) = before.rsplit_once('[') else { break };
        text = format!("{before}docs/{}{after}", link.split('#').next().unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use gpuio_machine::check::Severity;
    use gpuio_record::{Route, Source, Verdict, metric};

    use super::*;

    /// The heads that the sources give columns: literals behind `.words(` and `.figures(`.
    fn heads(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                heads(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                let code = source.split("#[cfg(test)]").next().unwrap_or_default();
                let parts = code.split(".words(").flat_map(|part| part.split(".figures("));
                let head = |part: &str| {
                    let (head, _) = part.trim_start().strip_prefix('"')?.split_once('"')?;
                    Some(head.to_owned()).filter(|head| !head.is_empty())
                };
                found.extend(parts.skip(1).filter_map(head));
            }
        }
    }

    #[test]
    fn every_head_and_every_verdict_is_explained() {
        let mut all = BTreeSet::new();
        for part in ["cli", "machine", "report", "watch"] {
            heads(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{part}/src")), &mut all);
        }
        assert!(all.len() > 100, "{all:?}");
        all.extend(metric::ROWS.iter().map(|row| row.label.to_owned()));
        let routes = [
            Route::Direct,
            Route::HostMemory,
            Route::Mapped,
            Route::BounceHost,
            Route::BounceGpu { gpu: 1 },
            Route::Mixed,
            Route::Unknown,
        ];
        let sources = [
            Source::Storage,
            Source::StorageThroughPageCache,
            Source::PageCache,
            Source::Mixed,
            Source::Holes,
            Source::Unknown,
        ];
        for (route, source) in routes.iter().flat_map(|r| sources.iter().map(move |s| (r, s))) {
            for (reads, writes) in [(true, false), (false, true), (true, true)] {
                let words = Verdict::new(*route, *source, reads, writes).words;
                all.extend(words.split(", ").map(str::to_owned));
            }
        }
        all.extend(Severity::ALL.map(|one| one.word().to_owned()));
        let compared = ["faster", "slower", "better", "worse", "less CPU", "more CPU", "noise"];
        let others = ["same", "not comparable", "not enough runs", "disturbed", "no effect"];
        let asked = ["knee", "CoV", "ends", "cold", "warm", "of best", "BEYOND THRESHOLD"];
        all.extend([&compared[..], &others, &asked].concat().into_iter().map(str::to_owned));
        let unknown: Vec<&String> = all.iter().filter(|word| find(word).is_none()).collect();
        assert!(unknown.is_empty(), "without a meaning in words.tsv: {unknown:?}");
    }

    #[test]
    fn a_word_has_one_meaning_and_plain_text() {
        let mut seen = BTreeSet::new();
        for word in all() {
            assert!(seen.insert(plain(&word)), "{word} has two meanings");
            let (_, meaning) = find(&word).unwrap();
            let marks = ["`", "**", "]("];
            assert!(!marks.iter().any(|mark| meaning.contains(mark)), "{word}: {meaning}");
        }
        let (word, meaning) = find("of_best").unwrap();
        assert_eq!(word, "of best");
        assert!(meaning.contains("best point"), "{meaning}");
        assert_eq!(find("bounce (GPU 3)").unwrap().0, "bounce");
        assert!(find("capture").unwrap().1.ends_with("(docs/topo.md)"));
        assert_eq!(find("nosuch"), None);
    }
}
