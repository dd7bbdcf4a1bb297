//! Positions of slots in the destination where blocks must not be contiguous as in the ring.

/// A permutation of `slots` positions in which, from three slots on, no slot's position follows
/// that of the slot before it: steps of about the golden section, which keep neighbours far apart.
pub(super) fn positions(slots: u32) -> Vec<u32> {
    let total = u64::from(slots.max(1));
    // 0.618 of all, then the next without a common divisor: multiples of such a step meet every
    // place once. A step of 1 would leave all as it is.
    let golden = (total * 618 / 1000).max(2);
    let step = (golden..golden + total).find(|&step| divisor(step, total) == 1).unwrap_or(1);
    let place = |slot: u32| u64::from(slot) * step % total;
    // Below `slots`, a u32.
    (0..slots).map(|slot| u32::try_from(place(slot)).unwrap_or(slot)).collect()
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::positions;

    #[test]
    fn every_position_is_taken_once_and_none_follows_its_neighbour() {
        for slots in 1..700 {
            let positions = positions(slots);
            let follows = positions.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
            let mut sorted = positions.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..slots).collect::<Vec<_>>());
            assert!(slots < 3 || follows == 0, "{positions:?}");
        }
    }
}
