//! The program gpuio. See `gpuio --help`.

// First, because its macro is used by all the others.
#[macro_use]
mod output;

mod args;
mod captured;
mod carried;
mod child;
mod colour;
mod cufile;
mod driver;
mod failure;
mod figures;
mod fio_logs;
mod formats;
mod head;
mod hosts;
mod interrupt;
mod jobs;
mod journal;
mod last;
mod live_metrics;
mod locale;
mod made;
mod observed;
mod outcome;
mod quick;
mod ranks;
mod records;
mod serve;
mod session;
mod settings;
mod source;
mod terminal;
mod ui;
mod unused;
mod verb;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ErrorKind};
use gpuio_base::units::Powers;
use gpuio_guard::objects::environment;

use args::{Cli, Verb};
use failure::Failure;

fn main() -> ExitCode {
    gpuio_guard::objects::carried_by(carried::unpack);
    gpuio_guard::objects::report_with(|line| message!("note: {line}"));
    let ignored = environment::ignored();
    if !ignored.is_empty() {
        message!(
            "note: this gpuio has rights that you lack (set-user-ID, set-group-ID or file \
             capabilities), so it reads no variable: {} has no effect",
            ignored.join(", ")
        );
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let done = match face(words.first()) {
        Some(face) => run_emulated(face, words.get(1..).unwrap_or_default()),
        None => run(&words),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            message!("error: {failure}");
            failure.exit_code()
        }
    }
}

/// A tool of NVIDIA's that gpuio emulates: all arguments after its name go to its own parser.
type Face = fn(&[String]) -> Result<ExitCode, Failure>;

const FACES: [(&str, Face); 3] = [
    ("gdsio", verb::gdsio::run),
    ("gdscheck", verb::gdscheck::run),
    ("gds_stats", verb::gds_stats::run),
];

/// The emulated tool of this name: the program's, called through a link, or the verb.
fn face(name: Option<&OsString>) -> Option<Face> {
    let name = name.and_then(|word| Path::new(word).file_name())?;
    FACES.iter().find(|(face, _)| name == *face).map(|(_, run)| *run)
}

fn run_emulated(face: Face, words: &[OsString]) -> Result<ExitCode, Failure> {
    let text = |word: &OsString| {
        word.clone()
            .into_string()
            .map_err(|word| Failure::Usage(format!("'{}' is not UTF-8 text", word.display())))
    };
    face(&words.iter().map(text).collect::<Result<Vec<_>, _>>()?)
}

fn run(words: &[OsString]) -> Result<ExitCode, Failure> {
    // Their flags are not clap's.
    if let Some(face) = face(words.get(1)) {
        return run_emulated(face, words.get(2..).unwrap_or_default());
    }
    let (words, note) = args::spoken(&args::two_dashes(words))?;
    let mut parser = args::parser_of(&words);
    if let Some(note) = note {
        message!("note: {note}");
    }
    let words = settings::added(&words, &parser)?;
    let parsed = parser.try_get_matches_from_mut(&words).and_then(|it| Cli::from_arg_matches(&it));
    let verb = args::named(&words, &parser);
    let cli = match parsed {
        Ok(cli) => cli,
        // The message quotes arguments, which a shell may have taken from file names.
        Err(error) => return refused(&words, error, verb),
    };
    if let Some(hint) = verb.and_then(|verb| args::value_apart(&words, verb)) {
        return Err(Failure::Usage(hint));
    }
    if let Some(word) = &cli.color {
        colour::request(word);
    }
    if let Some(word) = &cli.units {
        gpuio_base::units::print_in(if word == "si" { Powers::Si } else { Powers::Iec });
    }
    match cli.verb {
        Verb::Version(args) => verb::list::version(&args),
        Verb::Bench(bench) => verb::bench::run(&bench),
        Verb::Check(check) => verb::check::run(&check),
        Verb::Collect(collect) => verb::collect::run(&collect),
        Verb::Compare(args) => verb::compare::run(&args),
        Verb::Exec(exec) => verb::exec::run(&exec),
        Verb::Explain(args) => verb::explain::run(&args),
        Verb::Generate(args) => verb::generate::run(&args),
        Verb::List(list) => verb::list::run(&list),
        Verb::Network(network) => verb::network::run(&network),
        Verb::Prefetch(prefetch) => verb::prefetch::run(&prefetch),
        Verb::Replay(replay) => verb::replay::run(&replay),
        Verb::Report(report) => verb::report::run(&report),
        Verb::Plan(plan) => verb::plan::run(&plan),
        Verb::Show(show) => verb::show::run(&show),
        Verb::Sweep(sweep) => verb::sweep::run(*sweep),
        Verb::Top(top) => verb::top::run(&top),
        Verb::Stats(args) => verb::stats::run(&args),
        Verb::Topo(topo) => verb::topo::run(&topo),
        Verb::Why(args) => verb::why::run(&args),
        Verb::Workload(workload) => verb::workload::run(*workload),
        Verb::GdsStats { words } => verb::gds_stats::run(&words),
        Verb::Gdscheck { words } => verb::gdscheck::run(&words),
        Verb::Gdsio { words } => verb::gdsio::run(&words),
    }
}

/// The help, or what is wrong with a command line, in the words of the command that has only what
/// the help shows.
fn refused(
    words: &[OsString],
    error: clap::Error,
    verb: Option<&clap::Command>,
) -> Result<ExitCode, Failure> {
    let command = &args::command();
    let what = |error: &clap::Error| (error.kind(), error.get(ContextKind::InvalidArg).cloned());
    let shown = command.clone().try_get_matches_from(words).err();
    let same = |shown: &clap::Error| {
        shown.kind() == error.kind()
            && (error.kind() != ErrorKind::UnknownArgument || what(shown) == what(&error))
    };
    let error = shown.filter(same).unwrap_or(error);
    if !error.use_stderr() {
        if locale::is_ascii() {
            return output::put(&error.render().to_string()).map(|()| ExitCode::SUCCESS);
        }
        error.exit();
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        output::print_own(output::shown(&error.render().to_string()).into_owned());
        return Ok(ExitCode::from(2));
    }
    let apart = || Some(format!("error: {}", args::value_apart(words, verb?)?));
    let text = args::for_fio(words, &error)
        .or_else(|| args::for_gdsio(words, &error))
        .or_else(|| args::meant(words, &error, command))
        .or_else(apart)
        .unwrap_or_else(|| args::without_far_hints(words, error).render().to_string());
    output::print_message(text.trim_end());
    Ok(ExitCode::from(2))
}
