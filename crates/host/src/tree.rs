//! A tree of kernel files in memory: what a [`crate::Root`] noted while facts were read, or what a
//! capture held.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// As many links as Linux follows in one path (`MAXSYMLINKS`, include/linux/namei.h).
const MOST_LINKS: usize = 40;

/// Bytes of a path at most (`PATH_MAX`, include/uapi/linux/limits.h), and names in it: no tree of
/// the kernel's is half as deep.
const MOST_PATH: usize = 4096;
const DEEPEST: usize = 64;
/// Bytes of all paths of a tree at most. A foreign archive's names may be longer than its files.
const MOST_NAMES: usize = 256 << 20;

/// Whether a path of a foreign archive may be kept: it is no longer than Linux has them, and no
/// deeper than a tree is read.
#[must_use]
pub fn may_be_kept(path: &Path) -> bool {
    path.as_os_str().len() <= MOST_PATH && path.components().nth(DEEPEST).is_none()
}

/// One file, link or directory of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file with its bytes; empty too where it was only seen to be there.
    File(Vec<u8>),
    /// A symbolic link and where it leads, as it is written.
    Link(PathBuf),
    Directory(BTreeSet<OsString>),
}

/// Files, links and directories by their path without a leading slash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// By real path: what stands above an entry is a directory.
    entries: HashMap<OsString, Entry>,
    /// Bytes of all paths in it.
    names: usize,
}

impl Tree {
    /// Every entry but the root, by path.
    pub fn entries(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        let all = self.entries.iter().map(|(path, entry)| (Path::new(path), entry));
        let mut all: Vec<(&Path, &Entry)> =
            all.filter(|(path, _)| !path.as_os_str().is_empty()).collect();
        all.sort_by_key(|(path, _)| *path);
        all.into_iter()
    }

    /// Bytes of all paths.
    #[must_use]
    pub fn bytes_of_names(&self) -> usize {
        self.names
    }

    /// Puts an entry in, with the directories above it. An entry that was there is replaced, except
    /// that a directory keeps the names in it. Paths are cleaned of `.`, `..` and leading slashes;
    /// a path below a file or link is dropped. False, and nothing is put, where the path or all of
    /// them are longer than a tree's may be.
    pub fn put(&mut self, path: &Path, entry: Entry) -> bool {
        if !may_be_kept(path) || self.names > MOST_NAMES {
            return false;
        }
        let path: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        if !self.make_parents(&path) {
            return true;
        }
        match (self.entries.get_mut(path.as_os_str()), entry) {
            (Some(Entry::Directory(known)), Entry::Directory(new)) => known.extend(new),
            (Some(Entry::Directory(_)), _) => {}
            (Some(known), new) => *known = new,
            (None, new) => {
                self.names += path.as_os_str().len();
                self.entries.insert(path.into_os_string(), new);
            }
        }
        true
    }

    /// Makes the parents of a clean path directories with its name in them; `false` where
    /// one of them is something else.
    fn make_parents(&mut self, path: &Path) -> bool {
        let mut below = path;
        let mut missing = Vec::new();
        while let (Some(above), Some(name)) = (below.parent(), below.file_name()) {
            match self.entries.get_mut(above.as_os_str()) {
                Some(Entry::Directory(names)) => {
                    names.insert(name.to_owned());
                    break;
                }
                Some(_) => return false,
                None => missing.push((above, name)),
            }
            below = above;
        }
        for (above, name) in missing {
            let names = BTreeSet::from([name.to_owned()]);
            self.names += above.as_os_str().len();
            self.entries.insert(above.as_os_str().to_owned(), Entry::Directory(names));
        }
        true
    }

    /// The entry right at a clean path, no link followed.
    pub(crate) fn at(&self, path: &Path) -> Option<&Entry> {
        self.entries.get(path.as_os_str())
    }

    /// A path with all its links followed; `None` where nothing is there, or links go round.
    pub(crate) fn resolve(&self, path: &Path) -> Option<PathBuf> {
        self.follow(path, true)
    }

    pub(crate) fn find(&self, path: &Path) -> Option<&Entry> {
        match self.at(path) {
            Some(Entry::Link(_)) | None => {}
            here => return here,
        }
        self.at(&self.resolve(path)?)
    }

