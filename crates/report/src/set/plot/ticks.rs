//! The ticks of an axis: round numbers in one unit, the first at or below the lowest value and the
//! last above the highest. The page's plots follow the same rule (`ticks` in `assets/format.js`),
//! and a test compares them.

use gpuio_base::units::rate_unit;

/// Values that lie this far apart need a logarithmic axis.
const WIDE: f64 = 10.0;

/// A unit: how many of the values' own it is, and its name; empty for none.
pub(super) type Unit = (f64, &'static str);

/// A place on an axis, and its text.
pub(super) type Tick = (f64, String);

/// Whether an axis is logarithmic: its values are above 0 and span more than a factor of ten.
pub(super) fn wide(values: impl IntoIterator<Item = f64>) -> bool {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) =
        values.into_iter().fold(ends, |(low, high), one| (one.min(low), one.max(high)));
    low > 0.0 && high.is_finite() && high / low > WIDE
}

/// The ticks of rates in bytes per second, on a linear axis about so many.
pub(in crate::set) fn rates(low: f64, high: f64, log: bool, about: f64) -> Vec<Tick> {
    let size = if log { high / 5.0 } else { low.abs().max(high.abs()) };
    ticks(rate_unit(size), low, high, log, about)
}

/// The ticks of times in nanoseconds.
pub(super) fn times(low: f64, high: f64, log: bool, about: f64) -> Vec<Tick> {
    of_units(&[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")], low, high, log, about)
}

/// The ticks of shares in per cent.
pub(super) fn percents(low: f64, high: f64, log: bool, about: f64) -> Vec<Tick> {
    of_units(&[(1.0, "%")], low, high, log, about)
}

/// The ticks of I/Os per second.
pub(super) fn counts(low: f64, high: f64, log: bool, about: f64) -> Vec<Tick> {
    of_units(&[(1.0, ""), (1e3, "k"), (1e6, "M")], low, high, log, about)
}

fn of_units(units: &[Unit], low: f64, high: f64, log: bool, about: f64) -> Vec<Tick> {
    let size = if log { high / 5.0 } else { high };
    let unit = units.iter().rev().find(|(one, _)| size >= *one).unwrap_or(&units[0]);
    ticks(*unit, low, high, log, about)
}

pub(super) fn ticks((one, name): Unit, low: f64, high: f64, log: bool, about: f64) -> Vec<Tick> {
    let (low, high) = (low / one, high / one);
    let found = if log { logarithmic(low, high, about) } else { linear(low, high, about) };
    let text = |(value, digits): (f64, usize)| match value {
        0.0 => (0.0, "0".to_owned()),
        _ => (value * one, format!("{value:.digits$} {name}").trim_end().to_owned()),
    };
    found.into_iter().map(text).collect()
}

/// 1, 2 and 5 of each decade, or of more than twice as many as wanted decades alone; with their
/// decimals.
fn logarithmic(low: f64, high: f64, about: f64) -> Vec<(f64, usize)> {
    let (first, last) = (decade(low), decade(high) + 1);
    let of = |kept: &[f64], stride: i32| {
        let mut found = Vec::new();
        let mut power = first;
        while power < last + stride {
            found.extend(kept.iter().map(|step| (step * ten(power), decimals(power))));
            power += stride;
        }
        while found.len() > 2 && found[1].0 <= low {
            found.remove(0);
        }
        while found.len() > 2 && found[found.len() - 2].0 > high {
            found.pop();
        }
        found
    };
    let found = of(&[1.0, 2.0, 5.0], 1);
    let few = |number: usize| u32::try_from(number).is_ok_and(|all| f64::from(all) <= 2.0 * about);
    if few(found.len()) {
        return found;
    }
    let stride = (1..).find(|stride| f64::from(last - first) <= 2.0 * about * f64::from(*stride));
    of(&[1.0], stride.unwrap_or(1))
}

/// Multiples of 1, 2 or 5 of a decade, with their decimals.
fn linear(low: f64, high: f64, about: f64) -> Vec<(f64, usize)> {
    let rough = if high > low { (high - low) / about } else { 1.0 };
    let power = decade(rough);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|one| one * ten(power));
    let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(steps[3]);
    let digits = decimals(if step >= ten(power + 1) { power + 1 } else { power });
    let first = (low / step).floor();
    let last = (first + 1.0).max(((high + (high - low) * 0.02) / step).ceil());
    let next = |at: &f64| Some(at + 1.0).filter(|next| *next <= last);
    std::iter::successors(Some(first), next).map(|at| (at * step, digits)).collect()
}

/// The decimals that a multiple of this power of ten needs.
fn decimals(power: i32) -> usize {
    usize::try_from(-power).unwrap_or(0)
}

/// The power of ten at or below a value.
fn decade(value: f64) -> i32 {
    let mut power = 0;
    while power > -300 && ten(power) > value {
        power -= 1;
    }
    while power < 300 && ten(power + 1) <= value {
        power += 1;
    }
    power
}

/// As the digits say it: exact where repeated division is not.
fn ten(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(low: f64, high: f64, log: bool) -> Vec<String> {
        rates(low, high, log, 5.0).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_in_one_unit_and_reach_above_the_highest_value() {
        let gib = 1024f64.powi(3);
        let linear = ["0", "0.5 GiB/s", "1.0 GiB/s", "1.5 GiB/s", "2.0 GiB/s"];
        assert_eq!(texts(0.0, 1.95 * gib, false), linear);
        let log = ["1 GiB/s", "2 GiB/s", "5 GiB/s", "10 GiB/s", "20 GiB/s", "50 GiB/s"];
        assert_eq!(texts(1.9 * gib, 40.0 * gib, true), log);
        let decades = ["0.01 GiB/s", "0.1 GiB/s", "1 GiB/s", "10 GiB/s", "100 GiB/s"];
        assert_eq!(texts(0.03 * gib, 77.0 * gib, true), decades);
        assert_eq!(texts(0.0, 0.0, false), ["0", "1 B/s"]);
        let seconds: Vec<Tick> = ticks((1.0, ""), -1.0, 30.0, false, 8.0);
        assert_eq!(
            seconds.iter().map(|tick| tick.1.as_str()).collect::<Vec<_>>()[..3],
            ["-5", "0", "5"]
        );
        assert!(!wide([0.0, 5.0]) && !wide([1.0, 10.0]) && wide([1.0, 11.0]) && !wide([]));
    }

    #[test]
    fn ticks_cover_every_range() {
        for nth in 0..400_i32 {
            let low = 1.37f64.powi(nth % 60);
            for times in [1.0, 1.001, 3.0, 11.0, 900.0, 1e7] {
                for log in [false, true] {
                    let found = rates(low, low * times, log, 5.0);
                    let (first, last) = (found[0].0, found[found.len() - 1].0);
                    assert!(first <= low && last >= low * times, "{low} {times} {found:?}");
                    assert!((2..=13).contains(&found.len()), "{low} {times} {found:?}");
                }
            }
        }
    }
}
