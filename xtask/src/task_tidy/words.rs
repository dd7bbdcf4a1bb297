//! Words that no identifier may have.

/// The word and what to use instead. Names use the field's standard terms.
pub(super) const FORBIDDEN: &[(&str, &str)] = &[("errand", "`command` or `resident copy kernel`")];
