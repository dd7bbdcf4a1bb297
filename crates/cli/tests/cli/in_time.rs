//! Claims about time.

/// A claim about time on a machine that does other things as well: it must hold in one of five
/// tries.
#[track_caller]
pub(crate) fn in_time(mut claim: impl FnMut() -> Result<(), String>) {
    let mut missed = Vec::new();
    for _ in 0..5 {
        match claim() {
            Ok(()) => return,
            Err(what) => missed.push(what),
        }
    }
    panic!("in none of five tries: {missed:#?}");
}

/// One part of such a claim.
pub(crate) fn holds(what: bool, saw: impl std::fmt::Debug) -> Result<(), String> {
    if what { Ok(()) } else { Err(format!("{saw:?}")) }
}
