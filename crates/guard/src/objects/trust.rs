//! Which files may be loaded as code, and which directories may hold them.
//!
//! Who can write to an object, or put another one under its name, runs code as this user. So an
//! object counts only if it, and every directory on the way from `/` to it, belongs to root or to
//! this user, and nobody else can write to any of them. Then its name can't change its meaning
//! between the check, which begins at `/`, and the loading. A sticky directory (`/tmp`) may lie on
//! the way, since its entries stay their owners'; but not around the object itself, since there
//! others can give names to files that they did not make (link(2)).
//!
//! In secure execution ([`crate::objects::environment`]) a caller's own files count as foreign.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::objects::environment;

/// Why a file is not loaded.
#[derive(Debug)]
pub enum Refusal {
    /// It can't be found or looked at.
    Unreadable(PathBuf, io::Error),
    /// Somebody else can change it. In words: what, and who.
    Foreign(PathBuf, String),
}

impl Refusal {
    /// Whether there is no such file.
    pub fn is_absent(&self) -> bool {
        matches!(self, Refusal::Unreadable(_, error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The loader's words.
            Refusal::Unreadable(path, error) if self.is_absent() => {
                write!(f, "{}: cannot open shared object file: {error}", path.display())
            }
            Refusal::Unreadable(path, error) => write!(f, "{}: {error}", path.display()),
            Refusal::Foreign(path, why) if environment::is_secure() => write!(
                f,
                "{} is not loaded: {why}. This program has rights that its caller lacks, so it \
                 loads only what its own user and root alone can change",
                path.display()
            ),
            Refusal::Foreign(path, why) => write!(
                f,
                "{} is not loaded: {why}. Only what root and you alone can change is loaded: copy \
                 it to a directory of yours, change its owner or mode, or, if you trust it, add \
                 its directory to LD_LIBRARY_PATH",
                path.display()
            ),
        }
    }
}

/// The file to load for a path, links resolved.
///
/// # Errors
/// There is none, or somebody else can change it.
pub fn object(path: &Path) -> Result<PathBuf, Refusal> {
    let unreadable = |error| Refusal::Unreadable(path.to_owned(), error);
    let file = std::fs::canonicalize(path).map_err(unreadable)?;
    let user = User::of_this_process();
    if is_searched(path) || is_searched(&file) {
        return Ok(file);
    }
    let foreign = |why| Refusal::Foreign(path.to_owned(), why);
    let directory = file.parent().unwrap_or(Path::new("/"));
    user.owns_way_to(directory).map_err(foreign)?;
    user.alone_writes_to(directory, &look(directory).map_err(foreign)?).map_err(foreign)?;
    let facts = std::fs::symlink_metadata(&file).map_err(unreadable)?;
    if !facts.is_file() {
        return Err(foreign("it is no regular file".to_owned()));
    }
    user.alone_writes_to(&file, &facts).map_err(foreign)?;
    Ok(file)
}

/// Whether names in this directory belong to those who own them: it and every directory above it
/// is root's or this user's, and others can't write there, or it is sticky. The path is absolute
/// and has no links.
///
/// # Errors
/// In words: which directory, and who can change it.
pub fn directory(path: &Path) -> Result<(), String> {
    User::of_this_process().owns_way_to(path)
}

/// A path, every name of which belongs to root or to this user.
#[derive(Debug)]
pub struct Way {
    /// The part that is there, without links.
    pub there: PathBuf,
    /// Names below it that are not there.
    pub absent: Vec<OsString>,
}

/// Follows an absolute path name by name, so that a link on it counts only where it, and the
/// directory it lies in, belong to root or to this user.
///
/// # Errors
/// lstat(2), readlink(2), `ELOOP`, `ENOENT` for `..` behind a name that is not there;
/// `PermissionDenied` where another user can change a name, in words.
pub fn way(path: &Path) -> io::Result<Way> {
    let user = User::of_this_process();
    let foreign = |why| io::Error::new(ErrorKind::PermissionDenied, why);
    let words = |path: &Path| {
        let words = path.components().map(|one| one.as_os_str().to_owned());
        words.collect::<VecDeque<OsString>>()
    };
    let (mut there, mut rest, mut links) = (PathBuf::from("/"), words(path), 0);
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            there.pop();
            continue;
        }
        // The name `/` leads there.
        let at = there.join(&name);
        let facts = match std::fs::symlink_metadata(&at) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if rest.iter().any(|name| name == "..") {
                    return Err(error);
                }
                user.owns_way_to(&there).map_err(foreign)?;
                rest.push_front(name);
                return Ok(Way { there, absent: rest.into() });
            }
            found => found?,
        };
        user.owns(&at, &facts).map_err(foreign)?;
        if facts.is_symlink() {
            user.owns_way_to(&there).map_err(foreign)?;
            links += 1;
            if links > MOST_LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            let to = words(&std::fs::read_link(&at)?);
            to.into_iter().rev().for_each(|word| rest.push_front(word));
        } else {
            there = at;
        }
    }
    user.owns_way_to(&there).map_err(foreign)?;
    Ok(Way { there, absent: Vec::new() })
}