    /// Where the link at `path` leads; links above it are followed.
    pub(crate) fn link(&self, path: &Path) -> Option<&Path> {
        match self.at(&self.follow(path, false)?)? {
            Entry::Link(target) => Some(target),
            _ => None,
        }
    }

    fn follow(&self, path: &Path, last: bool) -> Option<PathBuf> {
        // Most paths are real ones.
        match self.at(path) {
            Some(Entry::Link(_)) if last => {}
            Some(_) => return Some(path.to_owned()),
            None => {}
        }
        let real = walk(path, last, |real, is_end| match self.at(real)? {
            Entry::Link(target) => Some(Some(target.clone())),
            Entry::File(_) if !is_end => None,
            _ => Some(None),
        })?;
        self.at(&real).is_some().then_some(real)
    }
}

/// Walks a path and returns where it ends; with `last`, a link at the end is followed too. `look`
/// gets each place on the way and whether it is the last one, and answers where it leads if it is a
/// link, or `None` if the walk ends there. `None`: it ended early, or links go round.
pub(crate) fn walk(
    path: &Path,
    last: bool,
    mut look: impl FnMut(&Path, bool) -> Option<Option<PathBuf>>,
) -> Option<PathBuf> {
    let mut left = parts(path);
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        if !step(&mut real, &part) {
            continue;
        }
        let target = look(&real, left.is_empty())?;
        if let Some(target) = target.filter(|_| last || !left.is_empty()) {
            links += 1;
            if links > MOST_LINKS {
                return None;
            }
            turn(&mut real, &target, &mut left);
        }
    }
    Some(real)
}

/// The parts of a path that are still to be walked.
fn parts(path: &Path) -> VecDeque<OsString> {
    path.iter().map(OsStr::to_owned).collect()
}

/// Walks one part; `false` where that leads nowhere new (`.`, `/`, `..`).
fn step(real: &mut PathBuf, part: &OsStr) -> bool {
    match part.as_encoded_bytes() {
        b"." | b"/" | b"" => false,
        b".." => {
            real.pop();
            false
        }
        _ => {
            real.push(part);
            true
        }
    }
}

/// Goes on from the link at `real`: its target's parts come before those that are left.
fn turn(real: &mut PathBuf, target: &Path, left: &mut VecDeque<OsString>) {
    if target.is_absolute() {
        real.clear();
    } else {
        real.pop();
    }
    for part in target.iter().rev() {
        left.push_front(part.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        let device = "sys/devices/pci0000:00/0000:00:02.0";
        tree.put(Path::new(&format!("{device}/class")), Entry::File(b"0x010802\n".to_vec()));
        let link = Entry::Link(PathBuf::from("../../../devices/pci0000:00/0000:00:02.0"));
        tree.put(Path::new("/sys/bus/pci/devices/0000:00:02.0"), link);
        tree.put(Path::new("a"), Entry::Link(PathBuf::from("/b")));
        tree.put(Path::new("b"), Entry::Link(PathBuf::from("a")));
        tree
    }

    #[test]
    fn links_are_followed_and_circles_end() {
        let tree = tree();
        let class = Path::new("sys/bus/pci/devices/0000:00:02.0/class");
        assert_eq!(tree.find(class), Some(&Entry::File(b"0x010802\n".to_vec())));
        let real = PathBuf::from("sys/devices/pci0000:00/0000:00:02.0/class");
        assert_eq!(tree.resolve(class), Some(real));
        let link = tree.link(Path::new("sys/bus/pci/devices/0000:00:02.0"));
        assert_eq!(link, Some(Path::new("../../../devices/pci0000:00/0000:00:02.0")));
        assert_eq!(tree.resolve(Path::new("a")), None);
        assert_eq!(tree.find(Path::new("sys/bus/pci/devices/0000:00:02.0/class/x")), None);
    }

    #[test]
    fn nothing_is_put_outside_or_below_a_file() {
        let mut tree = Tree::default();
        tree.put(Path::new("../../etc/x"), Entry::File(Vec::new()));
        tree.put(Path::new("etc/x/y"), Entry::File(Vec::new()));
        let paths: Vec<&Path> = tree.entries().map(|(path, _)| path).collect();
        assert_eq!(paths, [Path::new("etc"), Path::new("etc/x")]);
        tree.put(Path::new("etc"), Entry::File(b"no".to_vec()));
        assert!(tree.find(Path::new("etc/x")).is_some(), "a directory stays one");
    }
}
