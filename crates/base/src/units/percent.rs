//! Percentages.

use crate::units::UnitError;
use crate::units::decimal::{Decimal, Wanted};

const PERCENT: &str = "a percentage from 0 to 100, such as 70, 70% or 12.5%";

const WANTED: Wanted = Wanted { number: PERCENT, fits: PERCENT, whole: PERCENT };

/// Reads a percentage, with or without `%`, and returns it in percent (`"70%"` is `70.0`).
///
/// # Errors
/// Empty or signed text, anything after the number but one `%`, or a value above 100.
///
/// ```
/// assert_eq!(gpuio_base::units::parse_percent("12.5%"), Ok(12.5));
/// assert!(gpuio_base::units::parse_percent("101").is_err());
/// ```
pub fn parse_percent(input: &str) -> Result<f64, UnitError> {
    let number = Decimal::scan(input, &WANTED)?;
    match &input[number.len..] {
        "" | "%" => {}
        rest => {
            let at = number.len + usize::from(rest.starts_with('%'));
            return Err(UnitError::new(input, at, PERCENT));
        }
    }
    match input[..number.len].parse::<f64>() {
        Ok(percent) if percent <= 100.0 => Ok(percent),
        _ => Err(UnitError::new(input, 0, PERCENT)),
    }
}
