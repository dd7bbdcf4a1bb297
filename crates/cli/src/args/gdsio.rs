//! Options of `gpuio gdsio` beside gdsio's own flags, and whether it would take a command line.

use gpuio_job::spec::{GDSIO_KEYS, GdsioError, GdsioRequest, parse_gdsio};

/// gpuio's own long options that take a value and concern output and permission.
const OTHERS: &[&str] = &[
    "--format",
    "--output",
    "--destroy-data-on",
    "--cufile-lib",
    "--cufile-set",
    "--share",
    "--rank-timeout",
];
/// gpuio's own long options without a value.
pub(crate) const SWITCHES: &[&str] = &["--overwrite", "--dry-run", "--quiet", "--per-rank"];

/// Returns the option of this name, which the parser gives without its dashes.
pub(crate) fn option(name: &str) -> Option<&'static str> {
    let all = GDSIO_KEYS.iter().chain(OTHERS).chain(SWITCHES);
    all.copied().find(|flag| flag.strip_prefix("--") == Some(name))
}

/// Reads the words behind the verb. An unknown option takes a value too, so that the error names
/// the option and not its value.
pub(crate) fn parse(words: &[String]) -> Result<GdsioRequest, GdsioError> {
    let takes_value = |name: &str| option(name).is_none_or(|flag| !SWITCHES.contains(&flag));
    parse_gdsio(words, &takes_value)
}

/// Whether these words, with a target where none is among them, are a command line of the verb.
pub(super) enum Taken {
    As,
    WithTarget,
    No,
}

pub(super) fn taken(words: &[String]) -> Taken {
    let known = |request: &GdsioRequest| request.leftovers.iter().all(|it| option(&it.0).is_some());
    match parse(words) {
        Ok(request) if known(&request) => Taken::As,
        // The other words are looked at before.
        Err(GdsioError::NoTarget) => {
            let whole = [words, &["-D".to_owned(), ".".to_owned()]].concat();
            match parse(&whole).is_ok_and(|request| known(&request)) {
                true => Taken::WithTarget,
                false => Taken::No,
            }
        }
        _ => Taken::No,
    }
}
