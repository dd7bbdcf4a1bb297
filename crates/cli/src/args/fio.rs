//! Words of fio's command line that are no keys and mean another thing here.

use std::ffi::OsString;

use gpuio_base::document::unique;
use gpuio_base::nearest::use_instead;

use crate::failure::Failure;
use crate::formats;

const FLAG: &str = "--output-format";

/// The values of `--output-format`: gpuio's format, or what does the same here.
const FORMATS: [(&str, Result<&str, &str>); 4] = [
    ("normal", Ok("text")),
    ("json", Ok("fio-json")),
    ("json+", Ok("fio-json")),
    ("terse", Err("--format csv has a row for each job and direction, with names")),
];

/// The words with gpuio's `--format` for fio's `--output-format`, and a note where a word of both
/// means fio's.
///
/// # Errors
/// The format is none of fio's or gpuio's.
pub(crate) fn spoken(words: &[OsString]) -> Result<(Vec<OsString>, Option<String>), Failure> {
    let runs = words.get(1).is_some_and(|verb| verb == "bench" || verb == "workload");
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let given = |word: &OsString| {
        let rest = word.to_str()?.strip_prefix(FLAG)?;
        rest.strip_prefix('=')
            .map_or_else(|| rest.is_empty().then_some(None), |it| Some(Some(it.to_owned())))
    };
    let found = words.iter().take(end).enumerate().find_map(|(at, word)| Some((at, given(word)?)));
    let Some((at, value)) = found.filter(|_| runs) else { return Ok((words.to_vec(), None)) };
    let apart = value.is_none();
    let value = value.or_else(|| Some(words.get(at + 1)?.to_str()?.to_owned()));
    let Some(value) = value else { return Err(Failure::Usage(format!("{FLAG}: it has no value"))) };
    let format = match FORMATS.iter().find(|(name, _)| *name == value) {
        Some((_, Ok(format))) => *format,
        Some((_, Err(instead))) => {
            return Err(Failure::Usage(format!(
                "{FLAG}={value}: gpuio does not write it: {instead}"
            )));
        }
        None => formats::names_of_records().into_iter().find(|name| *name == value).ok_or_else(
            || {
                let of_fio =
                    FORMATS.iter().filter(|(_, format)| format.is_ok()).map(|(name, _)| *name);
                let known = unique(of_fio.chain(formats::names_of_records()));
                let lists = value.split(',').all(|one| known.contains(&one));
                let how = match lists {
                    true => "it takes one format here; save the run with -o FILE, and gpuio show \
                             FILE prints it in others"
                        .to_owned(),
                    false => use_instead(&value, &known),
                };
                Failure::Usage(format!("{FLAG}={value}: {how}"))
            },
        )?,
    };
    let mut all = words.to_vec();
    all.splice(at..=at + usize::from(apart), [OsString::from(format!("--format={format}"))]);
    let quiet = words.iter().any(|word| word == "-q" || word == "--quiet");
    let both = format == "fio-json" && value != format && !quiet;
    let note = both.then(|| {
        format!(
            "{FLAG}={value} is read as fio means it: the fields of fio's JSON (--format fio-json); \
             --format json is gpuio's record"
        )
    });
    Ok((all, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Result<(String, bool), String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (words, note) = spoken(&words).map_err(|failure| failure.to_string())?;
        let words: Vec<String> = words.iter().map(|it| it.display().to_string()).collect();
        Ok((words.join(" "), note.is_some()))
    }

    #[test]
    fn a_format_of_fio_is_one_of_gpuio_or_refused_by_its_own_name() {
        for (given, format, noted) in [
            ("--output-format=json", "fio-json", true),
            ("--output-format json+", "fio-json", true),
            ("--output-format=normal", "text", false),
            ("--output-format csv", "csv", false),
            ("--output-format=json -q", "fio-json -q", false),
        ] {
            let expected = (format!("gpuio bench --format={format} --rw read"), noted);
            let expected = (expected.0.replace(" -q --rw read", " --rw read -q"), noted);
            let line = match given.strip_suffix(" -q") {
                Some(given) => format!("gpuio bench {given} --rw read -q"),
                None => format!("gpuio bench {given} --rw read"),
            };
            assert_eq!(said(&line), Ok(expected), "{line}");
        }
        for (given, part) in [
            ("--output-format=terse", "--output-format=terse: "),
            (
                "--output-format=json,normal",
                "--output-format=json,normal: it takes one format here",
            ),
            ("--output-format=jsn", "json, json+, text, summary, csv"),
            ("--output-format", "no value"),
        ] {
            let error = said(&format!("gpuio bench {given}")).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        for other in ["gpuio exec -- fio --output-format=json", "gpuio show --output-format=json"] {
            assert_eq!(said(other), Ok((other.to_owned(), false)));
        }
    }
}
