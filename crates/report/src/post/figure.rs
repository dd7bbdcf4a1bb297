//! Figures in sentences: a number with its unit, and how exact it is.

use gpuio_base::measured::number::{self, Decimal};

/// The quantity of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes per second. People write GB for both 10^9 and 2^30.
    Rate,
    Iops,
    /// Reads, or writes, per second by a device's count.
    Reads,
    Writes,
    Time,
    Percent,
    /// A multiple: `2X`.
    Times,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// Bytes of the line before it and up to its end.
    pub(crate) at: usize,
    pub(crate) end: usize,
    /// As written.
    pub(crate) text: String,
    pub(crate) value: f64,
    /// Half of the last digit.
    off: f64,
    pub(crate) unit: Unit,
    /// Base units (bytes per second, nanoseconds, a count) of one, in both meanings.
    scales: [f64; 2],
    pub(crate) digits: String,
}

impl Figure {
    /// Bytes per second, as written: GB are 10^9 bytes.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.unit == Unit::Rate).then(|| self.value * self.scales[0])
    }

    /// Base units in the meaning that is nearer to a value.
    pub(crate) fn near(&self, value: f64) -> f64 {
        let [one, other] = self.scales.map(|scale| self.value * scale);
        if (one - value).abs() <= (other - value).abs() { one } else { other }
    }

    /// Base units, where both meanings are one.
    pub(crate) fn base(&self) -> Option<f64> {
        let [one, other] = self.scales.map(|scale| self.value * scale);
        (one == other).then_some(one)
    }

    /// Whether it is a rate, a count a second or a time, and no share.
    pub(crate) fn is_measured(&self) -> bool {
        !matches!(self.unit, Unit::Percent | Unit::Times)
    }

    /// Whether it is this value, rounded or cut to its digits.
    pub(crate) fn is(&self, value: f64) -> bool {
        self.scales.iter().any(|scale| {
            let over = value / scale - self.value;
            over.abs() <= self.off * 1.02 || (0.0..self.off * 2.0).contains(&over)
        })
    }

    /// Whether it is this value within a share.
    pub(crate) fn is_about(&self, value: f64, share: f64) -> bool {
        self.is(value) || self.scales.iter().any(|s| (self.value * s / value - 1.0).abs() <= share)
    }

    /// Whether it has the value's digits in another order: `22061` for 22016.
    pub(crate) fn is_misspelt(&self, value: f64) -> bool {
        let sorted = |text: &str| {
            let mut digits: Vec<char> = text.chars().filter(char::is_ascii_digit).collect();
            digits.sort_unstable();
            digits
        };
        self.scales.iter().any(|scale| {
            let other = format!("{:.0}", value / scale);
            self.digits.len() >= 4 && other != self.digits && sorted(&other) == sorted(&self.digits)
        })
    }
}

const KIB: f64 = 1024.0;
/// Units with what they are of and their scales. The longer one counts where two fit.
static UNITS: [Row; 35] = [
    ("GiB/sec", Unit::Rate, [KIB * KIB * KIB; 2]),
    ("GiB/s", Unit::Rate, [KIB * KIB * KIB; 2]),
    ("GB/sec", Unit::Rate, [1e9, KIB * KIB * KIB]),
    ("GB/s", Unit::Rate, [1e9, KIB * KIB * KIB]),
    ("GB/秒", Unit::Rate, [1e9, KIB * KIB * KIB]),
    ("GBps", Unit::Rate, [1e9, KIB * KIB * KIB]),
    ("MiB/sec", Unit::Rate, [KIB * KIB; 2]),
    ("MiB/s", Unit::Rate, [KIB * KIB; 2]),
    ("MB/sec", Unit::Rate, [1e6, KIB * KIB]),
    ("MB/s", Unit::Rate, [1e6, KIB * KIB]),
    ("MB/秒", Unit::Rate, [1e6, KIB * KIB]),
    ("TB/s", Unit::Rate, [1e12, KIB * KIB * KIB * KIB]),
    ("KiB/s", Unit::Rate, [KIB; 2]),
    ("kB/s", Unit::Rate, [1e3, KIB]),
    ("KB/s", Unit::Rate, [1e3, KIB]),
    ("k IOPS", Unit::Iops, [1e3; 2]),
    ("K IOPS", Unit::Iops, [1e3; 2]),
    ("M IOPS", Unit::Iops, [1e6; 2]),
    ("IOPS", Unit::Iops, [1.0; 2]),
    ("iops", Unit::Iops, [1.0; 2]),
    ("k writes-per-second", Unit::Writes, [1e3; 2]),
    ("k reads-per-second", Unit::Reads, [1e3; 2]),
    ("k writes/s", Unit::Writes, [1e3; 2]),
    ("k reads/s", Unit::Reads, [1e3; 2]),
    ("msec", Unit::Time, [1e6; 2]),
    ("ms", Unit::Time, [1e6; 2]),
    ("毫秒", Unit::Time, [1e6; 2]),
    ("usec", Unit::Time, [1e3; 2]),
    ("us", Unit::Time, [1e3; 2]),
    ("µs", Unit::Time, [1e3; 2]),
    ("微秒", Unit::Time, [1e3; 2]),
    ("percent", Unit::Percent, [1.0; 2]),
    ("%", Unit::Percent, [1.0; 2]),
    ("X", Unit::Times, [1.0; 2]),
    ("x", Unit::Times, [1.0; 2]),
];

/// The figures of a line, in its order. Those whose comma may be of decimals or of thousands are
/// left out.
pub(crate) fn figures(line: &str) -> Vec<Figure> {
    read(line).filter_map(Result::ok).collect()
}

