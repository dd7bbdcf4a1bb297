//! `findmnt` (util-linux): mounts as a tree, a list, pairs (`-P`) or JSON (`-J`); `df` with `-h` or
//! `-T`, which has sources and mount points but no options.

use serde_json::Value;

use crate::columns::{Column, Holds, columns, parted, values};
use crate::mounts::{put, storage, unescaped};
use crate::{CaptureError, Captured, Kind, json, lines};

pub(crate) const KIND: Kind = Kind {
    command: "findmnt",
    gives: "mounts with their options; also `-l`, `-P`, `-D`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| is_head(line) || pairs(line).is_some()),
    add,
};

pub(crate) const JSON: Kind = Kind {
    command: "findmnt -J",
    gives: "mounts with their options",
    most_bytes: crate::SHORT,
    looks_like: |text| text.contains("\"filesystems\"") && json::find(text, is_ours).is_some(),
    add: add_json,
};

pub(crate) const DF: Kind = Kind {
    command: "df",
    gives: "mounts, without their options; also `-h`, `-T`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(is_head_of_df),
    add: add_df,
};

/// Names of columns (findmnt(8)).
const COLUMNS: [&str; 25] = [
    "TARGET",
    "SOURCE",
    "FSTYPE",
    "OPTIONS",
    "SIZE",
    "USED",
    "AVAIL",
    "USE%",
    "FSROOT",
    "LABEL",
    "UUID",
    "PARTLABEL",
    "PARTUUID",
    "MAJ:MIN",
    "ACTION",
    "OLD-TARGET",
    "OLD-OPTIONS",
    "ID",
    "PARENT",
    "TID",
    "PROPAGATION",
    "OPT-FIELDS",
    "VFS-OPTIONS",
    "FS-OPTIONS",
    "SOURCES",
];
/// Marks of the tree.
const MARKS: [char; 8] = ['├', '└', '─', '│', '|', '`', '-', ' '];

fn is_head(line: &str) -> bool {
    let mut words = line.split_whitespace().peekable();
    let named = line.contains("TARGET") && words.peek().is_some();
    named && line.contains("SOURCE") && words.all(|word| COLUMNS.contains(&word))
}

/// `SOURCE[/subvolume]` without the part inside.
fn source_of(text: &str) -> &str {
    text.split_once('[').map_or(text, |(source, _)| source)
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    captured.lists_mounts = true;
    let mut head: Vec<Column> = Vec::new();
    for (index, line) in lines(text) {
        if let Some(one) = pairs(line) {
            let [source, at, kind, options] = one;
            put(captured, storage(source_of(&source), &at, &kind, &options), (index, line))?;
            continue;
        }
        if is_head(line) {
            head = columns(line);
            continue;
        }
        let Some([source, at, kind, options]) = row(&head, line) else {
            captured.skip(CaptureError::new(index, line, 0, "findmnt's head, or a mount below it"));
            continue;
        };
        put(captured, storage(source_of(&source), &at, &kind, &options), (index, line))?;
    }
    Ok(())
}

/// Source, mount point, kind and options of a row.
fn row(head: &[Column], line: &str) -> Option<[String; 4]> {
    let mut bare: String = line.to_owned();
    if head.first()?.name == "TARGET" {
        let target = line.trim_start_matches(MARKS);
        let blanks = line.chars().count() - target.chars().count();
        bare = format!("{}{target}", " ".repeat(blanks));
    }
    let by_values = || {
        let holds: Vec<Holds> = head.iter().map(|one| holds(&one.name)).collect();
        parted(&holds, &bare.split_whitespace().collect::<Vec<_>>())
    };
    let by_position = || values(head, &bare).into_iter().map(Some).collect();
    let cells: Vec<Option<String>> = by_values().unwrap_or_else(by_position);
    let value = |name: &str| {
        let at = head.iter().position(|one| one.name == name)?;
        cells.get(at).cloned().flatten().filter(|cell| !cell.is_empty())
    };
    let at = value("TARGET").filter(|at| at.starts_with('/'))?;
    let source = value("SOURCE").or_else(|| value("SOURCES")).unwrap_or_default();
    let options = value("OPTIONS").unwrap_or_default();
    Some([source, unescaped(&at), value("FSTYPE").unwrap_or_default(), options])
}

