//! Host names in a text, and the lines that belong to each.

use std::collections::BTreeMap;

use crate::{kind_of, paste, prompt};
use gpuio_base::measured::iostat;

/// The lines of each host, in the order of the hosts: other lines are blank, so that each stays
/// where it is. Lines above the first name have none.
pub(super) fn sections(text: &str) -> Vec<(Option<String>, String)> {
    if let Some(parted) = by_prefix(text) {
        return parted;
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut hosts = of_lines(&lines, host_of_line);
    if hosts.iter().all(Option::is_none) {
        hosts = of_lines(&lines, said_by_a_tool);
    }
    let mut order: Vec<Option<String>> = Vec::new();
    for host in &hosts {
        if !order.contains(host) {
            order.push(host.clone());
        }
    }
    // Lines above a text's only host are its own.
    let named: Vec<&Option<String>> = order.iter().filter(|one| one.is_some()).collect();
    if named.len() < 2 {
        return vec![(named.first().copied().cloned().flatten(), text.to_owned())];
    }
    let body = |wanted: &Option<String>| {
        let own =
            lines.iter().zip(&hosts).map(|(line, host)| if host == wanted { line } else { "" });
        own.collect::<Vec<_>>().join("\n")
    };
    order
        .into_iter()
        .map(|host| {
            let own = body(&host);
            (host, own)
        })
        .collect()
}

/// The host of each line: the last one that a line named.
fn of_lines(lines: &[&str], name: fn(&[&str], usize) -> Option<String>) -> Vec<Option<String>> {
    let mut current: Option<String> = None;
    (0..lines.len())
        .map(|at| {
            if let Some(host) = name(lines, at) {
                current = Some(host);
            }
            current.clone()
        })
        .collect()
}

/// `dgx2.example.org` and `dgx2` are one; the name of a container is a number of its own.
fn plain(host: &str) -> Option<String> {
    let short = host.split('.').next().unwrap_or(host);
    let number = short.len() == 12 && short.bytes().all(|byte| byte.is_ascii_hexdigit());
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let whole = !short.is_empty() && short.chars().all(inside) && !is_common(short);
    (whole && !number).then(|| short.to_owned())
}

/// Words that stand where a host's name does, and name none.
fn is_common(word: &str) -> bool {
    let common =
        ["localhost", "host", "hostname", "root", "user", "bash", "sh", "bash-5", "machine"];
    common.contains(&word.to_ascii_lowercase().as_str())
        || word.bytes().all(|byte| byte.is_ascii_digit())
}

fn host_of_line(lines: &[&str], at: usize) -> Option<String> {
    let line = lines[at].trim();
    of_prompt(line).or_else(|| of_block(lines, at).filter(|_| !is_banner(lines, at)))
}

/// Whether a name between rulers is a title and no host: the prompt above it, of a host, starts no
/// parallel shell.
fn is_banner(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev().find(|line| of_prompt(line.trim()).is_some());
    let shells = ["clush", "pdsh", "dshbak", "ansible", "tail", "head"];
    above.is_some_and(|line| !shells.iter().any(|shell| line.contains(shell)))
}

/// The host of a prompt: `user@dgx2:~$ …`, `[user@dgx2 ~]$ …`, `dgx2> nvidia-smi …`, `node-1# isi
/// …`.
fn of_prompt(line: &str) -> Option<String> {
    let line = line.trim_start_matches(['>', ' ']);
    if let Some((before, rest)) = line.split_once('@') {
        let user = before.rsplit(['[', '(', ' ']).next().unwrap_or_default();
        let is_user = !user.is_empty()
            && user.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && before.len() < 40;
        let end = rest.find([':', ' ', ']', '#', '$', '>', '%'])?;
        // The directory stands between host and sign, without blanks.
        let sign = rest[end..].find(['$', '#', '%', '>']).filter(|sign| {
            let between = rest[end..end + sign].trim_matches([':', ' ', ']']);
            !between.contains(char::is_whitespace)
        });
        if let Some(sign) = sign.filter(|_| is_user && !rest[..end].contains('/')) {
            let behind = &rest[end + sign + 1..];
            // A prompt's sign has a blank or nothing behind it.
            if behind.is_empty() || behind.starts_with(' ') {
                return via_ssh(behind).or_else(|| plain(&rest[..end]));
            }
        }
    }
    let command = prompt::command_of(line)?;
    let before = line[..line.len() - command.len()].trim();
    let host = before.trim_end_matches(['>', '#', '$', '%', ' ']);
    via_ssh(command).or_else(|| plain(host.split([':', ' ']).next().unwrap_or_default()))
}

/// `ssh node2 nvidia-smi`.
fn via_ssh(command: &str) -> Option<String> {
    let mut words = command.trim().strip_prefix("ssh ")?.split_whitespace();
    let host = words.find(|word| !word.starts_with('-'))?;
    words.next()?;
    plain(host.rsplit('@').next().unwrap_or(host))
}

/// The head of a block of `dshbak`, `clush -b`, `ansible` or `head`: a name between rulers,
/// `node1 | CHANGED | rc=0 >>`, `==> node1 <==`.
fn of_block(lines: &[&str], at: usize) -> Option<String> {
    let line = lines[at].trim();
    let ruler = |at: Option<usize>| {
        let line = at.and_then(|at| lines.get(at)).map_or("", |line| line.trim());
        line.len() >= 8 && line.bytes().all(|byte| matches!(byte, b'-' | b'=' | b'*' | b'#'))
    };
    let one_word = !line.is_empty() && !line.contains(char::is_whitespace) && line.len() < 64;
    if one_word && ruler(at.checked_sub(1)) && ruler(at.checked_add(1)) {
        return plain(line);
    }
    let ansible = [" | CHANGED", " | SUCCESS", " | FAILED", " | UNREACHABLE"];
    if let Some(end) = ansible.iter().find_map(|mark| line.find(mark)) {
        return plain(&line[..end]);
    }
    let inside = line.strip_prefix("==> ").and_then(|line| line.strip_suffix(" <=="))?;
    // A directory of the host's name, or the name alone.
    match inside.rsplit_once('/') {
        Some((folder, _)) => plain(folder.rsplit('/').next().unwrap_or(folder)),
        None if !inside.contains('.') => plain(inside),
        None => None,
    }
}

/// Names in `uname -a` and in `iostat`'s first line.
fn said_by_a_tool(lines: &[&str], at: usize) -> Option<String> {
    let line = lines[at].trim();
    if let Some(host) = iostat::host_of(line) {
        return plain(host);
    }
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["Linux", host, release, rest @ ..] => {
            let numbered = release.starts_with(|c: char| c.is_ascii_digit());
            let kernel = rest.iter().any(|word| word.starts_with('#') || *word == "GNU/Linux");
            (numbered && kernel).then(|| plain(host)).flatten()
        }
        _ => None,
    }
}

