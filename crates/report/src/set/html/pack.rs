//! The records themselves, for saving from the page.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::format::json as record_json;

use super::super::Set;
use super::base64::base64;

/// All records as JSON (`[{name, at, record}]`), gzip, base64; empty if larger than the set's
/// limit. A browser unpacks it only to save it.
pub(super) fn records(set: &Set) -> String {
    pack(set).map(|bytes| base64(&bytes)).unwrap_or_default()
}

fn pack(set: &Set) -> Option<Vec<u8>> {
    let limit = set.embed_limit.unwrap_or(usize::MAX);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"[").ok()?;
    for (nth, member) in set.members.iter().enumerate() {
        let one = json!({ "name": member.name, "at": member.at });
        let head = one.to_string();
        let comma = if nth > 0 { ",\n" } else { "" };
        // `{"name":…,"at":…` without its closing brace.
        write!(gzip, "{comma}{},\"record\":", &head[..head.len() - 1]).ok()?;
        serde_json::to_writer(&mut gzip, &record_json::value(&member.record)).ok()?;
        gzip.write_all(b"}").ok()?;
        if gzip.get_ref().len() > limit {
            return None;
        }
    }
    gzip.write_all(b"]\n").ok()?;
    gzip.finish().ok().filter(|bytes| bytes.len() <= limit)
}
