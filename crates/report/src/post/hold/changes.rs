//! Results before a change against those after it: below titles that are opposites, such as
//! `before:` and `after:`; and runs of one command that ran again.

use super::pairs::{ROW, unlike};
use super::{Known, say, words};
use crate::foreign::Direction;
use crate::post::line::Line;
use crate::post::{About, Asked, Got, Post, Run, Statement};

/// Words of two titles between which something changed.
const OPPOSITES: [[&str; 2]; 15] = [
    ["before", "after"],
    ["without", "with"],
    ["w/o", "with"],
    ["w/o", "w/"],
    ["off", "on"],
    ["disabled", "enabled"],
    ["disable", "enable"],
    ["old", "new"],
    ["default", "tuned"],
    ["stock", "tuned"],
    ["unpatched", "patched"],
    ["baseline", "after"],
    ["baseline", "with"],
    ["baseline", "tuned"],
    ["baseline", "optimized"],
];
/// Longer lines are sentences.
const TITLE: usize = 80;
const TITLE_WORDS: usize = 6;

/// The results below a title.
#[derive(Default)]
struct Part<'p> {
    line: usize,
    title: &'p str,
    runs: Vec<&'p Run>,
    /// Whether it is the later one of two that were compared.
    is_later: bool,
}

pub(super) fn hold(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut parts: Vec<Part<'_>> = vec![Part::default()];
    parts.extend(post.lines.iter().filter_map(|line| {
        let title = title(line)?;
        Some(Part { line: line.number, title, ..Part::default() })
    }));
    // A title names the table below it, and not the one below that.
    let heads: Vec<usize> = post.runs.iter().filter_map(|run| head(post, run)).collect();
    for pair in heads.windows(2).filter(|pair| pair[0] < pair[1]) {
        let titled = parts.iter().any(|part| pair[0] < part.line && part.line < pair[1]);
        parts.extend((!titled).then(|| Part { line: pair[1], ..Part::default() }));
    }
    parts.sort_by_key(|part| part.line);
    let all: Vec<_> = with_result(post).map(|run| (label(post, run), run)).collect();
    let has_other =
        |label: &str| all.iter().any(|one| one.0.is_some_and(|o| are_opposites(label, o)));
    let (rows, runs): (Vec<_>, Vec<_>) =
        all.iter().copied().partition(|one| one.0.is_some_and(has_other));
    for (_, run) in runs {
        let line = run.asked.as_ref().map_or(run.line, |asked| asked.line.min(run.line));
        let below = parts.iter_mut().rev().find(|part| part.line <= line);
        below.into_iter().for_each(|part| part.runs.push(run));
    }
    parts.retain(|part| !part.runs.is_empty());
    let mut all: Vec<Statement> = parts.iter().flat_map(|part| again(post, &part.runs)).collect();
    all.extend(all_between(post, parts));
    all.extend(all_between(post, labelled(&rows)));
    all
}

/// The title of one side of a change below which a line stands, by its line; 0 for none.
pub(super) fn side_of(post: &Post, line: usize) -> usize {
    let titles = || post.lines.iter().filter_map(|line| Some((line.number, title(line)?)));
    let has_other = |title: &str| titles().any(|(_, other)| are_opposites(title, other));
    let above = titles().take_while(|(number, _)| *number <= line);
    above.filter(|(_, title)| has_other(title)).last().map_or(0, |(number, _)| number)
}

/// Runs with a result.
fn with_result(post: &Post) -> impl Iterator<Item = &Run> {
    post.runs.iter().filter(|run| run.got.is_some())
}

/// The head of the table that a result is a row of.
fn head(post: &Post, run: &Run) -> Option<usize> {
    let got = run.got.as_ref().filter(|got| got.tool == "table")?;
    let at = post.lines.iter().position(|line| line.number == got.line)?;
    let rows = post.lines[..=at].iter().rev();
    rows.take_while(|line| line.text.trim_start().starts_with('|')).last().map(|line| line.number)
}

/// Whether the words of two tables' rows name one load: the same cells, but for words of what
/// changed. A cell that has no others is of any.
pub(super) fn are_rows_alike(a: &[String], b: &[String]) -> bool {
    let rest = |cell: &String| -> Vec<String> {
        let words = cell.split_whitespace().map(str::to_lowercase);
        words.filter(|word| !OPPOSITES.iter().flatten().any(|other| has(word, other))).collect()
    };
    let alike = |(a, b): (&String, &String)| {
        let (a, b) = (rest(a), rest(b));
        a == b || a.is_empty() || b.is_empty()
    };
    a.len() == b.len() && a.iter().zip(b).all(alike)
}

