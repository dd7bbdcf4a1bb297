//! `dcgmi diag` (DCGM 2 to 4): the tests of GPUs, each with its results.

use gpuio_record::facts::{Diagnosis, Verdict};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines};

pub(crate) const KIND: Kind = Kind {
    command: "dcgmi diag",
    gives: "each test of the GPUs with its result, for `gpuio check`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().filter_map(cells).any(|cells| cells == ("Diagnostic", "Result"))
            || text
                .lines()
                .filter_map(cells)
                .any(|(test, result)| DEPLOYMENT.contains(&test) && parts(result).is_some())
    },
    add,
};

/// Tests that no other table has, where people cut the head.
const DEPLOYMENT: [&str; 3] =
    ["Page Retirement/Row Remap", "Permissions and OS Blocks", "CUDA Main Library"];

/// The two cells of a row.
fn cells(line: &str) -> Option<(&str, &str)> {
    let (test, result) = line.trim().strip_prefix('|')?.split_once('|')?;
    Some((test.trim(), result.trim_end_matches('|').trim()))
}

/// A result and its GPUs: `Fail - GPUs: 0, 1`, `Pass - All`, `GPU0: Fail`.
fn parts(cell: &str) -> Option<(Verdict, &str)> {
    let (word, of) = match cell.split_once(": ").filter(|(of, _)| of.starts_with("GPU")) {
        Some((of, word)) => (word, of),
        None => cell.split_once(" - ").unwrap_or((cell, "")),
    };
    let verdict = match word.trim() {
        "Pass" => Verdict::Pass,
        "Fail" => Verdict::Fail,
        "Warn" => Verdict::Warn,
        "Skip" => Verdict::Skip,
        _ => return None,
    };
    Some((verdict, of.trim()))
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut found: Vec<Diagnosis> = Vec::new();
    // Words below a test that go on in the next row.
    let mut open = false;
    for (index, line) in lines(text) {
        let line = line.trim();
        let ruler = line.starts_with(['+', '|']) && line.contains("---") || line.contains("===");
        let head = line.starts_with("Successfully ran diagnostic") || ruler;
        let Some((test, result)) = cells(line).filter(|_| !ruler) else {
            if !head {
                captured.skip(CaptureError::new(index, line, 0, "a row of dcgmi diag's table"));
            }
            continue;
        };
        let word = test.split([' ', ':']).next().unwrap_or_default();
        let says = ["Warning", "Error", "Info"].contains(&word);
        if let Some((verdict, of)) = parts(result).filter(|_| !says) {
            let name = match found.last() {
                Some(last) if test.is_empty() => last.test.clone(),
                _ => test.to_owned(),
            };
            found.push(Diagnosis { test: name, verdict, of: of.to_owned(), words: String::new() });
        } else if let Some(last) = found.last_mut().filter(|_| says || test.is_empty() && open) {
            // Words are cut where the column ends, within a word too.
            let gap = if says && !last.words.is_empty() { "; " } else { "" };
            last.words.push_str(&format!("{gap}{result}"));
        }
        open = says || test.is_empty() && open;
        if found.len() > MOST_DEVICES {
            return Err(CaptureError::new(index, line, 0, "fewer tests"));
        }
    }
    // A run takes the place of the one before it.
    if !found.is_empty() {
        captured.machine.diagnoses = found;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_have_results_gpus_and_words() {
        let old = "# dcgmi diag -r 2\nSuccessfully ran diagnostic for group.\n\
            +-----------------+--------------------------+\n\
            | Diagnostic      | Result                   |\n\
            +=================+==========================+\n\
            |-----  Metadata  +--------------------------|\n\
            | DCGM Version    | 3.1.8                    |\n\
            |-----  Deployment  --+----------------------|\n\
            | Inforom         | Skip                     |\n\
            | PCIe            | Fail - GPU: 3            |\n\
            |                 | Pass - GPUs: 0, 1, 2     |\n\
            | Warning         | GPU 3 has a link of Gen 3 inst |\n\
            |                 | ead of 4                 |\n\
            | GPU Memory      | Pass - All               |\n";
        let new = "+---+---+\n| Diagnostic | Result |\n+===+===+\n| pcie | Fail |\n\
            | | GPU0: Pass |\n| | GPU1: Fail |\n| Warning: GPU1 | x16 is wanted, x8 is there |\n";
        let read = |text: &str| {
            let mut captured = Captured::default();
            crate::read("text", text, &mut captured).unwrap();
            assert!(captured.texts[0].skipped.is_empty(), "{:?}", captured.texts);
            let of = |one: Diagnosis| (one.test, one.verdict, one.of, one.words);
            captured.machine.diagnoses.into_iter().map(of).collect::<Vec<_>>()
        };
        let row = |test: &str, verdict, of: &str, words: &str| {
            (test.to_owned(), verdict, of.to_owned(), words.to_owned())
        };
        let wanted = [
            row("Inforom", Verdict::Skip, "", ""),
            row("PCIe", Verdict::Fail, "GPU: 3", ""),
            row("PCIe", Verdict::Pass, "GPUs: 0, 1, 2", "GPU 3 has a link of Gen 3 instead of 4"),
            row("GPU Memory", Verdict::Pass, "All", ""),
        ];
        assert_eq!(read(old), wanted);
        assert_eq!(read(new).last().unwrap().3, "x16 is wanted, x8 is there");
        assert_eq!(read(new)[2].1, Verdict::Fail);
    }
}
