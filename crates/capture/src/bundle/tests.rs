//! Files that xz and zstd packed: a tar of two texts, and 4 MiB of zeros.

use super::*;

macro_rules! packed {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../tests/packed/", $name)).as_slice())
    };
}

const NOTES: [(&str, &[u8]); 2] = [packed!("notes.tar.xz"), packed!("notes.tar.zst")];
const ZEROS: [(&str, &[u8]); 2] = [packed!("zeros.xz"), packed!("zeros.zst")];

fn bundle(name: &str, bytes: &[u8]) -> Bundle {
    let mut bundle = Bundle::default();
    bundle.add(name, bytes.to_vec());
    bundle
}

#[test]
fn a_compressed_tar_is_read() {
    for (name, bytes) in NOTES {
        let read = bundle(name, bytes);
        assert_eq!(read.others, []);
        let texts: Vec<(&str, usize)> =
            read.texts.iter().map(|one| (one.name.as_str(), one.body.lines().count())).collect();
        assert_eq!(texts, [("notes.tar/lsblk.txt", 2), ("notes.tar/mounts", 199)], "{name}");
    }
}

#[test]
fn streams_that_follow_one_another_are_one_file() {
    for (name, bytes) in NOTES {
        let format = Format::of(bytes).unwrap();
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        (format.unpack)(bytes, 1 << 20, &mut once).unwrap();
        // Padding of xz, an empty frame that zstd skips.
        let between: &[u8] =
            if name.ends_with("xz") { &[0; 4] } else { b"\x50\x2a\x4d\x18\0\0\0\0" };
        (format.unpack)(&[bytes, between, bytes].concat(), 1 << 20, &mut twice).unwrap();
        assert!(twice == [once.as_slice(), &once].concat(), "{name}");
    }
}

/// Wherever it is cut, its beginning is read, and one line says that the rest is not there.
#[test]
fn a_cut_file_gives_its_beginning() {
    for (name, bytes) in NOTES {
        let format = Format::of(bytes).unwrap();
        let mut whole = Vec::new();
        (format.unpack)(bytes, 1 << 20, &mut whole).unwrap();
        for length in (8..bytes.len()).step_by(8) {
            let mut start = Vec::new();
            let read = (format.unpack)(&bytes[..length], 1 << 20, &mut start);
            assert!(read.is_err() && whole.starts_with(&start), "{name} of {length} bytes");
            let others = bundle(name, &bytes[..length]).others;
            assert!(others.iter().filter(|one| one.0 == name).count() == 1, "{name}: {others:?}");
        }
    }
    // In the middle of xz; at the end of zstd, which reads blocks, and this file is one.
    let cuts = [(NOTES[0], 700, 10..199), (NOTES[1], NOTES[1].1.len() - 2, 199..200)];
    for ((name, bytes), length, lines) in cuts {
        let cut = bundle(name, &bytes[..length]);
        let why = &cut.others[0].1;
        assert!(why.starts_with("it is cut or damaged, its beginning is read: "), "{why}");
        assert!(lines.contains(&cut.texts[1].body.lines().count()), "{cut:?}");
    }
    // Whole blocks of zstd before the cut, all of them within its window.
    let mut out = Vec::new();
    assert!(
        (Format::of(ZEROS[1].1).unwrap().unpack)(&ZEROS[1].1[..100], 1 << 23, &mut out).is_err()
    );
    assert!(out.len() > 1 << 20, "{}", out.len());
}

#[test]
fn a_changed_byte_is_noticed() {
    for (name, bytes) in NOTES {
        for at in (0..bytes.len()).skip(40).step_by(8) {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 0x10;
            let _ = bundle(name, &bytes);
        }
        let mut bytes = bytes.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        assert_eq!(bundle(name, &bytes).others.len(), 1, "{name}");
    }
}

#[test]
fn more_than_a_bundle_may_hold_is_refused() {
    for (name, bytes) in ZEROS {
        let mut out = Vec::new();
        (Format::of(bytes).unwrap().unpack)(bytes, 1000, &mut out).unwrap();
        assert_eq!(out, [0; 1000], "{name}");
        let mut bundle = Bundle { total: MOST_TOTAL - 4096, ..Bundle::default() };
        bundle.add(name, bytes.to_vec());
        let others = vec![("zeros".to_owned(), TOO_LARGE.to_owned())];
        assert_eq!((bundle.texts.len(), bundle.others), (0, others));
    }
}

/// A tree's files count as texts do: an archive of archives of trees is no way around the limit.
#[test]
fn trees_count_as_bytes_of_a_bundle() {
    let mut tar = tar::Builder::new(Vec::new());
    for name in ["sys/one/two", "sys/one/three"] {
        let mut head = tar::Header::new_ustar();
        head.set_size(3000);
        tar.append_data(&mut head, name, [b'1'; 3000].as_slice()).unwrap();
    }
    let tar = tar.into_inner().unwrap();
    let mut bundle = Bundle { total: MOST_TOTAL - tar.len() as u64 - 4096, ..Bundle::default() };
    bundle.add("a.tar", tar);
    assert_eq!(bundle.others, [("a.tar".to_owned(), TOO_LARGE.to_owned())]);
    assert_eq!((bundle.trees.len(), MOST_TOTAL - bundle.total), (1, 1075));
    assert!(bundle.trees[0].1.entries().all(|(path, _)| !path.ends_with("three")), "{bundle:?}");
}

/// A name of a few packed bytes would take hours, and its directories more memory than there is.
#[test]
fn names_that_no_machine_has_are_refused() {
    for (first, parts) in [("", 100_000), ("sys/", 100_000), ("sys/", 65), ("a", 0)] {
        let name = match parts {
            0 => first.repeat(5000),
            _ => format!("{first}{}", "a/".repeat(parts) + "end"),
        };
        let mut tar = tar::Builder::new(Vec::new());
        for name in ["sys/one", &name, "sys/two"] {
            let mut head = tar::Header::new_gnu();
            head.set_size(1);
            tar.append_data(&mut head, name, [b'1'].as_slice()).unwrap();
        }
        let tar = tar.into_inner().unwrap();
        assert!(matches!(crate::pack::read(&tar), Err(crate::pack::PackError::TooMuch { .. })));
        let bundle = bundle("a.tar", &tar);
        assert_eq!(bundle.others, [("a.tar".to_owned(), LONG_NAMES.to_owned())]);
        assert_eq!(bundle.trees[0].1.entries().count(), 2, "sys and the file before");
    }
}

/// A few bytes that ask for gigabytes to look back in.
#[test]
fn a_window_larger_than_any_tool_makes_is_refused() {
    let mut xz = NOTES[0].1.to_vec();
    // The dictionary of LZMA2 in the block's header, and that header's checksum (.xz 1.2.1, 3.1).
    xz[16] = 40;
    let mut sum = flate2::Crc::new();
    sum.update(&xz[12..20]);
    xz[20..24].copy_from_slice(&sum.sum().to_le_bytes());
    // A frame whose window is 2 GiB, and one block of one byte (RFC 8878, section 3.1.1).
    let zstd = b"\x28\xb5\x2f\xfd\0\xa8\x09\0\0x".to_vec();
    for (name, bytes) in [("a.xz", xz), ("a.zst", zstd)] {
        let others = bundle(name, &bytes).others;
        let [(_, why)] = &others[..] else { panic!("{others:?}") };
        assert!(why.starts_with("it can't be unpacked ("), "{name}: {why}");
    }
}
