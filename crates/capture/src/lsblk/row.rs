//! A row of `lsblk`: its cells by the position below the head, else by what each can hold.

use gpuio_base::units::parse_bytes;

use super::MARKS;
use crate::columns::{Column, Holds, columns, parted, values, words};
use crate::merge;

/// A line of the tree.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// How far its name stands behind the names of disks, in characters.
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) mount_points: Vec<String>,
    /// Empty where the column has nothing; `None` without the column.
    pub(super) fs_type: Option<String>,
    pub(super) model: String,
    pub(super) transport: String,
    pub(super) size_bytes: Option<u64>,
    pub(super) rotates: Option<bool>,
}

impl Row {
    /// A row of named values, those of empty cells empty; `None` without a device's name.
    pub(super) fn of(depth: usize, value: impl Fn(&str) -> Option<String>) -> Option<Row> {
        let filled = |name: &&str| value(name).filter(|value| !value.is_empty());
        let first = |names: &[&str]| names.iter().find_map(filled);
        // The kernel's own name of a volume is in no mount.
        let name = first(&["NAME", "PATH", "KNAME"])?;
        // `lsblk -p` prints whole paths.
        let name = name.trim_start_matches("/dev/mapper/").trim_start_matches("/dev/");
        is_name(name).then(|| Row {
            depth,
            name: name.to_owned(),
            kind: first(&["TYPE"]).unwrap_or_default(),
            mount_points: mount_points(&first(&["MOUNTPOINT", "MOUNTPOINTS"]).unwrap_or_default()),
            fs_type: value("FSTYPE"),
            model: first(&["MODEL"]).unwrap_or_default(),
            transport: first(&["TRAN"]).unwrap_or_default(),
            size_bytes: first(&["SIZE"]).and_then(|size| size_of(&size)),
            rotates: first(&["ROTA"]).and_then(|word| match word.as_str() {
                "1" | "true" => Some(true),
                "0" | "false" => Some(false),
                _ => None,
            }),
        })
    }
}

/// Several points of one device stand behind one another in pairs, as `\x0a`.
fn mount_points(cell: &str) -> Vec<String> {
    let all = cell.split("\\x0a").map(|point| point.replace("\\x20", " "));
    all.filter(|point| point.starts_with('/')).collect()
}