/// As many as the kernel follows (path_resolution(7)).
const MOST_LINKS: u32 = 40;

/// Whether a file lies in a directory of `LD_LIBRARY_PATH`: there the loader looks for every object
/// of every program.
fn is_searched(file: &Path) -> bool {
    let Some(directory) = file.parent().filter(|at| at.is_absolute()) else { return false };
    environment::paths("LD_LIBRARY_PATH").iter().any(|listed| {
        listed == directory || std::fs::canonicalize(listed).is_ok_and(|at| at == directory)
    })
}

fn look(path: &Path) -> Result<Metadata, String> {
    std::fs::symlink_metadata(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The user whose files count.
#[derive(Debug, Clone)]
struct User {
    /// This process's effective user, unless that is the caller whose rights it exceeds.
    own: Option<u32>,
    /// The group of which this user is the only member, if there is one.
    group: Option<u32>,
    /// The user that stands for all who have no number in this user namespace, root among them.
    unmapped: Option<u32>,
}

impl User {
    fn of_this_process() -> User {
        let (user, caller) = (rustix::process::geteuid(), rustix::process::getuid());
        let own = (!environment::is_secure() || user != caller).then_some(user.as_raw());
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let group = rustix::process::getegid().as_raw();
        let private = own
            .is_some_and(|user| is_private(group, user, &read("/etc/passwd"), &read("/etc/group")));
        let overflow = read("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(65534);
        let unmapped = is_unmapped(overflow, &read("/proc/self/uid_map")).then_some(overflow);
        User { own, group: private.then_some(group), unmapped }
    }

    fn owns_way_to(&self, directory: &Path) -> Result<(), String> {
        let mut way: Vec<&Path> = directory.ancestors().collect();
        way.reverse();
        for at in way {
            let facts = look(at)?;
            if !facts.is_dir() {
                return Err(format!("{} is no directory", at.display()));
            }
            self.owns(at, &facts)?;
            let sticky = facts.mode() & 0o1000 != 0;
            if !sticky {
                self.alone_writes_to(at, &facts)?;
            }
        }
        Ok(())
    }

    fn owns(&self, path: &Path, facts: &Metadata) -> Result<(), String> {
        let owner = facts.uid();
        let systems = self.unmapped == Some(owner) && is_systems(path);
        if owner == 0 || self.own == Some(owner) || systems {
            return Ok(());
        }
        Err(format!("{} belongs to user {owner}", path.display()))
    }

    fn alone_writes_to(&self, path: &Path, facts: &Metadata) -> Result<(), String> {
        self.owns(path, facts)?;
        let mode = facts.mode() & 0o7777;
        let by_group = mode & 0o020 != 0 && !self.is_private_group(path, facts);
        if by_group || mode & 0o002 != 0 {
            return Err(format!("others may write to {} (mode {mode:04o})", path.display()));
        }
        Ok(())
    }

    /// Whether the group is this user alone. With an access control list the mode's group bits are
    /// those of everyone in the list (acl(5)).
    fn is_private_group(&self, path: &Path, facts: &Metadata) -> bool {
        let listed = rustix::fs::lgetxattr(path, "system.posix_acl_access", &mut [0_u8; 0]);
        self.group == Some(facts.gid()) && listed.is_err()
    }
}

/// Whether a group has this user as its only member, as distributions make one for each user: by
/// the user's name, and no account but the user's has it.
fn is_private(group: u32, user: u32, accounts: &str, groups: &str) -> bool {
    let number = |field: Option<&&str>| field.and_then(|text| text.parse::<u32>().ok());
    let split = |line| str::split(line, ':').collect::<Vec<&str>>();
    let accounts: Vec<Vec<&str>> = accounts.lines().map(split).collect();
    let mut named = accounts.iter().filter(|row| number(row.get(2)) == Some(user));
    let Some(name) = named.next().and_then(|row| row.first()) else { return false };
    let others = accounts
        .iter()
        .any(|row| number(row.get(3)) == Some(group) && number(row.get(2)) != Some(user));
    let mut rows = groups.lines().map(split).filter(|row| number(row.get(2)) == Some(group));
    let alone = rows.next().is_some_and(|row| {
        let members = row.get(3).copied().unwrap_or_default();
        row.first() == Some(name) && (members.is_empty() || members == *name)
    });
    alone && rows.next().is_none() && !others
}

/// Whether a user namespace gives this number to none of its users (user_namespaces(7)).
fn is_unmapped(user: u32, map: &str) -> bool {
    let ranges: Vec<(u64, u64)> = map
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(|word| word.parse::<u64>().ok());
            let (first, _, count) = (words.next()??, words.next()??, words.next()??);
            Some((first, count))
        })
        .collect();
    let user = u64::from(user);
    !ranges.is_empty()
        && ranges.iter().all(|(first, count)| user < *first || user - first >= *count)
}

/// Directories that are root's on every system: `/`, what lies in it, and the distribution's own.
fn is_systems(path: &Path) -> bool {
    path.components().count() <= 2 || path.starts_with("/usr") || path.starts_with("/opt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_if_it_is_the_users_own_and_nobody_elses() {
        let accounts = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000:A:/home/ann:/bin/sh\n\
                        ben:x:1001:1001::/home/ben:/bin/sh\nlab:x:1002:100::/:/bin/sh\n";
        let groups = "root:x:0:\nusers:x:100:\nann:x:1000:\nben:x:1001:ann\nlab:x:1002:lab\n";
        assert!(is_private(1000, 1000, accounts, groups));
        assert!(is_private(1002, 1002, accounts, groups));
        // Another member; another name; another account's first group; none; listed twice.
        assert!(!is_private(1001, 1001, accounts, groups));
        assert!(!is_private(100, 1000, accounts, groups));
        let shared = accounts.replace("1001:1001", "1001:1000");
        assert!(!is_private(1000, 1000, &shared, groups));
        assert!(!is_private(1000, 1000, "", ""));
        assert!(!is_private(1000, 1000, accounts, &format!("{groups}ann:x:1000:ben\n")));
    }

    #[test]
    fn a_user_without_a_number_in_the_namespace_is_known_by_the_map() {
        assert!(!is_unmapped(65534, "         0          0 4294967295\n"));
        assert!(!is_unmapped(65534, "0 1000 1\n1 100000 65536\n"));
        assert!(is_unmapped(65534, "         0       1000          1\n"));
        assert!(!is_unmapped(65534, ""));
        for (path, systems) in
            [("/", true), ("/tmp", true), ("/usr/lib/a", true), ("/home/a", false)]
        {
            assert_eq!(is_systems(Path::new(path)), systems, "{path}");
        }
    }
}
