//! Texts whose lines a page has joined to one, parted again where a line of a known form begins.

use std::borrow::Cow;

use crate::lsblk;
use gpuio_base::measured::iostat;

/// A text with newlines in the place of the blanks that stand where a line began.
pub(crate) fn unfolded(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut copied, mut seen, mut line_start, mut word) = (0, 0, 0, false);
    for (at, _) in text.match_indices(' ') {
        let (between, rest) = (&text[seen..at], &text[at + 1..]);
        seen = at;
        word = match between.rsplit_once('\n') {
            Some((_, line)) => {
                line_start = at - line.len();
                has_word(line)
            }
            None => word || has_word(between),
        };
        // At a line's begin, within a drawing or a quote, nothing is parted.
        if !word || between.ends_with(['|', '\n']) || matches!(between, "" | " ") {
            continue;
        }
        if begins(&text[line_start..at], rest) {
            out.push_str(&text[copied..at]);
            out.push('\n');
            copied = at + 1;
            (line_start, word) = (at + 1, false);
        }
    }
    let parted = if copied == 0 {
        Cow::Borrowed(text)
    } else {
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    };
    match tables(&parted) {
        Some(tables) => Cow::Owned(tables),
        None => parted,
    }
}

fn has_word(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_alphanumeric())
}

/// Whether a line of a known form begins at `rest`, behind `before` on the same line.
fn begins(before: &str, rest: &str) -> bool {
    let drawn = rest.trim_start_matches(['|', ' ']);
    match rest.as_bytes().first() {
        Some(b'l') if rest.starts_with("lrwxrwxrwx ") => true,
        Some(b'[') => is_stamp(rest) || is_scsi(rest),
        Some(b'+' | b'\\' | b'-' | b'|' | b' ') => is_branch(drawn),
        Some(b'G' | b'N' | b'm') if is_row_of_matrix(rest) => true,
        Some(b'G') => rest.starts_with("GPU ") && before.ends_with(')') && near(rest, "(UUID: "),
        Some(b'M') => rest.starts_with("MIG ") && before.ends_with(')') && near(rest, "(UUID: "),
        // A line's last word is followed by the next line.
        Some(byte) if byte.is_ascii_graphic() && !first_word(rest).contains('\n') => {
            is_link_of_card(before, rest) || is_mount(before, rest) || is_job_of_fio(rest)
        }
        _ => false,
    }
}

fn first_word(rest: &str) -> &str {
    rest.split(' ').next().unwrap_or_default()
}

fn near(rest: &str, wanted: &str) -> bool {
    rest.char_indices().nth(120).map_or(rest, |(at, _)| &rest[..at]).contains(wanted)
}

fn is_branch(rest: &str) -> bool {
    let mark = ["+-", "\\-", "-+-"].iter().find_map(|mark| rest.strip_prefix(mark));
    mark.is_some_and(|rest| rest.starts_with(|c: char| c == '[' || c.is_ascii_hexdigit()))
}

/// The kernel's time: `[1972396.275689] `.
fn is_stamp(rest: &str) -> bool {
    let Some((time, _)) = rest[1..].split_once(']') else { return false };
    let time = time.trim_start().split_once('.');
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    time.is_some_and(|(whole, part)| digits(whole) && part.len() == 6 && digits(part))
}

/// An address of `lsscsi`: `[2:0:0:0] `.
fn is_scsi(rest: &str) -> bool {
    let Some((address, _)) = rest[1..].split_once(']') else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    address.len() < 24 && address.split(':').count() == 4 && address.split(':').all(digits)
}

/// `GPU1 NV12 X …`: a device and a class, as a row of `nvidia-smi topo` begins.
fn is_row_of_matrix(rest: &str) -> bool {
    let mut words = rest.split(' ');
    let (device, cell) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let number = ["GPU", "NIC", "mlx5_", "mlx4_"].iter().find_map(|name| device.strip_prefix(name));
    let is_device = number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let linked = cell.strip_prefix("NV").is_some_and(|links| links.parse::<u32>().is_ok());
    is_device && (linked || ["X", "PIX", "PXB", "PHB", "NODE", "SYS"].contains(&cell))
}

