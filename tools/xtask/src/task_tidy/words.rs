//! Words that no identifier may have.

/// The word and what to use instead. Names use the field's standard terms (docs/glossary.md).
pub(super) const FORBIDDEN: &[(&str, &str)] = &[
    ("crew", "`worker pool`"),
    ("desk", "`command slot`"),
    ("doze", "`wait_timeout`"),
    ("errand", "`command` or `resident copy kernel`"),
    ("mover", "`transfer stage`"),
    ("office", "`command queue`"),
    ("patience", "`timeout`"),
    ("sentry", "`poller`"),
    ("testimony", "`evidence`"),
    ("unasked", "`not requested`"),
    ("untold", "`not reported`"),
    ("vouch", "`check ownership`"),
    ("warmth", "`cache residency`"),
    ("witness", "`evidence` or `evidence source`"),
];
