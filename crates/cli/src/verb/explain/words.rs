//! Words of tables and reports: the terms of the glossary, and heads and verdicts besides. Names of
//! paths, engines, percentiles, evidence sources, columns of CSV and keys of job files have their
//! meaning in the tables that they come from.

use gpuio_base::stat::Percentile;
use gpuio_io::engine::ENGINES;
use gpuio_io::path::PATHS;
use gpuio_job::spec::{self, Key, Status};
use gpuio_report::format::csv;

/// The terms: a table of Markdown, terms and meaning.
const GLOSSARY: &str = include_str!("../../../../../docs/glossary.md");
/// Other words, and behind a tab their meaning.
const WORDS: &str = include_str!("words.tsv");

/// Evidence sources: the table of Markdown with `process_io`, what each reads, and its limits.
const PROOF: &str = include_str!("../../../../../docs/proof.md");

/// The names that tables of the program have, with their meanings. A word may be one of these and
/// have a line of its own.
fn names() -> Vec<(String, String)> {
    let paths = PATHS.iter().map(|row| (row.info.name, format!("Path: {}.", row.info.summary)));
    let engines =
        ENGINES.iter().map(|row| (row.info.name, format!("Engine: {}.", row.info.summary)));
    let evidence = PROOF.lines().skip_while(|line| !line.starts_with("| Name | Reads"));
    let evidence = evidence.skip(2).map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let evidence = evidence.filter_map(|line| {
        let (name, (reads, limits)) = line
            .split_once(" | ")
            .and_then(|(name, rest)| Some((name, rest.split_once(" | ")?)))?;
        Some((name.trim_matches('`'), format!("Evidence source: {reads}. Limits: {limits}.")))
    });
    let fixed = paths.chain(engines).chain(evidence);
    let fixed = fixed.map(|(name, meaning)| (name.to_owned(), meaning));
    let columns = csv::columns(&Percentile::ALL).into_iter();
    let columns =
        columns.map(|one| (one.name.into_owned(), format!("Column of CSV: {}.", one.meaning)));
    let doubts = gpuio_report::doubt_kinds();
    let doubts = doubts.map(|(name, help)| (name, format!("Doubt about a job's figures: {help}.")));
    let marks = gpuio_report::MARKS.into_iter();
    let marks = marks.map(|(mark, meaning)| (mark, format!("Behind a rate: {meaning}.")));
    let marks = doubts.chain(marks).map(|(name, meaning)| (name.to_owned(), meaning));
    fixed.chain(columns).chain(marks).collect()
}

/// A key of job files.
fn key(key: &Key) -> String {
    let about = key.about().replace('`', "");
    match key.status {
        Status::Supported(_) => format!("Key of job files: {about}."),
        Status::NoEffect { why } => format!("Key of job files without effect: {why}."),
        Status::Known { why, instead, .. } => {
            format!("Key of job files that is refused: {why}. Instead: {instead}.")
        }
    }
}

/// `p99.9`: the latency that all I/Os but the slowest so many kept.
fn percentile(word: &str) -> Option<(String, String)> {
    let one = Percentile::named(&word.trim_matches('`').to_lowercase())?;
    let least = one.least_values();
    let needs = match least {
        1 => String::new(),
        _ => format!(" Printed where there are {least} I/Os or more: of fewer it says nothing."),
    };
    let meaning =
        format!("The {} of the latency: {one} % of the I/Os took no longer.{needs}", one.title());
    Some((one.label(), meaning))
}

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
    let own = lines().flat_map(|(words, _)| words_of(words));
    let keys = spec::keys().map(|key| key.name.to_owned());
    own.chain(names().into_iter().map(|(name, _)| name)).chain(keys)
}

/// A word in the form in which words are the same.
fn plain(word: &str) -> String {
    word.trim_matches(['[', ']', '`']).to_lowercase().replace(['_', '-'], " ")
}

