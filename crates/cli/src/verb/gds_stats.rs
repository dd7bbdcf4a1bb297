//! `gpuio gds_stats -p PID -l N`, and gpuio called as `gds_stats`: live counters in gds_stats'
//! format.

use std::process::ExitCode;

use gpuio_host::Root;
use gpuio_watch::page::format::gds_stats::{self, Gpu};
use gpuio_watch::page::{LivePageRoot, read};

use super::stats::{found, print_notes, unreadable};
use crate::failure::Failure;
use crate::output;
use crate::source;

const HELP: &str = "usage: gds_stats -p PID [-l 1|2|3]
  -p PID  ID of a running gpuio process
  -l N    1: totals; 2: also sizes; 3: also GPUs [1]
  -h      print this help

Prints gpuio's counters in the format of gds_stats (docs/stats.md). Counters that gpuio lacks: n/a.
Programs that use NVIDIA's libcufile are not visible.
";

/// The requested output.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Help,
    Stats { pid: u32, level: u8 },
}

pub(crate) fn run(words: &[String]) -> Result<ExitCode, Failure> {
    match parse(words)? {
        Action::Help => output::put(HELP)?,
        Action::Stats { pid, level } => {
            let listing = read::find(&LivePageRoot::live(), &Root::live(), pid);
            print_notes(&listing);
            let found = found(&listing, pid)?;
            let page = found.page.as_ref().map_err(|_| unreadable(found))?;
            if page.saves.is_some() {
                return Err(Failure::Unavailable(format!(
                    "process {pid} writes saves of gpuio.checkpoint and makes no calls of cuFile; \
                     `gpuio stats {pid}` shows them"
                )));
            }
            let machine = if level >= 3 { gpus()? } else { Vec::new() };
            output::put(&gds_stats::text(page, level, &machine))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine's GPUs by the driver's numbers, or by PCI address if these are unknown.
fn gpus() -> Result<Vec<Gpu>, Failure> {
    let machine = source::only_one(&[], None)?.captured.machine;
    let all_numbered = machine.gpus.iter().all(|gpu| gpu.index.known().is_some());
    let gpus = (0..).zip(&machine.gpus).filter_map(|(nth, gpu)| {
        let index = gpu.index.known().copied().filter(|_| all_numbered).unwrap_or(nth);
        Some(Gpu { index, pci: gpu.pci.clone()? })
    });
    Ok(gpus.collect())
}

fn parse(words: &[String]) -> Result<Action, Failure> {
    let usage = |what: String| Failure::Usage(format!("{what}; `gds_stats -h` has the flags"));
    let (mut pid, mut level) = (None, None);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-h" | "--help" => return Ok(Action::Help),
            "-p" if pid.is_some() => return Err(usage("-p is given twice".to_owned())),
            "-l" if level.is_some() => return Err(usage("-l is given twice".to_owned())),
            "-p" => {
                let value = words.next().unwrap_or_default();
                let number = value.parse().ok().filter(|pid| *pid > 0);
                pid = Some(
                    number.ok_or_else(|| usage(format!("-p needs a process ID, not '{value}'")))?,
                );
            }
            "-l" => {
                let value = words.next().unwrap_or_default();
                let number = value.parse().ok().filter(|level| (1..=3).contains(level));
                let wrong = || usage(format!("-l needs 1, 2 or 3, not '{value}'"));
                level = Some(number.ok_or_else(wrong)?);
            }
            other => return Err(usage(format!("'{other}' is not a flag of gds_stats"))),
        }
    }
    let pid = pid.ok_or_else(|| usage("name the process: -p PID".to_owned()))?;
    Ok(Action::Stats { pid, level: level.unwrap_or(1) })
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
        assert_eq!(of("-p 7").unwrap(), Action::Stats { pid: 7, level: 1 });
        assert_eq!(of("-l 3 -p 7").unwrap(), Action::Stats { pid: 7, level: 3 });
        assert_eq!(of("-p 7 -h").unwrap(), Action::Help);
        for (line, word) in [
            ("", "-p PID"),
            ("-p", "-p needs"),
            ("-p x", "'x'"),
            ("-p 0", "'0'"),
            ("-p 7 -l 4", "'4'"),
            ("-p 7 -p 8", "-p is given twice"),
            ("-l 1 -p 7 -l 2", "-l is given twice"),
            ("-q", "'-q'"),
        ] {
            let Err(Failure::Usage(words)) = of(line) else { panic!("{line}") };
            assert!(words.contains(word), "{line}: {words}");
        }
    }
}
