//! Holds the parts of texts against each other: statements, each with its lines.

mod across;
mod beside;
mod changes;
mod claims;
mod engines;
mod joined;
mod latency;
mod links;
mod machine;
mod named;
mod own;
mod pairs;
mod path;
mod requested;
mod settings;
mod tables;
mod words;

use gpuio_machine::flow::Figures;
use gpuio_machine::topo::Topology;
use gpuio_record::facts::Machine;

use crate::post::{About, Post, Run, Statement, short};
pub(in crate::post) use beside::{agree, is_alike};
pub(crate) use own::contradictions;
pub(in crate::post) use path::CARRIES;
pub(in crate::post) use path::sets_mode;
pub(crate) use words::rate_of;

/// A machine of the text, with what is known of its parts.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The host of its prompts; `None` for the one machine of the whole text.
    pub host: Option<&'a str>,
    pub machine: &'a Machine,
    pub topology: &'a Topology,
    pub figures: &'a Figures,
}

type Rule = fn(&Post, &[Known<'_>]) -> Vec<Statement>;

/// The results that a rule sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sees {
    /// All: it is about their lines, or takes no figure of them.
    All,
    /// Those whose figures do not contradict each other.
    Sound,
}

/// In the order in which statements of one kind are printed.
const RULES: [(Sees, Rule); 20] = [
    (Sees::All, path::path),
    (Sees::All, requested::hold),
    (Sees::Sound, machine::hold),
    (Sees::Sound, links::hold),
    (Sees::All, own::misplaced),
    (Sees::All, own::unread),
    (Sees::All, own::command_and_line),
    (Sees::All, named::hold),
    (Sees::All, own::line_with_itself),
    (Sees::All, own::unsound),
    (Sees::All, engines::hold),
    (Sees::Sound, beside::hold),
    (Sees::Sound, pairs::pairs),
    (Sees::Sound, pairs::series),
    (Sees::Sound, pairs::alike),
    (Sees::Sound, changes::hold),
    (Sees::Sound, claims::hold),
    (Sees::Sound, tables::hold),
    (Sees::All, settings::hold),
    (Sees::All, joined::hold),
];

/// Lines of texts without a result that look like one.
pub fn unread(posts: &[Post]) -> Vec<Statement> {
    let of = |post| {
        [own::unread(post, &[]), tables::left_out(post), links::in_words(post, &[])].concat()
    };
    posts.iter().flat_map(of).collect()
}

/// Conclusions from the rates in words of a text of which nothing else is understood.
pub(super) fn of_words(text: &str) -> Vec<Statement> {
    links::in_words(&super::read("", text), &[])
}

/// Conclusions from the texts: by kind, and in the order of the texts.
pub fn hold(posts: &[Post], known: &[Known<'_>]) -> Vec<Statement> {
    let mut all: Vec<Statement> = Vec::new();
    for post in posts {
        let sound = own::sound(post);
        let of_rule = |(sees, rule): &(Sees, Rule)| match sees {
            Sees::All => rule(post, known),
            Sees::Sound => rule(&sound, known),
        };
        let mut own: Vec<Statement> = RULES.iter().flat_map(of_rule).collect();
        own.sort_by_key(|one| (one.about, one.lines.first().copied()));
        for one in own {
            // The same advice for several runs is one.
            let same = |old: &&mut Statement| {
                old.about == one.about && old.words == one.words && old.file == one.file
            };
            match all.iter_mut().find(same) {
                Some(old) => old.lines.extend(one.lines),
                None => all.push(one),
            }
        }
    }
    for one in across::hold(posts, known) {
        let same = |old: &Statement| old.file == one.file && old.words == one.words;
        if !all.iter().any(same) {
            all.push(one);
        }
    }
    all.sort_by_key(|one| one.about);
    all
}

/// A statement on lines of a text; those of texts that are joined to it stand in the words.
pub(in crate::post) fn say(
    post: &Post,
    about: About,
    lines: &[usize],
    mut words: String,
) -> Statement {
    let mut lines: Vec<usize> = lines.iter().copied().filter(|line| *line > 0).collect();
    lines.sort_unstable();
    lines.dedup();
    let places: Vec<(&str, usize)> = lines.iter().map(|line| post.origin(*line)).collect();
    let file = places.first().map_or(post.name.as_str(), |(file, _)| file);
    let is_own = |place: &&(&str, usize)| place.0 == file;
    let others = places.iter().filter(|place| !is_own(place));
    let named = |(name, line): &(&str, usize)| format!("{}:{line}", short(name));
    let others: Vec<String> = others.map(named).collect();
    if !others.is_empty() {
        let end = if words.ends_with('.') { "." } else { "" };
        words.truncate(words.len() - end.len());
        words.push_str(&format!(" ({}){end}", others.join(", ")));
    }
    let lines = places.iter().filter(is_own).map(|(_, line)| *line).collect();
    Statement { about, file: file.to_owned(), lines, words }
}

/// The machine of a run: the one of its host, else the only one.
fn machine_of<'k, 'm>(known: &'k [Known<'m>], run: &Run) -> Option<&'k Known<'m>> {
    let named = known.iter().find(|one| one.host.is_some() && one.host == run.host.as_deref());
    named.or(match known {
        [one] if one.host.is_none() || run.host.is_none() => Some(one),
        _ => None,
    })
}
