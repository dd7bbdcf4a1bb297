//! `gpuio gdscheck …`, and gpuio called as `gdscheck`: gpuio's facts in gdscheck's format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gpuio_drivers::cufile::{Base, Driver, Environment, Library};
use gpuio_gpu::Which;
use gpuio_guard::objects::environment;
use gpuio_host::{HostError, Root, nvidia_fs};
use gpuio_machine::check::gdscheck::{self, Config, LibraryReport, Software};
use gpuio_record::facts::{Fact, Machine};

use crate::args::CufileFlags;
use crate::failure::Failure;
use crate::output;

const HELP: &str = include_str!("gdscheck_help.txt");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// gpuio's own flag: opens NVIDIA's library.
const REQUEST: &str = "--ask-library";

/// The requested output.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Help,
    Version,
    Platform,
    Versions,
    File(PathBuf),
}

pub(crate) fn run(words: &[String]) -> Result<ExitCode, Failure> {
    let done = |text: &str| output::put(text).map(|()| ExitCode::SUCCESS);
    let query_library = words.iter().any(|word| word == REQUEST);
    let words: Vec<String> = words.iter().filter(|word| *word != REQUEST).cloned().collect();
    let action = parse(&words)?;
    let inspects = !matches!(action, Action::Help | Action::Version);
    // First, because the configuration is set while there is one thread.
    let library = (query_library && inspects).then(library).transpose()?;
    match action {
        Action::Help => done(HELP),
        Action::Version => done(&format!("gdscheck (gpuio {VERSION})")),
        Action::Versions => {
            let machine = machine();
            let check = gdscheck::of(&machine, &software(&machine, library));
            done(&gdscheck::versions(&check, VERSION))
        }
        Action::Platform => {
            let machine = machine();
            let check = gdscheck::of(&machine, &software(&machine, library));
            output::put(&gdscheck::text(&check, VERSION))?;
            let fine = check.verification.known().is_some_and(|word| word == "succeeded");
            Ok(exit_code(&machine, fine))
        }
        Action::File(path) => file(&path, library),
    }
}

fn parse(words: &[String]) -> Result<Action, Failure> {
    let usage = |what: String| Err(Failure::Usage(format!("{what}; `gdscheck -h` has the flags")));
    // As getopt(3) reads them: `-pv` is `-p -v`.
    let joined = |word: &String| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        match letters {
            Some(letters) => letters.chars().map(|letter| format!("-{letter}")).collect(),
            None => vec![word.clone()],
        }
    };
    let words: Vec<String> = words.iter().flat_map(joined).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => usage("nothing to check: give -p, -v or -f FILE".to_owned()),
        ["-h" | "--help", ..] => Ok(Action::Help),
        ["--version"] => Ok(Action::Version),
        ["-p"] => Ok(Action::Platform),
        ["-v"] => Ok(Action::Versions),
        // The platform's first lines are the versions.
        ["-p", "-v"] | ["-v", "-p"] => Ok(Action::Platform),
        ["-f", file] => Ok(Action::File(file.into())),
        ["-v", "-f", file] | ["-f", file, "-v"] => {
            message!("note: -v has no effect here: -f prints no versions; leave one out");
            Ok(Action::File(file.into()))
        }
        ["-f"] | ["-v", "-f"] => usage("-f needs a file".to_owned()),
        ["-V", ..] => usage(
            "-V needs NVIDIA's library to check file systems, and gpuio gdscheck does not open \
             it; check one file with -f FILE"
                .to_owned(),
        ),
        [word @ ("-p" | "-v"), other, ..] => {
            usage(format!("{word} must be used alone, not together with '{other}'"))
        }
        [word, ..] => usage(format!("'{word}' is not a gdscheck flag that gpuio supports")),
    }
}

fn machine() -> Machine {
    gpuio_load::machine::read(&Root::live())
}

/// 3 if there is no GPU or no driver, which is not a finding about a platform.
fn exit_code(machine: &Machine, fine: bool) -> ExitCode {
    let driver = machine.modules.iter().any(|module| module.name == "nvidia" && module.loaded);
    match fine {
        true => ExitCode::SUCCESS,
        false if machine.gpus.is_empty() || !driver => ExitCode::from(3),
        false => ExitCode::from(1),
    }
}

