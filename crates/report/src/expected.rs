//! Texts about expected performance, shared by several formats.

use gpuio_record::metric::percent;
use gpuio_record::{Expected, JobExpected};

use crate::number::{NONE, throughput};

/// The bottleneck without its figure: the text before the first colon and blank.
pub(crate) fn bottleneck(expected: &Expected) -> Option<&str> {
    let whole = expected.bottleneck.as_deref()?;
    Some(whole.split_once(": ").map_or(whole, |(name, _)| name))
}

/// `87 nvme0n1`, or `-` if no percentage is known.
pub(crate) fn cell(one: Option<&JobExpected>) -> String {
    let Some((one, reached)) = one.and_then(|one| Some((one, one.percent?))) else {
        return NONE.to_owned();
    };
    match bottleneck(&one.expected) {
        Some(name) => format!("{} {name}", percent(reached)),
        None => percent(reached),
    }
}

/// Part of a sentence: `87 % of the expected 3.26 GiB/s (bottleneck nvme0n1: …)`, or why there is
/// no such figure.
pub(crate) fn clause(one: Option<&JobExpected>) -> String {
    let Some(one) = one else {
        return "the record has no expectation".to_owned();
    };
    let expected = &one.expected;
    let part = expected.bottleneck.as_ref().map(|part| format!("bottleneck {part}"));
    let behind = part.as_ref().map(|part| format!(" ({part})")).unwrap_or_default();
    match (expected.bytes_per_s.map(throughput), one.percent) {
        (Some(rate), Some(reached)) => {
            format!("{} % of the expected {rate}{behind}", percent(reached))
        }
        (Some(rate), None) => format!("expected {rate}{behind}"),
        (None, _) => format!("expected performance unknown: {}", unknown(expected)),
    }
}

/// Why there is no figure, with the upper limit if one is known.
pub(crate) fn unknown(expected: &Expected) -> String {
    let why = expected.unknown.as_deref().unwrap_or("the record gives no reason");
    let Some(most) = expected.at_most.map(throughput) else { return why.to_owned() };
    let part = expected.bottleneck.as_ref().map(|part| format!(" (bottleneck {part})"));
    format!("{why}; at most {most}{}", part.unwrap_or_default())
}