/// The cell of a table's row that says on which side of a change it is.
fn label<'p>(post: &'p Post, run: &Run) -> Option<&'p str> {
    let got = run.got.as_ref().filter(|got| got.tool == "table")?;
    let line = post.lines.iter().find(|line| line.number == got.line)?;
    let signs = ['*', '`', '~', ' '];
    let mut cells = line.text.split('|').map(|cell| cell.trim_matches(signs));
    let has_word = |cell: &str| OPPOSITES.iter().flatten().any(|word| has(cell, word));
    cells.find(|cell| has_word(cell) && cell.split_whitespace().count() <= TITLE_WORDS)
}

/// Rows of tables by their labels.
fn labelled<'p>(rows: &[(Option<&'p str>, &'p Run)]) -> Vec<Part<'p>> {
    let mut parts: Vec<Part<'p>> = Vec::new();
    for (label, run) in rows {
        let Some(title) = *label else { continue };
        match parts.iter_mut().find(|part| part.title == title) {
            Some(part) => part.runs.push(run),
            None => parts.push(Part { line: run.line, title, runs: vec![run], ..Part::default() }),
        }
    }
    parts
}

/// Each part against the nearest one before it whose title is its opposite.
fn all_between(post: &Post, mut parts: Vec<Part<'_>>) -> Vec<Statement> {
    let mut all = Vec::new();
    for later in 1..parts.len() {
        let earlier = (0..later).rev().filter(|at| !parts[*at].is_later);
        let fits = earlier.filter(|at| are_opposites(parts[*at].title, parts[later].title));
        let fits: Vec<usize> = fits.collect();
        // The same load comes before another one.
        let found = [true, false].into_iter().find_map(|same| {
            let mut found = fits.iter().map(|at| between(post, &parts[*at], &parts[later], same));
            found.find(|found| !found.is_empty())
        });
        parts[later].is_later = found.is_some();
        all.extend(found.into_iter().flatten());
    }
    all
}

/// A line that names what stands below it, or what stands behind it in a result's line. A heading
/// without such a word ends what the one above it named.
fn title(line: &Line) -> Option<&str> {
    let text = line.text.trim();
    let signs = ['#', '=', '*', '-', '_', '<', '>', '[', ']', '(', ')', ':', ' '];
    let before = [" IoType:", ": (g=", ": (groupid="].iter().find_map(|mark| text.find(mark));
    let is_heading = text.starts_with('#');
    let title = text[..before.unwrap_or(text.len())].trim_matches(signs);
    let has_word = OPPOSITES.iter().flatten().any(|word| has(title, word));
    let count = title.split_whitespace().count();
    let is_key = title.split(' ').next().is_some_and(|first| first.contains('='));
    // Tools print of a device that something of it is enabled.
    let is_device = title.split(' ').any(is_address);
    let short = count > 0 && !is_device && title.len() <= TITLE && !is_key && !title.contains('|');
    let begins = title.starts_with(|c: char| c.is_ascii_uppercase());
    let is_title = match has_word {
        true => is_heading || text.ends_with([':', '=', '-', ']']) || count <= TITLE_WORDS,
        false => is_heading && begins && count <= TITLE_WORDS,
    };
    let plain = line.prompt.is_none() && (before.is_none() || has_word);
    (short && is_title && plain && (is_heading || !title.ends_with('.'))).then_some(title)
}

/// Whether a word is a PCI address, `0000:3a:00.0`.
fn is_address(word: &str) -> bool {
    let parts: Vec<&str> = word.split([':', '.']).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let digits = || parts.iter().all(|part| part.chars().all(|c| c.is_ascii_hexdigit()));
    lengths.ends_with(&[4, 2, 2, 1]) && digits()
}

/// Whether a text has a word, in either case.
fn has(text: &str, word: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || ",;:()[]=".contains(c));
    words.any(|own| own.eq_ignore_ascii_case(word))
}

