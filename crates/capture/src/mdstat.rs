//! `cat /proc/mdstat` (Documentation/admin-guide/md.rst of Linux): a line per array with its
//! members, then lines with its size and chunk.

use gpuio_record::facts::{ArrayFacts, BlockKind};

use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "cat /proc/mdstat",
    gives: "arrays, their members and health",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        text.lines().any(|line| line.starts_with("Personalities :") || is_array(line))
    },
    add,
};

/// Whether it is an array's line, which people paste without the lines around it.
fn is_array(line: &str) -> bool {
    line.split_once(" : ").is_some_and(|(name, rest)| {
        let state = rest.split_whitespace().next();
        name.starts_with("md") && matches!(state, Some("active" | "inactive"))
    })
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut current: Option<String> = None;
    for (index, line) in lines(text) {
        if line.starts_with("Personalities") || line.starts_with("unused devices") {
            current = None;
        } else if line.starts_with(' ') {
            // Lines of bitmaps and of what goes on are not needed.
            if let Some(name) = &current
                && let Err(why) = details(index, line, name, captured)
            {
                captured.skip(why);
            }
        } else {
            current = match array(index, line, captured) {
                Ok(name) => Some(name),
                Err(why) if why.is_too_much() => return Err(why),
                Err(why) => {
                    captured.skip(why);
                    None
                }
            };
        }
    }
    Ok(())
}

/// `md1 : active raid0 nvme9n1[7] nvme8n1[6](F)`.
fn array(index: usize, line: &str, captured: &mut Captured) -> Result<String, CaptureError> {
    let wanted = |part: &str, what| CaptureError::at(index, line, part, what);
    let Some((name, rest)) = line.split_once(" : ") else {
        return Err(wanted(line, "an array, like md0 : active raid0 …"));
    };
    let mut words = rest.split_whitespace().peekable();
    let state = words.next().ok_or_else(|| wanted(rest, "active or inactive"))?;
    let (mut level, mut members) = (None, Vec::new());
    for word in words {
        if let Some((member, role)) = word.split_once('[') {
            let role = role.split(']').next().unwrap_or_default();
            role.parse::<u32>().map_err(|_| wanted(word, "a member, like nvme0n1[0]"))?;
            members.push(member.to_owned());
        } else if !word.starts_with('(') {
            // `(read-only)` and `(auto-read-only)` stand before the level.
            level = Some(word.to_owned());
        }
    }
    // Roles are printed from the last to the first.
    members.reverse();
    if members.len() + captured.machine.block.len() > MOST_DEVICES {
        return Err(wanted(line, "fewer devices"));
    }
    for member in &members {
        merge::disk_or_partition(&mut captured.machine, member);
    }
    let disks = u64::try_from(members.len()).unwrap_or(u64::MAX);
    let block = merge::block(&mut captured.machine, name, BlockKind::Md);
    block.facts.detail.clone_from(&level);
    block.made_of = members;
    block.array = Some(ArrayFacts {
        level,
        disks: Some(disks),
        state: Some(state.to_owned()),
        ..ArrayFacts::default()
    });
    Ok(name.to_owned())
}

/// `30004846592 blocks super 1.2 512k chunks`, `… [2/1] [U_]`.
fn details(
    index: usize,
    line: &str,
    name: &str,
    captured: &mut Captured,
) -> Result<(), CaptureError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.get(1) != Some(&"blocks") {
        return Ok(());
    }
    let wrong = || CaptureError::at(index, line, words[0], "a number of blocks of 1 KiB");
    let blocks: u64 = words[0].parse().map_err(|_| wrong())?;
    let chunk = words.windows(2).find(|pair| matches!(pair[1], "chunks" | "chunk" | "chunk,"));
    let chunk = chunk.and_then(|pair| pair[0].trim_end_matches([',']).strip_suffix('k'));
    let chunk = chunk.and_then(|kib| kib.parse::<u64>().ok());
    // `[2/1]`: members that it should have, and that it has.
    let health = words.iter().find_map(|word| {
        let (should, has) = word.strip_prefix('[')?.strip_suffix(']')?.split_once('/')?;
        Some((should.parse::<u64>().ok()?, has.parse::<u64>().ok()?))
    });
    let block = merge::block(&mut captured.machine, name, BlockKind::Md);
    block.facts.size_bytes = blocks.checked_mul(1024);
    if let Some(array) = &mut block.array {
        array.chunk_bytes = chunk.and_then(|kib| kib.checked_mul(1024));
        if let Some((should, has)) = health {
            array.disks = Some(should);
            array.degraded = Some(should.saturating_sub(has));
        }
    }
    Ok(())
}
