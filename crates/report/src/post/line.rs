//! Lines as they were before a terminal or an editor wrapped them, with their prompts.

use crate::foreign::gdsio;

/// A line; those that were wrapped, or joined by a backslash, are one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Line {
    /// Its first line in the text, from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) prompt: Option<Prompt>,
}

/// A command with the host of the prompt before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) host: Option<String>,
    /// From the program on.
    pub(crate) command: String,
}

/// Programs whose name begins a command.
const PROGRAMS: [&str; 38] = [
    "gdsio",
    "dd",
    "hdparm",
    "fio",
    "elbencho",
    "gds_stats",
    "iostat",
    "nvidia-smi",
    "dcgmi",
    "gdscheck",
    "gdscheck.py",
    "cat",
    "ls",
    "lspci",
    "lsblk",
    "lscpu",
    "lsscsi",
    "lstopo",
    "numactl",
    "nvme",
    "mount",
    "findmnt",
    "nfsstat",
    "ibdev2netdev",
    "ibstat",
    "ibstatus",
    "ibv_devinfo",
    "rdma",
    "ip",
    "dmesg",
    "mdadm",
    "df",
    "watch",
    "ssh",
    "uname",
    "echo",
    "export",
    "unset",
];
/// Programs that run another.
const BEFORE: [&str; 8] = ["sudo", "time", "numactl", "taskset", "nice", "env", "exec", "nohup"];
/// Commands that prepare the next one on the line.
const SETUP: [&str; 7] = ["export", "cd", "ulimit", "source", "sync", "sleep", "module"];
/// Programs that stand without a prompt where flags follow.
const PLAIN: [&str; 9] =
    ["gdsio", "fio", "elbencho", "gds_stats", "iostat", "nvidia-smi", "dcgmi", "dd", "hdparm"];
/// Lines that one result takes at most.
const MOST_WRAPPED: usize = 6;

pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    // Physical lines that the last one took so far, where it goes on.
    let mut open: Option<usize> = None;
    // Characters of the last physical line of a command.
    let mut width: Option<usize> = None;
    let mut above = "";
    for (index, raw) in text.lines().enumerate() {
        let is_whole = std::mem::replace(&mut above, raw).ends_with([' ', '\t']);
        let clean = clean(raw);
        let command = width.take().zip(lines.last_mut());
        if let Some((_, last)) = command.filter(|(width, last)| is_rest(last, *width, &clean)) {
            join(&mut last.text, is_whole, clean.trim());
            last.prompt = prompt(&last.text);
            width = Some(raw.chars().count());
            open = goes_on(&last.text).then_some(1);
            continue;
        }
        if let (Some(taken), Some(last)) = (open, lines.last_mut()) {
            let begins = !gdsio::continues(&last.text, &clean) || prompt(&clean).is_some();
            if last.text.ends_with('\\') {
                last.text.pop();
                last.text.push_str(clean.trim_start());
                open = goes_on(&last.text).then_some(taken + 1);
                last.prompt = prompt(&last.text);
                continue;
            }
            if !begins && !clean.trim().is_empty() && taken < MOST_WRAPPED {
                gdsio::join(&mut last.text, &clean);
                open = goes_on(&last.text).then_some(taken + 1);
                continue;
            }
        }
        open = goes_on(&clean).then_some(1);
        width = prompt(&clean).is_some().then(|| raw.chars().count());
        let prompt = prompt(&clean).or_else(|| inline(raw));
        lines.push(Line { number: index + 1, text: clean, prompt });
    }
    lines
}

/// Narrower lines were not cut by a terminal.
const NARROW: usize = 60;

/// Whether a line is the rest of a command that a page or a terminal has wrapped: it begins with a
/// flag, or a wide line stands above it and it has flags.
fn is_rest(command: &Line, width: usize, below: &str) -> bool {
    let load = |name: &str| ["gdsio", "fio", "elbencho", "dd", "hdparm"].contains(&name);
    let name =
        command.prompt.as_ref().and_then(|prompt| program(&prompt.command)).filter(|n| load(n));
    let Some(name) = name.filter(|_| !command.text.ends_with('\\') && prompt(below).is_none())
    else {
        return false;
    };
    let flag = |word: &str| {
        let bare = word.strip_prefix("--").or(word.strip_prefix('-')).unwrap_or_default();
        bare.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.ends_with(':')
            || name == "dd"
                && ["if=", "of=", "bs=", "count="].iter().any(|key| word.starts_with(key))
    };
    let mut words = below.split_whitespace();
    let is_open = command.text.ends_with(['=', ',']) && words.clone().count() == 1;
    words.clone().next().is_some_and(flag)
        || width >= NARROW && !below.contains(": ") && (is_open || words.any(flag))
}

