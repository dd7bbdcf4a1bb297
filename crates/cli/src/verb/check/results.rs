//! Results in the texts of `gpuio check --from`, held against each other and their machines.

use gpuio_base::document::{Section, json_of};
use gpuio_capture::machines::Text;
use gpuio_machine::flow::Figures;
use gpuio_machine::topo::Topology;
use gpuio_record::facts::Machine;
use gpuio_report::post::{self, Known, Post, Statement};

use crate::source::{Source, cells};

/// Conclusions from the results of texts.
#[derive(Default)]
pub(super) struct Held {
    statements: Vec<Statement>,
    pub(super) section: Option<Section>,
    /// The texts have results and nothing of a machine.
    alone: bool,
}

impl Held {
    /// Whether there are results and no machine.
    pub(super) fn is_alone(&self) -> bool {
        self.alone
    }

    /// The output as JSON, with the statements where there are results.
    pub(super) fn json(&self, page: String) -> String {
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

/// The statements on the results in the texts of one machine.
pub(super) fn hold(source: &Source) -> Held {
    let read = |text: &Text| post::read(&text.name, &text.body);
    let posts: Vec<Post> = source.texts.iter().map(read).collect();
    // A text without results may still have figures in words and tables of its machine.
    if posts.iter().all(Post::is_empty) {
        return Held::default();
    }
    let (figures, captured) = (Figures::built_in(), &source.captured);
    let alone = captured.machine == Machine::default();
    let topology = Topology::of(&captured.machine, &cells(&captured.matrices));
    let known =
        Known { host: None, machine: &captured.machine, topology: &topology, figures: &figures };
    let known = if alone { Vec::new() } else { vec![known] };
    let statements = post::hold(&posts, &known);
    let section = post::section(&posts, &statements);
    Held { statements, section, alone }
}
