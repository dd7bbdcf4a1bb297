//! A key that is varied, and the parser of its values.

use gpuio_base::units::{format_bytes, parse_bytes};

/// More values would take too long to run.
const MOST: usize = 10_000;

/// A job-file key with its values, in the requested order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    pub key: String,
    /// Its values, each as the job file spells it.
    pub values: Vec<String>,
}

/// Why the text is no axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// No key, no equals sign or no value.
    #[error(
        "'{0}' is not an axis; write KEY=VALUE,VALUE,…, such as threads=1,2,4 or \
        bs=4k..1M*4"
    )]
    Form(String),
    /// A range that does not reach its end.
    #[error(
        "the range '{0}' does not increase; write FROM..TO, FROM..TO+STEP or \
        FROM..TO*FACTOR"
    )]
    Range(String),
    /// The same value twice.
    #[error(
        "'{0}' is given twice; use --repeats for repeats. A shell takes braces away: quote an axis \
        that has them, as in --vary 'gpu=0,{{0,1}}'"
    )]
    Twice(String),
    /// Too many.
    #[error("the range '{0}' has more than {MOST} values; use a step or a factor")]
    Many(String),
}

impl Axis {
    /// Reads `KEY=VALUES`: values with commas, ranges `FROM..TO` (step 1), `FROM..TO+STEP`,
    /// `FROM..TO*FACTOR` (or `x`); numbers take size suffixes. Braces keep commas in a value:
    /// `gpu=0,{0,1}`. Hyphens of the key count as underscores.
    ///
    /// # Errors
    /// See [`AxisError`]. The key table checks whether key and values are valid.
    ///
    /// ```
    /// let axis = gpuio_job::sweep::Axis::parse("bs=4k..64k*4,1M").unwrap();
    /// assert_eq!(axis.values, ["4K", "16K", "64K", "1M"]);
    /// ```
    pub fn parse(text: &str) -> Result<Axis, AxisError> {
        let form = || AxisError::Form(text.to_owned());
        let (key, words) = text.split_once('=').ok_or_else(form)?;
        let key = key.trim().replace('-', "_");
        let mut values: Vec<String> = Vec::new();
        for word in split(words) {
            let more = match range(&word)? {
                Some(more) => more,
                None => vec![word],
            };
            for value in more {
                if value.is_empty() {
                    return Err(form());
                }
                if values.contains(&value) {
                    return Err(AxisError::Twice(value));
                }
                values.push(value);
            }
        }
        if key.is_empty() || values.is_empty() { Err(form()) } else { Ok(Axis { key, values }) }
    }
}

/// Splits at commas outside braces, and removes the braces.
fn split(words: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut deep = 0_u32;
    for sign in words.chars() {
        match sign {
            '{' => deep += 1,
            '}' => deep = deep.saturating_sub(1),
            ',' if deep == 0 => found.push(String::new()),
            _ => {
                if let Some(last) = found.last_mut() {
                    last.push(sign);
                }
            }
        }
    }
    found.iter().map(|word| word.trim().to_owned()).collect()
}

/// The values of a range; `None` for a text that is no range, such as a path with dots.
fn range(word: &str) -> Result<Option<Vec<String>>, AxisError> {
    let Some((from, rest)) = word.split_once("..") else { return Ok(None) };
    let Ok(first) = parse_bytes(from) else { return Ok(None) };
    let wrong = || AxisError::Range(word.to_owned());
    let (to, factor, step) = match rest.find(['*', 'x', '+']) {
        None => (rest, 1, 1),
        Some(at) => {
            let (to, by) = rest.split_at(at);
            let number = parse_bytes(by.get(1..).unwrap_or_default()).map_err(|_| wrong())?;
            if by.starts_with('+') { (to, 1, number) } else { (to, number, 0) }
        }
    };
    let last = parse_bytes(to).map_err(|_| wrong())?;
    let grows = (factor > 1 && first > 0) || (factor == 1 && step > 0);
    if last < first || !grows {
        return Err(wrong());
    }
    // Plain numbers stay plain: threads are not counted in K.
    let plain = word.chars().all(|sign| !sign.is_alphabetic() || sign == 'x');
    let mut values = Vec::new();
    let mut now = Some(first);
    while let Some(value) = now.filter(|value| *value <= last) {
        if values.len() == MOST {
            return Err(AxisError::Many(word.to_owned()));
        }
        values.push(if plain { value.to_string() } else { format_bytes(value) });
        now = value.checked_mul(factor).and_then(|value| value.checked_add(step));
    }
    Ok(Some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Axis::parse(text).unwrap().values
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(values("threads=1,2,4..16x2"), ["1", "2", "4", "8", "16"]);
        assert_eq!(values("depth=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(values("threads=8..24+8"), ["8", "16", "24"]);
        assert_eq!(values("bs=4k..1M*16"), ["4K", "64K", "1M"]);
        assert_eq!(values("gpu=0,{0,1}"), ["0", "0,1"]);
        assert_eq!(values("filename=/a/..b,/dev/x"), ["/a/..b", "/dev/x"]);
        assert_eq!(Axis::parse("rate-iops=1000").unwrap().key, "rate_iops");
    }

    #[test]
    fn errors_are_reported() {
        for text in ["threads", "=1", "threads=", "threads=1,,2"] {
            assert!(matches!(Axis::parse(text), Err(AxisError::Form(_))), "{text}");
        }
        for text in ["a=4..1", "a=1..4*1", "a=0..4*2", "a=1..4+0", "a=1..x2", "a=1..b"] {
            assert!(matches!(Axis::parse(text), Err(AxisError::Range(_))), "{text}");
        }
        assert_eq!(Axis::parse("a=1,1..2"), Err(AxisError::Twice("1".into())));
        assert!(matches!(Axis::parse("a=1..1000000"), Err(AxisError::Many(_))));
        assert_eq!(values(&format!("a={}..{}*2", u64::MAX / 2, u64::MAX)).len(), 2);
    }
}
