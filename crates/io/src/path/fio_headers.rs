//! Blocks as fio writes them with `verify=crc32c`, so that either tool verifies what the other
//! wrote.
//!
//! Learned from files that fio 3.33 wrote. A block begins with 44 bytes, all numbers little-endian:
//! magic 0xacca (2), kind of checksum, 5 (2), length of the block (4), a seed (8), offset in the
//! file (8), seconds (4) and nanoseconds (4) of a time, number of the job (2), number of the I/O
//! (2), CRC-32C of the 36 bytes so far (4), CRC-32C of the rest of the block behind these 44 (4).
//! Both checksums begin with all bits set and are not inverted. The rest is any data; here the
//! pattern.

use gpuio_gpu::pattern::{self, Key};

use super::{Leg, Mismatch};

const MAGIC: u16 = 0xacca;
const KIND: u16 = 5;
/// Bytes of the part that each kind of checksum has.
const COMMON: usize = 40;
const OFFSET_AT: usize = 16;
/// Bytes of a header; a block must be longer.
pub const HEADER: usize = 44;

/// Fills a block that begins at this offset of a file.
///
/// # Panics
/// If the block is shorter than a header.
pub(super) fn fill(block: &mut [u8], key: Key, offset: u64) {
    pattern::fill(block, key, offset);
    let length = u32::try_from(block.len()).unwrap_or(u32::MAX);
    let body = crc32c(&block[HEADER..]);
    block[0..2].copy_from_slice(&MAGIC.to_le_bytes());
    block[2..4].copy_from_slice(&KIND.to_le_bytes());
    block[4..8].copy_from_slice(&length.to_le_bytes());
    block[8..16].copy_from_slice(&key.seed.to_le_bytes());
    block[16..24].copy_from_slice(&offset.to_le_bytes());
    block[24..36].fill(0);
    let head = crc32c(&block[..36]);
    block[36..COMMON].copy_from_slice(&head.to_le_bytes());
    block[COMMON..HEADER].copy_from_slice(&body.to_le_bytes());
}

/// A field of a header: where it begins, its bytes, and the number that must stand there.
type Field = (usize, usize, u64);

/// The little-endian number at a place of a block.
fn number(block: &[u8], at: usize, bytes: usize) -> u64 {
    let part = block.get(at..at + bytes).unwrap_or_default();
    part.iter().rev().fold(0_u64, |all, &byte| all << 8 | u64::from(byte))
}

/// The first field, but for the length, that is not that of a header at this offset. The offset
/// comes behind the checksum: where it is wrong, the header is intact and of another block.
fn wrong_field(block: &[u8], offset: u64) -> Option<Field> {
    let summed = block.get(..36).unwrap_or_default();
    let fields = [
        (0, 2, u64::from(MAGIC)),
        (2, 2, u64::from(KIND)),
        (36, 4, u64::from(crc32c(summed))),
        (OFFSET_AT, 8, offset),
    ];
    fields.into_iter().find(|(at, bytes, expected)| number(block, *at, *bytes) != *expected)
}

/// The length of the block, in bytes, that an intact header at this offset begins.
pub fn length_by(header: &[u8], offset: u64) -> Option<u64> {
    let whole = header.len() >= HEADER && wrong_field(header, offset).is_none();
    whole.then(|| number(header, 4, 4))
}

/// Checks a block that was read from this offset: first its header, then its data. The length
/// comes last of the header: where it alone is wrong, the block was written with another one.
pub(super) fn check(block: &[u8], offset: u64) -> Option<Mismatch> {
    let wrong = |at: usize, expected: u64, found: u64| {
        let (offset, leg) = (offset + at as u64, Some(Leg::File));
        Some(Mismatch { offset, expected, found, bad_words: 0, checksum_of: None, leg, gpu: None })
    };
    let Some(body) = block.get(HEADER..) else {
        return wrong(0, HEADER as u64, block.len() as u64);
    };
    let own = block.len() as u64;
    let length = || Some((4, 4, own)).filter(|_| number(block, 4, 4) != own);
    if let Some((at, bytes, expected)) = wrong_field(block, offset).or_else(length) {
        return wrong(at, expected, number(block, at, bytes));
    }
    let (in_header, of_data) = (number(block, COMMON, 4), u64::from(crc32c(body)));
    let checksum_of = u32::try_from(block.len()).ok();
    let bad = wrong(0, in_header, of_data).filter(|_| in_header != of_data)?;
    Some(Mismatch { checksum_of, ..bad })
}

