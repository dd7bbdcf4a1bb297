//! What each kind of warning means: its docstrings, and its text with figures that a run could
//! have.

use serde_json::Value;

use super::examples;
use crate::WarningKind;

/// One kind of warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarningAbout {
    /// Its name in records, in the column `warnings` of CSV and in texts.
    pub id: String,
    /// What was observed.
    pub meaning: String,
    /// Its fields in records, and what each means.
    pub fields: Vec<(String, String)>,
    /// Its text in a run: what happened, what it means for the result, what to do.
    pub example: String,
}

/// All kinds, in the order of [`WarningKind`].
#[must_use]
pub fn warning_kinds() -> Vec<WarningAbout> {
    let schema = schemars::schema_for!(WarningKind).to_value();
    let words = |value: &Value| value.as_str().unwrap_or_default().replace('\n', " ");
    let examples = examples::all();
    let kinds = schema["oneOf"].as_array().into_iter().flatten();
    let about = |kind: &Value| {
        let id = words(&kind["properties"]["warning"]["const"]);
        let fields = kind["properties"].as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| *name != "warning");
        let example = examples.iter().find(|example| example.id() == id);
        WarningAbout {
            meaning: words(&kind["description"]),
            fields: fields.map(|(name, of)| (name.clone(), words(&of["description"]))).collect(),
            example: example.map(ToString::to_string).unwrap_or_default(),
            id,
        }
    };
    kinds.map(about).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_meaning_an_example_and_fields_that_are_explained() {
        let kinds = warning_kinds();
        assert!(kinds.len() > 30, "{}", kinds.len());
        for kind in &kinds {
            assert!(!kind.id.is_empty() && kind.meaning.ends_with('.'), "{kind:?}");
            assert!(!kind.example.is_empty(), "no example: {kind:?}");
            assert!(kind.fields.iter().all(|(_, about)| about.ends_with('.')), "{kind:?}");
        }
        for example in examples::all() {
            assert!(kinds.iter().any(|kind| kind.id == example.id()), "{example:?}");
        }
    }
}
