//! Values that completion proposes, out of the tables that read them.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, Str, StringValueParser, TypedValueParser};
use clap::{Arg, Command, CommandFactory as _, Error, ValueHint};

use super::Cli;

/// Any text, of which some words are known. The verb refuses the others, and says what it expects.
#[derive(Debug, Clone)]
pub(super) struct Words(Vec<PossibleValue>);

pub(super) fn one_of<W: Into<Str>>(words: impl IntoIterator<Item = W>) -> Words {
    Words(words.into_iter().map(PossibleValue::new).collect())
}

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().cloned()))
    }
}

/// The command line for completion: where a value is neither a word of a table nor a path, nothing
/// is proposed.
pub(crate) fn proposed() -> Command {
    let plain = |arg: Arg| match arg.get_value_hint() {
        ValueHint::Unknown if arg.get_action().takes_values() && !arg.is_require_equals_set() => {
            arg.value_hint(ValueHint::Other)
        }
        _ => arg,
    };
    Cli::command().mut_subcommands(|verb| verb.mut_args(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that are proposed for an argument.
    fn words(verb: &str, arg: &str) -> Vec<String> {
        let command = proposed();
        let verb = command.find_subcommand(verb).unwrap();
        let arg = verb.get_arguments().find(|it| it.get_id() == arg).unwrap();
        let values = arg.get_possible_values();
        values.iter().map(|value| value.get_name().to_owned()).collect()
    }

    #[test]
    fn tables_are_proposed() {
        for (verb, arg, some) in [
            ("bench", "path", ["host", "all"]),
            ("bench", "engine", ["psync", "io_uring"]),
            ("bench", "rw", ["randread", "randrw"]),
            ("bench", "gpu", ["software", "none"]),
            ("bench", "format", ["csv", "json"]),
            ("workload", "verify", ["inline", "off"]),
            ("workload", "compute", ["kernel", "sleep"]),
            ("workload", "name", ["unet3d-h100", "list"]),
            ("workload", "model", ["llama3-8b", "deepseek-v3"]),
            ("sweep", "preset", ["guide", "routing"]),
            ("explain", "name", ["holes", "iommu"]),
            ("check", "skip", ["iommu", "nvidia-fs"]),
            ("topo", "format", ["svg", "json"]),
            ("report", "format", ["pdf", "html"]),
            ("compare", "despite", ["filesystem", "all"]),
            ("plan", "rw", ["randwrite", "read"]),
        ] {
            let words = words(verb, arg);
            for word in some {
                assert!(words.iter().any(|it| it == word), "{verb} {arg}: {word} in {words:?}");
            }
        }
    }

    /// A file of the directory is proposed only where a path is meant.
    #[test]
    fn every_value_is_a_word_or_a_path_or_left_to_the_user() {
        for verb in proposed().get_subcommands() {
            for arg in verb.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                let is_path = ["FILE", "DIR", "PATH", "TAR", "FOLDER", "TRACE"]
                    .iter()
                    .any(|end| arg.get_value_names().is_some_and(|it| it[0].ends_with(end)));
                let hint = arg.get_value_hint();
                let has_words = !arg.get_possible_values().is_empty();
                assert!(
                    !is_path || has_words || !matches!(hint, ValueHint::Other | ValueHint::Unknown),
                    "{} {arg}: {hint:?}",
                    verb.get_name()
                );
            }
        }
    }
}
