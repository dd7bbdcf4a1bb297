//! Names with `*`.

/// Whether `*` in the pattern, for any characters or none, makes it the name. Case counts.
///
/// ```
/// # use gpuio_base::units::fits_wildcard;
/// assert!(fits_wildcard("node*-ib", "node17-ib") && fits_wildcard("a", "a"));
/// assert!(!fits_wildcard("node*-ib", "node17-eth") && !fits_wildcard("a", "ab"));
/// ```
pub fn fits_wildcard(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
