//! The knee of a latency curve: the load from which on more load gives latency instead of rate.

use gpuio_base::stat::Percentile;
use gpuio_base::stat::infer::{INTERVAL_RUNS, is_above, median, welch};
use gpuio_base::units::{human_ns, many, parse_bytes, parse_bytes_per_second, parse_count};

use crate::number::{float, iops, throughput};

/// Keys whose values push harder the larger they are.
pub const KEYS: [&str; 4] = ["depth", "threads", "rate", "rate_iops"];

/// Loads that a curve takes.
pub const LEAST: usize = 3;

/// Share by which throughput grows at least where the load is doubled.
const GROWS: f64 = 0.1;
/// The level of a growth's interval.
const LEVEL: f64 = 0.95;

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
    /// Bytes per second of each run.
    pub rates: Vec<f64>,
    pub iops: f64,
    /// Nanoseconds of [`Percentile::SHORT`]; `None` with too few I/Os.
    pub latency: [Option<f64>; 2],
}

impl Step {
    /// The median of its runs.
    pub fn bytes_per_s(&self) -> f64 {
        median(&self.rates).unwrap_or(0.0)
    }

    /// Whether throughput grew from a lower load by more than the rule's share. `None` where the
    /// interval of the ratio includes that share, or there are too few runs for one.
    fn grew(&self, from: &Step) -> Option<bool> {
        let least = (1.0 + GROWS).powf((self.load / from.load).log2());
        let ratio = welch(&from.rates, &self.rates, LEVEL);
        let runs = self.rates.len().min(from.rates.len());
        let ratio = ratio.filter(|_| runs >= INTERVAL_RUNS)?;
        is_above((ratio.low, ratio.high), least)
    }
}

/// Where the knee of a curve is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knee {
    /// At this step.
    At(usize),
    /// Throughput still grew at the highest load.
    Grows,
    /// Throughput grew by no more than the rule's share from the lowest load on.
    Flat,
    /// Unknown: it may have grown from the first of these steps to the second, or not.
    Undecided(usize, usize),
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
    let (mut best, mut last, mut open) = (0, None, None);
    steps.first()?;
    for (nth, step) in steps.iter().enumerate().skip(1) {
        match step.grew(&steps[best]) {
            Some(true) => (last, open) = (Some(nth), None),
            Some(false) => {}
            None => open = open.or(Some((best, nth))),
        }
        if step.bytes_per_s() > steps[best].bytes_per_s() {
            best = nth;
        }
    }
    let found = match (open, last) {
        (Some((from, to)), _) => Knee::Undecided(from, to),
        (None, Some(nth)) if nth + 1 == steps.len() => Knee::Grows,
        (None, Some(nth)) => Knee::At(nth),
        (None, None) => Knee::Flat,
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
        let (rate, ios) = (throughput(step.bytes_per_s()), iops(step.iops));
        format!("{key}={}: {rate}, {ios} IOPS, {}", step.word, percentiles.join(", "))
    };
    let (first, last) = (steps.first()?, steps.last()?);
    let found = match knee(steps)? {
        Knee::At(nth) => format!("knee at {}", at(&steps[nth])),
        Knee::Grows => format!("no knee, throughput still grew at the highest load, {}", at(last)),
        Knee::Flat => {
            let share = format!("{:.0} % for a doubling", GROWS * 100.0);
            let flat =
                format!("no knee, throughput grew by at most {share} from the lowest load on");
            format!("{flat}, {}", at(first))
        }
        Knee::Undecided(from, to) => undecided(key, &steps[from], &steps[to]),
    };
    Some(match about {
        "" => format!("Latency against throughput: {found}."),
        about => format!("{about}: {found}."),
    })
}

/// Why no knee is concluded, and how many runs may help.
fn undecided(key: &str, from: &Step, to: &Step) -> String {
    let runs = from.rates.len().min(to.rates.len());
    let [low, high] =
        [from, to].map(|step| format!("{} at {key}={}", throughput(step.bytes_per_s()), step.word));
    let repeats = (2 * runs).max(5);
    let why = match runs < INTERVAL_RUNS {
        true => format!("{} of a load: too few for a spread", many(runs as u64, "run")),
        false => format!(
            "whether it grew by more than {:.0} % for a doubling is within the spread of the runs",
            GROWS * 100.0
        ),
    };
    format!("knee not decided: {low}, {high}; {why}; --repeats {repeats}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three runs of each load, at most so far from the middle one.
    fn spread(of: &[(f64, f64)], share: f64) -> Vec<Step> {
        let step = |(load, rate): &(f64, f64)| Step {
            load: *load,
            word: load.to_string(),
            rates: vec![rate * (1.0 - share), *rate, rate * (1.0 + share)],
            iops: rate / 4096.0,
            latency: [Some(1e5 * load), None],
        };
        of.iter().map(step).collect()
    }

    fn steps(of: &[(f64, f64)]) -> Vec<Step> {
        spread(of, 0.001)
    }

    #[test]
    fn growth_within_the_spread_of_the_runs_is_none_and_no_end_of_it() {
        let noisy = spread(&[(1.0, 252e6), (2.0, 270e6), (4.0, 291e6)], 0.2);
        assert_eq!(knee(&noisy), Some(Knee::Undecided(0, 1)));
        let words = sentence("host", "depth", &noisy).unwrap();
        let why = "240 MiB/s at depth=1, 257 MiB/s at depth=2; whether it grew by more than 10 % \
                   for a doubling is within the spread of the runs; --repeats 6.";
        assert_eq!(words, format!("host: knee not decided: {why}"));
        // Plainly more at a higher load: the steps below do not matter.
        let grows = spread(&[(1.0, 252e6), (2.0, 270e6), (4.0, 2000e6)], 0.2);
        assert_eq!(knee(&grows), Some(Knee::Grows));
        // By the medians it grew by 44.6 % for two doublings, by the runs by 4 % at least.
        let open = spread(&[(8.0, 100e6), (16.0, 101e6), (32.0, 144.6e6)], 0.15);
        assert!(matches!(knee(&open), Some(Knee::Undecided(..))), "{open:?}");
        // No growth by the medians; by the runs it may be 14 %, and `compare` calls it faster.
        let faster = spread(&[(1.0, 252e6), (2.0, 270e6), (4.0, 270e6)], 0.025);
        assert_eq!(knee(&faster), Some(Knee::Undecided(0, 1)));
        let mut few = steps(&[(1.0, 1e6), (2.0, 2e6), (4.0, 2.1e6)]);
        few.iter_mut().for_each(|step| step.rates.truncate(2));
        let words = sentence("", "depth", &few).unwrap();
        assert!(
            words.ends_with("; 2 runs of a load: too few for a spread; --repeats 5."),
            "{words}"
        );
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
        assert!(
            words(&flat).contains("grew by at most 10 % for a doubling from the lowest load on")
        );
        assert_eq!(number("rate_iops", "2k"), Some(2000.0));
        assert_eq!(number("rate", "2m"), Some(2_097_152.0));
        assert_eq!((number("depth", "32"), number("path", "32")), (Some(32.0), None));
        assert!(rule("depth").contains("more than 10 % for a doubling of depth"));
    }
}