fn are_opposites(one: &str, other: &str) -> bool {
    OPPOSITES.iter().any(|[a, b]| {
        let only = |text: &str, word: &str, not: &str| has(text, word) && !has(text, not);
        only(one, a, b) && only(other, b, a) || only(one, b, a) && only(other, a, b)
    })
}

/// Whether two runs are of one load, as far as it is printed.
fn are_alike(a: &Run, b: &Run) -> bool {
    let (Some(one), Some(other)) = (&a.got, &b.got) else { return false };
    one.tool == other.tool && a.gpus() == b.gpus() && unlike(a, b).is_empty()
}

/// Results below two titles: of the same load, or of the only other one.
fn between(post: &Post, first: &Part<'_>, second: &Part<'_>, same: bool) -> Vec<Statement> {
    let mut all = Vec::new();
    let (mut earlier, mut later) = (loads(&first.runs), loads(&second.runs));
    later.retain(|runs| {
        let same = earlier.iter().position(|other| are_alike(other[0], runs[0]));
        let same = same.map(|at| earlier.remove(at));
        let found = same.as_ref().and_then(|other| change(post, (first, other), (second, runs)));
        all.extend(found);
        same.is_none()
    });
    if let ([other], [runs], false) = (earlier.as_slice(), later.as_slice(), same) {
        let way = |run: &Run| run.got.as_ref().map(|got| (got.direction, got.random));
        let row = unlike(other[0], runs[0]).iter().any(|(aspect, ..)| *aspect == ROW);
        if way(other[0]) == way(runs[0]) && !is_of_pairs(other[0], runs[0]) && !row {
            all.extend(change(post, (first, other), (second, runs)));
        }
    }
    all
}

/// The runs by their loads.
fn loads<'p>(runs: &[&'p Run]) -> Vec<Vec<&'p Run>> {
    let mut loads: Vec<Vec<&Run>> = Vec::new();
    for run in runs {
        match loads.iter_mut().find(|load| are_alike(load[0], run)) {
            Some(load) => load.push(run),
            None => loads.push(vec![run]),
        }
    }
    loads
}

/// Whether `pairs` compares these: on one place, with another GPU or path alone.
fn is_of_pairs(a: &Run, b: &Run) -> bool {
    let places = |run: &Run| run.asked.as_ref().map(|asked| asked.places.clone());
    let path = unlike(a, b).iter().all(|(aspect, ..)| *aspect == "path");
    path && places(a).is_some_and(|places| !places.is_empty()) && places(a) == places(b)
}

type Of = fn(&Got) -> Option<f64>;
const RATE: Of = |got| got.rate;
const LATENCY: Of = |got| got.latency;

/// Values of runs, ascending; empty where one of them has none.
fn values(runs: &[&Run], of: Of) -> Vec<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| of(run.got.as_ref()?)).collect();
    let mut values = values.unwrap_or_default();
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: &[f64]) -> Option<f64> {
    let middle = values.len() / 2;
    Some((values.get(middle)? + values.get(values.len().checked_sub(1)? / 2)?) / 2.0)
}

fn ratios(first: &[&Run], second: &[&Run]) -> Vec<String> {
    let ratio = |name: &str, of: Of| {
        let ratio = median(&values(second, of))? / median(&values(first, of))?;
        Some(format!("{ratio:.2} of the {name}"))
    };
    let iops = || ratio("IOPS", |got| got.iops);
    ratio("rate", RATE).or_else(iops).into_iter().chain(ratio("latency", LATENCY)).collect()
}