/// A word as it is written, and its meaning. `bounce (host)` is `bounce`, `group 0` is `group`,
/// `rewritten, ok` is `rewritten`, and titles end with a colon or a question mark.
pub(super) fn find(word: &str) -> Option<(String, String)> {
    let of = |wanted: String| {
        lines().find_map(|(words, meaning)| {
            words_of(words).find(|known| plain(known) == wanted).map(|known| (known, meaning))
        })
    };
    let bare = word.split(" (").next().unwrap_or_default();
    let bare = bare.trim_end_matches(|end: char| end == ' ' || end.is_ascii_digit());
    // `soft:staged` and `bounce:?` have a part that differs behind the colon.
    let mark = word.split_once(':').map(|(mark, _)| format!("{mark}:"));
    let title = word.trim_end_matches([':', '?']);
    let first = title.split(", ").next().unwrap_or_default();
    let whole = format!("the {title}");
    let own = [word, bare, title, first, &whole].into_iter().find_map(|known| of(plain(known)));
    let own = own.or_else(|| of(plain(&mark?)).map(|(_, meaning)| (word.to_owned(), meaning)));
    let mut named: Vec<(String, String)> = names();
    named.retain(|(name, _)| plain(name) == plain(word));
    let own = own.map(|(known, meaning)| (known, meaning.to_owned()));
    let marked = own.into_iter().chain(named).chain(percentile(word));
    let marked = marked.map(|(known, meaning)| (known, text(&meaning)));
    let spelled = word.trim_matches('`').to_lowercase();
    let key = spec::find(&spelled).map(|found| (found.name.to_owned(), key(found)));
    let all: Vec<(String, String)> = marked.chain(key).collect();
    let known = all.first()?.0.clone();
    let mut meanings: Vec<String> = all.into_iter().map(|(_, meaning)| meaning).collect();
    if let [first, rest @ ..] = meanings.as_mut_slice()
        && !rest.is_empty()
        && !first.ends_with('.')
    {
        first.push('.');
    }
    Some((known, meanings.join(" ")))
}

