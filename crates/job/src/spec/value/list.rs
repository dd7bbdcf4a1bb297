//! Values of several parts: blocks, splits, file names, CPUs.

use gpuio_base::stat::Percentile;
use gpuio_base::units::parse_cpu_list;
use gpuio_record::{BlockShare, Zone};

use super::number::{at_least_one, by_direction, percent, size};
use super::{Read, ValueError, pieces, wrong};

/// Most percentiles of one job: more columns would fit no table.
const PERCENTILES_MOST: usize = 20;

/// `50,95,99.99`, in fio's form `50:95:99.99`.
pub(crate) fn percentiles(value: &str) -> Read<Vec<Percentile>> {
    let separator = if value.contains(':') { ':' } else { ',' };
    let one = |(at, text): (usize, &str)| {
        let what = "expected a percentage above 0 and below 100, with at most six decimals";
        Percentile::parse(text).ok_or_else(|| ValueError::new(at, what))
    };
    // The whole, fio's 100.0, is the maximum, which is reported in any case.
    let whole =
        |text: &str| text.parse::<f64>().is_ok_and(|percent| percent.total_cmp(&100.0).is_eq());
    let below = pieces(value, separator).filter(|(_, text)| !whole(text));
    let all = below.map(one).collect::<Read<Vec<_>>>()?;
    if all.len() > PERCENTILES_MOST {
        return wrong(0, "expected 20 percentiles or fewer");
    }
    Ok(Percentile::joined(&all))
}

/// `4k`, fio's range `4k-64k`, or gdsio's `min:max:step`.
pub(crate) fn blocks(value: &str) -> Read<Vec<BlockShare>> {
    let parts: Vec<_> = pieces(value, ':').collect();
    let whole = match parts[..] {
        [(_, one)] if one.contains('-') => return block_range(one),
        [(_, one)] => {
            let size = size(one)?;
            block(size, size, size)
        }
        [min, max, step] => {
            let (low, high) = ordered(min, max)?;
            block(low, high, sized(step)?)
        }
        _ => {
            return wrong(
                value.len(),
                "expected one size (4k), a range (4k-64k) or min:max:step (1M:4M:1M)",
            );
        }
    };
    Ok(vec![whole])
}

/// `4k-64k`: multiples of the smaller size, as in fio.
pub(crate) fn block_range(value: &str) -> Read<Vec<BlockShare>> {
    let Some((min, max)) = value.split_once('-') else {
        return wrong(value.len(), "expected a range of sizes, such as 4k-64k");
    };
    let (low, high) = ordered((0, min), (min.len() + 1, max))?;
    Ok(vec![block(low, high, low)])
}

/// The length of each file; with the longest where a range says from which lengths it is drawn.
pub(crate) fn file_size(value: &str) -> Read<(u64, Option<u64>)> {
    let Some(at) = value.find(['-', ':']) else { return Ok((size(value)?, None)) };
    let (least, most) = ordered((0, &value[..at]), (at + 1, &value[at + 1..]))?;
    Ok((least, (least < most).then_some(most)))
}

fn block(min: u64, max: u64, step: u64) -> BlockShare {
    let step_bytes = if min == max { 0 } else { step };
    BlockShare { min_bytes: min, max_bytes: max, step_bytes, percent: 100 }
}

fn sized((at, text): (usize, &str)) -> Read<u64> {
    size(text).map_err(|error| error.shifted(at))
}

fn ordered(min: (usize, &str), max: (usize, &str)) -> Read<(u64, u64)> {
    let (low, high) = (sized(min)?, sized(max)?);
    if high < low {
        return wrong(max.0, "the largest size is smaller than the smallest; swap them");
    }
    Ok((low, high))
}

/// `4k/60:64k/40`. Entries without a percentage share the rest, as in fio; if it does not divide
/// evenly, the first of them get one more, so that the sum stays 100.
pub(crate) fn block_split(value: &str) -> Read<Vec<BlockShare>> {
    let mut given = Vec::new();
    for (at, entry) in pieces(value, ':') {
        let (text, share) = entry.split_once('/').unwrap_or((entry, ""));
        let bytes = sized((at, text))?;
        let from = at + text.len() + 1;
        let share = match share {
            "" => None,
            share => Some(percent(share).map_err(|error| error.shifted(from))?),
        };
        if share == Some(0) {
            return wrong(from, "a block of 0 percent is never used; leave it out");
        }
        given.push((bytes, share));
    }
    share_out(&given).map_err(|meaning| ValueError::new(0, meaning))
}

fn share_out(given: &[(u64, Option<u8>)]) -> Result<Vec<BlockShare>, String> {
    let sum: usize = given.iter().flat_map(|(_, share)| *share).map(usize::from).sum();
    let open = given.iter().filter(|(_, share)| share.is_none()).count();
    let left = 100_usize
        .checked_sub(sum)
        .ok_or_else(|| format!("the percentages sum to {sum}; they must sum to 100"))?;
    if open == 0 && left > 0 {
        return Err(format!("the percentages sum to {sum}; they must sum to 100"));
    }
    if left < open {
        return Err(format!(
            "{left} percent are left for {open} blocks without one; give each at least 1"
        ));
    }
    let mut nth = 0;
    let blocks = given.iter().map(|&(bytes, share)| {
        let percent = share.unwrap_or_else(|| {
            let more = usize::from(nth < left % open);
            nth += 1;
            // At most 100, the start of `left`.
            u8::try_from(left / open + more).unwrap_or(100)
        });
        BlockShare { percent, ..block(bytes, bytes, bytes) }
    });
    Ok(blocks.collect())
}