/// A text whose lines all begin with a host's name, as `pdsh` prints them.
fn by_prefix(text: &str) -> Option<Vec<(Option<String>, String)>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut full = 0;
    for line in &lines {
        if line.trim().is_empty() {
            continue;
        }
        full += 1;
        let (name, _) = line.split_once(':').filter(|(name, _)| plain(name).is_some())?;
        *counts.entry(name).or_default() += 1;
    }
    if full < 2 || counts.len() > super::MOST || counts.values().any(|count| *count < 2) {
        return None;
    }
    let body = |wanted: &str| {
        let own = lines.iter().map(|line| match line.split_once(':') {
            Some((name, rest)) if name == wanted => rest.strip_prefix(' ').unwrap_or(rest),
            _ => "",
        });
        own.collect::<Vec<_>>().join("\n")
    };
    let parted: Vec<(Option<String>, String)> =
        counts.keys().map(|name| (plain(name), body(name))).collect();
    // Many tools print a word and a colon: without them each part must be some tool's output.
    let understood = parted.iter().all(|(_, body)| kind_of(&paste::plain(body)).is_some());
    (understood && kind_of(text).is_none_or(|_| parted.len() > 1)).then_some(parted)
}

/// Names that a tool prints as its host's below the prompt of a host of another name, with that
/// host's: the output of `hostname`, `uname` and `hostnamectl`, `iostat`'s first line. A prompt
/// below which tools print several names starts commands on other machines.
pub(super) fn other_names(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut pairs: Vec<(String, String)> = Vec::new();
    let (mut host, mut asked) = (None, false);
    for (at, line) in lines.iter().map(|line| line.trim()).enumerate() {
        if let Some(name) = of_prompt(line) {
            host = Some(name);
        }
        if let Some(command) = prompt::command_of(line) {
            let words: Vec<&str> = command.split_whitespace().collect();
            asked = matches!(words.as_slice(), ["hostname", ..] | ["uname", "-n"]);
            continue;
        }
        let alone = asked.then(|| plain(line)).flatten();
        let (_, is_static) = line.split_once("Static hostname:").unzip();
        let said = said_by_a_tool(&lines, at).or(is_static.and_then(|name| plain(name.trim())));
        asked &= line.is_empty();
        if let (Some(host), Some(other)) = (&host, alone.or(said))
            && *host != other
        {
            pairs.push((host.clone(), other));
        }
    }
    pairs.sort();
    pairs.dedup();
    let all = pairs.clone();
    pairs.retain(|(host, _)| all.iter().filter(|(other, _)| other == host).count() == 1);
    pairs
}

