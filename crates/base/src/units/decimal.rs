//! An exact decimal at the front of a text: `12`, `1.5`. No sign, no exponent.

use crate::units::UnitError;

/// Digits kept after the point. 18 are enough for any fraction people write, and keep every
/// product below inside 128 bits.
const MAX_FRACTION_DIGITS: usize = 18;

/// `digits / 10^scale`, and how many bytes of the text it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal {
    digits: u64,
    fraction: u64,
    scale: u32,
    /// Length in bytes of the number in the text.
    pub(crate) len: usize,
    point: usize,
}

/// The message for each kind of invalid number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The text does not begin with a number.
    pub(crate) number: &'static str,
    /// The value does not fit 64 bits.
    pub(crate) fits: &'static str,
    /// The value is not a whole number of base units.
    pub(crate) whole: &'static str,
}

impl Decimal {
    /// Reads the number at the front of `input`; what follows it starts at `len`.
    pub(crate) fn scan(input: &str, wanted: &Wanted) -> Result<Self, UnitError> {
        let bytes = input.as_bytes();
        let whole = digit_run(bytes, 0);
        if whole == 0 {
            return Err(UnitError::new(input, 0, wanted.number));
        }
        let digits = input[..whole].parse().map_err(|_| UnitError::new(input, 0, wanted.fits))?;
        if bytes.get(whole) != Some(&b'.') {
            return Ok(Self { digits, fraction: 0, scale: 0, len: whole, point: whole });
        }
        let start = whole + 1;
        let len = digit_run(bytes, start);
        if len == start {
            return Err(UnitError::new(input, start, wanted.number));
        }
        let kept = input[start..len].trim_end_matches('0');
        if kept.len() > MAX_FRACTION_DIGITS {
            return Err(UnitError::new(input, start + MAX_FRACTION_DIGITS, wanted.whole));
        }
        // No digit kept parses as an error and means zero; 18 digits always fit 64 bits.
        let fraction = kept.parse().unwrap_or(0);
        let scale = kept.bytes().fold(0, |n, _| n + 1);
        Ok(Self { digits, fraction, scale, len, point: whole })
    }

    /// The value in base units when one written unit is `unit` base units.
    pub(crate) fn times(self, unit: u64, input: &str, wanted: &Wanted) -> Result<u64, UnitError> {
        let power = 10_u128.pow(self.scale);
        let part = u128::from(self.fraction) * u128::from(unit);
        if !part.is_multiple_of(power) {
            return Err(UnitError::new(input, self.point, wanted.whole));
        }
        // Below 2^128: a product of two 64-bit values is at most (2^64-1)^2, and the part is
        // below one unit.
        let total = u128::from(self.digits) * u128::from(unit) + part / power;
        u64::try_from(total).map_err(|_| UnitError::new(input, 0, wanted.fits))
    }
}

fn digit_run(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count()
}
