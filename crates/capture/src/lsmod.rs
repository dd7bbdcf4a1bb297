//! `lsmod` (kmod): a line per module with its size, its count of users and their names. A `grep`
//! behind it leaves a part, without the head.

use gpuio_record::facts::ModuleFacts;

use crate::prompt::{command_of, is_dots};
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, merge};

pub(crate) const KIND: Kind = Kind {
    command: "lsmod",
    gives: "kernel modules that are loaded; also behind a `grep`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let asked = text.lines().any(|line| is_head(line) || words(line).is_some());
        is_list(text)
            || asked && (text.lines().any(|line| module(line).is_some()) || is_empty(text))
    },
    add,
};

/// Modules that no kernel has built in: one that is not listed is not loaded.
const NEVER_BUILT_IN: [&str; 4] = ["nvidia", "nvidia_fs", "nvidia_peermem", "nv_peer_mem"];

fn is_head(line: &str) -> bool {
    line.split_whitespace().eq(["Module", "Size", "Used", "by"])
}

/// The words of the command at a prompt that has `lsmod`.
fn words(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = command_of(line)?.split_whitespace().collect();
    words.iter().any(|word| word.rsplit('/').next() == Some("lsmod")).then_some(words)
}

/// Whether all lines are those of modules, whose sizes are whole pages: a part of the list that was
/// saved without command and head.
fn is_list(text: &str) -> bool {
    let pages = |line: &str| {
        let size = module(line).and_then(|_| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        size.is_some_and(|size| size > 0 && size.is_multiple_of(4096))
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(pages)
}

/// Whether the command printed nothing: an empty prompt follows it.
fn is_empty(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.next().and_then(words).is_some()
        && lines.next().is_some_and(|line| line.trim_end().ends_with(['$', '#', '%', '>']))
}

/// `nvidia_peermem 16384 0`, `ib_core 442368 2 rdma_cm,ib_uverbs`.
fn module(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (&[name, size, users] | &[name, size, users, _]) = words.as_slice() else { return None };
    let is_number = |word: &str| word.parse::<i64>().is_ok();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    (begins && name.chars().all(plain) && is_number(size) && is_number(users)).then_some(name)
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let (mut listed, mut pattern) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        if let Some(words) = words(line) {
            pattern = shown(&words).or(pattern);
        } else if is_head(line) {
            continue;
        } else if let Some(name) = module(line) {
            if listed.len() == MOST_DEVICES {
                return Err(CaptureError::new(index, line, 0, "fewer modules"));
            }
            listed.push(name.replace('-', "_"));
        } else if is_dots(line) && !line.trim().is_empty() {
            pattern = None;
        } else if !line.trim().is_empty() && command_of(line).is_none() && !is_empty(text) {
            let wanted = "a module, like nvidia_fs 274432 0";
            captured.skip(CaptureError::new(index, line, 0, wanted));
        }
    }
    // Lines without their command may be cut from a longer list.
    let listed_all = |name: &str| {
        let parts = pattern.iter().flatten();
        parts.into_iter().any(|part| name.contains(part.as_str()))
    };
    let absent = NEVER_BUILT_IN.iter().filter(|name| listed_all(name)).copied();
    let absent: Vec<&str> = absent.filter(|name| !listed.iter().any(|one| one == name)).collect();
    for (name, loaded) in listed
        .iter()
        .map(|name| (name.as_str(), true))
        .chain(absent.into_iter().map(|name| (name, false)))
    {
        let name = name.to_owned();
        merge::module(&mut captured.machine, ModuleFacts { name, loaded, ..Default::default() });
    }
    Ok(())
}

/// The parts of names by which the command shows modules; an empty one where it shows all. `None`
/// where they are not plain.
fn shown(words: &[&str]) -> Option<Vec<String>> {
    let at = words.iter().position(|word| *word == "|");
    let Some(at) = at else { return Some(vec![String::new()]) };
    let (tool, rest) = words[at + 1..].split_first()?;
    let options: Vec<&str> = rest.iter().copied().filter(|word| word.starts_with('-')).collect();
    let is_known = |option: &&str| option[1..].chars().all(|letter| "iEe".contains(letter));
    if !["grep", "egrep"].contains(tool) || !options.iter().all(is_known) {
        return None;
    }
    let has = |letter: char| options.iter().any(|option| option.contains(letter));
    let patterns: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
    if patterns.is_empty() || !has('e') && patterns.len() > 1 {
        return None;
    }
    let bar = if *tool == "egrep" || has('E') { "|" } else { "\\|" };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let parts = patterns.iter().flat_map(|one| one.trim_matches(['"', '\'']).split(bar));
    let folded = |part: &str| if has('i') { part.to_lowercase() } else { part.to_owned() };
    parts.map(|part| part.chars().all(plain).then(|| folded(part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, bool)> {
        let mut captured = Captured::default();
        crate::read("text", text, &mut captured).unwrap();
        let modules = captured.machine.modules.into_iter();
        modules.map(|module| (module.name, module.loaded)).collect()
    }

    #[test]
    fn a_module_that_a_grep_would_show_is_absent_and_others_are_unknown() {
        let lines = "nvidia_uvm 1523712 0\nnvidia 5659 4 nvidia_uvm,gdrdrv\nib_core 44 1 mlx5_ib\n";
        let all = read(&format!("[a@b ~]$ lsmod | grep nvidia\n{lines}[a@b ~]$ \n"));
        let is = |name: &str| all.iter().find(|one| one.0 == name).map(|one| one.1);
        let names = ["nvidia", "ib_core", "nvidia_fs", "nvidia_peermem", "nv_peer_mem", "nvme"];
        let states = [Some(true), Some(true), Some(false), Some(false), None, None];
        assert_eq!(names.map(is), states, "{all:?}");
        let none = "$ lsmod | grep nvidia_fs\n$ uname -r\n6.8.0\n";
        assert_eq!(read(none), [("nvidia_fs".to_owned(), false)]);
        let cut = "$ uname -r\n6.8.0\n$ lsmod | grep nvidia_fs\n";
        assert_eq!(read(cut), [], "its output may be cut");
        assert_eq!(read(&format!("{cut}$ \n")), [("nvidia_fs".to_owned(), false)]);
        let rows = "nvme_core 135168 4 nvme\nnvidia 8192 0\nmbcache 16384 1 ext4\n";
        for command in [
            "egrep 'nvidia|nvme'",
            "grep -E \"nvme|nvidia\"",
            "grep 'nvidia\\|nvme'",
            "grep -i -e nvme -e NVIDIA",
        ] {
            let all = read(&format!("$ lsmod | {command}\n{rows}$ \n"));
            assert!(all.contains(&("nvidia_fs".to_owned(), false)), "{command}: {all:?}");
            assert!(!all.iter().any(|one| one.0 == "nv_peer_mem"), "{command}: {all:?}");
        }
        for command in ["grep 'nvidia|nvme'", "grep nvidia nvme", "grep -v nvme", "grep NVIDIA"] {
            let all = read(&format!("$ lsmod | {command}\n{rows}$ \n"));
            assert!(all.iter().all(|one| one.1), "{command}: {all:?}");
        }
        for text in [rows.to_owned(), format!("Module                  Size  Used by\n{rows}")] {
            let all = read(&text);
            let loaded = all.iter().filter(|one| one.1).count();
            assert!(loaded == 3 && all.len() == 3, "{text}: {all:?}");
        }
        let whole = read(&format!("$ lsmod\nModule  Size  Used by\n{lines}"));
        assert!(whole.contains(&("nv_peer_mem".to_owned(), false)), "{whole:?}");
        assert!(!whole.iter().any(|one| one.0 == "nvme"), "it may be built in: {whole:?}");
        for cut in [
            format!("Module  Size  Used by\n{lines}"),
            format!("$ lsmod | tail -n 3\n{lines}"),
            format!("$ lsmod\n{lines}...\n"),
        ] {
            let all = read(&cut);
            assert!(all.iter().all(|one| one.1) && all.len() == 3, "{cut}: {all:?}");
        }
    }
}
