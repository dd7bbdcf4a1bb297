use proptest::prelude::*;

use super::*;

/// A row of the table: whether the header is taken, bytes of data, the header.
fn rows() -> Vec<(bool, usize, Vec<u8>, &'static str)> {
    let lines = include_str!("cases.txt").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        // `twice`: that library takes it, and the format disallows it.
        let [taken, data, text] = line.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        (taken == "yes", data.parse().unwrap(), expanded(text), text)
    };
    lines.map(row).collect()
}

/// `<ff>` as a byte, `<TEXT*3>` as TEXT three times.
fn expanded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        bytes.extend(before.bytes());
        let (inside, after) = after.split_once('>').unwrap();
        let (what, times) = inside.rsplit_once('*').unwrap_or((inside, "1"));
        let is_byte = what.len() == 2 && what.bytes().all(|one| one.is_ascii_hexdigit());
        let one = match is_byte {
            true => vec![u8::from_str_radix(what, 16).unwrap()],
            false => what.as_bytes().to_vec(),
        };
        bytes.extend(one.repeat(times.parse().unwrap()));
        rest = after;
    }
    bytes.extend(rest.bytes());
    bytes
}

fn file(header: &[u8], data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header, &vec![7; data]].concat()
}

/// Reads a file of these bytes, in pieces.
fn of(bytes: &[u8]) -> Result<Header, String> {
    let read_at = |to: &mut [u8], at: u64| {
        let rest = &bytes[usize::try_from(at).unwrap().min(bytes.len())..];
        let known = rest.len().min(to.len()).min(100_000);
        to[..known].copy_from_slice(&rest[..known]);
        Ok(known)
    };
    read(bytes.len() as u64, read_at).map_err(|error| error.to_string())
}

fn found(header: &str, data: usize) -> Result<Vec<(String, u64, u64)>, String> {
    let from = LENGTH_BYTES + header.len() as u64;
    let all = of(&file(header.as_bytes(), data))?.tensors;
    Ok(all.into_iter().map(|one| (one.name, one.offset - from, one.length)).collect())
}

#[test]
fn headers_are_taken_or_refused_as_by_the_formats_own_library() {
    let rows = rows();
    assert!(rows.len() > 200, "{}", rows.len());
    for (taken, data, header, text) in rows {
        let read = of(&file(&header, data));
        assert_eq!(read.is_ok(), taken, "{text}: {read:?}");
        if let Err(words) = read {
            assert!(words.starts_with("offset ") && words.len() < 400, "{text}: {words}");
            assert!(!words.contains(['\n', '\0', '\x1b']), "{words}");
        }
    }
}

#[test]
fn every_type_has_its_name_and_bits() {
    for dtype in Dtype::ALL {
        let (name, bytes) = (dtype.name(), dtype.bits());
        let header = format!(
            "{{\"w\":{{\"dtype\":\"{name}\",\"shape\":[2,4],\"data_offsets\":[0,{bytes}]}}}}"
        );
        let read = of(&file(header.as_bytes(), usize::try_from(bytes).unwrap())).unwrap();
        assert_eq!((read.tensors[0].dtype, &read.tensors[0].shape[..]), (*dtype, &[2, 4][..]));
    }
    assert_eq!(Dtype::ALL.len(), 22);
}

#[test]
fn tensors_come_in_the_order_of_the_header() {
    let header = r#"{"__metadata__":{"format":"pt","a":"1","a":"2"},
        "b":{"dtype":"F16","shape":[2,3],"data_offsets":[4,16]},
        "none":{"dtype":"F64","shape":[0,7],"data_offsets":[16,16]},
        "f4":{"dtype":"F4","shape":[4],"data_offsets":[16,18]},
        "a":{"dtype":"I32","shape":[],"data_offsets":[0,4]}}"#;
    let wanted = [("b", 4, 12), ("none", 16, 0), ("f4", 16, 2), ("a", 0, 4)];
    assert_eq!(
        found(header, 18),
        Ok(wanted.map(|(name, at, len)| (name.to_owned(), at, len)).into())
    );
    let metadata = of(&file(header.as_bytes(), 18)).unwrap().metadata;
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(metadata, [pair("format", "pt"), pair("a", "2")]);
    assert_eq!(found("{}", 0), Ok(vec![]));
}

