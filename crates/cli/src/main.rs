//! gpuio: the storage-to-GPU load generator. See `gpuio --help`.
#![expect(clippy::print_stderr, reason = "messages of a program go to standard error")]

mod args;
mod captured;
mod cufile;
mod driver;
mod failure;
mod interrupt;
mod journal;
mod outcome;
mod output;
mod session;
mod ui;
mod verb;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Verb};
use failure::Failure;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let done = if called_as_gdsio(&words) {
        gdsio(words.get(1..).unwrap_or_default())
    } else {
        run(&words)
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

/// Whether the binary was called by gdsio's name, through a link.
fn called_as_gdsio(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| Path::new(word).file_name());
    name == Some("gdsio".as_ref())
}

fn gdsio(words: &[OsString]) -> Result<ExitCode, Failure> {
    let text = |word: &OsString| {
        word.clone()
            .into_string()
            .map_err(|word| Failure::Usage(format!("'{}' is not UTF-8 text", word.display())))
    };
    verb::gdsio::run(&words.iter().map(text).collect::<Result<Vec<_>, _>>()?)
}

fn run(words: &[OsString]) -> Result<ExitCode, Failure> {
    // gdsio's own flags are not clap's: everything behind the verb goes to its parser.
    if words.get(1).is_some_and(|word| word == "gdsio") {
        return gdsio(words.get(2..).unwrap_or_default());
    }
    match Cli::parse_from(words).verb {
        Verb::Bench(bench) => verb::bench::run(&bench),
        Verb::Check(check) => verb::check::run(&check),
        Verb::List => verb::list::run(),
        Verb::Show(show) => verb::show::run(&show),
        Verb::Topo(topo) => verb::topo::run(&topo),
        Verb::Gdsio { words } => verb::gdsio::run(&words),
    }
}