fn holds(column: &str) -> Holds {
    let (takes, most_words, may_be_empty): (fn(&str) -> bool, usize, bool) = match column {
        // A second path is the source.
        "TARGET" => (|text| text.starts_with('/') && !text.contains(" /"), 3, false),
        "SOURCE" => (|text| !text.contains(','), 1, false),
        "FSTYPE" => (
            |text| {
                let inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && text.chars().all(inside)
                    && !is_access(text)
            },
            1,
            false,
        ),
        "OPTIONS" | "VFS-OPTIONS" => {
            (|text| text.split(',').next().is_some_and(is_access), 1, true)
        }
        "SIZE" | "USED" | "AVAIL" => {
            (|text| text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('%'), 1, true)
        }
        "USE%" => (|text| text.ends_with('%'), 1, true),
        _ => (|_| true, 1, true),
    };
    Holds { takes, most_words, may_be_empty }
}

/// The option that each mount's options begin with.
fn is_access(word: &str) -> bool {
    matches!(word, "rw" | "ro")
}

/// `TARGET="/" SOURCE="/dev/sda1" FSTYPE="ext4" OPTIONS="rw"`.
fn pairs(line: &str) -> Option<[String; 4]> {
    let value = |name: &str| {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        Some(unescaped(rest.split_once('"')?.0))
    };
    let (at, source) = (value("TARGET")?, value("SOURCE")?);
    Some([source, at, value("FSTYPE").unwrap_or_default(), value("OPTIONS").unwrap_or_default()])
}

fn is_ours(value: &Value) -> bool {
    value["filesystems"].is_array()
}

fn add_json(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    const DEEPEST: usize = 64;
    let first = text.lines().next().unwrap_or_default();
    let found = json::find(text, is_ours)
        .ok_or_else(|| CaptureError::new(0, first, 0, "{\"filesystems\": [ … ]}"))?;
    let mut open: Vec<(&Value, usize)> = vec![(&found.value["filesystems"], DEEPEST)];
    while let Some((list, deep)) = open.pop() {
        for one in list.as_array().map_or(&[][..], Vec::as_slice) {
            let word = |key: &str| json::word(&one[key]).unwrap_or_default();
            let (at, source) = (word("target"), word("source"));
            if at.starts_with('/') {
                let options = word("options");
                let mount = storage(source_of(&source), &at, &word("fstype"), &options);
                put(captured, mount, (0, first))?;
            }
            if deep > 0 {
                open.push((&one["children"], deep - 1));
            }
        }
    }
    json::skip_others(text, &found, captured);
    Ok(())
}

fn is_head_of_df(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("Filesystem ") && line.ends_with("Mounted on")
}

fn add_df(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    captured.lists_mounts = true;
    let mut typed = false;
    // A long source stands alone, and its figures on the next line.
    let mut alone: Option<String> = None;
    for (index, line) in lines(text) {
        if is_head_of_df(line) {
            typed = line.contains(" Type ");
            continue;
        }
        let joined =
            alone.take().map_or_else(|| line.to_owned(), |source| format!("{source} {line}"));
        let words: Vec<&str> = joined.split_whitespace().collect();
        let share = words.iter().position(|word| *word == "-" || word.ends_with('%'));
        let Some(share) = share.filter(|at| *at >= 4 && words.len() > at + 1) else {
            if words.len() == 1 {
                alone = Some(joined);
            } else {
                captured.skip(CaptureError::new(index, line, 0, "a file system, as df prints it"));
            }
            continue;
        };
        let at = words[share + 1..].join(" ");
        let kind = if typed { Some(words[1]) } else { own_kind(words[0]) };
        if let Some(kind) = kind.filter(|_| at.starts_with('/')) {
            put(captured, storage(words[0], &at, kind, ""), (index, line))?;
        }
    }
    Ok(())
}

/// The kind of file system that the source alone shows, empty where it shows none; `None` for those
/// without data.
fn own_kind(source: &str) -> Option<&str> {
    match source {
        "tmpfs" | "overlay" => Some(source),
        "udev" | "none" | "shm" | "cgroup" | "devtmpfs" | "efivarfs" | "squashfs" => None,
        _ if source.contains("@tcp") || source.contains("@o2ib") => Some("lustre"),
        _ => Some(""),
    }
}
