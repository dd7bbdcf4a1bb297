//! A comparison as JSON.

use crate::comparison::Comparison;

/// All of it in one object: `{"schema": "gpuio-compare-v1", …}` with the fields of [`Comparison`].
/// Numbers are not rounded; one that is not finite becomes `null`.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    // Only strings, numbers and enums: nothing can fail.
    let mut text = serde_json::to_string_pretty(comparison).unwrap_or_default();
    text.push('\n');
    text
}