/// `mlx5_1 port 1 ==> ib1 (Up)` behind another one.
fn is_link_of_card(before: &str, rest: &str) -> bool {
    let mut words = rest.split(' ');
    let is_name = words.next().is_some_and(|word| !word.contains('\n'));
    is_name
        && words.next() == Some("port")
        && words.nth(1) == Some("==>")
        && before.contains(" ==> ")
}

/// `seq-read: (g=0): rw=read, …` behind a command.
fn is_job_of_fio(rest: &str) -> bool {
    let mut words = rest.split(' ');
    let (name, group) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    name.ends_with(':') && group.starts_with("(g=") && group.ends_with("):")
}

/// A line of `mount` behind another one, or one of `/proc/mounts`.
fn is_mount(before: &str, rest: &str) -> bool {
    if !before.ends_with(')') && !before.ends_with(" 0 0") {
        return false;
    }
    let words: Vec<&str> = rest.split(' ').take(6).collect();
    match words.as_slice() {
        [_, "on", at, "type", _, options] => at.starts_with('/') && options.starts_with('('),
        [_, at, _, _, dump, pass] => {
            let number = |word: &str| word.trim_end().parse::<u8>().is_ok();
            before.ends_with(" 0 0")
                && at.starts_with('/')
                && number(dump)
                && number(pass.lines().next().unwrap_or_default())
        }
        _ => false,
    }
}

/// Tables whose head and rows stand on one line; `None` where there is none.
fn tables(text: &str) -> Option<String> {
    let mut out = text.as_bytes().to_vec();
    let mut changed = false;
    let mut at = 0;
    for line in text.split('\n') {
        let places = [lsblk::rows_on_one_line(line), iostat::rows_on_one_line(line)];
        for place in places.into_iter().flatten() {
            // A blank alone is replaced, so that bytes stay where they are.
            if let Some(byte) = out.get_mut(at + place).filter(|byte| **byte == b' ') {
                *byte = b'\n';
                changed = true;
            }
        }
        at += line.len() + 1;
    }
    changed.then(|| String::from_utf8(out).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_page_has_joined_are_parted() {
        let lines = |text: &str| unfolded(text).lines().map(str::to_owned).collect::<Vec<_>>();
        for (text, count) in [
            ("# dmesg [ 1.275689] ata4: up [ 10.275910] ata4.00: x", 3),
            ("# lsscsi [2:0:0:0] disk ATA A 0962 /dev/sda [3:0:0:0] disk ATA B 3B6Q /dev/sdb", 3),
            ("GPU0 GPU1 CPU Affinity GPU0 X NV12 0-7 GPU1 NV12 X 0-7", 3),
            (
                "GPU 0: A100 (UUID: GPU-a) MIG 1g.5gb Device 0: (UUID: MIG-a) GPU 1: A (UUID: \
                    GPU-b)",
                3,
            ),
            ("mlx5_0 port 1 ==> ib0 (Up) mlx5_1 port 1 ==> ib1 (Down)", 2),
            ("/dev/sda1 on / type ext4 (rw) /dev/md0 on /raid type xfs (rw,noatime)", 2),
            ("/dev/sda1 / ext4 rw 0 0 nas:/a /a nfs4 rw,vers=4.2 0 0", 2),
            ("# lsblk -o NAME,TRAN NAME TRAN RQ-SIZE sda sata 128 sdb sata 128", 4),
            ("Device: r/s w/s %util sdb 1.00 2.00 3.00 sdc 1.00 2.00 3.00", 3),
        ] {
            assert_eq!(lines(text).len(), count, "{text}: {:?}", lines(text));
            assert_eq!(unfolded(text).len(), text.len());
        }
        for whole in [
            "GPU0 \tGPU1\nGPU0 X NV12\n",
            "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Down)\n",
            "We saw [1] that /dev/sda on / is slow (NAME of it unknown) 0 0",
            "[    1.0] x: y [1:2] z",
            "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Down)",
        ] {
            assert!(matches!(unfolded(whole), Cow::Borrowed(_)), "{whole}");
        }
    }
}
