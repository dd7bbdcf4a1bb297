//! Nothing panics, and every position is inside the text.

use gpuio_job::spec::{JobFileError, Origin, Spec, parse_gdsio, parse_job_file};
use proptest::prelude::*;

use crate::{FIXTURES, env};

/// Pieces that files are mutated with: what parsers tend to trip over.
const TOKENS: [&str; 44] = [
    "",
    "=",
    "\n",
    "\r\n",
    "\r",
    "[",
    "]",
    "[global]\n",
    "[x]\n",
    "#",
    ";",
    " #",
    "${",
    "}",
    "${MOUNT}",
    "${NOPE}",
    "$${",
    "$",
    "\\:",
    "\\",
    ":",
    "/",
    ",",
    "-",
    "%",
    ".",
    "0",
    "-1",
    "18446744073709551616",
    "4k",
    "1M:4M:1M",
    "4k/60:64k/40",
    "all",
    "software:0",
    "bs=",
    "thinktime=1\n",
    "iodeph",
    "\u{feff}",
    "\0",
    "＝",
    "，",
    "é",
    "𝄞",
    "\u{a0}",
];

fn inside(bytes: &[u8], errors: &[JobFileError]) -> Result<(), TestCaseError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines: Vec<_> = text.split('\n').collect();
    prop_assert!(!errors.is_empty() && errors.len() <= gpuio_job::spec::MAX_ERRORS);
    for error in errors {
        let printed = error.to_string();
        prop_assert!(!printed.contains('\n'), "{printed:?}");
        prop_assert!(error.line >= 1 && error.column >= 1, "{printed}");
        let line = lines.get(error.line as usize - 1);
        prop_assert!(line.is_some(), "{printed} is past the end of {text:?}");
        let width = line.map_or(0, |line| line.chars().count());
        prop_assert!(error.column as usize <= width + 1, "{printed} in {line:?}");
    }
    Ok(())
}

fn requests_fit(bytes: &[u8], spec: &Spec) -> Result<(), TestCaseError> {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    prop_assert!(!spec.jobs.is_empty());
    for requested in spec.jobs.iter().flat_map(|job| job.requested.values()) {
        if let Origin::File { line, column, .. } = &requested.origin {
            prop_assert!(*line >= 1 && *line as usize <= lines && *column >= 1);
        }
    }
    Ok(())
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match parse_job_file("f", bytes, &env) {
        Ok(spec) => requests_fit(bytes, &spec),
        Err(errors) => inside(bytes, &errors),
    }
}

/// One change: where (of 1000), how many bytes go, what comes.
type Change = (usize, usize, usize, bool);

fn mutated(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(place, gone, token, twice) in changes {
        let at = bytes.len() * place / 1000;
        let end = (at + gone).min(bytes.len());
        let mut new = TOKENS[token].as_bytes().to_vec();
        if twice {
            new.extend_from_slice(&bytes[at..end]);
            new.extend_from_slice(&bytes[at..end]);
        }
        bytes.splice(at..end, new);
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (0..1000_usize, 0..12_usize, 0..TOKENS.len(), any::<bool>());
    prop::collection::vec(change, 1..6)
}

fn token() -> impl Strategy<Value = &'static str> {
    (0..TOKENS.len()).prop_map(|token| TOKENS[token])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn arbitrary_text(text in "(\\[a\\]\n)?(\\PC|[=\\[\\]#;$\\{\\}\n ]){0,120}") {
        check(text.as_bytes())?;
    }

    #[test]
    fn mutated_fixtures(which in 0..FIXTURES.len(), changes in changes()) {
        check(&mutated(FIXTURES[which].1, &changes))?;
    }

    #[test]
    fn any_value_of_any_key(
        key in 0..gpuio_job::spec::keys().count(),
        words in prop::collection::vec(token(), 0..5),
    ) {
        let name = gpuio_job::spec::keys().nth(key).map_or("", |key| key.name);
        check(format!("[a]\n{name} = {}", words.concat()).as_bytes())?;
    }

    #[test]
    fn any_command_line(
        words in prop::collection::vec(("-?-?[a-zA-Z–]{0,2}", token()), 0..6),
    ) {
        let args: Vec<String> = words
            .iter()
            .flat_map(|(flag, value)| [flag.clone(), (*value).to_owned()])
            .filter(|word| !word.is_empty())
            .collect();
        if let Err(error) = parse_gdsio(&args, &|_| false) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