/// Adds the rest of a command. A terminal cuts words too, and a page cuts at blanks.
fn join(command: &mut String, blank: bool, rest: &str) {
    let last = command.rsplit(' ').next().unwrap_or_default();
    let first = rest.split(' ').next().unwrap_or_default();
    let is_flag = |word: &str| word.starts_with('-') && word.len() > 1;
    let is_path = first.starts_with('/') && !last.contains('=');
    let is_value_next = is_flag(last) && !last.contains('=') && !first.contains('=');
    let is_operand = |word: &str| word.contains('=') && !word.starts_with('-');
    let are_of_dd = is_operand(last) && is_operand(first);
    if blank || is_flag(first) && !last.ends_with('-') || is_value_next || is_path || are_of_dd {
        command.push(' ');
    }
    command.push_str(rest);
}

/// Whether the next line may belong to this one.
fn goes_on(text: &str) -> bool {
    text.ends_with('\\') || gdsio::continues(text, "")
}

/// A line without decoration of a page or a terminal.
fn clean(raw: &str) -> String {
    let mut text = raw.replace(['\u{a0}', '\t'], " ");
    text.retain(|c| !matches!(c, '\r' | '`' | '\u{feff}'));
    let mut rest = text.trim_end();
    while let Some(quoted) = rest.strip_prefix("> ") {
        rest = quoted;
    }
    rest.replace("**", "").replace("&gt;", ">")
}

/// A load in the inline code of a sentence, ``**Write:** `gdsio -x 0 -I 1` ``, or in a table's
/// cell.
fn inline(raw: &str) -> Option<Prompt> {
    let cells = raw.trim_start().starts_with('|').then(|| raw.split('|')).into_iter().flatten();
    let code = raw.split('`').skip(1).step_by(2);
    code.chain(cells).filter_map(prompt).find(|prompt| {
        program(&prompt.command).is_some_and(|name| ["gdsio", "fio", "elbencho"].contains(&name))
    })
}

/// Signs of items of a list.
const BULLETS: [char; 9] = ['•', '‣', '▪', '◦', '●', '–', '*', '-', ' '];

/// The prompt of a line and the command behind it.
fn prompt(text: &str) -> Option<Prompt> {
    let signs = ["> ", "$ ", "# ", "% "];
    let places = signs.iter().filter_map(|sign| text.find(sign).map(|at| (at, sign.len())));
    if let Some((at, length)) = places.min() {
        let (head, command) = (text[..at].trim(), behind_setup(text[at + length..].trim()));
        // `(base) [user@host ~]$`: the name of an environment stands before it.
        let named = head.strip_prefix('(').and_then(|rest| rest.split_once(") "));
        let head =
            named.filter(|(name, _)| !name.contains(' ')).map_or(head, |(_, rest)| rest.trim());
        let short = head.len() < 60 && (head.starts_with('[') || !head.contains(' '));
        if short && program(command).is_some_and(|name| PROGRAMS.contains(&name)) {
            let is_word = text[at..].starts_with("> ");
            return Some(Prompt { host: host(head, is_word), command: command.to_owned() });
        }
    }
    let command = behind_setup(text.trim().trim_start_matches(BULLETS));
    let name = program(command).filter(|name| PLAIN.contains(name))?;
    let behind = command.split_once(name)?.1;
    let next = behind.split_whitespace().next().unwrap_or_default();
    let file = [".gdsio", ".fio", ".ini", ".job"].iter().any(|end| next.ends_with(end));
    let flags = next.starts_with('-') && next.len() > 1 || ["dmon", "topo"].contains(&next);
    let file = file || next.starts_with("if=") || next.starts_with("of=");
    (file || flags).then(|| Prompt { host: None, command: command.to_owned() })
}

/// A command of several on one line: `iostat -x 5 & fio …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'t> {
    pub(crate) command: &'t str,
    /// Whether the next one begins before it ends.
    pub(crate) is_beside: bool,
}

/// The commands of a line, as `;`, `&&`, `||` and `&` part them.
pub(crate) fn parts(line: &str) -> Vec<Part<'_>> {
    let mut all = Vec::new();
    let (mut from, bytes) = (0, line.as_bytes());
    let mut add = |from: usize, at: usize, is_beside| {
        let command = line[from..at].trim().trim_matches(['(', ')', '{', '}', ' ']);
        if !command.is_empty() {
            all.push(Part { command, is_beside });
        }
    };
    for (at, byte) in line.bytes().enumerate().filter(|(_, byte)| b";&|".contains(byte)) {
        let (before, behind) = (at.checked_sub(1).map(|at| bytes[at]), bytes.get(at + 1));
        // `2>&1`, `&> log` and `|&` are no ends of commands, and a pipe is one command.
        let is_of_other = matches!(before, Some(b'>' | b'|')) || behind == Some(&b'>');
        let is_redirect = byte == b'&' && is_of_other;
        let is_pipe = byte == b'|' && before != Some(b'|') && behind != Some(&b'|');
        if at < from || is_redirect || is_pipe {
            continue;
        }
        let is_double = byte != b';' && behind == Some(&byte);
        add(from, at, byte == b'&' && !is_double);
        from = at + 1 + usize::from(is_double);
    }
    add(from.min(line.len()), line.len(), false);
    all
}