/// A printed size: `3.5T` in powers of 1024, lsscsi's `1.92TB` in powers of 1000, or bytes of
/// `-b`. Tools round what they print, so a size need not be a whole number of bytes here.
pub(crate) fn size_of(text: &str) -> Option<u64> {
    let text = text.replace(',', ".");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let unit = match suffix.strip_suffix('B') {
        Some(power @ ("k" | "K" | "M" | "G" | "T" | "P")) => {
            1000_u64.pow(parse_bytes(&format!("1{power}")).ok()?.ilog2() / 10)
        }
        _ => parse_bytes(&format!("1{suffix}")).ok()?,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if unit == 1 && !fraction.is_empty() {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    u64::try_from(digits.checked_mul(u128::from(unit))? / scale).ok()
}

/// The columns of a head.
#[derive(Debug)]
pub(super) struct Head {
    columns: Vec<Column>,
    /// Where names begin, in characters.
    name_at: usize,
    name_is_first: bool,
}

impl Head {
    pub(super) fn of(line: &str) -> Head {
        let columns = columns(line);
        let named = columns.iter().position(|one| NAMES.contains(&one.name.as_str()));
        let name_at = named.and_then(|at| columns.get(at)).map_or(0, |one| one.start);
        Head { name_is_first: named == Some(0), columns, name_at }
    }

    /// The row of a line; `None` where it names no device.
    pub(super) fn row(&self, line: &str) -> Option<Row> {
        let bare = without_marks(line);
        let depth = self.depth(line, &bare)?;
        let by_position = values(&self.columns, &bare);
        let mut cells: Vec<String> = self
            .columns
            .iter()
            .zip(&by_position)
            .map(|(column, value)| known(&column.name, value).unwrap_or_default())
            .collect();
        let wrong = self.columns.iter().zip(&by_position).any(|(column, value)| {
            !value.is_empty() && known(&column.name, value).is_none()
                || value.is_empty() && !may_be_empty(&column.name)
        });
        let moved = wrong || !self.stands_below(&bare);
        if moved {
            let mut holds: Vec<Holds> = self.columns.iter().map(|one| holds(&one.name)).collect();
            // Only at the end of a row it is clear where a path with blanks ends.
            if let (Some(last), Some(column)) = (holds.last_mut(), self.columns.last())
                && column.name.starts_with("MOUNTPOINT")
            {
                last.most_words = 4;
            }
            let words: Vec<&str> = bare.split_whitespace().collect();
            match parted(&holds, &words) {
                Some(parted) => {
                    cells = parted.into_iter().map(Option::unwrap_or_default).collect();
                }
                None if wrong => {
                    // A sentence below the table names no device.
                    if !self.has_any_needed(&cells) {
                        return None;
                    }
                    // Only what no other column could hold is taken.
                    for (column, cell) in self.columns.iter().zip(&mut cells) {
                        if !NAMES.contains(&column.name.as_str())
                            && !SURE.contains(&column.name.as_str())
                        {
                            cell.clear();
                        }
                    }
                }
                None => {}
            }
        }
        let value = |name: &str| {
            let at = self.columns.iter().position(|one| one.name == name)?;
            // Where words had to be sorted into the columns, an empty cell may be a word unknown.
            cells.get(at).filter(|cell| !moved || !cell.is_empty()).cloned()
        };
        Row::of(depth, value)
    }

    /// A further mount point of the device above, which stands alone below its column. Other tools'
    /// lines begin with paths too: of several words only those below that column are one.
    pub(super) fn mount_point<'l>(&self, line: &'l str) -> Option<&'l str> {
        let own = self.columns.iter().find(|one| one.name.starts_with("MOUNTPOINT"))?;
        let alone = line.trim_start_matches(MARKS).trim_end();
        let at = line.trim_end().chars().count() - alone.chars().count();
        let one_word = !alone.contains(char::is_whitespace) && !alone.ends_with(':');
        let is_device = alone.starts_with("/dev/");
        let is = alone.starts_with('/') && !is_device && (one_word || at > 0 && at == own.start);
        is.then_some(alone)
    }

    /// Whether a column that no device leaves empty has a value, or the head has no such column
    /// beside names.
    fn has_any_needed(&self, cells: &[String]) -> bool {
        let all = self.columns.iter().zip(cells);
        let mut needed = all.filter(|(column, _)| {
            !NAMES.contains(&column.name.as_str()) && !may_be_empty(&column.name)
        });
        let Some((_, first)) = needed.next() else { return true };
        !first.is_empty() || needed.any(|(_, cell)| !cell.is_empty())
    }

    /// How far a name stands behind those of disks; `None` where the line has no name.
    fn depth(&self, line: &str, bare: &str) -> Option<usize> {
        if self.name_is_first {
            let name = line.trim_start_matches(MARKS);
            let first = name.split_whitespace().next()?;
            let short = first.trim_start_matches("/dev/");
            if !is_name(short) || first.ends_with(':') || first.starts_with('/') && first == short {
                return None;
            }
            return Some(line.chars().count() - name.chars().count());
        }
        let below = |(at, word): &(usize, &str)| *at >= self.name_at && is_name(word);
        let (at, _) = words(bare).find(below)?;
        Some(at - self.name_at)
    }

    /// Whether every value begins or ends with its head.
    fn stands_below(&self, bare: &str) -> bool {
        let length = |word: &str| word.chars().count();
        let ends = |at: usize, word: &str| at + length(word);
        let heads: Vec<(usize, usize)> =
            self.columns.iter().map(|one| (one.start, one.start + length(&one.name))).collect();
        let last = heads.last().map_or(0, |(start, _)| *start);
        let mut row = words(bare);
        // A name stands behind the marks of the tree.
        let skipped = if self.name_is_first { 1 } else { 0 };
        row.by_ref().take(skipped).for_each(drop);
        let mut open = false;
        row.all(|(at, word)| {
            let below = heads.iter().any(|(start, end)| at == *start || ends(at, word) == *end)
                || at >= last
                || open;
            // Further words of a value stand behind its first one.
            open = below;
            below
        })
    }
}

const NAMES: [&str; 3] = ["NAME", "KNAME", "PATH"];

/// Columns whose values have a form that no other column's has.
const SURE: [&str; 5] = ["TYPE", "MOUNTPOINT", "MOUNTPOINTS", "MAJ:MIN", "TRAN"];