/// A name as a value of `filename` or `directory`: a colon separates names there, and in a flag it
/// is a part of the name.
pub fn one_name(name: &str) -> String {
    name.replace(':', "\\:")
}

/// fio's list of files, separated by `:`; `\:` is a colon of a name.
pub(crate) fn file_names(value: &str) -> Read<Vec<String>> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut chars = value.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if chars.next_if(|(_, next)| *next == ':').is_some() => name.push(':'),
            ':' if name.is_empty() => return Err(empty_name(at)),
            ':' => names.push(std::mem::take(&mut name)),
            c => name.push(c),
        }
    }
    if name.is_empty() {
        return Err(empty_name(value.len()));
    }
    names.push(name);
    Ok(names)
}

fn empty_name(at: usize) -> ValueError {
    ValueError::new(
        at,
        "a file name is empty; names are separated by ':', and '\\:' is a colon of a name",
    )
}

/// CPUs as the kernel lists them.
pub(crate) fn cpus(value: &str) -> Read<Vec<u32>> {
    Ok(parse_cpu_list(value)?)
}

/// CPUs as the bits of a number.
pub(crate) fn cpu_mask(value: &str) -> Read<Vec<u32>> {
    let mask = at_least_one(value)?;
    Ok((0..u64::BITS).filter(|cpu| mask >> cpu & 1 == 1).collect())
}

/// Words separated by commas: path names.
pub(crate) fn words(value: &str) -> Read<Vec<String>> {
    let mut words = Vec::new();
    for (at, word) in pieces(value, ',') {
        let name = word.trim();
        if name.is_empty() {
            return wrong(at, "a name is empty; give names separated by commas, or all");
        }
        words.push(name.to_owned());
    }
    Ok(words)
}

/// Zones of a region: `60/10:30/20:10/70`, shares of the I/Os and lengths, in per cent or in bytes.
/// Lengths in per cent that are left out share the rest, as in fio.
pub(crate) fn zones(value: &str, in_bytes: bool) -> Read<Vec<Zone>> {
    if let Some(at) = value.find(',') {
        return wrong(at, "zones are the same for reads and writes; give one list");
    }
    let mut zones = Vec::new();
    for (at, entry) in pieces(value, ':') {
        let Some((ios, length)) = entry.split_once('/') else {
            return wrong(at, "expected a share of the I/Os and a length, such as 60/10");
        };
        let from = at + ios.len() + 1;
        let ios_percent = percent(ios).map_err(|error| error.shifted(at))?;
        let length = match (in_bytes, length) {
            (true, _) => size(length),
            (false, "") => Ok(0),
            (false, _) => at_least_one_percent(length),
        };
        zones.push(Zone { ios_percent, length: length.map_err(|error| error.shifted(from))? });
    }
    let ios: u32 = zones.iter().map(|zone| u32::from(zone.ios_percent)).sum();
    if ios != 100 {
        return wrong(0, format!("the shares of the I/Os sum to {ios}; they must sum to 100"));
    }
    if in_bytes {
        return Ok(zones);
    }
    let lengths: u64 = zones.iter().map(|zone| zone.length).sum();
    let open = zones.iter().filter(|zone| zone.length == 0).count() as u64;
    let left = 100_u64.checked_sub(lengths).filter(|left| *left >= open);
    let Some(left) = left else {
        return wrong(0, format!("the zones are {lengths} per cent long; 100 are the most"));
    };
    for zone in zones.iter_mut().filter(|zone| zone.length == 0) {
        zone.length = left / open;
    }
    Ok(zones)
}

fn at_least_one_percent(value: &str) -> Read<u64> {
    match percent(value)? {
        0 => wrong(0, "a zone of no bytes; leave it out"),
        share => Ok(u64::from(share)),
    }
}

/// fio's `percentage_random`: of reads, of writes, and of trims, which are not there. An empty one
/// is 100, and one alone is of all.
pub(crate) fn random_percent(value: &str) -> Read<(u8, u8)> {
    let (reads, writes) = by_direction(value, percent)?;
    Ok(match writes {
        None => (reads.unwrap_or(100), reads.unwrap_or(100)),
        Some(writes) => (reads.unwrap_or(100), writes.unwrap_or(100)),
    })
}

/// fio's words in a name of a file.
const NAME_WORDS: [&str; 3] = ["$jobname", "$jobnum", "$filenum"];

/// fio's `filename_format`.
pub(crate) fn filename_format(value: &str) -> Read<String> {
    let mut rest = value;
    while let Some(found) = rest.find('$') {
        let at = value.len() - rest.len() + found;
        let Some(word) = NAME_WORDS.iter().find(|word| value[at..].starts_with(**word)) else {
            return wrong(at, format!("expected one of {}", NAME_WORDS.join(", ")));
        };
        rest = &value[at + word.len()..];
    }
    Ok(value.to_owned())
}

/// The format of fio's own names, which hold the job's.
pub(crate) const FIO_NAMES: &str = "$jobname.$jobnum.$filenum";

/// Such a format with the job's name in it.
pub(crate) fn named_format(format: &str, job: &str) -> String {
    format.replace(NAME_WORDS[0], job)
}

/// The name of a file by such a format.
pub(crate) fn formatted_name(format: &str, thread: u32, file: u32) -> String {
    let [_, of_thread, of_file] = NAME_WORDS;
    format.replace(of_thread, &thread.to_string()).replace(of_file, &file.to_string())
}
