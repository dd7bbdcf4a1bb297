//! How much of a job's bytes a shared counter accounts for.

/// The share of a job's bytes that a counter of bytes at storage shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// All of them, within a tenth.
    All,
    /// More than a twentieth and less than all.
    Part,
    /// Less than a twentieth.
    Little,
}

/// Other jobs that a counter covers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OtherJobs {
    /// Their bytes in the direction at hand.
    pub(crate) bytes: u64,
    /// Whether some of them move other amounts at storage than they read or write.
    pub(crate) blur: bool,
}

/// The share of a job's `own` bytes that is among `moved`, a counter that covers `others` too.
/// `None` when the figure fits several answers: more than all (read-ahead, journals, metadata),
/// or a group's total that leaves this job's part open.
pub(crate) fn share(moved: u64, own: u64, others: &OtherJobs) -> Option<Share> {
    if own == 0 {
        return None;
    }
    let all = own.saturating_add(others.bytes);
    let off = moved.abs_diff(all);
    // The limits are the job's own: within a tenth of a large group, a small job can hide.
    if moved < own.div_ceil(20) {
        return Some(Share::Little);
    }
    if off <= own / 10 && !others.blur {
        return Some(Share::All);
    }
    (others.bytes == 0 && moved < all).then_some(Share::Part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALONE: OtherJobs = OtherJobs { bytes: 0, blur: false };

    #[test]
    fn limits_of_a_job_alone() {
        let of = |moved| share(moved, 1000, &ALONE);
        assert_eq!(of(0), Some(Share::Little));
        assert_eq!(of(49), Some(Share::Little));
        assert_eq!(of(50), Some(Share::Part));
        assert_eq!(of(899), Some(Share::Part));
        assert_eq!(of(900), Some(Share::All));
        assert_eq!(of(1100), Some(Share::All));
        assert_eq!(of(1101), None, "more than all shows nothing of ours");
        assert_eq!(share(0, 0, &ALONE), None);
        assert_eq!(share(u64::MAX, u64::MAX, &ALONE), Some(Share::All));
    }

    #[test]
    fn a_group_of_jobs_leaves_parts_open() {
        let others = OtherJobs { bytes: 9000, blur: false };
        let of = |moved| share(moved, 1000, &others);
        assert_eq!(of(10_000), Some(Share::All));
        assert_eq!(of(9_900), Some(Share::All));
        assert_eq!(of(9_500), None, "half of this job's bytes may be missing");
        assert_eq!(of(5_000), None);
        assert_eq!(of(49), Some(Share::Little));
        let blur = OtherJobs { blur: true, ..others };
        assert_eq!(share(10_000, 1000, &blur), None, "read-ahead of others may fill the gap");
        assert_eq!(share(0, 1000, &blur), Some(Share::Little));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        /// Whatever part each job really had, the answer is true of this one.
        #[test]
        fn no_answer_is_false_of_the_job(
            own in 100u64..1_000_000, stored in 0u64..=100,
            other in 0u64..1_000_000, theirs in 0u64..=100,
        ) {
            let part = |bytes: u64, percent: u64| bytes * percent / 100;
            let (mine, moved) = (part(own, stored), part(own, stored) + part(other, theirs));
            match share(moved, own, &OtherJobs { bytes: other, blur: false }) {
                Some(Share::All) => prop_assert!(mine >= own - own / 10),
                Some(Share::Little) => prop_assert!(mine <= own / 20 + 1),
                Some(Share::Part) => prop_assert!(mine < own && mine + 1 >= own / 20),
                None => {}
            }
        }
    }
}
