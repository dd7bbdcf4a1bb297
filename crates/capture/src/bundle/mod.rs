//! Files as people send them: as they are, compressed (gzip, xz, zstd), and archives (tar, zip) of
//! texts or of a captured tree, also within one another. Nothing is written anywhere, so names
//! can't lead out.

mod compressed;
#[cfg(test)]
mod tests;
mod zip;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use gpuio_host::{Entry, MOST_BYTES, Tree};

use crate::machines::Text;
use compressed::Format;

/// More files than a bundle has.
const MOST_FILES: usize = 20_000;
/// The most bytes of all files, at each stage of unpacking: held, and worked through.
const MOST_TOTAL: u64 = 512 << 20;
const TOO_LARGE: &str = "all files together are larger than a bundle may be";
const LONG_NAMES: &str = "its names are longer, or its directories deeper, than Linux has them";
/// Archives within archives.
const DEEPEST: usize = 3;

/// The content of files that people sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bundle {
    /// Texts by name: an archive's name and the name in it.
    pub texts: Vec<Text>,
    /// Captured trees of `/sys` and `/proc`, by the archive's name.
    pub trees: Vec<(String, Tree)>,
    /// Files that are no texts, with the reason.
    pub others: Vec<(String, String)>,
    total: u64,
}

/// A file of an archive.
struct Member {
    path: PathBuf,
    entry: Entry,
}

impl Member {
    fn size(&self) -> usize {
        if let Entry::File(bytes) = &self.entry { bytes.len() } else { 0 }
    }
}

impl Bundle {
    /// Adds a file of any kind.
    pub fn add(&mut self, name: &str, bytes: Vec<u8>) {
        self.count(bytes.len());
        self.unpack(name, bytes, DEEPEST);
    }

    /// Adds a file that was not looked at.
    pub fn leave_out(&mut self, name: &str, why: impl Into<String>) {
        if self.others.len() < MOST_FILES {
            self.others.push((name.to_owned(), why.into()));
        }
    }

    fn count(&mut self, bytes: usize) {
        self.total = self.total.saturating_add(bytes as u64);
    }

    /// Looks into bytes that are counted.
    fn unpack(&mut self, name: &str, bytes: Vec<u8>, deep: usize) {
        if self.total > MOST_TOTAL || self.texts.len() >= MOST_FILES {
            return self.leave_out(name, TOO_LARGE);
        }
        let packed = packing(&bytes);
        if packed.is_some() && deep == 0 {
            self.leave_out(name, "an archive within archives");
            return;
        }
        let room = MOST_TOTAL - self.total;
        let mut members = Vec::new();
        let read = match packed {
            None => return self.file(name, bytes),
            Some(Packing::Compressed(format)) => {
                // One byte too many shows that there are more than a bundle may have.
                let room = usize::try_from(room).unwrap_or(usize::MAX - 1) + 1;
                let mut inner = Vec::new();
                match (format.unpack)(&bytes, room, &mut inner) {
                    Err(why) if inner.is_empty() => Err(format!(
                        "it can't be unpacked ({why}): where `{}` can, give what it makes",
                        format.command
                    )),
                    read => {
                        if let Err(why) = read {
                            let why = format!("it is cut or damaged, its beginning is read: {why}");
                            self.leave_out(name, why);
                        }
                        self.count(inner.len());
                        return self.unpack(&format.name_inside(name), inner, deep - 1);
                    }
                }
            }
            Some(Packing::Tar) => tar_members(&bytes, room, &mut members),
            Some(Packing::Zip) => zip::members(&bytes, room, &mut members),
        };
        if let Err(why) = read {
            self.leave_out(name, why);
        }
        self.count(members.iter().map(|one| one.size()).sum());
        self.members(name, members, deep);
    }

    fn members(&mut self, archive: &str, mut members: Vec<Member>, deep: usize) {
        strip_common(&mut members);
        let is_tree = |path: &Path| path.starts_with("sys") || path.starts_with("proc");
        if members.iter().any(|one| is_tree(&one.path) && one.path.components().count() > 1) {
            let mut tree = Tree::default();
            let (own, rest): (Vec<Member>, Vec<Member>) =
                members.into_iter().partition(|one| belongs_to_tree(&one.path));
            for one in own {
                if one.path != Path::new(crate::pack::MANIFEST) && !tree.put(&one.path, one.entry) {
                    self.leave_out(archive, LONG_NAMES.to_owned());
                    break;
                }
            }
            self.count(tree.bytes_of_names());
            self.trees.push((archive.to_owned(), tree));
            members = rest;
        }
        for one in members {
            if let Entry::File(bytes) = one.entry {
                self.unpack(&format!("{archive}/{}", one.path.display()), bytes, deep - 1);
            }
        }
    }

