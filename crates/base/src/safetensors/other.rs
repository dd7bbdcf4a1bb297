//! Other kinds of files, by their first bytes.
//!
//! Asked only of files that are not of the format: for a better reason, not for a refusal.

/// First bytes, and what such a file is.
const KINDS: &[(&[u8], &str)] = &[
    (
        b"version https://git-lfs",
        "it is a pointer of Git LFS, not the model itself; get the model with git lfs pull",
    ),
    (b"# xet version", "it is a pointer of Xet, not the model itself; download the model"),
    (
        b"PK\x03\x04",
        "it is a ZIP archive, as torch.save (.pt, .pth, .bin) and numpy.savez (.npz) write; save \
         the model as safetensors",
    ),
    (b"GGUF", "it is a GGUF file, which llama.cpp reads; name the model's *.safetensors"),
    (b"\x89HDF", "it is an HDF5 file (.h5); save the model as safetensors"),
    (b"\x93NUMPY", "it is an array of NumPy (.npy); numpy.load reads it"),
    (b"\x1f\x8b", "it is compressed by gzip; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd; decompress it first"),
    (b"BZh", "it is compressed by bzip2; decompress it first"),
    (b"\xfd7zXZ", "it is compressed by xz; decompress it first"),
    (b"\x7fELF", "it is a program or a library (ELF)"),
];

/// The format of a file with these first bytes, and the remedy.
pub(crate) fn kind(first: &[u8]) -> Option<&'static str> {
    let by_bytes = KINDS.iter().find(|(bytes, _)| first.starts_with(bytes));
    if let Some((_, what)) = by_bytes {
        return Some(what);
    }
    // Protocols 2 to 5.
    if let [0x80, 2..=5, opcode, ..] = first
        && *opcode != 0
    {
        return Some(
            "it is a pickle of Python (.pt, .pth, .bin, .pkl); save the model as safetensors",
        );
    }
    let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
    match text.first()? {
        b'<' => Some(
            "it is a page (HTML or XML), as a server answers where it has no such file, or wants a \
             login; download the model again",
        ),
        b'{' | b'[' => Some(
            "it is JSON without the 8 bytes before it: a configuration, or an index of a model's \
             files (*.safetensors.index.json); name the files *.safetensors",
        ),
        _ if is_text(text) => Some("it is a text; name the files *.safetensors of the model"),
        _ => None,
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    bytes.len() >= 16 && bytes.iter().all(plain)
}