/// Where a block belongs, by its own header, that stands at another offset.
pub fn belongs_at(bad: &Mismatch) -> Option<u64> {
    let is_offset = bad.expected.checked_add(OFFSET_AT as u64) == Some(bad.offset);
    (is_offset && bad.bad_words == 0 && bad.checksum_of.is_none()).then_some(bad.found)
}

/// CRC-32C (RFC 3720, appendix B.4) from all bits set, not inverted at the end.
fn crc32c(bytes: &[u8]) -> u32 {
    bytes.chunks(8).fold(u32::MAX, |crc, chunk| match <[u8; 8]>::try_from(chunk) {
        Ok(eight) => {
            let word = u64::from_le_bytes(eight) ^ u64::from(crc);
            let byte = |at: usize| word.to_le_bytes()[at] as usize;
            (0..8).fold(0, |sum, at| sum ^ TABLES[7 - at][byte(at)])
        }
        Err(_) => chunk.iter().fold(crc, |crc, byte| {
            TABLES[0][usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8)
        }),
    })
}

/// The effect of a byte on the remainder that many bytes further on.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut all = [[0_u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = (rest >> 1) ^ (if rest & 1 == 1 { POLYNOMIAL } else { 0 });
            bit += 1;
        }
        all[0][byte] = rest;
        byte += 1;
    }
    let mut further = 1;
    while further < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = all[further - 1][byte];
            all[further][byte] = all[0][(before & 255) as usize] ^ (before >> 8);
            byte += 1;
        }
        further += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720 gives these sums, inverted.
    #[test]
    fn sums_are_those_of_the_standard() {
        assert_eq!(!crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(!crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(!crc32c(&rising), 0x46dd_794e);
        assert_eq!(!crc32c(b"123456789"), 0xe306_9283);
    }

    /// The header of the first block of a file that fio 3.33 wrote.
    #[test]
    fn a_header_of_fios_is_right() {
        let head: [u8; 40] = [
            0xca, 0xac, 0x05, 0x00, 0x00, 0x10, 0x00, 0x00, 0xc0, 0xd1, 0xc6, 0x66, 0xc1, 0x9e,
            0x2c, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbb, 0xe7, 0x79, 0x0b, 0x01, 0x00,
            0x00, 0x00, 0x0b, 0x66, 0x44, 0x9e,
        ];
        assert_eq!(crc32c(&head[..36]), 0x9e44_660b);
        let mut block = vec![0; 4096];
        fill(&mut block, 1.into(), 0);
        block[..40].copy_from_slice(&head);
        assert_eq!(check(&block, 0), None);
    }

    #[test]
    fn any_wrong_part_is_found() {
        let mut block = vec![0; 512];
        fill(&mut block, 7.into(), 1024);
        assert_eq!(check(&block, 1024), None);
        let elsewhere = check(&block, 0).unwrap();
        assert_eq!((elsewhere.offset, belongs_at(&elsewhere)), (16, Some(1024)));
        for at in [0, 3, 5, 9, 20, 30, 37, 41, 44, 511] {
            let mut other = block.clone();
            other[at] ^= 0x10;
            let bad = check(&other, 1024).unwrap_or_else(|| panic!("byte {at}"));
            assert_eq!(belongs_at(&bad), None, "byte {at}");
            assert_eq!(bad.bad_words, 0, "byte {at}: which words are wrong is not known");
            let of_data = at >= COMMON;
            assert_eq!(bad.checksum_of, of_data.then_some(512), "byte {at}");
            assert!(!of_data || bad.offset == 1024, "byte {at}: {bad:?}");
            if at >= HEADER {
                let [in_header, of_data] = [&block, &other].map(|it| crc32c(&it[HEADER..]).into());
                assert_eq!((bad.expected, bad.found), (in_header, of_data), "byte {at}");
            }
        }
        assert!(check(&block[..20], 1024).is_some() && check(&[], 0).is_some());
    }

    /// A header of another length is intact; one whose length was damaged is not.
    #[test]
    fn a_block_of_another_length_is_told_from_a_damaged_one() {
        let mut block = vec![0; 1024];
        fill(&mut block, 7.into(), 2048);
        assert_eq!(length_by(&block[..HEADER], 2048), Some(1024));
        assert_eq!(length_by(&block[..HEADER], 1024), None);
        assert_eq!(length_by(&block[..20], 2048), None);
        let bad = check(&block[..512], 2048).unwrap();
        assert_eq!((bad.offset, bad.expected, bad.found), (2048 + 4, 512, 1024));
        block[5] ^= 1;
        assert_eq!(check(&block, 2048).unwrap().offset, 2048 + 36);
        assert_eq!(length_by(&block, 2048), None);
    }
}
