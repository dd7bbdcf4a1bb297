//! Prompts, titles and dots among the lines of tools.

/// Programs whose prompt line begins a part, beside those whose output is read.
const OTHER_PROGRAMS: [&str; 40] = [
    "lstopo-no-graphics",
    "hwloc-ls",
    "ifconfig",
    "cat",
    "ls",
    "sudo",
    "uname",
    "hostname",
    "ethtool",
    "modinfo",
    "modprobe",
    "ssh",
    "pdsh",
    "clush",
    "watch",
    "grep",
    "egrep",
    "zcat",
    "gdscheck.py",
    "mpirun",
    "srun",
    "smartctl",
    "blkid",
    "fdisk",
    "parted",
    "systemctl",
    "journalctl",
    "sysctl",
    "echo",
    "time",
    "numastat",
    "cd",
    "vdbench",
    "showmount",
    "exportfs",
    "ib_read_bw",
    "ib_send_bw",
    "readlink",
    "realpath",
    "udevadm",
];

/// Whether a prompt's first word is a program that people run to show a machine.
fn is_program(word: &str) -> bool {
    let known = |kind: &crate::Kind| kind.command.split(' ').next() == Some(word);
    OTHER_PROGRAMS.contains(&word) || crate::KINDS.iter().any(known)
}

/// Whether a line is a prompt with a command: it begins a new output and is none itself.
pub(crate) fn is_prompt(line: &str) -> bool {
    command_of(line).is_some()
}

/// The command behind a prompt's sign.
pub(crate) fn command_of(line: &str) -> Option<&str> {
    let signs = ["$ ", "# ", "> ", "% ", "❯ ", "➜ "];
    let behind = signs.iter().filter_map(|sign| {
        let at = line.find(sign)?;
        Some((at, line[at + sign.len()..].trim()))
    });
    let (at, mut command) = behind.min_by_key(|(at, _)| *at)?;
    // `➜ ~ nvidia-smi`: the directory stands behind the sign.
    if let Some(rest) = command.strip_prefix("~ ") {
        command = rest.trim();
    }
    let program = command.split_whitespace().next()?.rsplit('/').next()?;
    // A prompt has no table's rows before its sign.
    let short = at < 120 && !line[..at].contains(['|', '=', '"']);
    (short && is_program(program)).then_some(command)
}

/// A line that names the command alone, as a title: `lspci -tv:`.
pub(crate) fn heading(line: &str) -> bool {
    let line =
        line.trim().trim_start_matches(['#', '=', '-', ' ']).trim_end_matches([':', '=', '-', ' ']);
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    // These begin sentences too.
    let known = is_program(first) && !["time", "watch", "echo", "cd"].contains(&first);
    known && words.all(|word| word.starts_with('-') || word.len() <= 5) && line.len() < 40
}

/// Whether a part begins at a line: a prompt, a title, or the first line of one more report of
/// gdscheck's, below which none of the report above continues.
pub(crate) fn begins(lines: &[&str], at: usize) -> bool {
    let report = |line: &&str| line.trim_start().starts_with("GDS release version");
    let line = lines[at];
    is_prompt(line) || heading(line) || report(&line) && lines[..at].iter().any(report)
}

/// The dots that people put for lines that they cut.
pub(crate) fn is_dots(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '.' | ' ' | '\t' | '…'))
}

/// A line of one sign again and again, that parts what stands above and below it.
pub(crate) fn is_ruler(line: &str) -> bool {
    let line = line.trim().as_bytes();
    line.len() > 2 && b"-=*#_~".contains(&line[0]) && line.iter().all(|byte| *byte == line[0])
}

/// Lines of a part with their index, without prompts, blank lines and lines of dots.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let all = text.lines().enumerate();
    all.filter(|(_, line)| {
        let empty_prompt = line.ends_with(['$', '#']) && !line.contains(' ');
        !is_dots(line) && !is_prompt(line) && !empty_prompt
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_known_by_their_command() {
        for line in [
            "$ nvidia-smi topo -m",
            "root@node2:~/DeepEP# nvidia-smi topo -m",
            "[user@host ~]$ sudo lspci -tv | grep -i nv",
            "(base) ➜ ~ nvidia-smi topo -m",
            "# /usr/bin/lstopo",
        ] {
            assert!(is_prompt(line), "{line}");
        }
        for line in ["# nothing", "GPU0 X", "|   0  Tesla V100 > x |", "costs $ 5", "# source: x"] {
            assert!(!is_prompt(line), "{line}");
        }
        assert!(heading("nvidia-smi topo -m:") && heading("=== lspci -tv ==="));
        assert!(!heading("lspci shows the following devices here"));
    }
}