/// Markdown as plain text: `[paths.md](paths.md#io)` is docs/paths.md, and behind other words the
/// page is in brackets.
fn text(meaning: &str) -> String {
    let mut text = meaning.replace(['`', '*'], "");
    while let Some((before, after)) = text.split_once("](") {
        let Some((link, after)) = after.split_once(')') else { break };
        let Some((before, words)) = before.rsplit_once('[') else { break };
        let page = format!("docs/{}", link.split('#').next().unwrap_or_default());
        text = match words.ends_with(".md") {
            true => format!("{before}{page}{after}"),
            false => format!("{before}{words} ({page}){after}"),
        };
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

    /// The sources below a folder, without their tests.
    fn sources(folder: &Path) -> Vec<String> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                all.extend(sources(&path));
            } else if path.extension().is_some_and(|end| end == "rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                all.extend(source.split("#[cfg(test)]").next().map(str::to_owned));
            }
        }
        all
    }

    /// The heads that the sources give columns: literals behind `.words(`, `.figures(` and, of
    /// narrow tables, `.short(`.
    fn heads(folder: &Path, found: &mut BTreeSet<String>) {
        for code in sources(folder) {
            let parts = code.split(".words(").flat_map(|part| part.split(".figures("));
            let parts = parts.flat_map(|part| part.split(".short("));
            let head = |part: &str| {
                let (head, _) = part.trim_start().strip_prefix('"')?.split_once('"')?;
                Some(head.to_owned()).filter(|head| !head.is_empty())
            };
            found.extend(parts.skip(1).filter_map(head));
        }
    }

    /// The names that the modules of evidence give their sources.
    fn evidence_sources() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../load/src/evidence/source");
        let named = |path: std::path::PathBuf| {
            let file = if path.is_dir() { path.join("mod.rs") } else { path };
            let source = std::fs::read_to_string(file).unwrap();
            let (_, rest) = source.split_once("SOURCE: Source =")?;
            let (_, rest) = rest.split_once("name: \"")?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let all: Vec<String> = files.filter_map(named).collect();
        assert!(all.len() >= 10, "{all:?}");
        all
    }

    /// The labels of lines and the titles above them, as the sources have them.
    fn labels(folder: &Path, found: &mut BTreeSet<String>) {
        let own = ["Item::new(", "of_jobs(record, ", "lines(record, ("];
        for code in sources(folder) {
            let titles = code.split("Section::new(").skip(1);
            let titles = titles.filter_map(|part| part.split_once(',').map(|(_, title)| title));
            let others = own.iter().flat_map(|call| code.split(call).skip(1));
            let literal = |part: &str| {
                let (text, _) = part.trim_start().strip_prefix('"')?.split_once('"')?;
                let is_word = !text.is_empty() && !text.contains(['{', '\\']);
                is_word.then(|| text.to_owned())
            };
            found.extend(titles.chain(others).filter_map(literal));
        }
    }

    #[test]
    fn every_label_and_title_of_a_result_is_explained() {
        let mut all = BTreeSet::new();
        for part in ["cli/src/verb/sweep", "machine/src/check/why", "report/src", "watch/src"] {
            labels(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(part), &mut all);
        }
        assert!(all.len() > 60, "{all:?}");
        let marks = ["rewritten, ok", "reads ok", "sample ok", "nothing", "other bs", "cut short"];
        let parts = ["waits for other accelerators", "the rest", "the wait for the first batch"];
        let texts = ["timed blocks", "the kernel's software twin", "multiprocessor", "too few"];
        let rules = ["MLPerf rule broken", "legs of an I/O, p50 / p99:", "MLPerf rules kept"];
        let more = [&marks[..], &parts, &texts, &rules].concat();
        all.extend(more.into_iter().map(str::to_owned));
        let unknown: Vec<&String> = all.iter().filter(|word| find(word).is_none()).collect();
        assert!(unknown.is_empty(), "without a meaning in words.tsv: {unknown:?}");
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
        all.extend(PATHS.iter().map(|row| row.info.name.to_owned()));
        all.extend(ENGINES.iter().map(|row| row.info.name.to_owned()));
        all.extend(Percentile::ALL.iter().flat_map(|one| [one.label(), one.key()]));
        all.extend(csv::columns(&Percentile::ALL).into_iter().map(|one| one.name.into_owned()));
        all.extend(evidence_sources());
        all.extend(spec::keys().flat_map(Key::spellings).map(str::to_owned));
        let printed = ["stall", "restore", "drain", "fsync", "scale", "epoch", "accelerator"];
        let more = ["total", "≥", "await", "aqu-sz", "queue", "bounce:via", "step"];
        let texts =
            ["group 0", "soft:staged", "bounce:?", "bounce:GPU1", "via cache", "-", "workers done"];
        let feeds = ["service level", "context", "round", "first batch", "needs", "ready", "busy"];
        let all_of = printed.into_iter().chain(more).chain(texts).chain(feeds);
        all.extend(all_of.map(str::to_owned));
        all.extend(
            ["!", "~", "^", "?", "#", "@", "content", "no_digest", "not_storage"]
                .map(str::to_owned),
        );
        let compared = ["faster", "slower", "better", "worse", "less CPU", "more CPU", "noise"];
        let others = ["same", "not comparable", "not enough runs", "disturbed", "no effect"];
        let asked = ["knee", "CoV", "ends", "cold", "warm", "of best", "BEYOND THRESHOLD", "legs"];
        let thresholds = ["passed", "failed", "undetermined"];
        let assessed = ["for", "against", "supports", "contradicts", "inconclusive"];
        all.extend([&thresholds[..], &assessed].concat().into_iter().map(str::to_owned));
        all.extend([&compared[..], &others, &asked].concat().into_iter().map(str::to_owned));
        let unknown: Vec<&String> = all.iter().filter(|word| find(word).is_none()).collect();
        assert!(unknown.is_empty(), "without a meaning in words.tsv: {unknown:?}");
    }

    #[test]
    fn a_word_has_one_meaning_and_plain_text() {
        let mut seen = BTreeSet::new();
        for word in lines().flat_map(|(words, _)| words_of(words)) {
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
        let (_, staged) = find("staged").unwrap();
        assert!(staged.contains("checkpoints") && staged.contains("Path: "), "{staged}");
        let (word, tail) = find("p99_9").unwrap();
        assert_eq!(word, "p99.9");
        assert!(tail.contains("10000 I/Os or more"), "{tail}");
        assert_eq!(find("nosuch"), None);
        let (word, meaning) = find("group-reporting").unwrap();
        assert!(word == "group_reporting" && meaning.starts_with("Key of job files"), "{meaning}");
        assert!(find("job").unwrap().1.contains("A job file (docs/job-file.md) describes"));
        // No two words of the same kind share a text that is about one of them.
        for [one, other] in
            [["supports", "inconclusive"], ["save", "restore"], ["bounce", "bounce:via"]]
        {
            assert_ne!(find(one).unwrap().1, find(other).unwrap().1);
        }
        assert!(find("queue").unwrap().1.contains("until it was started"));
        // An example in a key's help keeps its characters.
        assert!(find("utilisation").unwrap().1.contains("MLPerf Storage's formula"));
    }
}
