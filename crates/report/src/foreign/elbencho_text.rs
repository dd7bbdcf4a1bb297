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
        let Some((left, right)) = line.split_once(':').filter(|_| begun) else {
            continue;
        };
        let left = left.trim();
        // A phase begins at the left edge, and its name stands before the kind of its first result.
        let (phase, kind) = match left.split_once(char::is_whitespace) {
            Some((phase, kind))
                if phase.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
                    && phase.len() > 3
                    && phase != "IOPS" =>
            {
                (Some(phase), kind.trim())
            }
            _ => (None, left),
        };
        if let Some(phase) = phase {
            let direction = match phase {
                "READ" => Some(Direction::Read),
                "WRITE" => Some(Direction::Write),
                _ => None,
            };
            open = direction.is_some();
            output.readings.extend(direction.map(|direction| Reading::new(NAME, direction)));
        }
        let Some(reading) = output.readings.last_mut().filter(|_| open) else { continue };
        figure(reading, kind, right);
    }
    output.readings.retain(|reading| !reading.figures.is_empty());
    if output.readings.is_empty() {
        let why = ": no phase reads or writes".to_owned();
        return Err(ForeignError::Empty { tool: NAME, why });
    }
    Ok(output)
}

fn figure(reading: &mut Reading, kind: &str, values: &str) {
    let last = values.split_whitespace().last().unwrap_or_default();
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
        _ => {}
    }
}

/// `5.020s`, `712ms`, `1m5.02s`.
fn seconds(text: &str) -> Option<f64> {
    if let Some(ms) = text.strip_suffix("ms") {
        return ms.parse::<f64>().ok().map(|ms| ms / 1000.0);
    }
    let text = text.strip_suffix('s')?;
    match text.split_once('m') {
        Some((minutes, rest)) => {
            Some(minutes.parse::<f64>().ok()? * 60.0 + rest.parse::<f64>().ok()?)
        }
        None => text.parse().ok(),
    }
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
        let empty = "OPERATION RESULT TYPE FIRST DONE LAST DONE\nMKDIRS Elapsed time : 1ms 2ms\n";
        assert!(read(empty).is_err());
    }
}
