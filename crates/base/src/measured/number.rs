//! Numbers as people write them: `12.5`, `12,5`, `1,234,567`, `1.234,5`.

/// The sign before the decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decimal {
    Dot,
    Comma,
}

/// The groups of digits, and whether each one behind the first may be of thousands.
fn groups(text: &str, sign: char) -> (Vec<&str>, bool) {
    let groups: Vec<&str> = text.split(sign).collect();
    let first = groups[0];
    let thousands = (1..=3).contains(&first.len()) && !first.starts_with('0');
    let thousands = thousands && groups[1..].iter().all(|group| group.len() == 3);
    (groups, thousands)
}

/// The sign of decimals that a number shows; `None` where both are possible.
fn shown(text: &str) -> Option<Decimal> {
    let of = |sign| if sign == '.' { Decimal::Dot } else { Decimal::Comma };
    let other = |sign| if sign == '.' { Decimal::Comma } else { Decimal::Dot };
    let last = text.chars().rev().find(|c| matches!(c, '.' | ','))?;
    let (parts, thousands) = groups(text, last);
    match (parts.len(), thousands) {
        // `1,234.5`
        _ if text.contains('.') && text.contains(',') => Some(of(last)),
        (2, false) => Some(of(last)),
        // `1,234,567`
        (3.., true) => Some(other(last)),
        _ => None,
    }
}

/// The one sign that all of these show which show any.
pub fn decimal<'t>(texts: impl Iterator<Item = &'t str>) -> Option<Decimal> {
    let mut all = texts.filter_map(shown);
    let first = all.next()?;
    all.all(|one| one == first).then_some(first)
}

/// The digits of a number with a dot before the decimals. `around` is the sign that the numbers
/// beside it show. A comma before three digits means nothing without it: `None` there, and where it
/// is no number. A dot before three digits is one of decimals, unless those beside it have commas.
pub fn digits(text: &str, around: Option<Decimal>) -> Option<String> {
    let fallback = if text.contains(',') { None } else { Some(Decimal::Dot) };
    let (own, other) = match shown(text).or(around).or(fallback)? {
        Decimal::Dot => ('.', ','),
        Decimal::Comma => (',', '.'),
    };
    let (whole, decimals) = match text.split_once(own) {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (text, None),
    };
    let (parts, thousands) = groups(whole, other);
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let parsed = parts.iter().all(|part| plain(part)) && decimals.is_none_or(plain);
    (parsed && (parts.len() == 1 || thousands)).then(|| {
        let decimals = decimals.map(|decimals| format!(".{decimals}")).unwrap_or_default();
        parts.concat() + &decimals
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_is_one_of_decimals_or_of_thousands_or_open() {
        for (text, around, wanted) in [
            ("12.5", None, Some("12.5")),
            ("12,5", None, Some("12.5")),
            ("9,3", Some(Decimal::Dot), Some("9.3")),
            ("0,125", None, Some("0.125")),
            ("1.234,5", None, Some("1234.5")),
            ("1,234.5", None, Some("1234.5")),
            ("1,234,567", None, Some("1234567")),
            ("1.234.567", None, Some("1234567")),
            ("11,925", None, None),
            ("11,925", Some(Decimal::Comma), Some("11.925")),
            ("27,700", Some(Decimal::Dot), Some("27700")),
            ("1.234", None, Some("1.234")),
            ("1.234", Some(Decimal::Comma), Some("1234")),
            ("12345,678", None, Some("12345.678")),
            ("3.2.1", None, None),
            ("1,2,3", None, None),
            ("8", None, Some("8")),
            ("", None, None),
        ] {
            assert_eq!(digits(text, around).as_deref(), wanted, "{text} {around:?}");
        }
        assert_eq!(decimal(["8", "11,925", "6,1"].into_iter()), Some(Decimal::Comma));
        assert_eq!(decimal(["12.5", "9,3"].into_iter()), None);
        assert_eq!(decimal(["11,925", "8"].into_iter()), None);
    }
}
