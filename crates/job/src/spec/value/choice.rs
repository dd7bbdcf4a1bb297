//! Values from a fixed set of words.

use gpuio_base::units::{parse_index_list, parse_percent};
use gpuio_record::{Arrivals, Distribution, FadviseHint, Fill, LayoutKind, MemoryKind, VerifyMode};

use super::number::{at_least_one_u32, integer};
use super::{Read, ValueError, wrong};
use crate::spec::job::{Ceilings, GpuDriver, GpuRequest, GpuWhich, ReadShift, Rw, ViaPeer};
use gpuio_base::nearest::nearest;

/// Values that are refused, each with the reason.
const REFUSED: &str = include_str!("refused.tsv");

/// Why a value is refused, in the lines of this name.
fn refusal(of: &str, value: &str) -> Option<&'static str> {
    REFUSED.lines().find_map(|line| {
        let mut cells = line.split('\t');
        let (name, words, why) = (cells.next()?, cells.next()?, cells.next()?);
        (name == of && words.split(' ').any(|word| word == value)).then_some(why)
    })
}

/// The words of a table.
pub(crate) fn words_of<T>(options: &[(&'static str, T)]) -> Vec<&'static str> {
    options.iter().map(|(word, _)| *word).collect()
}

/// One of `options`; a word that is refused as one of `of` gets an error of its own, another word
/// the nearest option.
fn choice<T: Copy>(value: &str, options: &[(&str, T)], of: &str) -> Read<T> {
    if let Some((_, option)) = options.iter().find(|(name, _)| *name == value) {
        return Ok(*option);
    }
    if let Some(why) = refusal(of, value) {
        return wrong(0, why);
    }
    let names: Vec<_> = options.iter().map(|(name, _)| *name).collect();
    let hint = nearest(value, names.iter().copied())
        .map(|name| format!("; nearest: {name}"))
        .unwrap_or_default();
    wrong(0, format!("expected one of {}{hint}", names.join(", ")))
}

/// Direction and order, with fio's number behind a colon: bytes from the end of an I/O to the next
/// one in order, or I/Os from each random offset.
pub(crate) fn rw(value: &str) -> Read<(Rw, Option<i64>)> {
    let Some((word, text)) = value.split_once(':') else { return Ok((direction(value)?, None)) };
    let rw = direction(word.trim_end())?;
    let at = value.len() - text.trim_start().len();
    let text = text.trim_start();
    let random = matches!(rw, Rw::RandRead | Rw::RandWrite | Rw::RandRw);
    let number = match text.strip_prefix('-') {
        Some(back) if !random => {
            -signed(super::bytes(back).map_err(|error| error.shifted(at + 1))?, at)?
        }
        _ if random => {
            let ios = super::fio_count(text).map_err(|error| error.shifted(at))?;
            signed(ios, at)?
        }
        _ => signed(super::bytes(text).map_err(|error| error.shifted(at))?, at)?,
    };
    // 0 bytes from one to the next, and one I/O from each offset, are what happens anyway.
    let plain = if random { 1 } else { 0 };
    Ok((rw, (number != plain).then_some(number)))
}

fn signed(number: u64, at: usize) -> Read<i64> {
    i64::try_from(number).map_err(|_| ValueError::new(at, "it is past the largest file"))
}

pub(crate) const DIRECTIONS: [(&str, Rw); 7] = [
    ("read", Rw::Read),
    ("write", Rw::Write),
    ("randread", Rw::RandRead),
    ("randwrite", Rw::RandWrite),
    ("rw", Rw::ReadWrite),
    ("readwrite", Rw::ReadWrite),
    ("randrw", Rw::RandRw),
];

fn direction(value: &str) -> Read<Rw> {
    choice(value, &DIRECTIONS, "rw")
}

/// A switch.
pub(crate) fn on_or_off(value: &str) -> Read<bool> {
    let pairs = [("1", "0"), ("yes", "no"), ("true", "false"), ("on", "off")];
    let words: Vec<_> = pairs.iter().flat_map(|(on, off)| [(*on, true), (*off, false)]).collect();
    choice(value, &words, "")
}

/// A switch that any number but 0 turns on.
pub(crate) fn on_or_number(value: &str) -> Read<bool> {
    integer(value).map(|number| number != 0).or_else(|_| on_or_off(value))
}

/// fio's `rw_sequencer`: whether I/Os from an offset repeat it.
pub(crate) fn sequencer(value: &str) -> Read<bool> {
    choice(value, &[("sequential", false), ("identical", true)], "")
}

/// Where writes go first.
pub(crate) const STAGE: [(&str, bool); 2] = [("memory", true), ("off", false)];

pub(crate) fn stage(value: &str) -> Read<bool> {
    choice(value, &STAGE, "")
}

/// A switch, or a time that switches on. `1` is one second.
pub(crate) fn ceilings(value: &str) -> Read<Ceilings> {
    match (value, on_or_off(value)) {
        ("1", _) => Ok(Ceilings::For(super::duration(value)?)),
        (_, Ok(true)) => Ok(Ceilings::On),
        (_, Ok(false)) => Ok(Ceilings::Off),
        (_, Err(_)) => match super::duration(value) {
            Ok(0) => Ok(Ceilings::Off),
            Ok(time) => Ok(Ceilings::For(time)),
            Err(error) => wrong(error.at, format!("{}, or on or off", error.meaning)),
        },
    }
}

const ENGINES: [(&str, &str); 10] = [
    ("psync", "psync"),
    ("sync", "psync"),
    ("vsync", "psync"),
    ("pvsync", "psync"),
    ("pvsync2", "psync"),
    ("io_uring", "io_uring"),
    ("libaio", "libaio"),
    ("posixaio", "pool"),
    ("mmap", "mmap"),
    ("null", "null"),
];

/// fio's engine name as ours.
pub(crate) fn fio_engine(value: &str) -> Read<String> {
    choice(value, &ENGINES, "engine").map(str::to_owned)
}

/// gpuio's engine name: fio's names are translated, and an unknown name is passed on, because the
/// table of engines belongs to the load.
pub(crate) fn engine(value: &str) -> Read<String> {
    let known = ENGINES.iter().any(|(name, _)| *name == value);
    if known || refusal("engine", value).is_some() {
        return fio_engine(value);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match value.find(|c| !plain(c)) {
        Some(at) => wrong(at, "expected the name of one engine, such as psync or io_uring"),
        None => Ok(value.to_owned()),
    }
}

const DRIVERS: [(&str, GpuDriver); 2] =
    [("software", GpuDriver::Software), ("system", GpuDriver::System)];
const DEVICES: [(&str, GpuWhich); 2] = [("all", GpuWhich::All), ("none", GpuWhich::None)];

/// The words for GPUs without numbers.
pub(crate) fn gpu_words() -> Vec<&'static str> {
    [words_of(&DEVICES), words_of(&DRIVERS)].concat()
}

/// `0,1`, `all`, `none`, `software`, `software:0,1`, `system:all`.
pub(crate) fn gpu(value: &str) -> Read<GpuRequest> {
    let (word, rest) = match value.split_once(':') {
        Some((word, rest)) => (word, Some((word.len() + 1, rest))),
        None => (value, None),
    };
    let driver = DRIVERS.iter().find(|(name, _)| *name == word).map(|(_, driver)| *driver);
    let which = match (driver, rest) {
        (Some(_), None) => GpuWhich::Unset,
        (Some(_), Some((at, rest))) => devices(rest).map_err(|error| error.shifted(at))?,
        (None, Some(_)) if word == "cuda" => {
            return wrong(0, "expected the number alone: 0 instead of cuda:0");
        }
        (None, Some((at, _))) => {
            return wrong(
                at - 1,
                "expected software: or system: before the colon; several GPUs are \
                 separated by commas, such as 0,1",
            );
        }
        (None, None) => devices(value)?,
    };
    Ok(GpuRequest { driver, which })
}

fn devices(value: &str) -> Read<GpuWhich> {
    if let Some((_, which)) = DEVICES.into_iter().find(|(name, _)| *name == value) {
        return Ok(which);
    }
    parse_index_list(value).map(GpuWhich::List).map_err(|error| {
        ValueError::new(
            error.at,
            "expected GPU numbers (0,1 or 0-3), all, none, software or software:0,1",
        )
    })
}

pub(crate) const VERIFY: [(&str, VerifyMode); 7] = [
    ("off", VerifyMode::Off),
    ("pass", VerifyMode::Pass),
    ("full", VerifyMode::Pass),
    ("file", VerifyMode::Pass),
    ("crc32c", VerifyMode::Pass),
    ("inline", VerifyMode::Inline),
    ("rewrite", VerifyMode::Rewrite),
];
/// fio's words, and those of a switch.
const VERIFY_TOO: [(&str, VerifyMode); 15] = [
    ("crc32c-intel", VerifyMode::Pass),
    ("md5", VerifyMode::Pass),
    ("crc64", VerifyMode::Pass),
    ("crc32", VerifyMode::Pass),
    ("crc16", VerifyMode::Pass),
    ("crc7", VerifyMode::Pass),
    ("xxhash", VerifyMode::Pass),
    ("sha512", VerifyMode::Pass),
    ("sha256", VerifyMode::Pass),
    ("sha1", VerifyMode::Pass),
    ("meta", VerifyMode::Pass),
    ("pattern", VerifyMode::Pass),
    ("0", VerifyMode::Off),
    ("1", VerifyMode::Pass),
    ("none", VerifyMode::Off),
];

/// Whether and when data is verified.
pub(crate) fn verify(value: &str) -> Read<VerifyMode> {
    choice(value, &[&VERIFY[..], &VERIFY_TOO].concat(), "verify")
}

pub(crate) const ARRIVALS: [(&str, Arrivals); 3] =
    [("steady", Arrivals::Steady), ("poisson", Arrivals::Poisson), ("linear", Arrivals::Steady)];

/// fio's `rate_process` and gpuio's `arrivals`.
pub(crate) fn arrivals(value: &str) -> Read<Arrivals> {
    choice(value, &ARRIVALS, "")
}

pub(crate) const DISTRIBUTIONS: [(&str, char); 6] = [
    ("random", 'r'),
    ("zipf", 'z'),
    ("pareto", 'p'),
    ("normal", 'n'),
    ("zoned", 'd'),
    ("zoned_abs", 'b'),
];

/// fio's `random_distribution`.
pub(crate) fn distribution(value: &str) -> Read<Distribution> {
    let (word, number) = match value.split_once(':') {
        Some((word, number)) => (word, Some((word.len() + 1, number))),
        None => (value, None),
    };
    match (choice(word, &DISTRIBUTIONS, "distribution")?, number) {
        ('r', None) => Ok(Distribution::Uniform),
        ('r', Some((at, _))) => wrong(at, "random takes no number"),
        // fio's own defaults.
        ('z', None) => Ok(Distribution::Zipf { theta: 1.1 }),
        ('p', None) => Ok(Distribution::Pareto { h: 0.2 }),
        ('d' | 'b', None) => wrong(word.len(), "give the zones: zoned:60/10:30/20:10/70"),
        (kind @ ('d' | 'b'), Some((at, text))) => {
            let zones = super::zones(text, kind == 'b').map_err(|error| error.shifted(at))?;
            Ok(match kind {
                'd' => Distribution::Zoned { zones },
                _ => Distribution::ZonedAbs { zones },
            })
        }
        (_, None) => wrong(word.len(), "give its number: normal:10 (deviation in %)"),
        (kind, Some((at, text))) => shaped(kind, text).map_err(|error| error.shifted(at)),
    }
}

fn shaped(kind: char, text: &str) -> Read<Distribution> {
    if let Some(at) = text.find(':') {
        return wrong(at, "fio's second number, the centre of the hot blocks, is not supported");
    }
    if kind == 'n' {
        return match parse_percent(text)? {
            0.0 => wrong(0, "expected a deviation above 0 percent"),
            deviation_percent => Ok(Distribution::Normal { deviation_percent }),
        };
    }
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    if let Some(at) = text.find(|c| !plain(c)) {
        return wrong(at, "expected a number, such as 0.9");
    }
    match (kind, text.parse::<f64>()) {
        // At theta 1 the closed form of the zeta sum divides by zero (fio refuses it as well).
        ('z', Ok(theta)) if theta > 0.0 && theta != 1.0 && theta.is_finite() => {
            Ok(Distribution::Zipf { theta })
        }
        ('z', _) => wrong(0, "expected theta above 0 and not exactly 1, such as 1.2"),
        (_, Ok(h)) if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto { h }),
        _ => wrong(0, "expected a power above 0 and below 1, such as 0.9"),
    }
}

pub(crate) fn memories() -> Vec<(&'static str, MemoryKind)> {
    MemoryKind::ALL.iter().map(|kind| (kind.name(), *kind)).collect()
}

/// Memory by gpuio's names.
pub(crate) fn memory(value: &str) -> Read<MemoryKind> {
    choice(value, &memories(), "")
}

/// Memory by fio's names.
pub(crate) fn fio_memory(value: &str) -> Read<MemoryKind> {
    choice(
        value,
        &[
            ("malloc", MemoryKind::Malloc),
            ("mmap", MemoryKind::Mmap),
            ("cudamalloc", MemoryKind::Device),
        ],
        "memory",
    )
}

pub(crate) const CPU_POLICIES: [(&str, bool); 2] = [("shared", false), ("split", true)];

/// fio's `cpus_allowed_policy`: whether each thread has one CPU of its own.
pub(crate) fn cpu_policy(value: &str) -> Read<bool> {
    choice(value, &CPU_POLICIES, "")
}

pub(crate) const FADVISE_HINTS: [(&str, Option<FadviseHint>); 5] = [
    ("0", None),
    ("1", Some(FadviseHint::Load)),
    ("sequential", Some(FadviseHint::Sequential)),
    ("random", Some(FadviseHint::Random)),
    ("noreuse", Some(FadviseHint::Noreuse)),
];

/// fio's `fadvise_hint`.
pub(crate) fn fadvise_hint(value: &str) -> Read<Option<FadviseHint>> {
    choice(value, &FADVISE_HINTS, "")
}

/// Which routes copies between two GPUs may take.
pub(crate) fn via_peer(value: &str) -> Read<ViaPeer> {
    choice(value, &[("peer", ViaPeer::Peer), ("any", ViaPeer::Any)], "")
}

pub(crate) fn layouts() -> [(&'static str, LayoutKind); 3] {
    [LayoutKind::FilePerThread, LayoutKind::Segmented, LayoutKind::Strided]
        .map(|kind| (kind.word(), kind))
}

/// How the data of all threads lie in files.
pub(crate) fn layout(value: &str) -> Read<LayoutKind> {
    choice(value, &layouts(), "")
}

pub(crate) const SHIFTS: [(&str, ReadShift); 2] =
    [("rank", ReadShift::Ranks(1)), ("node", ReadShift::Node)];

/// The data that a rank reads: `rank`, `node`, or how many ranks further on.
pub(crate) fn read_shift(value: &str) -> Read<ReadShift> {
    if let Some((_, shift)) = SHIFTS.into_iter().find(|(word, _)| *word == value) {
        return Ok(shift);
    }
    at_least_one_u32(value).map(ReadShift::Ranks).map_err(|error| {
        let what = "expected rank, node, or a number of ranks from 1 on";
        ValueError::new(error.at, what)
    })
}

/// fio's `file_service_type`: whether a thread with several files takes a block of each in turn.
pub(crate) fn file_service(value: &str) -> Read<bool> {
    choice(value, &[("roundrobin", true), ("sequential", false), ("serial", false)], "files")
}

/// fio's `cuda_io`: whether the bytes pass host memory.
pub(crate) fn cuda_io(value: &str) -> Read<bool> {
    choice(value, &[("cufile", false), ("posix", true)], "")
}

pub(crate) fn fills() -> [(&'static str, Fill); 3] {
    [Fill::Pattern, Fill::Random, Fill::Zero].map(|kind| (kind.word(), kind))
}

/// Content of written blocks.
pub(crate) fn fill(value: &str) -> Read<Fill> {
    choice(value, &fills(), "")
}

/// fio's `sync`: every form of durable writes is `O_DSYNC` here.
pub(crate) fn sync(value: &str) -> Read<bool> {
    if let Ok(number) = integer(value) {
        return Ok(number != 0);
    }
    choice(value, &[("none", false), ("dsync", true), ("sync", true)], "")
}