/// The text parted where a tool's output or a line of words between outputs begins.
pub(super) fn chunks(text: &str) -> Vec<String> {
    parted(text, |lines, at| {
        prompt::begins(lines, at) || is_title(lines[at]) || is_sentence(lines[at])
    })
}

/// The text parted at its titles.
pub(super) fn chapters(text: &str) -> Vec<String> {
    parted(text, |lines, at| is_title(lines[at]))
}

/// Other lines are blank in each part, so that each stays where it is.
fn parted(text: &str, begins: fn(&[&str], usize) -> bool) -> Vec<String> {
    const MOST: usize = 64;
    let plain = paste::plain(text);
    let lines: Vec<&str> = plain.lines().collect();
    let starts: Vec<usize> = (1..lines.len()).filter(|at| begins(&lines, *at)).collect();
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    for to in starts.into_iter().chain([lines.len()]) {
        let has_head = kind_of(&lines[from..to].join("\n")).is_some();
        match parts.last_mut() {
            // A part that no tool begins goes on with what stands above.
            Some((_, end)) if !has_head => *end = to,
            _ => parts.push((from, to)),
        }
        from = to;
    }
    parts.truncate(MOST);
    let whole: Vec<&str> = text.lines().collect();
    parts
        .into_iter()
        .map(|(from, to)| {
            let own = whole.iter().enumerate();
            own.map(|(at, line)| if (from..to).contains(&at) { *line } else { "" })
                .collect::<Vec<_>>()
                .join("\n")
        })
        .collect()
}

/// A heading in Markdown.
fn is_title(line: &str) -> bool {
    let line = line.trim();
    let several = line.split_whitespace().nth(1).is_some();
    line.starts_with('#') && several && !line.starts_with("# gpu") && !line.starts_with("# Idx")
}

fn is_sentence(line: &str) -> bool {
    let line = line.trim();
    let words = line.split_whitespace().count();
    words > 1
        && words < 40
        && line.starts_with(|c: char| c.is_ascii_uppercase())
        && line.ends_with([':', '.'])
        && line.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').count() * 10
            > line.chars().count() * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_name_hosts() {
        for (line, host) in [
            ("user@dgx2:~$ lspci -tv", Some("dgx2")),
            ("[root@node-7 ~]# lsblk", Some("node-7")),
            ("(base) joe@gpu01.example.org:/data$ nvidia-smi topo -m", Some("gpu01")),
            ("dgx2> gds_stats -p 1 -l 3", Some("dgx2")),
            ("F600GDSBench-1# isi network interfaces list", Some("F600GDSBench-1")),
            ("dgxuser@dgxa100:~$", Some("dgxa100")),
            ("root@3f2a9c0d1b2e:/workspace# lspci", None),
            ("$ ssh node2 nvidia-smi topo -m", Some("node2")),
            ("$ nvidia-smi", None),
            ("# lspci", None),
            ("mail joe@example.org about 5 $ of it", None),
            ("192.0.2.1@tcp:/fsname /fsx lustre rw,relatime 0 0", None),
        ] {
            assert_eq!(of_prompt(line).as_deref(), host, "{line}");
        }
    }

    #[test]
    fn prefixes_and_blocks_part_a_text() {
        let rows = "a1: NAME TYPE\na1: sda disk\na2: NAME TYPE\na2: sdb disk\n";
        let parted = sections(rows);
        assert_eq!(parted.len(), 2);
        assert_eq!(parted[0].1, "NAME TYPE\nsda disk\n\n");
        let block = "--------\nn1\n--------\nNAME TYPE\nsda disk\n--------\nn2\n--------\nNAME \
            TYPE\nsdb disk\n";
        let names: Vec<Option<String>> =
            sections(block).into_iter().map(|(host, _)| host).collect();
        assert_eq!(names, [None, Some("n1".to_owned()), Some("n2".to_owned())]);
        let ansible = "n1 | CHANGED | rc=0 >>\nNAME TYPE\nsda disk\nn2 | CHANGED | rc=0 >>\nx\n";
        assert_eq!(sections(ansible).len(), 2);
        assert_eq!(sections("Architecture: x86_64\nCPU(s): 4\n").len(), 1);
    }
}
