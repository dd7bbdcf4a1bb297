//! `gpuio generate`: manual pages, completions and pages of the reference, out of the tables that
//! the program itself uses. For packages and the documentation's site.

mod reference;
mod tables;
mod variables;

use std::ffi::OsStr;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use gpuio_guard::outfile::{Directory, Draft};

use crate::args::{Cli, Generate, What, proposed};
use crate::failure::Failure;
use crate::output;

/// A file: its name, and what is in it.
type Page = (String, Vec<u8>);

pub(crate) fn run(args: &Generate) -> Result<ExitCode, Failure> {
    let pages = match args.what {
        What::Man => manual()?,
        What::Bash => vec![completions(Shell::Bash, "gpuio")],
        What::Zsh => vec![completions(Shell::Zsh, "_gpuio")],
        What::Fish => vec![completions(Shell::Fish, "gpuio.fish")],
        What::Reference => reference::pages(),
    };
    let Some(directory) = &args.directory else {
        let [(_, bytes)] = pages.as_slice() else {
            let what = format!("{} files are made; name a directory for them", pages.len());
            return Err(Failure::Usage(what));
        };
        return output::put(&String::from_utf8_lossy(bytes)).map(|()| ExitCode::SUCCESS);
    };
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::Ran(format!("mkdir of {}: {error}", directory.display())))?;
    for (name, bytes) in &pages {
        write(directory, name, bytes).map_err(|error| refused(&directory.join(name), &error))?;
    }
    let written = match pages.as_slice() {
        [(name, _)] => directory.join(name).display().to_string(),
        all => format!("{} files in {}", all.len(), directory.display()),
    };
    message!("Written: {written}");
    Ok(ExitCode::SUCCESS)
}

fn refused(path: &Path, error: &Error) -> Failure {
    let stays = match error.kind() {
        ErrorKind::AlreadyExists => "; it is not replaced: remove it, or name another directory",
        _ => "",
    };
    Failure::Ran(format!("{}: {error}{stays}", path.display()))
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let draft = Draft::begin(Directory::open(directory)?, OsStr::new(name))?;
    draft.fill_unsynced(bytes)?;
    draft.give_name().map(drop).map_err(|unnamed| unnamed.error)
}

/// The command line, with what clap adds to it.
fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// `gpuio.1`, and `gpuio-VERB.1` for each verb.
fn manual() -> Result<Vec<Page>, Failure> {
    let mut pages = Vec::new();
    let command = command();
    let verbs =
        command.get_subcommands().filter(|verb| verb.get_name() != "help").cloned().map(|verb| {
            let name = format!("gpuio-{}", verb.get_name());
            let spelled = format!("gpuio {}", verb.get_name());
            verb.version(env!("CARGO_PKG_VERSION")).display_name(&name).bin_name(spelled)
        });
    for page in std::iter::once(command.clone().display_name("gpuio")).chain(verbs) {
        let name = page.get_display_name().unwrap_or_else(|| page.get_name()).to_owned();
        let usage = page.clone().render_usage().to_string();
        let mut bytes = Vec::new();
        let man = clap_mangen::Man::new(page).title(&name);
        man.render(&mut bytes).map_err(|error| Failure::Ran(format!("{name}.1: {error}")))?;
        let text = with_synopsis(&String::from_utf8_lossy(&bytes), &usage);
        pages.push((format!("{name}.1"), text.into_bytes()));
    }
    Ok(pages)
}

/// The page with the usage as help prints it, since clap's synopsis lists options without their
/// values.
fn with_synopsis(page: &str, usage: &str) -> String {
    let Some((head, rest)) = page.split_once(".SH SYNOPSIS\n") else { return page.to_owned() };
    let tail = rest.find(".SH ").map_or("", |at| &rest[at..]);
    let usage = usage.trim_start_matches("Usage: ").replace('-', "\\-");
    format!("{head}.SH SYNOPSIS\n{usage}\n{tail}")
}

fn completions(shell: Shell, file: &str) -> Page {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut proposed(), "gpuio", &mut bytes);
    (file.to_owned(), bytes)
}
