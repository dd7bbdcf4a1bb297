//! Where tensors lie in a file of the safetensors format.
//!
//! Format (huggingface/safetensors, README): 8 bytes with the length of the header, little endian;
//! the header, a JSON object of at most 100 MB with `dtype`, `shape` and `data_offsets` of each
//! tensor, offsets from the end of the header on, and texts under `__metadata__`; then the data of
//! all tensors, without holes.

use serde_json::Value;

/// Longest header that the format allows, bytes.
pub const HEADER_MOST: u64 = 100_000_000;
/// Bytes of the length before the header.
pub const LENGTH_BYTES: u64 = 8;

/// A tensor's bytes in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// First byte in the file.
    pub offset: u64,
    /// Length in bytes; 0 for tensors without elements.
    pub length: u64,
}

/// What is wrong with a file, and at which byte of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset}: {what}")]
pub struct SafetensorsError {
    /// Byte offset in the file.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

fn wrong<T>(offset: u64, what: impl Into<String>) -> Result<T, SafetensorsError> {
    Err(SafetensorsError { offset, what: what.into() })
}

/// Length of the header, from the first bytes of a file of `file_bytes`.
///
/// # Errors
/// The file is too short, or the header would be longer than the file or the format allows.
pub fn header_bytes(first: &[u8], file_bytes: u64) -> Result<u64, SafetensorsError> {
    let Some(length) = first.first_chunk::<8>() else {
        return wrong(
            first.len() as u64,
            "the file ends before the 8 bytes of the header's length",
        );
    };
    let length = u64::from_le_bytes(*length);
    if length > HEADER_MOST {
        return wrong(0, format!("a header of {length} bytes; the format allows {HEADER_MOST}"));
    }
    if LENGTH_BYTES + length > file_bytes {
        let what = format!("a header of {length} bytes in a file of {file_bytes}: it is cut short");
        return wrong(0, what);
    }
    Ok(length)
}

/// The tensors in the order of the header, from its text.
///
/// # Errors
/// What is wrong, with the offset in the file: of a tensor, that of its name.
pub fn tensors(header: &[u8], file_bytes: u64) -> Result<Vec<Tensor>, SafetensorsError> {
    let data = LENGTH_BYTES + header.len() as u64;
    let text = match std::str::from_utf8(header) {
        Ok(text) => text,
        Err(error) => {
            let at = LENGTH_BYTES + error.valid_up_to() as u64;
            return wrong(at, "the header is no UTF-8");
        }
    };
    let parsed: Value = match serde_json::from_str(text) {
        Ok(parsed) => parsed,
        Err(error) => return wrong(place(text, &error), format!("the header is no JSON: {error}")),
    };
    let Value::Object(entries) = parsed else {
        return wrong(LENGTH_BYTES, "the header is no JSON object");
    };
    let mut all = Vec::with_capacity(entries.len());
    for (name, entry) in &entries {
        if name == "__metadata__" {
            continue;
        }
        let at = name_at(text, name);
        match tensor(entry, data, file_bytes) {
            Ok((offset, length)) => all.push(Tensor { name: name.clone(), offset, length }),
            Err(what) => return wrong(at, format!("tensor '{}': {what}", shown(name))),
        }
    }
    whole(text, &all, (data, file_bytes))?;
    Ok(all)
}

/// Where an error of the JSON's is, in the file.
fn place(text: &str, error: &serde_json::Error) -> u64 {
    let before: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = (before + error.column().saturating_sub(1)).min(text.len());
    LENGTH_BYTES + at as u64
}

/// Where a tensor's name stands, in the file.
fn name_at(text: &str, name: &str) -> u64 {
    let quoted = Value::String(name.to_owned()).to_string();
    // A name that is escaped in another way is not found: the header's begin is said then.
    LENGTH_BYTES + text.find(&quoted).unwrap_or(0) as u64
}

/// A name for an error: short, and in one line.
fn shown(name: &str) -> String {
    name.chars().take(80).map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

/// Offset in the file and length of a tensor.
fn tensor(entry: &Value, data: u64, file_bytes: u64) -> Result<(u64, u64), String> {
    let Some(kind) = entry.get("dtype").and_then(Value::as_str) else {
        return Err("it has no dtype".to_owned());
    };
    let numbers = |key: &str| {
        let list = entry.get(key).and_then(Value::as_array);
        list.and_then(|list| list.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>())
    };
    let Some(shape) = numbers("shape") else {
        return Err("its shape is no list of sizes".to_owned());
    };
    let offsets: Option<[u64; 2]> = numbers("data_offsets").and_then(|list| list.try_into().ok());
    let Some([begin, end]) = offsets else {
        return Err("its data_offsets are not two offsets".to_owned());
    };
    let room = file_bytes - data;
    if begin > end || end > room {
        return Err(format!("bytes {begin} to {end} are not within the {room} bytes of data"));
    }
    let Some(bits) = bits(kind) else {
        return Err(format!("its dtype {} is unknown", shown(kind)));
    };
    let elements = shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
    let bytes = elements.and_then(|all| all.checked_mul(bits)).map(|bits| bits.div_ceil(8));
    if bytes != Some(end - begin) {
        let has = end - begin;
        return Err(format!("{has} bytes of data do not fit its shape and dtype {}", shown(kind)));
    }
    Ok((data + begin, end - begin))
}

/// Bits of an element.
fn bits(kind: &str) -> Option<u64> {
    Some(match kind {
        "F4" => 4,
        "F6_E2M3" | "F6_E3M2" => 6,
        "BOOL" | "U8" | "I8" | "F8_E5M2" | "F8_E4M3" | "F8_E8M0" | "F8_E4M3FNUZ"
        | "F8_E5M2FNUZ" => 8,
        "I16" | "U16" | "F16" | "BF16" => 16,
        "I32" | "U32" | "F32" => 32,
        "I64" | "U64" | "F64" | "C64" => 64,
        _ => return None,
    })
}

/// Whether the tensors are all of the data, once.
fn whole(
    text: &str,
    all: &[Tensor],
    (data, file_bytes): (u64, u64),
) -> Result<(), SafetensorsError> {
    let mut order: Vec<&Tensor> = all.iter().collect();
    order.sort_by_key(|tensor| (tensor.offset, tensor.length));
    let mut end = data;
    for tensor in order {
        if tensor.offset != end {
            let how = if tensor.offset < end { "overlaps the one before" } else { "leaves a hole" };
            let name = shown(&tensor.name);
            let what = format!("tensor '{name}': its data at offset {} {how}", tensor.offset);
            return wrong(name_at(text, &tensor.name), what);
        }
        end += tensor.length;
    }
    match end == file_bytes {
        true => Ok(()),
        false => wrong(end, "bytes follow that are of no tensor"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: u64) -> (Vec<u8>, u64) {
        (header.as_bytes().to_vec(), LENGTH_BYTES + header.len() as u64 + data)
    }

    fn found(header: &str, data: u64) -> Result<Vec<(String, u64, u64)>, String> {
        let (header, bytes) = file(header, data);
        let all = tensors(&header, bytes).map_err(|error| error.to_string())?;
        let from = LENGTH_BYTES + header.len() as u64;
        Ok(all.into_iter().map(|one| (one.name, one.offset - from, one.length)).collect())
    }

    #[test]
    fn tensors_come_in_the_order_of_the_header() {
        let header = r#"{"__metadata__":{"format":"pt"},
            "b":{"dtype":"F16","shape":[2,3],"data_offsets":[4,16]},
            "a":{"dtype":"I32","shape":[],"data_offsets":[0,4]},
            "none":{"dtype":"F64","shape":[0,7],"data_offsets":[16,16]},
            "f4":{"dtype":"F4","shape":[3],"data_offsets":[16,18]}}"#;
        let all = found(header, 18).unwrap();
        let wanted = [("b", 4, 12), ("a", 0, 4), ("none", 16, 0), ("f4", 16, 2)];
        assert_eq!(all, wanted.map(|(name, at, len)| (name.to_owned(), at, len)));
        assert_eq!(found("{}", 0).unwrap(), []);
    }

    #[test]
    fn broken_files_have_an_offset() {
        let one = |entry: &str| format!("{{\"w\":{entry}}}");
        for (header, data, says) in [
            ("{\"a\":x}".to_owned(), 0, "offset 13: the header is no JSON"),
            ("{\n\"a\":\nx}".to_owned(), 0, "offset 15: the header is no JSON"),
            ("[]".to_owned(), 0, "offset 8: the header is no JSON object"),
            (one("3"), 0, "offset 9: tensor 'w': it has no dtype"),
            (one(r#"{"dtype":"F32"}"#), 0, "its shape is no list"),
            (one(r#"{"dtype":"F32","shape":[-1]}"#), 0, "its shape is no list"),
            (one(r#"{"dtype":"F32","shape":[1],"data_offsets":[0]}"#), 4, "not two offsets"),
            (
                one(r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#),
                3,
                "not within the 3 bytes",
            ),
            (
                one(r#"{"dtype":"F32","shape":[1],"data_offsets":[4,0]}"#),
                4,
                "not within the 4 bytes",
            ),
            (one(r#"{"dtype":"F33","shape":[1],"data_offsets":[0,4]}"#), 4, "F33 is unknown"),
            (one(r#"{"dtype":"F32","shape":[2],"data_offsets":[0,4]}"#), 4, "do not fit its shape"),
            (
                one(r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}"#),
                4,
                "do not fit its shape",
            ),
            (one(r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#), 8, "leaves a hole"),
            (one(r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#), 5, "of no tensor"),
        ] {
            let refused = found(&header, data).unwrap_err();
            assert!(refused.contains(says), "{header}: {refused}");
        }
        let two = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                      "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#;
        let refused = found(two, 3).unwrap_err();
        assert!(refused.contains("tensor 'b'") && refused.contains("overlaps"), "{refused}");
        let (bytes, whole) = file("{\u{7f}", 0);
        assert_eq!(tensors(&[bytes, vec![0xff]].concat(), whole + 1).unwrap_err().offset, 10);
    }

    #[test]
    fn a_header_is_as_long_as_the_file_allows() {
        let first = |length: u64| length.to_le_bytes();
        assert_eq!(header_bytes(&first(2), 10), Ok(2));
        assert_eq!(header_bytes(&first(3), 10).unwrap_err().offset, 0);
        assert!(header_bytes(&first(u64::MAX), 10).unwrap_err().what.contains("the format allows"));
        assert_eq!(header_bytes(b"abc", 3).unwrap_err().offset, 3);
    }
}
