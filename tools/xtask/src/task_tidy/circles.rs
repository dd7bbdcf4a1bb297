//! Files of a crate that need each other in a circle can only be read, tested and moved together.
//!
//! A file needs another where its shipped code names something that the other defines; a
//! re-export leads to the file that defines it. A module may use its own parts (a table with a row
//! for each, a function that chooses one), and the parts what their module defines for them: that
//! alone makes no circle. So a module counts twice: as what those inside it name, and as what
//! those outside name, which needs its parts too.

use std::collections::VecDeque;

use super::modules::{self, Source};
use super::{File, Finding};

const RULE: &str = "circle";
/// The files that may need each other.
const MOST: usize = 4;

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    modules::sources(files).values().flat_map(|sources| of_crate(sources)).collect()
}

fn of_crate(sources: &[Source]) -> Vec<Finding> {
    let graph = Graph::of(sources);
    let circles = graph.components().into_iter().filter_map(|component| {
        let mut files: Vec<usize> = component.iter().map(|node| node.file()).collect();
        files.dedup();
        (files.len() > MOST).then(|| (files, graph.shortest(&component)))
    });
    let name = |file: usize| {
        let path = sources[file].file.as_str();
        path.split_once("/src/").map_or(path, |(_, inside)| inside)
    };
    circles
        .map(|(files, shortest)| {
            let names: Vec<&str> = files.iter().map(|&file| name(file)).collect();
            let steps = shortest.iter().map(|(file, used)| format!("{} -{used}-> ", name(*file)));
            let what = format!(
                "{} files need each other, more than {MOST}: {}. A shortest circle: {}{}. Move \
                 what one of them uses to a file that uses none of them",
                files.len(),
                names.join(", "),
                steps.collect::<String>(),
                shortest.first().map_or("", |(file, _)| name(*file)),
            );
            Finding::new(&sources[files[0]].file, 1, RULE, what)
        })
        .collect()
}

/// A file, once as those inside its module see it (even), and once as others do (odd).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node(usize);

impl Node {
    fn inside(file: usize) -> Node {
        Node(2 * file)
    }

    fn outside(file: usize) -> Node {
        Node(2 * file + 1)
    }

    fn file(self) -> usize {
        self.0 / 2
    }
}

/// For each node those that it needs, with a name that it uses of each.
struct Graph(Vec<Vec<(Node, String)>>);

impl Graph {
    fn of(sources: &[Source]) -> Graph {
        let mut needs = vec![Vec::new(); 2 * sources.len()];
        let is_in = |part: usize, whole: usize| {
            let (part, whole) = (&sources[part].module, &sources[whole].module);
            part.len() > whole.len() && part.starts_with(whole)
        };
        for (file, uses) in modules::uses(sources).into_iter().enumerate() {
            needs[Node::outside(file).0].push((Node::inside(file), String::new()));
            for (used, name) in uses {
                let node = if is_in(used, file) { Node::outside } else { Node::inside };
                let to = if is_in(file, used) { Node::inside } else { Node::outside };
                needs[node(file).0].push((to(used), name));
            }
        }
        Graph(needs)
    }

    fn needs(&self, node: Node) -> &[(Node, String)] {
        &self.0[node.0]
    }

    /// Groups of nodes that need each other, in order.
    fn components(&self) -> Vec<Vec<Node>> {
        let all = (0..self.0.len()).map(Node);
        let reached: Vec<Vec<bool>> = all.clone().map(|node| self.reached(node)).collect();
        let mut grouped = vec![false; self.0.len()];
        let mut components = Vec::new();
        for node in all.clone() {
            if std::mem::replace(&mut grouped[node.0], true) {
                continue;
            }
            let both = |other: &Node| reached[node.0][other.0] && reached[other.0][node.0];
            let others: Vec<Node> = all.clone().filter(|other| both(other)).collect();
            others.iter().for_each(|other| grouped[other.0] = true);
            components.push(others);
        }
        components
    }

    fn reached(&self, from: Node) -> Vec<bool> {
        let mut reached = vec![false; self.0.len()];
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for (to, _) in self.needs(node) {
                if !std::mem::replace(&mut reached[to.0], true) {
                    open.push(*to);
                }
            }
        }
        reached
    }

    /// The fewest steps through these nodes back to the first file: each file with the name that it
    /// uses of the next.
    fn shortest(&self, component: &[Node]) -> Vec<(usize, &str)> {
        let circles = component.iter().map(|&node| self.back_to(node, component));
        circles.min_by_key(Vec::len).unwrap_or_default()
    }

    fn back_to(&self, start: Node, component: &[Node]) -> Vec<(usize, &str)> {
        let mut before: Vec<Option<(Node, &str)>> = vec![None; self.0.len()];
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front().filter(|_| before[start.0].is_none()) {
            for (to, name) in self.needs(node) {
                if component.contains(to) && before[to.0].is_none() {
                    before[to.0] = Some((node, name));
                    open.push_back(*to);
                }
            }
        }
        let mut steps = Vec::new();
        let mut node = start;
        while let Some((from, name)) = before[node.0] {
            // A module's two sides are one file.
            if from.file() != node.file() {
                steps.push((from.file(), name));
            }
            node = from;
            if node == start {
                break;
            }
        }
        steps.reverse();
        steps
    }
}
