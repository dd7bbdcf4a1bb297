//! Bundles: archives within archives, compressed files, texts in UTF-16, and what is no text.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use gpuio_capture::bundle::Bundle;

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A zip with one deflated and one stored file.
fn zip(files: [(&str, &[u8]); 2]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (at, (name, bytes)) in files.iter().enumerate() {
        let method = if at == 0 { 8_u16 } else { 0 };
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::fast());
        deflated.write_all(bytes).unwrap();
        let data = if at == 0 { deflated.finish().unwrap() } else { bytes.to_vec() };
        let start = u32::try_from(out.len()).unwrap();
        let (size, full) =
            (u32::try_from(data.len()).unwrap(), u32::try_from(bytes.len()).unwrap());
        let length = u16::try_from(name.len()).unwrap();
        out.extend_from_slice(b"PK\x03\x04\x14\0\0\0");
        out.extend_from_slice(&method.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&full.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&data);
        directory.extend_from_slice(b"PK\x01\x02\x14\0\x14\0\0\0");
        directory.extend_from_slice(&method.to_le_bytes());
        directory.extend_from_slice(&[0; 8]);
        directory.extend_from_slice(&size.to_le_bytes());
        directory.extend_from_slice(&full.to_le_bytes());
        directory.extend_from_slice(&length.to_le_bytes());
        directory.extend_from_slice(&[0; 12]);
        directory.extend_from_slice(&start.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (size, start) =
        (u32::try_from(directory.len()).unwrap(), u32::try_from(out.len()).unwrap());
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0\x02\0\x02\0");
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out
}

fn names(bundle: &Bundle) -> Vec<&str> {
    bundle.texts.iter().map(|text| text.name.as_str()).collect()
}

#[test]
fn archives_are_read_within_one_another() {
    let inner = gz(&tar(&[("top/lsblk.txt", b"NAME TYPE\n"), ("top/log/mount.txt", b"x\n")]));
    let mut bundle = Bundle::default();
    bundle.add("all.zip", zip([("a/inner.tar.gz", &inner), ("a/readme", b"hello\n")]));
    bundle.add("log.gz", gz(b"text\n"));
    let expected = [
        "all.zip/inner.tar.gz/lsblk.txt",
        "all.zip/inner.tar.gz/log/mount.txt",
        "all.zip/readme",
        "log",
    ];
    let mut found = names(&bundle);
    found.sort_unstable();
    let mut expected_names = expected.to_vec();
    expected_names.sort_unstable();
    let plain: Vec<String> =
        found.iter().map(|name| name.replace("inner.tar/", "inner.tar.gz/")).collect();
    assert_eq!(plain, expected_names);
    assert_eq!(
        bundle.texts.iter().find(|one| one.name.ends_with("readme")).unwrap().body,
        "hello\n"
    );
}

#[test]
fn a_captured_tree_in_a_directory_of_an_archive_is_a_machine() {
    let files: [(&str, &[u8]); 3] = [
        ("host/sys/devices/a", b"1"),
        ("host/proc/mdstat", b"x"),
        ("host/notes/lsblk.txt", b"NAME TYPE\n"),
    ];
    let mut bundle = Bundle::default();
    bundle.add("host.tar", tar(&files));
    assert_eq!((bundle.trees.len(), names(&bundle)), (1, vec!["host.tar/notes/lsblk.txt"]));
    assert_eq!(bundle.trees[0].1.entries().filter(|(path, _)| path.ends_with("mdstat")).count(), 1);
}

#[test]
fn files_that_are_no_text_are_named_with_the_reason() {
    let mut bundle = Bundle::default();
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("NAME\n".bytes().flat_map(|byte| [byte, 0])).collect();
    bundle.add("wide.txt", wide);
    bundle.add("a.pdf", b"%PDF-1.7 x".to_vec());
    bundle.add("b.bin", vec![0; 100]);
    bundle.add("c.tar.bz2", b"BZh91AY&SY".to_vec());
    bundle.add("d.zip", b"PK\x03\x04 cut".to_vec());
    bundle.add("empty", Vec::new());
    assert_eq!(bundle.texts[0].body, "NAME\n");
    let reasons: Vec<String> =
        bundle.others.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert_eq!(
        reasons,
        [
            "a.pdf: a PDF: copy its text into a file, or `pdftotext -layout`",
            "b.bin: it is no text",
            "c.tar.bz2: compressed with bzip2: unpack it by `bzip2 -d`, and give what it makes",
            "d.zip: it can't be read as a zip: its directory is not whole",
            "empty: it is empty",
        ]
    );
}

#[test]
fn a_bomb_is_bounded() {
    let zeros = gz(&gz(&gz(&gz(&vec![b'a'; 8 << 20]))));
    let mut bundle = Bundle::default();
    bundle.add("bomb.gz", zeros);
    assert!(bundle.texts.is_empty());
    assert_eq!(bundle.others[0].1, "an archive within archives");
}
