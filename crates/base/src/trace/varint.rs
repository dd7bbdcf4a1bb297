//! Numbers of variable length: seven bits a byte, the lowest first (LEB128).

/// Hands on the bytes of a number.
#[inline]
pub(crate) fn each_byte(mut value: u64, mut push: impl FnMut(u8)) {
    while value >= 0x80 {
        push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    push((value & 0x7f) as u8);
}

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, value: u64) {
    each_byte(value, |byte| out.push(byte));
}

/// A signed number as an unsigned one: small ones of either sign take few bytes.
#[inline]
pub(crate) fn folded(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Takes a number from the front; `None` where it is cut, or longer than 64 bits.
pub(crate) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(first & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes a signed number from the front.
pub(crate) fn take_signed(from: &mut &[u8]) -> Option<i64> {
    let value = take(from)?;
    Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}