fn change(
    post: &Post,
    (from, first): (&Part<'_>, &[&Run]),
    (to, second): (&Part<'_>, &[&Run]),
) -> Option<Statement> {
    let figures = ratios(first, second);
    if figures.is_empty() {
        return None;
    }
    let steps = median(&values(first, RATE)).zip(median(&values(second, RATE)));
    let steps = steps.map(|(a, b)| format!("{} to {}, ", words::rate(a), words::rate(b)));
    let unlike = unlike(first[0], second[0]);
    let tools = first[0].got.as_ref().zip(second[0].got.as_ref());
    let tools = tools.filter(|(a, b)| a.tool != b.tool);
    let tools = tools.map(|(a, b)| format!("tool ({} and {})", a.tool, b.tool));
    let listed = unlike.iter().map(|(aspect, a, b)| format!("{aspect} ({a} and {b})"));
    let listed: Vec<String> = listed.chain(tools).collect();
    let too = match listed.is_empty() {
        true => String::new(),
        false => format!(
            " The loads differ in {} too, so the ratio is not of the change alone.",
            words::and(&listed)
        ),
    };
    let text = format!(
        "From \"{}\" to \"{}\": {}{}.{too} {} {}",
        from.title,
        to.title,
        steps.unwrap_or_default(),
        words::and(&figures),
        commands(post, first[0], second[0]),
        trust(first, second)
    );
    let mut lines: Vec<usize> = first.iter().chain(second).map(|run| run.line).collect();
    lines.extend([from.line, to.line]);
    Some(say(post, About::Compared, &lines, text))
}

/// The difference of the commands above two results.
fn commands(post: &Post, first: &Run, second: &Run) -> String {
    let words = |run: &Run| {
        let line = run.asked.as_ref()?.line;
        let line = post.lines.iter().find(|one| one.number == line)?;
        Some(flags(&line.prompt.as_ref()?.command))
    };
    let (Some(a), Some(b)) = (words(first), words(second)) else {
        return "Not both commands are here, so what else differs is not known.".to_owned();
    };
    let only = |own: &[String], other: &[String]| {
        let own: Vec<&str> =
            own.iter().filter(|word| !other.contains(word)).map(String::as_str).collect();
        match own.is_empty() {
            true => "nothing".to_owned(),
            false => format!("`{}`", own.join(" ")),
        }
    };
    if a != b {
        return format!("In the commands, {} became {}.", only(&a, &b), only(&b, &a));
    }
    let bare = |run: &Run| run.asked.clone().map(|asked| Asked { line: 0, ..asked });
    match bare(first) == bare(second) {
        true => "The commands are the same.".to_owned(),
        false => "The commands are the same, and their job files differ.".to_owned(),
    }
}

/// A command's words, each flag with its value.
fn flags(command: &str) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    for word in command.split_whitespace() {
        let is_flag = |text: &str| text.starts_with('-') && !text.contains([' ', '=']);
        match flags.last_mut().filter(|last| is_flag(last) && !word.starts_with('-')) {
            Some(last) => last.push_str(&format!(" {word}")),
            None => flags.push(word.to_owned()),
        }
    }
    flags
}

/// Whether the difference may be chance. Where nothing changed, each order of all runs is as likely
/// as another one, and two of these have the ones of either side first.
fn trust(first: &[&Run], second: &[&Run]) -> String {
    let (a, b) = (values(first, RATE), values(second, RATE));
    let (Some((least, most)), Some((low, high))) = (ends(&a), ends(&b)) else {
        return "How much of it is chance is not known.".to_owned();
    };
    if a.len() + b.len() == 2 {
        return "One run each: how much of it is chance is not known.".to_owned();
    }
    let counts = format!("{} and {} runs", a.len(), b.len());
    if low <= most && least <= high {
        return format!("{counts}, and their rates overlap: that it is no chance is not shown.");
    }
    let orders = (1..=b.len()).fold(1.0, |all, at| all * (a.len() + at) as f64 / at as f64);
    let percent = (200.0 / orders).min(100.0);
    let percent = if percent < 1.0 { "less than 1".to_owned() } else { format!("{percent:.0}") };
    format!("{counts}, whose rates do not overlap: chance alone does that in {percent} % of cases.")
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    Some((*values.first()?, *values.last()?))
}

/// Runs of one command one after the other.
fn again(post: &Post, runs: &[&Run]) -> Vec<Statement> {
    let same = |a: &&Run, b: &&Run| {
        let (Some(one), Some(other)) = (&a.asked, &b.asked) else { return false };
        let moved = Asked { line: one.line, ..other.clone() };
        let words = commands(post, a, b).ends_with("the same.");
        one.line != other.line && *one == moved && words && a.host == b.host && are_alike(a, b)
    };
    let groups = runs.chunk_by(same).filter(|group| group.len() > 1);
    groups.filter_map(|group| of_one_command(post, group)).collect()
}

fn of_one_command(post: &Post, group: &[&Run]) -> Option<Statement> {
    let rates = values(group, RATE);
    let (least, most) = ends(&rates).filter(|(least, most)| least < most)?;
    let reads = group[0].got.as_ref().is_some_and(|got| got.direction == Direction::Read);
    let cached = group.iter().all(|run| run.asked.as_ref().is_some_and(Asked::is_buffered));
    let cache = match reads && cached {
        true => " A run before may have left its file in the page cache.",
        false => "",
    };
    let text = match group {
        [first, second] => format!(
            "One command twice: the second run has {}. The text does not say what \
             changed between them. One run each: how much of it is chance is not known.{cache}",
            words::and(&ratios(&[first], &[second])),
        ),
        _ => format!(
            "One command {} times: {} to {}, in the middle {}; the highest is {:.2} of the lowest. \
             A difference between other runs that is smaller is not shown by one run each.{cache}",
            group.len(),
            words::rate(least),
            words::rate(most),
            words::rate(median(&rates)?),
            most / least
        ),
    };
    let lines: Vec<usize> = group.iter().map(|run| run.line).collect();
    Some(say(post, About::Compared, &lines, text))
}

#[cfg(test)]
mod tests {
    use super::super::own;
    use super::*;

    fn run(flags: &str, block: u32, rate: &str) -> String {
        format!("$ gdsio -D /d -d 0 -w 8 {flags}\n{}", result(block, rate))
    }

    fn result(block: u32, rate: &str) -> String {
        let mib = rate.parse::<f64>().unwrap() * 1024.0;
        let (set, latency) = (mib * 1024.0 * 90.0, 8e6 * f64::from(block) / 1024.0 / mib);
        let ops = set / f64::from(block);
        format!(
            "IoType: READ XferType: GPUD Threads: 8 DataSetSize: {set:.0}/1(KiB) IOSize: \
             {block}(KiB) Throughput: {rate} GiB/sec, Avg_Latency: {latency:.1} usecs ops: \
             {ops:.0} total_time 90.0 secs\n"
        )
    }

    fn said(text: &str) -> Vec<String> {
        let post = crate::post::read("post", text);
        hold(&own::sound(&post), &[]).into_iter().map(|one| one.words).collect()
    }

    #[test]
    fn results_below_opposite_titles_are_compared() {
        let (slow, fast) = (run("-x 0 -i 1M", 1024, "2.0"), run("-x 0 -i 1M", 1024, "5.0"));
        for (a, b) in [
            ("Before:", "After iommu=pt:"),
            ("## without jumbo frames", "## with jumbo frames"),
            ("Case 1: Without \"nconnect\"", "Case 2: With \"nconnect=16\""),
            ("=== ACS on ===", "=== ACS off ==="),
        ] {
            let all = said(&format!("{a}\n{slow}{b}\n{fast}"));
            assert_eq!(all.len(), 1, "{all:?}");
            for words in ["2.50 of the rate", "commands are the same", "One run each"] {
                assert!(all[0].contains(words), "{words}: {all:?}");
            }
        }
        let bare = format!("before: {}after: {}", result(1024, "2.0"), result(1024, "5.0"));
        assert!(said(&bare)[0].contains("Not both commands"), "{:?}", said(&bare));
        let other = run("-x 0 -i 2M", 2048, "5.0");
        let other = said(&format!("Before:\n{slow}After:\n{other}"));
        for words in ["block size (1M and 2M) too", "`-i 1M` became `-i 2M`"] {
            assert!(other[0].contains(words), "{other:?}");
        }
    }

    #[test]
    fn each_result_has_the_one_of_its_load() {
        let (read, write) = (result(1024, "2.0"), result(64, "1.0"));
        let text = format!(
            "before, read:\n{read}before, write:\n{write}after, read:\n{}after, write:\n{}",
            result(1024, "3.0"),
            result(64, "0.5")
        );
        let all = said(&text);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].contains("\"before, read\" to \"after, read\": 2.00 GiB/s"), "{all:?}");
        assert!(all[1].contains("0.50 of the rate"), "{all:?}");
        let turns = format!("old:\n{read}new:\n{read}\n## Writes\nold:\n{write}new:\n{write}");
        assert_eq!(said(&turns).len(), 2, "{:?}", said(&turns));
        for text in [
            format!(
                "Before:\n{read}Then a sentence on it, with what came after it to be seen.\n\
                     {read}"
            ),
            format!("Before:\n{read}\n## Another machine\n{read}"),
            format!("We use GPUs with NVLink\n{read}Results on node 3:\n{read}"),
        ] {
            assert!(said(&text).is_empty(), "{text}: {:?}", said(&text));
        }
    }

    #[test]
    fn runs_of_either_side_say_whether_it_may_be_chance() {
        let of = |rates: [&str; 3]| rates.map(|rate| result(1024, rate)).concat();
        let apart = said(&format!(
            "old:\n{}new:\n{}",
            of(["2.0", "2.2", "2.1"]),
            of(["3.0", "3.3", "3.1"])
        ));
        assert!(apart[0].contains("1.48 of the rate"), "{apart:?}");
        assert!(apart[0].contains("chance alone does that in 10 % of cases"), "{apart:?}");
        let over = said(&format!(
            "old:\n{}new:\n{}",
            of(["2.0", "2.2", "2.1"]),
            of(["3.0", "2.1", "3.1"])
        ));
        assert!(over[0].contains("their rates overlap"), "{over:?}");
    }

    #[test]
    fn a_column_of_a_table_says_before_and_after() {
        let row = |label: &str, rate: &str| format!("| {label} | 8 | {rate} |\n");
        let table = |rows: &[(&str, &str)]| {
            let head = "| change | threads | read GiB/s |\n|---|---|---|\n".to_owned();
            head + &rows.iter().map(|(label, rate)| row(label, rate)).collect::<String>()
        };
        let two = said(&table(&[("before", "2.0"), ("**after**", "3.0")]));
        assert!(two[0].contains("From \"before\" to \"after\": 2.00 GiB/s to 3.00"), "{two:?}");
        assert!(two[0].contains("One run each"), "{two:?}");
        let six = [("before", "2.0"), ("before", "2.2"), ("before", "2.1")];
        let six =
            [six.as_slice(), &[("after", "3.0"), ("after", "3.3"), ("after", "3.1")]].concat();
        let text = table(&six);
        for text in [text.clone(), format!("## After the update\n\n{text}")] {
            let six = said(&text);
            assert!(six.len() == 1 && six[0].contains("3 and 3 runs"), "{six:?}");
        }
    }

    #[test]
    fn a_title_names_one_table_and_a_row_one_load() {
        let table = |a: &str, b: &str| {
            let head = "\n| Test | Read GiB/s |\n|---|---|\n";
            format!("{head}| seq, 8 jobs | {a} |\n| seq, 16 jobs | {b} |\n")
        };
        let text = format!("Before:\n{}\nAfter GDS:\n{}", table("3.1", "3.2"), table("5.9", "6.1"));
        let third = "\n| System | read GiB/s |\n|---|---|\n| ext4 | 3 |\n| seq, 8 jobs | 6 |\n";
        let all = said(&(text + third));
        assert_eq!(all.len(), 2, "{all:?}");
        for (one, rates) in all.iter().zip(["3.10 GiB/s to 5.90", "3.20 GiB/s to 6.10"]) {
            assert!(one.contains(rates) && one.contains("One run each"), "{all:?}");
        }
        let rows = "| drive | threads | read GiB/s |\n|---|---|---|\n| a | 4 | 1 |\n| b | 8 | 2 |\n\
                    | c | 16 | 3 |\n";
        let post = crate::post::read("post", rows);
        assert_eq!(super::super::pairs::series(&post, &[]), [], "three drives are no series");
    }

    #[test]
    fn results_that_contradict_themselves_are_not_compared() {
        let wrong = result(1024, "5.0").replace("5.0 GiB", "50.0 GiB");
        assert_eq!(said(&format!("before:\n{}after:\n{wrong}", result(1024, "2.0"))), [""; 0]);
    }

    #[test]
    fn a_command_that_ran_again_shows_its_scatter() {
        let all = |rates: &[&str]| {
            said(&rates.iter().map(|rate| run("-x 0 -i 1M", 1024, rate)).collect::<String>())
        };
        assert!(all(&["2.0", "3.0"])[0].contains("the second run has 1.50 of the rate"));
        let three = all(&["2.0", "3.0", "2.5"]);
        assert!(three.len() == 1 && three[0].contains("the highest is 1.50 of the lowest"));
        assert!(all(&["2.0", "2.0"]).is_empty());
        let cached = "$ dd if=/d/x of=/dev/null bs=1M\n1048576000 bytes (1 GB) copied, T s, 1\n";
        let twice = cached.replace("T s", "2.0 s") + &cached.replace("T s", "0.2 s");
        assert!(said(&twice)[0].contains("page cache"), "{:?}", said(&twice));
    }
}
