//! Results of several texts against each other, as those of one.

use std::borrow::Cow;

use super::{Known, Rule, own, pairs, say};
use crate::post::{About, Asked, Beside, Got, Post, Run, Statement};

/// Conclusions from results that stand in different texts. Titles and tables say only what stands
/// below them in their own text.
pub(super) fn hold(posts: &[Post], known: &[Known<'_>]) -> Vec<Statement> {
    let has_result = |post: &&Post| post.runs.iter().any(|run| run.got.is_some());
    let posts: Vec<Cow<'_, Post>> = posts.iter().filter(has_result).map(own::sound).collect();
    if posts.len() < 2 {
        return Vec::new();
    }
    let mut whole = together(&posts);
    let mut all = copies(&mut whole);
    let rules: [Rule; 3] = [pairs::pairs, pairs::series, pairs::alike];
    all.extend(rules.iter().flat_map(|rule| rule(&whole, known)));
    all
}

/// One text of the results of all: numbers of lines go on. Loads that differ in their threads alone
/// stand below each other, by threads.
fn together(posts: &[Cow<'_, Post>]) -> Post {
    let mut whole = Post::default();
    for (nth, post) in posts.iter().enumerate() {
        let from = whole.most_line;
        match nth {
            0 => whole.name.clone_from(&post.name),
            _ => whole.joined.push(Beside { name: post.name.clone(), from }),
        }
        let runs = post.runs.iter().filter_map(|run| {
            let got = run.got.as_ref().filter(|got| got.tool != pairs::TABLE)?;
            let asked = run.asked.clone();
            Some(Run {
                line: run.line + from,
                asked: asked.map(|asked| Asked { line: asked.line + from, ..asked }),
                got: Some(Got { line: got.line + from, ..got.clone() }),
                beside: Vec::new(),
                apart: Vec::new(),
                ..run.clone()
            })
        });
        whole.runs.extend(runs);
        whole.most_line += post.most_line;
    }
    whole.runs.sort_by_cached_key(|run| {
        let got = run.got.clone().unwrap_or_default();
        let places = run.asked.clone().map(|asked| (asked.places, asked.gpus));
        (got.direction.name(), got.random, got.block, got.path, places, got.threads)
    });
    whole
}

/// Takes results away that another text has too, figure for figure: they are of one run.
fn copies(whole: &mut Post) -> Vec<Statement> {
    let mut once: Vec<Run> = Vec::new();
    let mut found = Vec::new();
    for run in std::mem::take(&mut whole.runs) {
        let figures = |run: &Run| run.got.clone().map(|got| Got { line: 0, ..got });
        let text = |run: &Run| whole.origin(run.line).0.to_owned();
        match once.iter().find(|old| figures(old) == figures(&run) && text(old) != text(&run)) {
            Some(old) => found.push([old.line, run.line]),
            None => once.push(run),
        }
    }
    whole.runs = once;
    let words = "One result in two texts, figure for figure: it is of one run, and no repeat.";
    found.iter().map(|lines| say(whole, About::Compared, lines, words.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use crate::post::{About, hold, read};

    fn line(threads: u32, rate: f64) -> String {
        let kib = rate * 1024.0 * 1024.0;
        let (set, latency) = (kib * 90.0, f64::from(threads * 4) * 1e6 / kib);
        let ops = set / 4.0;
        format!(
            "IoType: RANDREAD XferType: GPUD Threads: {threads} DataSetSize: {set:.0}/1(KiB) \
             IOSize: 4(KiB) Throughput: {rate} GiB/sec, Avg_Latency: {latency:.1} usecs ops: \
             {ops:.0} total_time 90.0 secs\n"
        )
    }

    fn said(texts: &[&str]) -> Vec<String> {
        let posts: Vec<_> =
            texts.iter().enumerate().map(|(nth, text)| read(&format!("{nth}.txt"), text)).collect();
        let all = hold(&posts, &[]).into_iter().filter(|one| one.about == About::Compared);
        all.map(|one| format!("{}:{:?} {}", one.file, one.lines, one.words)).collect()
    }

    #[test]
    fn one_load_in_two_texts_is_compared_as_in_one() {
        let (fast, slow) = (line(64, 1.85), line(64, 0.105));
        let all = said(&[&fast, &slow]);
        assert!(all.len() == 1 && all[0].starts_with("0.txt:[1] One load"), "{all:?}");
        assert!(
            all[0].ends_with(
                "17.6 times apart. Something else differs (another GPU, drive or \
             cache state, another load beside it), so no mean of them is the rate of either \
             (1.txt:1)."
            ),
            "{all:?}"
        );
        assert_eq!(said(&[&fast, &line(64, 1.8)]), [""; 0]);
        // In one text it is said once.
        assert_eq!(said(&[&(fast.clone() + &slow), &line(8, 0.2)]).len(), 1);
    }

    #[test]
    fn threads_of_several_texts_make_a_series_in_any_order() {
        let [a, b, c] = [(4, 0.1), (8, 0.2), (16, 0.21)].map(|(w, rate)| line(w, rate));
        let all = said(&[&c, &a, &b]);
        assert!(all.len() == 1 && all[0].contains("By threads: 4: "), "{all:?}");
        assert!(all[0].contains("More threads only add latency"), "{all:?}");
    }

    #[test]
    fn a_copy_of_a_result_is_no_repeat() {
        let one = line(8, 0.2);
        let all = said(&[&one, &one]);
        assert!(
            all.len() == 1 && all[0].contains("of one run, and no repeat (1.txt:1)."),
            "{all:?}"
        );
    }

    #[test]
    fn a_step_of_more_than_the_threads_is_named() {
        let [a, b, c] = [(4, 0.1), (8, 0.3), (16, 0.5)].map(|(w, rate)| line(w, rate));
        let all = said(&[&(a + &b + &c)]);
        assert!(all[0].contains("From 4 to 8 threads the rate grows 3.00 times"), "{all:?}");
    }
}