#[test]
fn broken_headers_have_an_offset_and_the_reason() {
    let one = |entry: &str| format!("{{\"w\":{entry}}}");
    let placed = |rest: &str| one(&format!("{{\"dtype\":\"F32\",{rest}}}"));
    for (header, data, says) in [
        ("{\"a\":x}".to_owned(), 0, "offset 13: the header is no JSON"),
        ("{\n\"a\":\nx}".to_owned(), 0, "offset 15: the header is no JSON"),
        ("[]".to_owned(), 0, "offset 8: "),
        (one("3"), 0, "tensor 'w': "),
        (placed("\"shape\":[]"), 0, "tensor 'w': missing field `data_offsets`"),
        (placed("\"shape\":[2.7]"), 0, "offset 39: tensor 'w': invalid type: floating point `2.7`"),
        (placed("\"dtype\":\"F32\""), 0, "tensor 'w': duplicate field `dtype`"),
        (placed("\"shape\":[1],\"data_offsets\":[0,4]"), 3, "offset 9: tensor 'w': bytes 0 to 4"),
        (placed("\"shape\":[1],\"data_offsets\":[4,0]"), 4, "not within the 4 bytes"),
        (placed("\"shape\":[2],\"data_offsets\":[0,4]"), 4, "do not fit its shape and dtype F32"),
        (placed("\"shape\":[1],\"data_offsets\":[4,8]"), 8, "leaves a hole"),
        (placed("\"shape\":[1],\"data_offsets\":[0,4]"), 5, "of no tensor"),
        (placed("\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), 4, "64 bits"),
        (one(r#"{"dtype":"F33"}"#), 0, "tensor 'w': its dtype F33 is unknown: expected one of"),
        (one(r#"{"dtype":"F4","shape":[3],"data_offsets":[0,2]}"#), 2, "12 bits"),
        (
            r#"{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                "w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#
                .to_owned(),
            2,
            "offset 9: tensor 'w': two tensors have its name",
        ),
        (
            r#"{"__metadata__":{"epoch":3}}"#.to_owned(),
            0,
            "__metadata__: invalid type: integer `3`",
        ),
    ] {
        let refused = found(&header, data).unwrap_err();
        assert!(refused.contains(says), "{header}: {refused}");
    }
    let two = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                  "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#;
    let refused = found(two, 3).unwrap_err();
    assert!(refused.contains("tensor 'b'") && refused.contains("overlaps"), "{refused}");
    assert!(of(&file(b"{\x7f\xff", 0)).unwrap_err().starts_with("offset 10: "));
}

#[test]
fn other_files_are_called_by_their_name() {
    let zip = [&b"PK\x03\x04\x00\x00\x08\x08"[..], &[0; 100]].concat();
    let pickle = [&b"\x80\x02}q\x00X\x01\x00\x00\x00a"[..], &[0; 100]].concat();
    let gzip = [&b"\x1f\x8b\x08\x00\x00\x00\x00\x00"[..], &[3; 600_000]].concat();
    let index = br#"{"metadata": {"total_size": 5}, "weight_map": {"a": "x.safetensors"}}"#;
    let short = 1_000_u64.to_le_bytes();
    let long = 132_000_000_u64.to_le_bytes();
    for (bytes, says) in [
        (&b""[..], "the file is empty"),
        (b"abc", "offset 3: the file ends before the 8 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4\nsize 9\n", "git lfs pull"),
        (index, "*.safetensors.index.json"),
        (&[b"\xef\xbb\xbf\n", &index[..]].concat(), "*.safetensors.index.json"),
        (b"<!DOCTYPE html><html>", "download the model again"),
        (b"\n\n<?xml version=\"1.0\"?><Error>", "download the model again"),
        (b"GGUF\x03\0\0\0\x23\x01\0\0", "GGUF"),
        (b"\x93NUMPY\x01\0v\0", "NumPy"),
        (b"Entry not found: see the log", "it is a text"),
        (&zip, "torch.save"),
        (&pickle, "pickle of Python"),
        (&gzip, "gzip"),
        (&[0; 4096], "its header has 0 bytes"),
        (&[0xff; 4096], "and the format allows 100000000"),
        (&short, "a header of 1000 bytes in a file of 8: it is cut short"),
        (&long, "132000000 bytes, and the format allows 100000000"),
    ] {
        let refused = of(bytes).unwrap_err();
        assert!(refused.contains(says), "{bytes:?}: {refused}");
    }
    // The file begins as a pickle does, and is of the format.
    let padded = format!("{{}}{}", " ".repeat(638));
    assert_eq!(file(padded.as_bytes(), 0)[..2], *b"\x80\x02");
    assert!(of(&file(padded.as_bytes(), 0)).is_ok());
}

#[test]
fn a_file_that_ends_while_it_is_read_is_an_error() {
    let bytes = file(b"{}      ", 0);
    let cut = |to: &mut [u8], at: u64| {
        let rest = &bytes[usize::try_from(at).unwrap().min(12)..12];
        let known = rest.len().min(to.len());
        to[..known].copy_from_slice(&rest[..known]);
        Ok(known)
    };
    let refused = read(bytes.len() as u64, cut).unwrap_err().to_string();
    assert!(refused.starts_with("offset 12: the file became shorter"), "{refused}");
    let failed = read(10, |_, _| Err(io::ErrorKind::PermissionDenied.into())).unwrap_err();
    assert!(matches!(failed, ReadError::Io(_)), "{failed}");
}

proptest! {
    /// No header makes it panic, and what is taken is all of the data.
    #[test]
    fn any_bytes_are_read(
        cut in 0_usize..80,
        with in "[\\[\\]{}\",:0-9a-zA-Z_ ]{0,3}",
        row in 0_usize..200,
    ) {
        let (_, data, mut header, _) = rows().swap_remove(row);
        let at = cut.min(header.len());
        let end = (at + with.len()).min(header.len());
        header.splice(at..end, with.bytes());
        let whole = file(&header, data);
        if let Ok(read) = of(&whole) {
            let sum: u64 = read.tensors.iter().map(|tensor| tensor.length).sum();
            prop_assert_eq!(sum, data as u64);
        }
    }
}

/// Python's module arranges parts of tensors by itself, in groups of the same size.
#[test]
fn python_has_the_groups_of_the_loader() {
    let text = include_str!("../../../../python/gpuio/_safetensors.py");
    let most = format!("\n_MOST = {} << 20\n", super::loader::GROUP_BYTES >> 20);
    assert!(text.contains(&most), "no {most}");
}
