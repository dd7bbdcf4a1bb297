//! Host names in a text, and the lines that belong to each.
//!
//! Titles name machines too, as `## Node B` or `=== host2 ===`: where no prompt names a host, and
//! two titles or more differ only in what stands beside the same word for a machine.

use std::collections::{BTreeMap, BTreeSet};

use crate::{kind_of, paste, prompt};
use gpuio_base::measured::iostat;

/// The lines of each host, in the order of the hosts: other lines are blank, so that each stays
/// where it is. Lines above the first name have none.
pub(super) fn sections(text: &str) -> Vec<(Option<String>, String)> {
    if let Some(parted) = by_prefix(text) {
        return parted;
    }
    let lines: Vec<&str> = text.lines().collect();
    let (mut hosts, mut heads) = of_lines(&lines, host_of_line);
    if hosts.iter().all(Option::is_none) && has_several_titles(&lines) {
        (hosts, heads) = of_lines(&lines, of_title);
        let titles: Vec<String> = hosts.iter().flatten().cloned().collect();
        hosts.iter_mut().flatten().for_each(|host| *host = first_of_machine(host, &titles));
    }
    if hosts.iter().all(Option::is_none) {
        (hosts, heads) = of_lines(&lines, said_by_a_tool);
        heads.retain(|at| plain(lines[*at].trim()).is_some());
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
        let is_own = |at: usize| hosts[at] == *wanted && !heads.contains(&at);
        let own = (0..lines.len()).map(|at| if is_own(at) { lines[at] } else { "" });
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

/// The host of each line, the last one that a line named; and the lines that only name a host, with
/// rulers beside them.
fn of_lines(
    lines: &[&str],
    name: fn(&[&str], usize) -> Option<String>,
) -> (Vec<Option<String>>, BTreeSet<usize>) {
    let mut current: Option<String> = None;
    let mut heads = BTreeSet::new();
    let hosts = (0..lines.len()).map(|at| {
        if let Some(host) = name(lines, at) {
            current = Some(host);
            if of_prompt(lines[at].trim()).is_none() {
                let beside = at.saturating_sub(1)..(at + 2).min(lines.len());
                heads.extend(beside.filter(|one| *one == at || prompt::is_ruler(lines[*one])));
            }
        }
        current.clone()
    });
    (hosts.collect(), heads)
}

/// Whether titles name several machines by one word: `Node A` and `Node B`.
fn has_several_titles(lines: &[&str]) -> bool {
    let titles: BTreeSet<String> = (0..lines.len()).filter_map(|at| of_title(lines, at)).collect();
    let stem = |title: &str| {
        MACHINES.iter().find(|word| title.to_ascii_lowercase().contains(*word)).copied()
    };
    let stems: BTreeSet<Option<&str>> = titles.iter().map(|title| stem(title)).collect();
    titles.len() > 1 && stems.len() == 1
}

/// The first title that names a title's machine: `gdsio on node01` is of `node01`.
fn first_of_machine(title: &str, titles: &[String]) -> String {
    let own = machine_in(title);
    let same = |other: &&String| own.is_some() && machine_in(other) == own;
    titles.iter().find(same).map_or(title, String::as_str).to_owned()
}

/// The words of a title that name its machine: `node01`, `node b`.
fn machine_in(title: &str) -> Option<String> {
    let lower = title.to_ascii_lowercase();
    let words: Vec<&str> = lower.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect();
    let is_machine = |word: &&str| MACHINES.iter().any(|one| word.contains(one));
    let at = words.iter().position(is_machine)?;
    let rest =
        |word: &str| MACHINES.iter().fold(word.to_owned(), |rest, one| rest.replace(one, ""));
    if words[at].contains(|c: char| c.is_ascii_digit()) || rest(words[at]).contains(['-', '_']) {
        return Some(words[at].to_owned());
    }
    let next = words.get(at + 1)?;
    let numbers = next.len() == 1 || next.contains(|c: char| c.is_ascii_digit());
    numbers.then(|| format!("{} {next}", words[at]))
}

/// Words for a machine in titles.
const MACHINES: [&str; 9] =
    ["node", "host", "server", "machine", "client", "worker", "workstation", "dgx", "hgx"];

/// A title that names a machine: decorated, or with a colon behind it.
fn of_title(lines: &[&str], at: usize) -> Option<String> {
    let whole = lines[at].trim();
    let is_sign = |c: char| "#=*<>-[]_~".contains(c);
    let bare = whole.trim_matches(|c: char| is_sign(c) || c.is_whitespace() || c == ':');
    let decorated = whole.starts_with("# ")
        || ["##", "**", "==", "--", "__"].iter().any(|sign| whole.starts_with(sign))
        || whole.starts_with('[') && whole.ends_with(']')
        || lines.get(at + 1).is_some_and(|below| prompt::is_ruler(below));
    let unindented = !lines[at].starts_with(char::is_whitespace);
    let mut words = bare.split_whitespace();
    // `node 0 cpus:` and `node distances:` are numactl's.
    let count = words.clone().count();
    let first = count < 6 && decorated || count < 4 && whole.ends_with(':') && unindented;
    let lower = bare.to_ascii_lowercase();
    let named = words.any(|word| {
        let word = word.to_ascii_lowercase();
        MACHINES.iter().any(|one| word.contains(one))
    });
    let numactls = ["numa", "cpus", "size", "free", "distances"];
    let is = first
        && named
        && bare.len() < 48
        && !numactls.iter().any(|word| lower.contains(word))
        && bare.chars().all(|c| c.is_ascii_alphanumeric() || " -_.()".contains(c));
    is.then(|| bare.to_owned())
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
    // `[1] 14:04:31 [SUCCESS] node1`, pssh's.
    let pssh = ["[SUCCESS] ", "[FAILURE] "].iter().find_map(|mark| line.split_once(mark));
    if let Some((_, host)) = pssh {
        return plain(host.split_whitespace().next().unwrap_or_default());
    }
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

/// Names in the output of `hostname` and `uname -a`, and in `iostat`'s first line.
fn said_by_a_tool(lines: &[&str], at: usize) -> Option<String> {
    let line = lines[at].trim();
    let above = at.checked_sub(1).and_then(|above| prompt::command_of(lines[above]));
    if above.is_some_and(|command| ["hostname", "hostname -s", "uname -n"].contains(&command)) {
        return plain(line);
    }
    if let Some((_, host)) = iostat::release_and_host_of(line) {
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

/// A text whose lines begin with a host's name, as `pdsh` prints them, or with a task's number
/// (`srun -l`). Prompts and words have none; words between lines of one name are a tool's output.
fn by_prefix(text: &str) -> Option<Vec<(Option<String>, String)>> {
    let lines: Vec<&str> = text.lines().collect();
    let task = |name: &str| {
        let number = !name.is_empty() && name.len() < 5 && name.bytes().all(|c| c.is_ascii_digit());
        number.then(|| format!("task {name}"))
    };
    let named = |line: &str| -> Option<(String, usize)> {
        let (name, _) = line.split_once(':')?;
        Some((plain(name).or_else(|| task(name))?, name.len() + 1))
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let all = lines.iter().filter_map(|line| named(line));
    all.for_each(|(name, _)| *counts.entry(name).or_default() += 1);
    // A line of each host alone is enough where none has more.
    let most = counts.values().max().copied().unwrap_or(0);
    // Names of several lines that differ in numbers alone are hosts', with one line too.
    let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let repeated = |(name, count): (&String, &usize)| (*count > 1).then(|| stem(name));
    let stems: BTreeSet<String> = counts.iter().filter_map(repeated).collect();
    let one_of = |name: &String| stem(name) != *name && stems.contains(&stem(name));
    counts.retain(|name, count| *count > 1 || most == 1 || one_of(name));
    if most == 1 && counts.len() < 2 {
        return None;
    }
    let own = |line: &str| named(line).filter(|(name, _)| counts.contains_key(name));
    let first = lines.iter().position(|line| own(line).is_some())?;
    let last = lines.iter().rposition(|line| own(line).is_some())?;
    let others = lines[first..=last].iter();
    let others = others.filter(|line| !line.trim().is_empty() && own(line).is_none());
    let words: Vec<&str> = others.filter(|line| !prompt::is_prompt(line)).copied().collect();
    let are_words = counts.len() > 1 && kind_of(&paste::plain(&words.join("\n"))).is_none();
    if counts.len() > super::MOST || !words.is_empty() && !are_words {
        return None;
    }
    let body = |wanted: &str| {
        let rows = lines.iter().map(|line| match own(line) {
            Some((name, at)) if name == wanted => {
                line[at..].strip_prefix(' ').unwrap_or(&line[at..])
            }
            _ => "",
        });
        rows.collect::<Vec<_>>().join("\n")
    };
    let mut parted: Vec<(Option<String>, String)> =
        counts.keys().map(|name| (Some(name.clone()), body(name))).collect();
    // Many tools print a word and a colon: without them each part must be some tool's output.
    let understood = parted.iter().all(|(_, body)| kind_of(&paste::plain(body)).is_some());
    let is = understood && kind_of(text).is_none_or(|_| parted.len() > 1);
    let rest = lines.iter().enumerate();
    let rest = rest.map(|(at, line)| if (first..=last).contains(&at) { "" } else { line });
    let rest = rest.collect::<Vec<_>>().join("\n");
    if kind_of(&paste::plain(&rest)).is_some() {
        parted.push((None, rest));
    }
    is.then_some(parted)
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
    bodies(text, outputs(&paste::plain(text)))
}

fn outputs(plain: &str) -> Vec<(usize, usize)> {
    parted(plain, |lines, at| {
        prompt::begins(lines, at) || is_title(lines[at]) || is_sentence(lines[at])
    })
}

/// The text parted in each way in which people part machines, in the order in which they are to be
/// tried: at headings, the highest ones first, at decorated lines, sentences and rulers, and where
/// the same tools begin again.
pub(super) fn chapters(text: &str) -> Vec<Vec<String>> {
    let plain = paste::plain(text);
    let level = |line: &str| line.len() - line.trim_start_matches('#').len();
    let headings = (1..5).map(|most| {
        parted(&plain, move |lines, at| is_title(lines[at]) && level(lines[at]) <= most)
    });
    let kinds: [fn(&[&str], usize) -> bool; 4] = [
        |lines, at| is_decorated(lines[at]),
        |lines, at| is_sentence(lines[at]),
        |lines, at| is_words(lines[at]),
        |lines, at| prompt::is_ruler(lines[at]) && lines[at - 1].trim().is_empty(),
    ];
    let mut ways: Vec<Vec<(usize, usize)>> = headings.collect();
    ways.extend(kinds.iter().map(|begins| parted(&plain, begins)));
    ways.extend(turns(&plain));
    ways.retain(|parts| parts.len() > 1);
    ways.dedup();
    ways.into_iter().map(|parts| bodies(text, parts)).collect()
}

/// The outputs in turns: each begins with the same tool, and has each tool once.
fn turns(plain: &str) -> Option<Vec<(usize, usize)>> {
    let lines: Vec<&str> = plain.lines().collect();
    let mut turns: Vec<((usize, usize), Vec<&str>)> = Vec::new();
    for (from, to) in outputs(plain) {
        let tool = kind_of(&lines[from..to].join("\n"))?.command;
        match turns.last_mut() {
            Some(((_, end), tools)) if !tools.contains(&tool) => {
                *end = to;
                tools.push(tool);
            }
            _ => turns.push(((from, to), vec![tool])),
        }
    }
    let same = turns.iter().all(|(_, tools)| tools[0] == turns[0].1[0]);
    same.then(|| turns.into_iter().map(|(lines, _)| lines).collect())
}

/// The lines from and to which each part goes.
fn parted(plain: &str, begins: impl Fn(&[&str], usize) -> bool) -> Vec<(usize, usize)> {
    const MOST: usize = 64;
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
    parts
}

/// Other lines are blank in each part, so that each stays where it is.
fn bodies(text: &str, parts: Vec<(usize, usize)>) -> Vec<String> {
    let whole: Vec<&str> = text.lines().collect();
    let body = |(from, to): (usize, usize)| {
        let own = whole.iter().enumerate();
        let own = own.map(|(at, line)| if (from..to).contains(&at) { *line } else { "" });
        own.collect::<Vec<_>>().join("\n")
    };
    parts.into_iter().map(body).collect()
}

/// A heading in Markdown.
fn is_title(line: &str) -> bool {
    let line = line.trim();
    let several = line.split_whitespace().nth(1).is_some();
    line.starts_with('#') && several && !line.starts_with("# gpu") && !line.starts_with("# Idx")
}

/// `=== second ===`, `**Second**`, `[second]`.
fn is_decorated(line: &str) -> bool {
    let line = line.trim();
    let marks = [("==", "=="), ("--", "--"), ("**", "**"), ("__", "__"), ("[", "]"), ("<", ">")];
    marks.iter().any(|(left, right)| line.starts_with(left) && line.ends_with(right))
        && line.contains(|c: char| c.is_ascii_alphabetic())
}

/// Words alone, as `and on the other node`.
fn is_words(line: &str) -> bool {
    let line = line.trim();
    let inside = |c: char| c.is_alphabetic() || " ,.:;'!?()-".contains(c);
    line.split_whitespace().nth(1).is_some() && line.chars().all(inside)
}

fn is_sentence(line: &str) -> bool {
    let line = line.trim();
    let words = line.split_whitespace().count();
    words > 1
        && words < 40
        && line.starts_with(|c: char| c.is_ascii_uppercase())
        && line.contains(|c: char| c.is_ascii_lowercase())
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
    fn titles_of_one_machine_are_one() {
        let rows = |disk: &str| format!("NAME TYPE\n{disk} disk\n");
        let names = |titles: [&str; 4]| -> Vec<String> {
            let text: String = titles.map(|title| format!("{title}:\n{}", rows("sda"))).concat();
            sections(&text).into_iter().filter_map(|(host, _)| host).collect()
        };
        let other = ["node01", "node02", "gdsio on node01", "gdsio on node02"];
        assert_eq!(names(other), ["node01", "node02"]);
        assert_eq!(names(["Node A", "Node B", "Node A again", "fio, Node B"]).len(), 2);
        assert_eq!(names(["DGX A100", "DGX H100", "DGX A100 drives", "DGX B200"]).len(), 3);
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
        let mixed = "$ pdsh -w n[1-3] 'lsmod | grep nvidia_fs; cat /proc/cmdline'\n\
            n1: nvidia_fs             262144  0\n\
            n2: BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro intel_iommu=on\n\
            n1: BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro intel_iommu=off\n";
        assert_eq!(sections(mixed).len(), 2);
        let ansible = "n1 | CHANGED | rc=0 >>\nNAME TYPE\nsda disk\nn2 | CHANGED | rc=0 >>\nx\n";
        assert_eq!(sections(ansible).len(), 2);
        assert_eq!(sections("Architecture: x86_64\nCPU(s): 4\n").len(), 1);
    }
}
