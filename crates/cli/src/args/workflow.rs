//! The verbs as the help lists them: in the order of work, by what they are for.

use clap::{Command, CommandFactory as _};
use gpuio_base::document::{Document, Item, Layout, List, Section};

use super::Cli;

/// Verbs by what they are for. Every verb has a place.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["bench", "workload", "replay", "sweep", "network", "compare", "report", "show"]),
    ("Understand this machine", &["why", "check", "explain", "topo", "plan", "collect", "list"]),
    ("Watch what runs", &["top", "stats"]),
    ("Run programs that load files", &["exec", "prefetch"]),
    ("NVIDIA's tools, same flags", &["gdsio", "gdscheck", "gds_stats"]),
    ("This program", &["generate", "version", "help"]),
];

const TRY: &str = "Start with: gpuio bench        (a minute; needs no GPU and no root)
GPUs are NVIDIA's today. gpuio VERB --help has examples; -v or version prints the version.";

/// The command line, with the verbs in groups.
pub(crate) fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    let width = GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|verb| verb.len()).max();
    let width = width.unwrap_or(0);
    let mut list = Document::default();
    for (heading, verbs) in GROUPS {
        let items = verbs.iter().map(|verb| {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            Item::new(*verb, about.map(ToString::to_string).unwrap_or_default())
        });
        let mut group = Section::new("", format!("{heading}:"));
        group.list(List::new(Layout::columns(width, 2), items));
        list.push(group);
    }
    let list = list.terminal(crate::terminal::width_or_whole()) + "\n";
    let usage = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    Cli::command().help_template(format!("{usage}{list}Options:\n{{options}}\n\n{TRY}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_one_place() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        listed.sort_unstable();
        let mut command = Cli::command();
        command.build();
        let mut verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
    }
}
