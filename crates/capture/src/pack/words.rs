//! Secrets that show by their form, wherever they stand in a text.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::secrets::{Secret, Secrets};

/// Hexadecimal digits in a row that are no number any more: keys of containers have 64.
const LONG_HEX: usize = 24;

/// Replaces UUIDs, hardware and IP addresses, long keys and known names. `versions` says that four
/// numbers with dots are a version.
pub(super) fn scrub(text: &str, versions: bool, secrets: &mut Secrets) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        if run == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            run_of(&rest[..run], versions, secrets, &mut out);
            rest = &rest[run..];
        }
    }
    out
}

/// The characters of addresses, UUIDs and names.
fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '-' | '_')
}

fn run_of(run: &str, versions: bool, secrets: &mut Secrets, out: &mut String) {
    // A mark at the end belongs to the sentence: `addr:`.
    let word = run.trim_end_matches([':', '.', '-']);
    let word = if run.ends_with("::") { run } else { word };
    if let Some(kind) = secrets.named(word) {
        out.push_str(&secrets.token(kind, word));
    } else if let Some(image) = address(word, versions, secrets) {
        out.push_str(&image);
    } else {
        parts(word, secrets, out);
    }
    out.push_str(&run[word.len()..]);
}

fn address(word: &str, versions: bool, secrets: &mut Secrets) -> Option<String> {
    if let (false, Ok(address)) = (versions, word.parse::<Ipv4Addr>()) {
        return Some(secrets.v4(address).to_string());
    }
    // `name=1.2.3.4:20049`.
    if let Some((address, port)) = word.rsplit_once(':')
        && let (false, Ok(address)) = (versions, address.parse::<Ipv4Addr>())
    {
        return Some(format!("{}:{port}", secrets.v4(address)));
    }
    if word.matches(':').count() >= 2
        && let Ok(address) = word.parse::<Ipv6Addr>()
    {
        return Some(secrets.v6(address).to_string());
    }
    None
}

/// Secrets amid a word: `GPU-…`, `enx001122334455`, `pod1234…_…`.
fn parts(word: &str, secrets: &mut Secrets, out: &mut String) {
    let mut at = 0;
    while at < word.len() {
        let rest = &word[at..];
        let fresh = at == 0 || !word.as_bytes()[at - 1].is_ascii_alphanumeric();
        if let Some((length, token)) = found(rest, fresh, secrets) {
            out.push_str(&token);
            at += length;
            continue;
        }
        // On to the next position where something may begin.
        let step = 1 + rest[1..]
            .find(|c: char| c.is_ascii_hexdigit() || c == 'e')
            .unwrap_or(rest.len() - 1);
        let step = if fresh { step } else { 1 };
        out.push_str(&rest[..step]);
        at += step;
    }
}

/// The secret at the beginning of `rest`, its length, and what stands for it.
fn found(rest: &str, fresh: bool, secrets: &mut Secrets) -> Option<(usize, String)> {
    let bytes = rest.as_bytes();
    if is_uuid(bytes) {
        let uuid = rest[..36].to_ascii_lowercase().replace('_', "-");
        let token = secrets.token(Secret::Uuid, &uuid);
        let joint = &rest[8..9];
        return Some((36, token.replace('-', joint)));
    }
    let hex = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if hex >= LONG_HEX && rest[..hex].bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return Some((hex, secrets.token(Secret::Uuid, &rest[..hex]).replace('-', "")));
    }
    if !fresh {
        return None;
    }
    if let Some(name) = rest.strip_prefix("enx")
        && name.len() >= 12
        && name.as_bytes()[..12].iter().all(u8::is_ascii_hexdigit)
    {
        let pairs: Vec<&str> = (0..6).map(|pair| &name[2 * pair..2 * pair + 2]).collect();
        let token = secrets.token(Secret::Mac, &pairs.join(":").to_ascii_lowercase());
        return Some((15, format!("enx{}", token.replace(':', ""))));
    }
    // Six pairs, or the twenty of InfiniBand.
    let pairs = bytes.chunks(3).take_while(|pair| is_pair(pair)).count();
    let last = bytes.get(3 * pairs..3 * pairs + 2);
    let pairs = pairs + usize::from(last.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)));
    if pairs >= 6 {
        let length = (3 * pairs - 1).min(rest.len());
        return Some((length, secrets.token(Secret::Mac, &rest[..length].to_ascii_lowercase())));
    }
    None
}

fn is_pair(pair: &[u8]) -> bool {
    matches!(pair, [a, b, b':' | b'-'] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

/// 8-4-4-4-12 digits; control groups write `_` between.
fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => matches!(byte, b'-' | b'_') && *byte == bytes[8],
            _ => byte.is_ascii_hexdigit(),
        })
        && !bytes.get(36).is_some_and(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        scrub(text, false, &mut Secrets::new(1))
    }

    #[test]
    fn secrets_are_found_by_their_form() {
        assert_eq!(
            clean("GPU-1a2b3c4d-0000-1111-2222-333344445555,x"),
            "GPU-00000000-0000-4000-8000-000000000001,x"
        );
        assert_eq!(clean("at 0c:42:a1:00:ff:10."), "at 02:00:00:00:00:01.");
        assert_eq!(clean("enx0c42a100ff10"), "enx020000000001");
        let pod = "kubepods-pod1a2b3c4d_0000_1111_2222_333344445555.slice";
        assert_eq!(clean(pod), "kubepods-pod00000000_0000_4000_8000_000000000001.slice");
        let key = "0123456789abcdef".repeat(4);
        assert!(!clean(&format!("docker-{key}.scope")).contains("89abcdef"));
        let image = clean("addr=10.100.10.11,x 10.100.10.11:20049 [fd00::7]:/x fe80::1%ib0");
        for secret in ["10.100.10.11", "fd00::7", "fe80::1%"] {
            assert!(!image.contains(secret), "{image}");
        }
        assert!(image.contains("%ib0") && image.contains(":20049"), "{image}");
    }

    #[test]
    fn what_is_no_secret_stays() {
        let plain = "0000:3b:00.0 pci0000:d7 32.0 GT/s PCIe 9223372036854771712 0x000000d000000000 \
                     target0:0:0 0:0:0:0 127.0.0.1 nvme0n1p2 5.15.0-91-generic #1 SMP 12:30:05 \
                     eth0 größe :: ::1 deadbeef";
        assert_eq!(clean(plain), plain);
        assert_eq!(scrub("1.16.0.49", true, &mut Secrets::new(1)), "1.16.0.49");
    }

    #[test]
    fn names_are_replaced_as_words_only() {
        let mut secrets = Secrets::new(1);
        secrets.name(Secret::Host, "atlas");
        let text = scrub("atlas:/x atlas-2 atlasx (atlas) atlas.", false, &mut secrets);
        assert_eq!(text, "host1:/x atlas-2 atlasx (host1) host1.");
    }
}
