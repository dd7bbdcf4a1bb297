//! Network addresses without their owner: two addresses that share their first bits still do.
//!
//! Each bit is turned or not by a keyed hash of the bits before it, as in Crypto-PAn (Xu, Fan,
//! Ammar, Moon: Prefix-Preserving IP Address Anonymization, ICNP 2002), so that routes still lead
//! where they led. The hash is not a cipher: the key is random, used for one capture and kept
//! nowhere, and that is all there is between an address and its image.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether an address is of no site: loopback, broadcast, what begins with 0, and those for
/// documentation (RFC 5737).
fn is_free(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let documents = [[192, 0, 2], [198, 51, 100], [203, 0, 113]];
    a == 0 || a == 127 || address.is_broadcast() || documents.contains(&[a, b, c])
}

/// The image of an address. One that is of no site stays.
pub(super) fn v4(key: u64, address: Ipv4Addr) -> Ipv4Addr {
    if is_free(address) {
        return address;
    }
    let turned = turn(key, u128::from(address.to_bits()) << 96, 0, 32) >> 96;
    let bits = u32::try_from(turned).unwrap_or_default();
    // Nothing else may look like loopback or no address: what would is replaced.
    let image = |octet: u8| {
        let whole = turn(key, u128::from(octet) << 120, 0, 8);
        u8::try_from(whole >> 120).unwrap_or_default()
    };
    let mut free = bits.to_be_bytes()[0];
    // 0 and 127 map to themselves; an octet whose image is one of them goes on along the circle.
    while free == 0 || free == 127 {
        free = image(free);
    }
    Ipv4Addr::from_bits(bits & 0x00ff_ffff | u32::from(free) << 24)
}

/// The image of an address. Its first 16 bits stay, which show the kind and little more; so do
/// loopback, no address at all and those for documentation (RFC 3849).
pub(super) fn v6(key: u64, address: Ipv6Addr) -> Ipv6Addr {
    let documents = address.to_bits() >> 96 == 0x2001_0db8;
    if address.is_unspecified() || address.is_loopback() || documents {
        return address;
    }
    if let Some(mapped) = address.to_ipv4_mapped() {
        return v4(key, mapped).to_ipv6_mapped();
    }
    Ipv6Addr::from_bits(turn(key, address.to_bits(), 16, 128))
}

/// Bits `first..end` from the top turned, each by the bits before it.
fn turn(key: u64, address: u128, first: u32, end: u32) -> u128 {
    let mut turned = address;
    for bit in first..end {
        let before = address.checked_shr(128 - bit).unwrap_or(0);
        #[expect(clippy::cast_possible_truncation, reason = "both halves go into the hash")]
        let halves = (before as u64, (before >> 64) as u64);
        let hash = mix(mix(mix(key ^ u64::from(bit)) ^ halves.0) ^ halves.1);
        turned ^= u128::from(hash >> 63) << (127 - bit);
    }
    turned
}

/// splitmix64's finaliser (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shared(a: u128, b: u128) -> u32 {
        (a ^ b).leading_zeros()
    }

    #[test]
    fn what_names_nobody_stays() {
        for text in ["0.0.0.0", "127.0.0.1", "255.255.255.255", "192.0.2.7", "203.0.113.9"] {
            let address: Ipv4Addr = text.parse().unwrap();
            assert_eq!(v4(7, address), address);
        }
        for address in [Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5)] {
            assert_eq!(v6(7, address), address);
        }
        assert_ne!(v4(7, Ipv4Addr::new(10, 100, 10, 11)), Ipv4Addr::new(10, 100, 10, 11));
    }

    #[test]
    fn first_octets_map_one_to_one() {
        for key in 0..50 {
            let mut seen: Vec<u8> =
                (0..=255).map(|octet| v4(key, Ipv4Addr::new(octet, 1, 2, 3)).octets()[0]).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..=255).collect::<Vec<u8>>(), "key {key}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn addresses_of_one_network_stay_in_one(key: u64, a: u32, b: u32, length in 8u32..=32) {
            let mask = u32::MAX << (32 - length);
            let (a, b) = (Ipv4Addr::from_bits(a), Ipv4Addr::from_bits(a & mask | b & !mask));
            prop_assume!(!is_free(a) && !is_free(b));
            let (image, other) = (v4(key, a).to_bits(), v4(key, b).to_bits());
            prop_assert_eq!(image & mask, other & mask);
        }

        #[test]
        fn just_as_many_bits_are_shared(key: u64, a: u128, b: u128) {
            let (from, to) = (Ipv6Addr::from_bits(a), Ipv6Addr::from_bits(b));
            prop_assume!([a, b].iter().all(|one| ![0, 0x2001].contains(&(one >> 112))));
            let images = shared(v6(key, from).to_bits(), v6(key, to).to_bits());
            prop_assert_eq!(images, shared(a, b));
        }
    }
}
