//! The knee of a latency curve: the load from which on more load gives latency instead of rate.

use gpuio_base::stat::Percentile;
use gpuio_base::units::{human_ns, parse_bytes, parse_bytes_per_second, parse_count};

use crate::number::{float, iops, throughput};

/// Keys whose values push harder the larger they are.
pub const KEYS: [&str; 4] = ["depth", "threads", "rate", "rate_iops"];

/// Loads that a curve takes.
pub const LEAST: usize = 3;

/// Share by which throughput grows at least where the load is doubled.
const GROWS: f64 = 0.1;

/// The number of a load as job files and sweeps write it; `None` for another key.
pub fn number(key: &str, word: &str) -> Option<f64> {
    match key {
        "depth" | "threads" | "rate_iops" => parse_count(word).ok(),
        "rate" => parse_bytes(word).or_else(|_| parse_bytes_per_second(word)).ok(),
        _ => None,
    }
    .map(float)
}

/// One load of a curve: medians of its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The load as a number, and as written.
    pub load: f64,
    pub word: String,
    pub bytes_per_s: f64,
    pub iops: f64,
    /// Nanoseconds of [`Percentile::SHORT`]; `None` with too few I/Os.
    pub latency: [Option<f64>; 2],
}

/// Where the knee of a curve is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knee {
    /// At this step.
    At(usize),
    /// Throughput still grew at the highest load.
    Grows,
    /// Throughput did not grow from the lowest load on.
    Flat,
}

/// The rule in a sentence.
pub fn rule(key: &str) -> String {
    format!(
        "The knee is the last load at which throughput grew by more than {:.0} % for a doubling of \
         {key}, against the best of the lower loads.",
        GROWS * 100.0
    )
}

/// The knee of steps with ascending loads; `None` with fewer than [`LEAST`].
pub fn knee(steps: &[Step]) -> Option<Knee> {
    let (mut best, mut last) = (steps.first()?, None);
    for (nth, step) in steps.iter().enumerate().skip(1) {
        let doublings = (step.load / best.load).log2();
        if step.bytes_per_s > best.bytes_per_s * (1.0 + GROWS).powf(doublings) {
            last = Some(nth);
        }
        if step.bytes_per_s > best.bytes_per_s {
            best = step;
        }
    }
    let found = match last {
        Some(nth) if nth + 1 == steps.len() => Knee::Grows,
        Some(nth) => Knee::At(nth),
        None => Knee::Flat,
    };
    (steps.len() >= LEAST).then_some(found)
}

/// The knee in words, for the curve that `about` names; nothing for fewer steps than a curve takes.
pub fn sentence(about: &str, key: &str, steps: &[Step]) -> Option<String> {
    let at = |step: &Step| {
        let percentiles = Percentile::SHORT.iter().zip(step.latency).map(|(at, ns)| {
            format!("{} {}", at.label(), ns.map_or_else(|| "unknown".to_owned(), human_ns))
        });
        let percentiles: Vec<String> = percentiles.collect();
        let (rate, ios) = (throughput(step.bytes_per_s), iops(step.iops));
        format!("{key}={}: {rate}, {ios} IOPS, {}", step.word, percentiles.join(", "))
    };
    let (first, last) = (steps.first()?, steps.last()?);
    let found = match knee(steps)? {
        Knee::At(nth) => format!("knee at {}", at(&steps[nth])),
        Knee::Grows => format!("no knee, throughput still grew at the highest load, {}", at(last)),
        Knee::Flat => {
            format!("no knee, throughput did not grow from the lowest load on, {}", at(first))
        }
    };
    Some(match about {
        "" => format!("Latency against throughput: {found}."),
        about => format!("{about}: {found}."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(of: &[(f64, f64)]) -> Vec<Step> {
        let step = |(load, rate): &(f64, f64)| Step {
            load: *load,
            word: load.to_string(),
            bytes_per_s: *rate,
            iops: rate / 4096.0,
            latency: [Some(1e5 * load), None],
        };
        of.iter().map(step).collect()
    }

    #[test]
    fn the_knee_is_the_last_load_that_paid() {
        let found = |of: &[(f64, f64)]| knee(&steps(of));
        let curve = [(1.0, 10.0), (2.0, 19.0), (4.0, 30.0), (8.0, 32.0), (16.0, 32.5)];
        assert_eq!(found(&curve), Some(Knee::At(2)));
        assert_eq!(found(&curve[..3]), Some(Knee::Grows));
        assert_eq!(found(&[(1.0, 10.0), (2.0, 10.1), (4.0, 9.0)]), Some(Knee::Flat));
        assert_eq!(found(&curve[..2]), None);
        // A dip, and the way back out of it, is no growth.
        assert_eq!(found(&[(1.0, 10.0), (2.0, 20.0), (4.0, 15.0), (8.0, 20.5)]), Some(Knee::At(1)));
        // Small steps are held against the same growth for a doubling.
        assert_eq!(found(&[(8.0, 10.0), (9.0, 10.5), (10.0, 11.0)]), Some(Knee::Grows));
        assert_eq!(found(&[(8.0, 10.0), (9.0, 10.1), (10.0, 10.2)]), Some(Knee::Flat));
    }

    #[test]
    fn the_words_have_rate_and_latency_or_say_that_there_is_no_knee() {
        let curve = steps(&[(1.0, 1e6), (2.0, 2e6), (4.0, 2.1e6)]);
        let words = |of: &[Step]| sentence("host", "depth", of).unwrap();
        let knee = "host: knee at depth=2: 1.91 MiB/s, 488 IOPS, p50 200 µs, p99 unknown.";
        assert_eq!(words(&curve), knee);
        let grows = steps(&[(1.0, 1e6), (2.0, 2e6), (4.0, 4e6)]);
        assert!(words(&grows).starts_with("host: no knee, throughput still grew at the highest"));
        let flat = steps(&[(1.0, 1e6), (2.0, 1e6), (4.0, 1e6)]);
        assert!(words(&flat).contains("no knee, throughput did not grow from the lowest load on"));
        assert_eq!(number("rate_iops", "2k"), Some(2000.0));
        assert_eq!(number("rate", "2m"), Some(2_097_152.0));
        assert_eq!((number("depth", "32"), number("path", "32")), (Some(32.0), None));
        assert!(rule("depth").contains("more than 10 % for a doubling of depth"));
    }
}
