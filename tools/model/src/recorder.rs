//! Rings of recorded calls: `crates/dropin/src/recorder/ring.rs`.

use std::sync::Arc;

use loom::thread;

use self::source::Ring;
use crate::{Row, holds, often};

#[path = "../../../crates/dropin/src/recorder/ring.rs"]
#[allow(dead_code, clippy::all, reason = "the crate's own, which has its own lints")]
mod source;

pub const ROWS: &[Row] = &[holds("each call comes out whole and in order, or is counted", taken)];

/// A call of one word or of two.
#[derive(Debug)]
pub struct Encoded(u64);

impl Encoded {
    pub const WORDS_MOST: usize = 2;

    fn bytes(&self) -> Vec<u8> {
        let length = if self.0.is_multiple_of(2) { 3 } else { 9 };
        vec![self.0.to_le_bytes()[0]; length]
    }

    pub fn words(&self) -> impl Iterator<Item = u64> {
        let bytes = self.bytes();
        let mut words = [[0; 8]; Encoded::WORDS_MOST];
        let all = std::iter::once(bytes.len().to_le_bytes()[0]).chain(bytes.iter().copied());
        for (place, byte) in words.as_flattened_mut().iter_mut().zip(all) {
            *place = byte;
        }
        words.into_iter().take((1 + bytes.len()).div_ceil(8)).map(u64::from_le_bytes)
    }
}

/// The thread puts in more than fits, and ends; the writer looks meanwhile.
fn taken() {
    often(|| {
        let ring = Arc::new(Ring::new(0));
        let theirs = Arc::clone(&ring);
        let thread = thread::spawn(move || {
            let mut put = Vec::new();
            for number in 1..=4 {
                if theirs.fits() {
                    theirs.put(&Encoded(number));
                    put.extend(Encoded(number).bytes());
                } else {
                    put.push(0);
                }
            }
            theirs.close();
            put
        });
        let (mut bytes, mut lost) = (Vec::new(), 0);
        for _ in 0..2 {
            ring.take(ring.head(), &mut bytes);
            lost += ring.take_lost();
        }
        let (is_done, taken) = (ring.is_done(), bytes.len());
        let mut put = thread.join().unwrap();
        ring.take(ring.head(), &mut bytes);
        lost += ring.take_lost();
        assert!(!is_done || bytes.len() == taken, "a ring with calls was done");
        assert!(ring.is_done());
        let refused = put.iter().filter(|byte| **byte == 0).count() as u64;
        put.retain(|byte| *byte != 0);
        assert_eq!((bytes, lost), (put, refused));
    });
}
