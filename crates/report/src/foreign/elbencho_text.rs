//! elbencho's results on a terminal, as of elbencho 1.9 to 3.0: a block per phase, with a column
//! until the first thread was done and one until the last.

use crate::foreign::{Direction, ForeignError, Number, Output, Reading, Tool};

const NAME: &str = "elbencho";
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) const TOOL: Tool = Tool {
    name: NAME,
    measures: &[
        "elbencho's figures are those until the last thread finished, in whole MiB/s and µs",
        "elbencho's text has neither threads nor block size; its CSV has them",
    ],
    looks: |text| text.lines().any(is_head),
    read,
};

fn is_head(line: &str) -> bool {
    line.trim_start().starts_with("OPERATION") && line.contains("LAST DONE")
}

fn read(text: &str) -> Result<Output, ForeignError> {
    let mut output = Output::default();
    let mut begun = false;
    let mut open = false;
    for line in text.lines() {
        begun |= is_head(line);
        let Some((phase, kind, values)) = parts(line).filter(|_| begun) else { continue };
        if let Some(phase) = phase {
            let result = phase.result();
            open = result.is_some();
            output.readings.extend(result);
        }
        let Some(reading) = output.readings.last_mut().filter(|_| open) else { continue };
        figure(reading, kind, values);
    }
    output.readings.retain(|reading| !reading.figures.is_empty());
    if output.readings.is_empty() {
        let why = ": no phase reads or writes".to_owned();
        return Err(ForeignError::Empty { tool: NAME, why });
    }
    Ok(output)
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    Moves(Direction),
    /// It makes or removes files, or syncs.
    Other,
}

impl Phase {
    /// A result of it, where it moves bytes.
    pub(crate) fn result(self) -> Option<Reading> {
        match self {
            Phase::Moves(direction) => Some(Reading::new(NAME, direction)),
            Phase::Other => None,
        }
    }
}

/// A line of a phase: the phase that begins with it, the kind of its figures, the figures.
pub(crate) fn parts(line: &str) -> Option<(Option<Phase>, &str, &str)> {
    let (left, values) = line.split_once(':')?;
    let left = left.trim();
    // A phase's name stands before the kind of its first result.
    let phase = left.split_once(char::is_whitespace).filter(|(phase, _)| {
        let upper = phase.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
        upper && phase.len() > 3 && *phase != "IOPS"
    });
    Some(match phase {
        Some(("READ", kind)) => (Some(Phase::Moves(Direction::Read)), kind.trim(), values),
        Some(("WRITE", kind)) => (Some(Phase::Moves(Direction::Write)), kind.trim(), values),
        Some((_, kind)) => (Some(Phase::Other), kind.trim(), values),
        None => (None, left, values),
    })
}

/// The last column, which is of the end of the last thread.
pub(crate) fn last(values: &str) -> &str {
    values.split_whitespace().last().unwrap_or_default()
}

/// Takes the figures of a kind; `false` where the kind is unknown.
pub(crate) fn figure(reading: &mut Reading, kind: &str, values: &str) -> bool {
    let last = last(values);
    // Whole units, truncated.
    let cut =
        |unit: f64| Number::printed(last, unit).map(|one| Number { off: 2.0 * one.off, ..one });
    match kind {
        "IOPS" => reading.put("iops", cut(1.0)),
        "Throughput MiB/s" | "MiB/s" => reading.put("throughput", cut(MIB)),
        "Elapsed ms" => reading.seconds = last.parse::<f64>().ok().map(|ms| ms / 1000.0),
        "Elapsed time" => reading.seconds = seconds(last),
        // `[ min=70 avg=163 max=5138 ]`.
        "IO lat us" | "IO latency us" => {
            let average = values.split_once("avg=").map(|(_, rest)| rest);
            let average = average.and_then(|rest| rest.split([' ', ']']).next());
            reading.put("mean", average.and_then(|text| Number::printed(text, 1000.0)));
        }
        _ => return false,
    }
    true
}

/// `5.020s`, `712ms`, `1m5.02s`, `2h1m5s`.
fn seconds(text: &str) -> Option<f64> {
    if let Some(ms) = text.strip_suffix("ms") {
        return ms.parse::<f64>().ok().map(|ms| ms / 1000.0);
    }
    let mut rest = text.strip_suffix('s')?;
    let mut seconds = 0.0;
    for (unit, scale) in [('h', 3600.0), ('m', 60.0)] {
        if let Some((count, after)) = rest.split_once(unit) {
            seconds += count.parse::<f64>().ok()? * scale;
            rest = after;
        }
    }
    Some(seconds + rest.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
MKDIRS      Elapsed time     :         1ms         2ms
WRITE       Elapsed time     :      5.012s      5.020s
            IOPS             :        3112        3009
            Throughput MiB/s :        3112        3009
            Total MiB        :       15098       15108
            IO lat us        : [ min=70 avg=163 max=5138 ]
---
READ        Elapsed ms       :         912         930
            IOPS             :        9000        8900
            Throughput MiB/s :        9000        8900
";

    #[test]
    fn phases_that_move_bytes_are_results() {
        let readings = read(TEXT).unwrap().readings;
        assert_eq!(readings.len(), 2);
        let value = |at: usize, metric: &str| readings[at].figures[metric].value;
        assert!((value(0, "throughput") - 3009.0 * MIB).abs() < 1.0);
        assert!(
            (value(0, "mean") - 163_000.0).abs() < 1.0 && (value(1, "iops") - 8900.0).abs() < 1e-9
        );
        assert_eq!((readings[0].seconds, readings[1].seconds), (Some(5.02), Some(0.93)));
        assert_eq!((seconds("1m5.5s"), seconds("x")), (Some(65.5), None));
        assert_eq!(seconds("2h1m5s"), Some(7265.0));
        let empty = "OPERATION RESULT TYPE FIRST DONE LAST DONE\nMKDIRS Elapsed time : 1ms 2ms\n";
        assert!(read(empty).is_err());
    }
}