/// A command without those that prepare it: `export A=1; cd /x && gdsio …`.
fn behind_setup(command: &str) -> &str {
    let mut rest = command.trim_start_matches(['(', '{', ' ']);
    while let Some((first, behind)) = rest.split_once([';', '&']) {
        let word = first.split_whitespace().next().unwrap_or_default();
        let prepares = SETUP.contains(&word) || word.contains('=') && !first.trim().contains(' ');
        if !prepares && !word.is_empty() {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}

/// The program that a command runs, without its directory.
pub(crate) fn program(command: &str) -> Option<&str> {
    let mut skip = false;
    for word in command.split_whitespace() {
        let name = word.rsplit('/').next().unwrap_or(word);
        if PROGRAMS.contains(&name) && !BEFORE.contains(&name) {
            return Some(name);
        }
        let other = BEFORE.contains(&name) || word.contains('=') || word.starts_with('-');
        if !other && !skip {
            return (word == command.split_whitespace().next()?).then_some(name);
        }
        // The value of a flag of `numactl` or `taskset` may stand behind it.
        skip = word.starts_with('-') && !word.contains('=');
    }
    None
}

/// The host in a prompt: `user@host:dir`, `[user@host dir]`, or a word before `>`.
fn host(head: &str, is_word: bool) -> Option<String> {
    if let Some((_, rest)) = head.split_once('@') {
        let name = rest.split([':', ' ', ']', '~']).next().unwrap_or_default();
        return (!name.is_empty()).then(|| name.to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let named = is_word && !head.is_empty() && head.chars().all(plain);
    named.then(|| head.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(Option<String>, String)> {
        prompt(text).map(|prompt| (prompt.host, prompt.command))
    }

    #[test]
    fn a_line_of_several_commands_is_parted() {
        for (line, all) in [
            ("iostat -x 5 & fio --name=a", &[("iostat -x 5", true), ("fio --name=a", false)][..]),
            (
                "(sleep 2; iostat 1 | tee io) & fio a",
                &[("sleep 2", false), ("iostat 1 | tee io", true), ("fio a", false)],
            ),
            ("nohup fio a > log 2>&1 &", &[("nohup fio a > log 2>&1", true)]),
            ("fio a &> log && iostat", &[("fio a &> log", false), ("iostat", false)]),
            ("fio a |& tee b || true", &[("fio a |& tee b", false), ("true", false)]),
            ("", &[]),
        ] {
            let found: Vec<_> = parts(line).iter().map(|p| (p.command, p.is_beside)).collect();
            assert_eq!(found, all, "{line}");
        }
    }

    #[test]
    fn prompts_have_a_host_and_a_command() {
        let some = |host: &str, command: &str| Some((Some(host.to_owned()), command.to_owned()));
        assert_eq!(of("dgx2> gdsio -w 8"), some("dgx2", "gdsio -w 8"));
        assert_eq!(of("me@a100:~/gds$ iostat -xm 1"), some("a100", "iostat -xm 1"));
        assert_eq!(of("[root@n1 ~]# nvidia-smi dmon"), some("n1", "nvidia-smi dmon"));
        let bare = Some((None, "/usr/local/gds/tools/gdsio -x 0".to_owned()));
        assert_eq!(of("# /usr/local/gds/tools/gdsio -x 0"), bare);
        assert_eq!(of("/usr/local/gds/tools/gdsio -x 0"), bare);
        assert_eq!(of("    sudo fio --name=a").unwrap().1, "sudo fio --name=a");
        assert_eq!(of("• gdsio -x 0").unwrap().1, "gdsio -x 0");
        assert_eq!(of("(base) [me@n1 ~]$ gdsio -w 8"), some("n1", "gdsio -w 8"));
        for text in ["gdsio is a tool", "# Idx  W  C", "fio and vdbench work", "a > b", "fio-3.36"]
        {
            assert_eq!(of(text), None, "{text}");
        }
        let page = lines(
            "**Write:** `gdsio -x 0`, not `lspci -v` or `gdsio`\nfio -x\n| read | gdsio -x 1 |\n| \
             gdsio | - | fio |",
        );
        let prompts = page.iter().map(|line| line.prompt.as_ref().map(|one| one.command.as_str()));
        let wanted = [Some("gdsio -x 0"), Some("fio -x"), Some("gdsio -x 1"), None];
        assert_eq!(prompts.collect::<Vec<_>>(), wanted);
        let prepared = "export A=1;B=2; cd /x &&  /usr/gds/tools/gdsio -x 0 -d 0";
        assert_eq!(of(prepared).unwrap().1, "/usr/gds/tools/gdsio -x 0 -d 0");
        assert_eq!(of("$ cd /x; dd if=/a of=/dev/null").unwrap().1, "dd if=/a of=/dev/null");
        assert_eq!(program("numactl -N 0 gdsio -w 8"), Some("gdsio"));
        assert_eq!(program("LD_PRELOAD=x /opt/fio a.fio"), Some("fio"));
    }

    #[test]
    fn wrapped_results_and_continued_commands_are_one_line() {
        let text = "$ gdsio -D /d \\\n  -w 8\nIoType: READ XferType: GPUD Threads: 8\n \
                    DataSetSize: 8/8(KiB) total_time 1.0 secs\nnext";
        let lines = lines(text);
        let at: Vec<(usize, &str)> = lines.iter().map(|l| (l.number, l.text.as_str())).collect();
        assert_eq!(at[0], (1, "$ gdsio -D /d -w 8"));
        assert_eq!(lines[0].prompt.as_ref().unwrap().command, "gdsio -D /d -w 8");
        assert!(at[1].0 == 3 && at[1].1.ends_with("secs"), "{at:?}");
        assert_eq!(at[2], (5, "next"));
    }

    #[test]
    fn commands_that_were_wrapped_are_one_line() {
        let command = "root@a:/x# fio --name=r --directory=/data/set --rw=randread --bs=4K \
                       --ioengine=io_uring --direct=1 --iodepth=256 --numjobs=8";
        let bare = command.trim_start_matches("root@a:/x# ");
        let chars: Vec<char> = command.chars().collect();
        for width in 60..chars.len() {
            let rows: Vec<String> = chars.chunks(width).map(|row| row.iter().collect()).collect();
            // A rest without a flag is no sure one.
            if rows[1..].iter().any(|row| !row.contains(" -") && !row.starts_with('-')) {
                continue;
            }
            let text = format!("{}\nr: (g=0): rw=randread\n", rows.join("\n"));
            let lines = lines(&text);
            let prompt = lines[0].prompt.as_ref().unwrap();
            assert_eq!((lines.len(), prompt.command.as_str()), (2, bare), "{text}");
        }
        for (text, wanted) in [
            ("$ fio --name=a\n  --rw=read\n  --bs=4k\n", "fio --name=a --rw=read --bs=4k"),
            ("$ dd if=/dev/zero\nof=/x bs=1M\n", "dd if=/dev/zero of=/x bs=1M"),
            ("$ gdsio -x 0\n-bash: gdsio: command not found\n", "gdsio -x 0"),
            ("$ gdsio -x 0\n$ gdsio -x 1\n", "gdsio -x 0"),
            ("$ gdsio -x 0\n- one thing\n", "gdsio -x 0"),
        ] {
            assert_eq!(lines(text)[0].prompt.as_ref().unwrap().command, wanted);
        }
    }

    /// A terminal of any width cuts words and figures too, and a page may take the blanks at ends.
    #[test]
    fn a_result_is_whole_again_wherever_it_was_cut() {
        let whole = "IoType: RANDREAD XferType: CPU_GPU Threads: 32 IoDepth: 4 DataSetSize: \
                     200652800/16384000(KiB) IOSize: 1024(KiB) Throughput: 6.501278 GiB/sec, \
                     Avg_Latency: 4806.520781 usecs ops: 195950 total_time 29.433815 secs";
        let chars: Vec<char> = whole.chars().collect();
        for width in 40..chars.len() {
            let rows: Vec<String> = chars.chunks(width).map(|row| row.iter().collect()).collect();
            let trimmed: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
            for text in [rows.join("\n"), trimmed.join("\n")] {
                let lines = lines(&text);
                assert_eq!((lines.len(), lines[0].text.as_str()), (1, whole), "{text}");
                let read = (gdsio::TOOL.read)(&text).unwrap();
                assert_eq!(read.readings, (gdsio::TOOL.read)(whole).unwrap().readings, "{text}");
            }
        }
    }

    #[test]
    fn words_about_a_field_take_no_line_below_them() {
        let result = "READ XferType: GPUD Threads: 8";
        for words in ["# IoType: and Threads: as requested", "See IoType: READ of the run"] {
            let text = format!("{words}\n{result}\n$ gdsio -x 0\n");
            let lines = lines(&text);
            assert_eq!((lines.len(), lines[1].text.as_str()), (3, result), "{lines:?}");
        }
        let narrow = lines("IoType: READ\nXferType: GPUD\nThreads: 8\n");
        assert_eq!(narrow[0].text, "IoType: READ XferType: GPUD Threads: 8");
    }
}
