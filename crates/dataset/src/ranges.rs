//! Ranges of bytes of a file.

use std::ops::Range;

/// The bytes of `part` without those of `others`, in order.
pub fn without(part: &Range<u64>, others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = vec![part.clone()];
    for other in others {
        let cut = |piece: Range<u64>| {
            let before = piece.start..other.start.clamp(piece.start, piece.end);
            let behind = other.end.clamp(piece.start, piece.end)..piece.end;
            // A piece that does not meet the other is kept once.
            let meets = other.start < piece.end && piece.start < other.end;
            if meets { vec![before, behind] } else { vec![piece] }
        };
        left = left.into_iter().flat_map(cut).filter(|piece| !piece.is_empty()).collect();
    }
    left
}

/// The same bytes in order, with a gap between any two ranges.
pub fn joined(mut parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    parts.retain(|part| !part.is_empty());
    parts.sort_unstable_by_key(|part| part.start);
    let mut all: Vec<Range<u64>> = Vec::with_capacity(parts.len());
    for part in parts {
        match all.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => all.push(part),
        }
    }
    all
}

/// Whether all bytes of `part` are in `parts`.
pub fn covers(parts: &[Range<u64>], part: &Range<u64>) -> bool {
    part.is_empty() || without(part, parts).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_cut() {
        assert_eq!(joined(vec![8..9, 0..4, 4..4, 3..6, 6..7]), [0..7, 8..9]);
        assert_eq!(without(&(0..10), &[2..3, 8..20]), [0..2, 3..8]);
        assert!(covers(&[4..8, 0..4], &(1..8)) && covers(&[], &(5..5)));
        assert!(!covers(&[0..4, 5..8], &(1..8)) && !covers(&[], &(5..6)));
    }
}