/// The figures of a line that [`figures`] leaves out, as written.
pub(crate) fn open_figures(line: &str) -> Vec<String> {
    read(line).filter_map(Result::err).collect()
}

fn read(line: &str) -> impl Iterator<Item = Result<Figure, String>> + '_ {
    let bytes = line.as_bytes();
    let mut places = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_digit()
            && (at == 0
                || !bytes[at - 1].is_ascii_alphanumeric() && !b"._-/".contains(&bytes[at - 1]));
        if !begins {
            at += 1;
            continue;
        }
        let mut end = at;
        while end < bytes.len() && (bytes[end].is_ascii_digit() || b".,".contains(&bytes[end])) {
            end += 1;
        }
        while end > at && b".,".contains(&bytes[end - 1]) {
            end -= 1;
        }
        places.push((at, end, unit(&line[end..])));
        at = end.max(at + 1);
    }
    let with_unit = places.iter().filter(|(.., unit)| unit.is_some());
    let decimal = number::decimal(with_unit.map(|(at, end, _)| &line[*at..*end]));
    places.into_iter().filter_map(move |(at, end, unit)| {
        let (unit, length) = unit?;
        figure(&line[at..end + length], end - at, unit, decimal, at)
    })
}

type Row = (&'static str, Unit, [f64; 2]);

/// The unit behind a number, and the bytes up to its end.
fn unit(behind: &str) -> Option<(&'static Row, usize)> {
    let word = behind.strip_prefix(' ').unwrap_or(behind);
    let fits = |unit: &&Row| {
        let rest = word.strip_prefix(unit.0).filter(|_| unit.1 != Unit::Times || word == behind);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    let unit = UNITS.iter().filter(fits).max_by_key(|unit| unit.0.len())?;
    Some((unit, behind.len() - word.len() + unit.0.len()))
}

/// A figure of a text whose first bytes are its number; its text, where the comma is open.
fn figure(
    text: &str,
    number: usize,
    unit: &Row,
    decimal: Option<Decimal>,
    at: usize,
) -> Option<Result<Figure, String>> {
    // Counts per second have no decimals.
    let whole = unit.0.eq_ignore_ascii_case("iops").then_some(Decimal::Dot);
    let number = &text[..number];
    let Some(digits) = number::digits(number, decimal.or(whole)) else {
        return number::digits(number, Some(Decimal::Dot)).map(|_| Err(text.to_owned()));
    };
    let value: f64 = digits.parse().ok()?;
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let off = 0.1_f64.powi(i32::try_from(decimals).ok()?) / 2.0;
    let (end, text) = (at + text.len(), text.to_owned());
    Some(Ok(Figure { at, end, text, value, off, unit: unit.1, scales: unit.2, digits }))
}

/// The sentences of a line with the bytes before each.
pub(crate) fn sentences(line: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    for (at, c) in line.char_indices() {
        let next = at + c.len_utf8();
        let ends = c == '。' || c == '.' && line[next..].starts_with(' ');
        if ends {
            found.push((from, &line[from..next]));
            from = next;
        }
    }
    found.push((from, &line[from..]));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        figures(line).into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn figures_are_numbers_with_a_unit() {
        let line = "just over 169k IOPS, 189.2us latency; 484,612 IOPS (12% in latency), a 2X rise";
        assert_eq!(texts(line), ["169k IOPS", "189.2us", "484,612 IOPS", "12%", "2X"]);
        assert_eq!(
            texts("6.5GB/sec, 9.5GB/秒 and 213.3 微秒"),
            ["6.5GB/sec", "9.5GB/秒", "213.3 微秒"]
        );
        assert_eq!(texts("GPU 12, nvme0n1, 0x34, 2 x 100Gb, -w 8, 3.2.1"), [""; 0]);
    }

    #[test]
    fn a_comma_is_read_as_the_figures_beside_it_show() {
        let values = |line: &str| figures(line).iter().map(|one| one.value).collect::<Vec<_>>();
        assert_eq!(values("3,2 GB/s, not 11,925 GB/s"), [3.2, 11.925]);
        assert_eq!(values("22,016MB/sec in 2.5 ms; 27,700 IOPS"), [22016.0, 2.5, 27700.0]);
        assert_eq!(values("1,234 MB/s"), [0.0; 0]);
        assert_eq!(open_figures("1,234 MB/s and 8 us, 2,5 ms: 3,125 GB/s"), [""; 0]);
        assert_eq!(open_figures("it reads 1,234 MB/s"), ["1,234 MB/s"]);
    }

    #[test]
    fn a_figure_is_a_value_rounded_or_cut() {
        let gib = 1024.0_f64.powi(3);
        let one = |text: &str| figures(text).remove(0);
        assert!(one("6.5GB/sec").is(6.524 * gib) && one("6.9GB/sec").is(6.962 * gib));
        assert!(!one("6.4GB/sec").is(6.524 * gib) && !one("3.4ms").is(3_295_184.0));
        assert!(one("234k IOPS").is_about(233_395.0, 0.005));
        assert!(one("22061MB/sec").is_misspelt(22016.0 * 1024.0 * 1024.0));
        assert!(!one("22016MB/sec").is_misspelt(22016.0 * 1024.0 * 1024.0));
    }

    #[test]
    fn sentences_end_at_a_stop_and_a_blank() {
        let all: Vec<&str> = sentences("It is 6.5 s. Then 7。好").iter().map(|s| s.1).collect();
        assert_eq!(all, ["It is 6.5 s.", " Then 7。", "好"]);
    }
}