fn file(path: &Path, library: Option<LibraryReport>) -> Result<ExitCode, Failure> {
    let whole = path.canonicalize().map_err(|error| {
        Failure::Usage(format!("-f {}: {error}; name an existing file", path.display()))
    })?;
    let machine = machine();
    let check = gdscheck::of(&machine, &software(&machine, library));
    let of = gdscheck::of_file(&machine, &check, &whole);
    output::put(&gdscheck::file_text(&of))?;
    let fine = of.value.known().is_some_and(|word| !word.starts_with("Unsupported"));
    Ok(exit_code(&machine, fine))
}

/// Opens NVIDIA's library and queries it. Its log goes to a temporary directory, unless the
/// configuration names a location.
fn library() -> Result<LibraryReport, Failure> {
    let failed = |why: String| Failure::Unavailable(format!("{REQUEST}: {why}"));
    let environment = Base::of_this_process()
        .and_then(|base| Environment::write(base, &[], &environment::temporary()))
        .and_then(|environment| environment.apply().map(|()| environment))
        .map_err(|error| failed(error.to_string()))?;
    // The driver must stay loaded while cuFile is open.
    let cuda = gpuio_gpu::Driver::load(&Which::System).map_err(|e| failed(e.to_string()))?;
    let search = crate::cufile::search(&CufileFlags::default(), false);
    let opened = Library::load(&search)
        .and_then(|library| Driver::open(library, Some(environment), cuda.is_software()));
    let driver = opened.map_err(|absent| failed(absent.to_string()))?;
    let says = driver.abilities().ok_or_else(|| failed("it does not report it".to_owned()))?;
    Ok(LibraryReport {
        release: driver.facts().version,
        storage: says.storage_names(),
        compat: says.compat_allowed(),
    })
}

/// Facts other than the machine's: files and variables, and the library if it was queried.
fn software(machine: &Machine, library: Option<LibraryReport>) -> Software {
    let root = Root::live();
    let stats = known(nvidia_fs::sample(&root), "nvidia-fs has no statistics");
    Software {
        release: match stats {
            Fact::Known(stats) => {
                Fact::or_unknown(stats.gds_version, "nvidia-fs does not report its release")
            }
            Fact::Unknown(why) => Fact::unknown(why),
        },
        registered: machine.settings.nvidia_fs_drivers.clone(),
        open_driver: machine.settings.open_driver.clone(),
        libcufile: libcufile(),
        config: match Base::of_this_process() {
            Ok(base) => Fact::Known(Config {
                file: base.path.as_ref().map(|path| path.display().to_string()),
                keys: base.flat(),
            }),
            Err(error) => Fact::unknown(error.to_string()),
        },
        environment: environment(),
        architecture: Fact::Known(std::env::consts::ARCH.to_owned()),
        library,
    }
}

fn known<T>(read: Result<Option<T>, HostError>, absent: &str) -> Fact<T> {
    match read {
        Ok(value) => Fact::or_unknown(value, absent),
        Err(error) => Fact::unknown(error.to_string()),
    }
}

/// The file name that the library's links lead to; it ends in the release.
fn libcufile() -> Fact<String> {
    let path = environment::paths("LD_LIBRARY_PATH").into_iter();
    let path: Vec<PathBuf> = path.filter(|dir| dir.is_absolute()).collect();
    let file = crate::cufile::search(&CufileFlags::default(), false).find(&path);
    let name = file.and_then(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
    Fact::or_unknown(
        name,
        "libcufile.so.0 was not found in the directories that gpuio \
        searches",
    )
}

/// cuFile's environment variables that are set.
fn environment() -> BTreeMap<String, String> {
    let all = environment::beginning("CUFILE_").into_iter();
    let set = all.filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| (name, value.replace('\n', " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Action, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn flags_are_read_or_refused_by_name() {
        assert_eq!(of("-p").unwrap(), Action::Platform);
        assert_eq!(of("-v").unwrap(), Action::Versions);
        assert_eq!(of("-v -f /x").unwrap(), Action::File("/x".into()));
        assert_eq!(of("-h -p").unwrap(), Action::Help);
        for (line, word) in [
            ("", "-p, -v or"),
            ("-f", "-f needs"),
            ("-V", "-V needs"),
            ("-p /x", "'/x'"),
            ("-q", "'-q'"),
        ] {
            let Err(Failure::Usage(words)) = of(line) else { panic!("{line}") };
            assert!(words.contains(word), "{line}: {words}");
        }
    }
}
