//! SHA-256 (FIPS 180-4, 6.2), by which a reader knows a file again.

use std::fmt::Write as _;

const START: [u32; 8] = roots(2);
const ROUNDS: [u32; 64] = roots(3);

/// The first 32 bits of the fractions of the square or cube roots of the first primes.
const fn roots<const N: usize>(power: u32) -> [u32; N] {
    let (mut all, mut at, mut number) = ([0; N], 0, 2_u128);
    while at < N {
        let mut divisor = 2;
        while !number.is_multiple_of(divisor) {
            divisor += 1;
        }
        if divisor == number {
            let (mut root, mut bit) = (0_u128, 1 << 36);
            while bit > 0 {
                if (root + bit).pow(power) <= number << (32 * power) {
                    root += bit;
                }
                bit >>= 1;
            }
            all[at] = (root & 0xffff_ffff) as u32;
            at += 1;
        }
        number += 1;
    }
    all
}

/// The digest in hexadecimal, as sha256sum(1) prints it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    let mut state = START;
    let (blocks, rest) = bytes.as_chunks::<64>();
    blocks.iter().for_each(|block| mix(&mut state, block));
    let mut tail = rest.to_vec();
    tail.push(0x80);
    tail.resize((tail.len() + 8).next_multiple_of(64) - 8, 0);
    tail.extend((bytes.len() as u64 * 8).to_be_bytes());
    tail.as_chunks().0.iter().for_each(|block| mix(&mut state, block));
    state.iter().fold(String::new(), |mut text, word| {
        // Writing to a string does not fail.
        let _ = write!(text, "{word:08x}");
        text
    })
}

fn mix(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut words = [0; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..64 {
        let (low, high) = (words[at - 15], words[at - 2]);
        let low = low.rotate_right(7) ^ low.rotate_right(18) ^ (low >> 3);
        let high = high.rotate_right(17) ^ high.rotate_right(19) ^ (high >> 10);
        words[at] =
            [words[at - 16], low, words[at - 7], high].into_iter().fold(0, u32::wrapping_add);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in words.into_iter().zip(ROUNDS) {
        let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = (e & f) ^ (!e & g);
        let first = [h, turned, chosen, constant, word].into_iter().fold(0, u32::wrapping_add);
        let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = turned.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (sum, one) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(one);
    }
}

#[cfg(test)]
mod tests {
    use super::sha256;

    /// The examples of NIST, and lengths around a block's, by sha256sum(1).
    #[test]
    fn digests_are_those_of_the_standard() {
        for (text, digest) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (&"a".repeat(55), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
            (&"a".repeat(56), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
            (&"a".repeat(64), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
            (&"a".repeat(1000), "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"),
        ] {
            assert_eq!(sha256(text.as_bytes()), digest, "{} bytes", text.len());
        }
    }
}