/// Blanks for the marks of the tree, so that words stay where they are.
fn without_marks(line: &str) -> String {
    let mut before = ' ';
    line.chars()
        .map(|c| {
            let mark = matches!(c, '├' | '└' | '─' | '│')
                || matches!(c, '|' | '`') && before == ' '
                || c == '-' && matches!(before, '|' | '`');
            before = c;
            if mark { ' ' } else { c }
        })
        .collect()
}

fn is_name(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.!+:/".contains(c);
    !text.is_empty()
        && text.chars().all(inside)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Names of columns (lsblk(8), util-linux 2.40).
const COLUMNS: [&str; 71] = [
    "NAME",
    "KNAME",
    "PATH",
    "MAJ:MIN",
    "MAJ",
    "MIN",
    "FSAVAIL",
    "FSSIZE",
    "FSTYPE",
    "FSUSED",
    "FSUSE%",
    "FSROOTS",
    "FSVER",
    "MOUNTPOINT",
    "MOUNTPOINTS",
    "LABEL",
    "UUID",
    "PTUUID",
    "PTTYPE",
    "PARTTYPE",
    "PARTTYPENAME",
    "PARTLABEL",
    "PARTUUID",
    "PARTFLAGS",
    "PARTN",
    "RA",
    "RO",
    "RM",
    "HOTPLUG",
    "MODEL",
    "SERIAL",
    "SIZE",
    "STATE",
    "OWNER",
    "GROUP",
    "MODE",
    "ALIGNMENT",
    "MIN-IO",
    "OPT-IO",
    "PHY-SEC",
    "LOG-SEC",
    "ROTA",
    "SCHED",
    "RQ-SIZE",
    "TYPE",
    "DISC-ALN",
    "DISC-GRAN",
    "DISC-MAX",
    "DISC-ZERO",
    "WSAME",
    "WWN",
    "RAND",
    "PKNAME",
    "HCTL",
    "TRAN",
    "SUBSYSTEMS",
    "REV",
    "VENDOR",
    "ZONED",
    "ZONE-SZ",
    "ZONE-WGRAN",
    "ZONE-APP",
    "ZONE-NR",
    "ZONE-OMAX",
    "ZONE-AMAX",
    "DAX",
    "START",
    "MQ",
    "DISK-SEQ",
    "ID-LINK",
    "ID",
];

pub(super) fn is_column(word: &str) -> bool {
    COLUMNS.contains(&word)
}

/// Whether a line has the names of columns alone, one of them that of devices.
pub(super) fn is_head(line: &str) -> bool {
    let mut count = 0;
    let mut named = false;
    for word in line.split_whitespace() {
        if !is_column(word) {
            return false;
        }
        count += 1;
        named |= NAMES.contains(&word);
    }
    count > 1 && named
}

/// A value that a column can hold; `None` where it can't. The first word of a name counts.
fn known(column: &str, value: &str) -> Option<String> {
    (!value.is_empty() && (holds(column).takes)(value)).then(|| value.to_owned())
}

fn may_be_empty(column: &str) -> bool {
    holds(column).may_be_empty
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_size(text: &str) -> bool {
    let number = text.strip_suffix(['B', 'K', 'M', 'G', 'T', 'P', 'E']).unwrap_or(text);
    !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
}

fn is_kind(text: &str) -> bool {
    ["disk", "part", "lvm", "crypt", "loop", "rom", "mpath", "linear", "dm", "md", "multipath"]
        .contains(&text)
        || text.starts_with("raid")
}

fn is_file_system(text: &str) -> bool {
    const KNOWN: [&str; 17] = [
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "vfat",
        "swap",
        "ntfs",
        "exfat",
        "squashfs",
        "iso9660",
        "f2fs",
        "crypto_LUKS",
        "bcachefs",
        "gfs2",
        "ocfs2",
        "erofs",
    ];
    KNOWN.contains(&text) || text.ends_with("_member")
}

fn holds(column: &str) -> Holds {
    const fn one(takes: fn(&str) -> bool) -> Holds {
        Holds { takes, most_words: 1, may_be_empty: false }
    }
    const fn perhaps(takes: fn(&str) -> bool, most_words: usize) -> Holds {
        Holds { takes, most_words, may_be_empty: true }
    }
    match column {
        "NAME" | "KNAME" | "PATH" => one(|text| {
            is_name(text.trim_start_matches("/dev/")) && !is_kind(text) && !is_size(text)
        }),
        "MAJ:MIN" => {
            one(|text| text.split_once(':').is_some_and(|(a, b)| is_number(a) && is_number(b)))
        }
        "RM" | "RO" | "ROTA" | "HOTPLUG" | "RAND" | "DAX" | "MQ" | "DISC-ZERO" => {
            one(|text| matches!(text, "0" | "1"))
        }
        "SIZE" => one(is_size),
        "TYPE" => one(is_kind),
        "RQ-SIZE" | "RA" | "PHY-SEC" | "LOG-SEC" | "MIN-IO" | "OPT-IO" | "ALIGNMENT"
        | "DISC-ALN" => one(is_number),
        "MOUNTPOINT" | "MOUNTPOINTS" => {
            perhaps(|text| text.starts_with('/') || text == "[SWAP]", 1)
        }
        "FSTYPE" => perhaps(is_file_system, 1),
        "TRAN" => perhaps(
            |text| {
                [
                    "sata", "nvme", "usb", "sas", "fc", "iscsi", "ata", "spi", "pcie", "tcp",
                    "rdma", "virtio", "mmc", "loop",
                ]
                .contains(&text)
            },
            1,
        ),
        "SCHED" => perhaps(
            |text| {
                ["none", "mq-deadline", "bfq", "kyber", "noop", "cfq", "deadline"].contains(&text)
            },
            1,
        ),
        "FSAVAIL" | "FSSIZE" | "FSUSED" | "DISC-GRAN" | "DISC-MAX" | "WSAME" | "START"
        | "DISK-SEQ" => perhaps(is_size, 1),
        "FSUSE%" => perhaps(|text| text.strip_suffix('%').is_some_and(is_number), 1),
        "PKNAME" => perhaps(|text| is_name(text) && !is_kind(text) && !is_size(text), 1),
        "MODEL" | "LABEL" | "PARTTYPENAME" | "PARTLABEL" => {
            perhaps(|text| !text.contains('/') && !is_kind(text), 5)
        }
        "HCTL" => perhaps(|text| text.split(':').count() == 4, 1),
        _ => perhaps(|text| !text.starts_with('/'), 1),
    }
}

/// The blanks of a line, in bytes, at which a head and its rows begin, where a page has joined
/// them.
pub(crate) fn rows_on_one_line(line: &str) -> Vec<usize> {
    const MOST: usize = 1000;
    let mut places = Vec::new();
    // The head: its first column's name, and how many follow.
    let mut starts = std::iter::once(0).chain(line.match_indices(' ').map(|(at, _)| at + 1));
    let word_at = |at: usize| line[at..].split(' ').next().unwrap_or_default();
    let head = starts.find(|at| {
        let mut words = line[*at..].split(' ');
        NAMES.contains(&words.next().unwrap_or_default()) && words.next().is_some_and(is_column)
    });
    let Some(head) = head else { return places };
    if head > 0 {
        places.push(head - 1);
    }
    let mut in_head = true;
    // The words behind the head's first one.
    for at in starts {
        if places.len() > MOST {
            break;
        }
        let word = word_at(at).trim_start_matches(MARKS);
        if in_head && is_column(word) {
            continue;
        }
        in_head = false;
        if is_device(word) {
            places.push(at - 1);
        }
    }
    // A head without rows on its line is as it should be.
    if places.len() > usize::from(head > 0) { places } else { Vec::new() }
}

/// A name that only a block device has.
fn is_device(word: &str) -> bool {
    let disk = merge::disk_of(word).unwrap_or(word);
    let numbered = |start: &str| word.strip_prefix(start).is_some_and(is_number);
    let lettered = |start: &str| {
        disk.strip_prefix(start).is_some_and(|rest| {
            (1..=2).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_lowercase())
        })
    };
    let nvme = disk.strip_prefix("nvme").and_then(|rest| rest.split_once('n'));
    nvme.is_some_and(|(a, b)| is_number(a) && is_number(b))
        || ["md", "loop", "sr", "dm-"].into_iter().any(numbered)
        || ["sd", "vd", "xvd", "hd"].into_iter().any(lettered)
}
