//! Results in the texts of `gpuio check --from`, held against each other and their machines.

use gpuio_base::document::{Section, json_of};
use gpuio_capture::machines::Text;
use gpuio_machine::flow::Figures;
use gpuio_machine::topo::{Printed, Topology};
use gpuio_record::facts::Machine;
use gpuio_report::post::{self, About, Known, Post, Statement};

use crate::source::Source;

/// Conclusions from the results of texts.
#[derive(Default)]
pub(in crate::verb) struct Held {
    statements: Vec<Statement>,
    posts: Vec<Post>,
    pub(in crate::verb) section: Option<Section>,
    /// The texts have results and nothing of a machine.
    alone: bool,
    /// The lines that neither results nor facts are read from, where there is no machine: else its
    /// notes have them.
    pub(super) not_understood: Option<String>,
}

impl Held {
    /// Whether there are results and no machine.
    pub(super) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Whether a line of a text, from 1, is of a result, or a statement follows from it.
    pub(super) fn has_read(&self, name: &str, line: usize) -> bool {
        self.posts.iter().any(|one| one.name == name && one.has_read(line))
            || self.statements.iter().any(|one| one.file == name && one.lines.contains(&line))
    }

    /// A last line, where figures contradict each other: counts of rules say nothing of them.
    pub(super) fn warning(&self) -> Option<String> {
        let found = self.statements.iter().filter(|one| one.about == About::Contradiction).count();
        (found > 0).then(|| format!("Figures in these texts contradict each other: {found} above."))
    }

    /// The output as JSON, with the statements where there are results.
    pub(in crate::verb) fn json(&self, page: String) -> String {
        if self.section.is_none() {
            return page;
        }
        match serde_json::from_str::<serde_json::Value>(&page) {
            Ok(mut value) => {
                value["results"] = serde_json::json!(self.statements);
                json_of(&value)
            }
            Err(_) => page,
        }
    }
}

/// The parts of a machine's texts.
pub(in crate::verb) fn posts(source: &Source) -> impl Iterator<Item = Post> + use<'_> {
    source.texts.iter().map(|text: &Text| post::read(&text.name, &text.body))
}

/// The statements on the results in the texts of one machine, as far as they are wanted, and those
/// of the texts that can't both be right.
pub(in crate::verb) fn hold(
    source: &Source,
    figures: &Figures,
    wanted: impl Fn(&Post) -> bool,
    conflicts: &[String],
) -> Held {
    let posts: Vec<Post> = post::join(posts(source).filter(wanted).collect());
    // A text without results may still have figures in words and tables of its machine.
    let captured = &source.captured;
    let empty = posts.iter().all(Post::is_empty);
    let alone = captured.machine == Machine::default();
    let topology = Topology::of(&captured.machine, &Printed::all(&captured.machine));
    let known = Known { host: None, machine: &captured.machine, topology: &topology, figures };
    let known = if alone { Vec::new() } else { vec![known] };
    let mut statements = if empty { post::unread(&posts) } else { post::hold(&posts, &known) };
    if empty && statements.is_empty() && conflicts.is_empty() {
        return Held::default();
    }
    statements.extend(conflicts.iter().map(|words| Statement {
        about: About::Contradiction,
        file: String::new(),
        lines: Vec::new(),
        words: words.clone(),
    }));
    let section = post::section(&posts, &statements);
    let mut held = Held { statements, posts, section, alone, not_understood: None };
    if alone {
        held.not_understood = captured.not_understood(|name, line| held.has_read(name, line));
    }
    held
}
