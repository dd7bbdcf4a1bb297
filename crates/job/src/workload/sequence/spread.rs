//! How random ranks are spread.
//!
//! Powers and logarithms come from the `libm` crate and not from the C library: C libraries
//! differ in the last bit, which would give one seed different offsets on different machines.

use gpuio_base::units::whole;
use gpuio_record::{Distribution, Zone};

use super::error::SequenceError;
use super::stream::Stream;

/// A distribution over ranks `0..count`.
#[derive(Debug, Clone)]
pub(crate) enum Spread {
    Uniform,
    Zipf(Zipf),
    /// Rank = count * u^power.
    Pareto {
        power: f64,
    },
    /// Around the middle, with this deviation as a share of the whole.
    Normal {
        deviation: f64,
    },
    /// Parts with a share each.
    Zones(Vec<Part>),
}

/// Ranks from `first` on, so many, to which I/Os go whose number of a hundred is below `up_to`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    up_to: u64,
    first: u64,
    count: u64,
}

impl Spread {
    /// Checks the parameters; `count` ranks, at least 1, are of so many bytes.
    pub(crate) fn new(
        wanted: &Distribution,
        count: u64,
        bytes: u128,
    ) -> Result<Spread, SequenceError> {
        match *wanted {
            Distribution::Zoned { ref zones } => Ok(parts(zones, 100, count)),
            Distribution::ZonedAbs { ref zones } => Ok(parts(zones, bytes, count)),
            Distribution::Uniform => Ok(Spread::Uniform),
            Distribution::Zipf { theta } => {
                let fits = theta.is_finite() && theta > 0.0;
                check(fits, "zipf", "theta", theta, "it must be above 0")?;
                Ok(Spread::Zipf(Zipf::new(theta, count)))
            }
            Distribution::Pareto { h } => {
                let fits = h > 0.0 && h < 1.0;
                check(fits, "pareto", "h", h, "it must lie between 0 and 1")?;
                // Self-similar: the share 1 - h of the I/Os goes to the share h of the blocks, and
                // so on within that share (Gray et al., SIGMOD 1994, section 4).
                Ok(Spread::Pareto { power: libm::log(h) / libm::log(1.0 - h) })
            }
            Distribution::Normal { deviation_percent } => {
                let fits = deviation_percent > 0.0 && deviation_percent <= 100.0;
                let wanted =
                    "the deviation is a share of the region, above 0 and up to 100 per cent";
                check(fits, "normal", "deviation", deviation_percent, wanted)?;
                Ok(Spread::Normal { deviation: deviation_percent / 100.0 })
            }
        }
    }

    /// The distribution's name in job files.
    pub(crate) fn name(wanted: &Distribution) -> &'static str {
        match wanted {
            Distribution::Uniform => "uniform",
            Distribution::Zipf { .. } => "zipf",
            Distribution::Pareto { .. } => "pareto",
            Distribution::Normal { .. } => "normal",
            Distribution::Zoned { .. } => "zoned",
            Distribution::ZonedAbs { .. } => "zoned_abs",
        }
    }

    /// Whether low ranks are hot and must be scattered to become positions.
    pub(crate) fn has_hot_ranks(&self) -> bool {
        matches!(self, Spread::Zipf(_) | Spread::Pareto { .. })
    }

    /// A rank below `count`.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream, count: u64) -> u64 {
        match self {
            Spread::Uniform => stream.below(count),
            Spread::Zipf(zipf) => zipf.draw(stream) - 1,
            Spread::Pareto { power } => {
                floor_below(libm::pow(stream.share(), *power) * count as f64, count)
            }
            Spread::Normal { deviation } => normal(stream, *deviation, count),
            Spread::Zones(parts) => {
                let roll = stream.below(100);
                let last = parts.len() - 1;
                let at = parts.iter().position(|part| roll < part.up_to).unwrap_or(last);
                parts[at].first + stream.below(parts[at].count)
            }
        }
    }
}

/// Zones whose lengths are of a whole of so many, as ranks. Each has one rank at least; what is
/// behind the last zone is of none, and zones past the end are at it.
fn parts(zones: &[Zone], whole: u128, count: u64) -> Spread {
    let rank = |length: u128| {
        let rank = length.saturating_mul(u128::from(count)) / whole.max(1);
        u64::try_from(rank).unwrap_or(count).min(count)
    };
    let (mut up_to, mut before) = (0, 0_u128);
    let parts = zones.iter().map(|zone| {
        let first = rank(before).min(count - 1);
        before += u128::from(zone.length);
        up_to += u64::from(zone.ios_percent);
        Part { up_to, first, count: rank(before).saturating_sub(first).max(1) }
    });
    let mut parts: Vec<Part> = parts.collect();
    if parts.is_empty() {
        parts.push(Part { up_to: 100, first: 0, count });
    }
    Spread::Zones(parts)
}

fn check(
    fits: bool,
    distribution: &'static str,
    parameter: &'static str,
    value: f64,
    wanted: &'static str,
) -> Result<(), SequenceError> {
    if fits {
        return Ok(());
    }
    Err(SequenceError::Parameter { distribution, parameter, value, wanted })
}

/// The whole part of `value`, held within `0..count`.
#[inline]
fn floor_below(value: f64, count: u64) -> u64 {
    whole(value).min(count - 1)
}

/// Draws outside the regions are drawn again, so that the ends do not become hot.
///
/// Marsaglia's polar method without its second value: a stream then has no state but its numbers.
fn normal(stream: &mut Stream, deviation: f64, count: u64) -> u64 {
    loop {
        let x = 2.0 * stream.share() - 1.0;
        let y = 2.0 * stream.share() - 1.0;
        let square = x * x + y * y;
        if square >= 1.0 || square == 0.0 {
            continue;
        }
        let z = x * libm::sqrt(-2.0 * libm::log(square) / square);
        let at = 0.5 + z * deviation;
        if (0.0..1.0).contains(&at) {
            return floor_below(at * count as f64, count);
        }
    }
}

/// Zipf's law over ranks `1..=count`: rank k has a weight of `k^-theta`.
///
/// Rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996): no table, no set-up that
/// grows with the count, and 1.1 draws per number or fewer for any exponent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zipf {
    theta: f64,
    count: u64,
    /// Ends of the range that is drawn from.
    integral_first: f64,
    integral_last: f64,
    /// Numbers whose distance to their rank is at most this are taken at once.
    shortcut: f64,
}

impl Zipf {
    fn new(theta: f64, count: u64) -> Zipf {
        let mut zipf =
            Zipf { theta, count, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(count as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let u =
                self.integral_last + stream.share() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let rank = floor_below(x - 0.5, self.count) + 1;
            let k = rank as f64;
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.weight(k) {
                return rank;
            }
        }
    }

    /// `x^-theta`.
    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// The integral of the weight from 1 to `x`: `(x^(1-theta) - 1) / (1 - theta)`, which is the
    /// logarithm where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.theta) * log;
        if t.abs() < 1e-8 { log * (1.0 + t / 2.0) } else { log * (libm::expm1(t) / t) }
    }

    /// The `x` whose integral is `y`.
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may lead just below the pole at -1.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        let factor = if t.abs() < 1e-8 { 1.0 - t / 2.0 } else { libm::log1p(t) / t };
        libm::exp(factor * y)
    }
}
