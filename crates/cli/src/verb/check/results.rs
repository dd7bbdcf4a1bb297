//! Results in the texts of `gpuio check --from`, held against each other and their machines.

use gpuio_base::document::{Section, json_of};
use gpuio_capture::Captured;
use gpuio_machine::flow::Figures;
use gpuio_machine::topo::Topology;
use gpuio_record::facts::Machine;
use gpuio_report::post::{self, Known, Post, Statement};

use crate::source::cells;

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

/// A machine of the texts, owned.
struct Here {
    host: Option<String>,
    captured: Captured,
    topology: Topology,
}

pub(super) fn hold(captured: &Captured, posts: Vec<Post>) -> Held {
    // A text without results may still have figures in words and tables of its machine.
    if posts.iter().all(Post::is_empty) {
        return Held::default();
    }
    let figures = Figures::built_in();
    let here = machines(captured, &posts);
    let known: Vec<Known<'_>> = here
        .iter()
        .map(|one| Known {
            host: one.host.as_deref(),
            machine: &one.captured.machine,
            topology: &one.topology,
            figures: &figures,
        })
        .collect();
    let statements = post::hold(&posts, &known);
    let section = post::section(&posts, &statements);
    let alone = captured.texts.is_empty() && captured.machine == Machine::default();
    Held { statements, section, alone }
}

/// One machine for each host that prompts name; without hosts, the one of all texts.
fn machines(captured: &Captured, posts: &[Post]) -> Vec<Here> {
    let mut hosts: Vec<String> = posts.iter().flat_map(Post::hosts).collect();
    hosts.sort();
    hosts.dedup();
    let of_host = |host: &String| {
        let mut own = Captured::default();
        for post in posts {
            let _ = gpuio_capture::read(&post.name, &post.of_host(host), &mut own);
        }
        (!own.texts.is_empty()).then(|| here(Some(host.clone()), own))
    };
    let mut named: Vec<Here> = hosts.iter().filter_map(of_host).collect();
    join(&mut named, posts);
    match named.len() {
        0 | 1 if !captured.texts.is_empty() => vec![here(None, captured.clone())],
        _ => named,
    }
}

/// Adds to a host what the prompts of another name say, where that has nothing but GPUs and all of
/// them are at addresses of the first one: two names of one machine.
fn join(named: &mut [Here], posts: &[Post]) {
    for other in 0..named.len() {
        let gpus = &named[other].captured.machine.gpus;
        let only_gpus = !gpus.is_empty() && named[other].captured.machine.block.is_empty();
        let addresses: Option<Vec<&String>> = gpus.iter().map(|gpu| gpu.pci.as_ref()).collect();
        let Some(addresses) = addresses.filter(|_| only_gpus) else { continue };
        let holds = |machine: &Machine| {
            let has = |address: &&String| machine.pci.iter().any(|one| one.address == **address);
            !machine.block.is_empty() && addresses.iter().all(has)
        };
        let mut holding = named.iter().enumerate().filter(|(_, h)| holds(&h.captured.machine));
        let (Some((first, _)), None) = (holding.next(), holding.next()) else { continue };
        let Some(host) = named[other].host.clone() else { continue };
        let mut captured = named[first].captured.clone();
        for post in posts {
            let _ = gpuio_capture::read(&post.name, &post.of_host(&host), &mut captured);
        }
        named[first] = here(named[first].host.clone(), captured);
    }
}

fn here(host: Option<String>, captured: Captured) -> Here {
    let topology = Topology::of(&captured.machine, &cells(&captured.matrices));
    Here { host, captured, topology }
}