    fn file(&mut self, name: &str, bytes: Vec<u8>) {
        match text_of(&bytes) {
            Ok(body) => self.texts.push(Text { name: name.to_owned(), body }),
            Err(why) => self.leave_out(name, why),
        }
    }
}

/// Whether a path of a captured tree is read there, and not as a text.
pub fn belongs_to_tree(path: &Path) -> bool {
    let first = path.components().next().map(|one| one.as_os_str().to_string_lossy().into_owned());
    let first = first.unwrap_or_default();
    ["sys", "proc", "etc", "run", "boot", "dev", "usr", "var", "lib", "gpuio"]
        .contains(&first.as_str())
        || path == Path::new(crate::pack::MANIFEST)
}

enum Packing {
    Compressed(&'static Format),
    Tar,
    Zip,
}

fn packing(bytes: &[u8]) -> Option<Packing> {
    if let Some(format) = Format::of(bytes) {
        return Some(Packing::Compressed(format));
    }
    match bytes {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Packing::Zip),
        _ => (bytes.get(257..262) == Some(b"ustar")).then_some(Packing::Tar),
    }
}

/// The files of a tar, up to so many bytes. An error comes after what could be read.
fn tar_members(bytes: &[u8], mut room: u64, members: &mut Vec<Member>) -> Result<(), String> {
    let broken = |why: std::io::Error| format!("it can't be read as a tar: {why}");
    for entry in tar::Archive::new(bytes).entries().map_err(broken)? {
        let Ok(mut entry) = entry else { break };
        let Ok(path) = entry.path().map(std::borrow::Cow::into_owned) else { continue };
        let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
        if !gpuio_host::may_be_kept(&path) {
            return Err(LONG_NAMES.to_owned());
        }
        let kind = entry.header().entry_type();
        if members.len() >= MOST_FILES {
            return Err(format!("it holds more than {MOST_FILES} files"));
        }
        let new = if kind.is_file() {
            let mut body = Vec::new();
            if entry.by_ref().take(MOST_BYTES.max(32 << 20)).read_to_end(&mut body).is_err() {
                continue;
            }
            room = room.checked_sub(body.len() as u64).ok_or(TOO_LARGE)?;
            Entry::File(body)
        } else if kind.is_dir() {
            Entry::Directory(std::collections::BTreeSet::new())
        } else if let Ok(Some(target)) = entry.link_name() {
            Entry::Link(target.into_owned())
        } else {
            continue;
        };
        members.push(Member { path, entry: new });
    }
    Ok(())
}

/// Takes away the directory that all members are in.
fn strip_common(members: &mut [Member]) {
    loop {
        let mut first = members
            .iter()
            .map(|one| one.path.components().next().map(|part| part.as_os_str().to_owned()));
        let Some(Some(common)) = first.next() else { return };
        let inside = |one: &Member| {
            one.path.components().count() > 1 || matches!(one.entry, Entry::Directory(_))
        };
        let known = ["sys", "proc", "etc"].iter().any(|name| common == **name);
        if known || !first.all(|one| one.as_ref() == Some(&common)) || !members.iter().all(inside) {
            return;
        }
        let files = members.iter().filter(|one| one.path.components().count() > 1).count();
        if files == 0 {
            return;
        }
        for one in members.iter_mut() {
            one.path = one.path.strip_prefix(&common).map(Path::to_owned).unwrap_or_default();
        }
    }
}

/// A text in UTF-8 or UTF-16, also with wrong bytes in it.
///
/// # Errors
/// Why it is none, in words.
pub fn text_of(bytes: &[u8]) -> Result<String, String> {
    let wide = |pairs: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| pairs([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [] => return Err("it is empty".to_owned()),
        [0xff, 0xfe, ..] => return Ok(wide(u16::from_le_bytes)),
        [0xfe, 0xff, ..] => return Ok(wide(u16::from_be_bytes)),
        _ => {}
    }
    if let Some((_, what)) = FORMS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Err((*what).to_owned());
    }
    let zeros = bytes.iter().take(4096).filter(|byte| **byte == 0).count();
    if zeros * 50 > bytes.len().min(4096) {
        return Err("it is no text".to_owned());
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Forms that are not read, by their first bytes.
const FORMS: [(&[u8], &str); 7] = [
    (b"%PDF", "a PDF: copy its text into a file, or `pdftotext -layout`"),
    (b"\x89PNG", "a picture: gpuio reads texts"),
    (b"\xff\xd8\xff", "a picture: gpuio reads texts"),
    (b"GIF8", "a picture: gpuio reads texts"),
    (b"BZh", "compressed with bzip2: unpack it by `bzip2 -d`, and give what it makes"),
    (b"7z\xbc\xaf", "compressed with 7z: unpack it by `7z x`, and give what it makes"),
    (b"\x7fELF", "a program"),
];
