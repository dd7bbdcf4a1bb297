//! Which bytes of which files each thread works on.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use gpuio_base::units::many;
use gpuio_record::{
    BlockShare, GuardNote, LayoutKind, LayoutPlan, Region, Stripe, TargetKind, TargetPlan,
};

use super::PlanError;
use super::defaults::{SIZE, mix_and_order};
use super::facts::{Facts, LinkInfo, TargetInfo};
use super::placement::worker_seed;
use crate::spec::{FeedRequest, JobSpec, formatted_name};

/// Where data sets go when no directory is named.
pub const SCRATCH: &str = "gpuio-scratch";

/// The files of a job and what is there now.
pub(super) struct Ground {
    pub(super) directory: Option<String>,
    pub(super) prefix: String,
    /// How the names of files in the directory are made, where not by the prefix.
    pub(super) format: Option<String>,
    /// Their paths, until they are part of targets ([`Ground::targets`]).
    pub(super) paths: Vec<String>,
    pub(super) infos: Vec<Arc<TargetInfo>>,
    /// Whether threads share all files, region after region.
    pub(super) shared: bool,
    /// How many threads do, of all ranks; 1 where they don't.
    pub(super) sharers: u64,
    /// Number of the first thread among those whose data this job uses.
    first: u32,
    /// Whether their blocks alternate.
    strided: bool,
    /// Whether the directory is gpuio's own scratch.
    pub(super) scratch: bool,
    /// Files of each thread in the directory.
    each: u32,
    /// The length of each of a thread's files, where that was requested.
    pub(super) lengths: Option<Vec<u64>>,
}

impl Ground {
    /// The links among its files and directories, in words; of many the first ones.
    pub(super) fn links(&self) -> Vec<String> {
        const SHOWN: usize = 4;
        let mut all: Vec<&LinkInfo> = Vec::new();
        for link in self.infos.iter().filter_map(|place| place.link.as_ref()) {
            // Files of one directory have its link one after the other.
            if all.last() != Some(&link) {
                all.push(link);
            }
        }
        let more = all.len().saturating_sub(SHOWN);
        let more =
            (more > 0).then(|| format!("{} so", many(more as u64, "more file is|more files are")));
        all.iter().take(SHOWN).map(|link| link.words()).chain(more).collect()
    }

    /// Files of each thread in the directory, where that is more than one.
    pub(super) fn files_per_thread(&self) -> Option<u32> {
        (self.each > 1).then_some(self.each)
    }

    /// Files that each thread works on.
    pub(super) fn files_of_a_thread(&self) -> usize {
        match self.directory {
            Some(_) if !self.shared => self.each as usize,
            _ => self.infos.len(),
        }
    }
}

/// Regions of all threads.
pub(super) struct Laid {
    /// Bytes of a thread, as requested.
    pub(super) size_bytes: u64,
    /// The same as they lie in its files, in whole units: one pass.
    pub(super) pass_bytes: u64,
    /// The share of each file that a thread works on, where files have parts of different length.
    pub(super) size_percent: Option<u8>,
    pub(super) targets: Vec<TargetPlan>,
    pub(super) regions: Vec<Vec<Region>>,
}

impl Laid {
    /// Regions that follow from the files' content.
    pub(super) fn of_files(
        size_bytes: u64,
        targets: Vec<TargetPlan>,
        regions: Vec<Vec<Region>>,
    ) -> Laid {
        Laid { size_bytes, pass_bytes: size_bytes, size_percent: None, targets, regions }
    }
}

/// The request with its offset in bytes, where that is a share of the files: rounded up to the
/// smallest block, as in fio.
pub(super) fn with_offset<'a>(
    requested: &'a JobSpec,
    ground: &Ground,
    blocks: &[BlockShare],
) -> Result<Cow<'a, JobSpec>, PlanError> {
    let Some(percent) = requested.offset_percent.filter(|percent| *percent > 0) else {
        return Ok(Cow::Borrowed(requested));
    };
    let wrong = |what: &str| Err(PlanError::usage(requested, "offset", what));
    let Some(lengths) = lengths(ground) else {
        return wrong(
            "a share of a file that is not there yet is no offset; add filesize=, or give bytes",
        );
    };
    if lengths.windows(2).any(|two| two[0] != two[1]) {
        return wrong(
            "the files have different lengths, so each would begin at another offset; write one \
             job for each, or give bytes",
        );
    }
    let length = lengths.first().copied().unwrap_or(0);
    let block = blocks.iter().map(|share| share.min_bytes).min().unwrap_or(1).max(1);
    let offset = u128::from(length) * u128::from(percent) / 100;
    let offset = u64::try_from(offset).unwrap_or(length).next_multiple_of(block);
    Ok(Cow::Owned(JobSpec { offset: Some(offset), offset_percent: None, ..requested.clone() }))
}

pub(super) fn ground(
    requested: &JobSpec,
    threads: u32,
    layout: Option<&LayoutPlan>,
    facts: &Facts<'_>,
) -> Result<Ground, PlanError> {
    let common = layout.filter(|layout| layout.kind.is_shared());
    let of_rank = layout.and_then(|layout| layout.reads_rank);
    let first = of_rank.unwrap_or_else(|| own_rank(requested)).saturating_mul(threads);
    let strided = common.is_some_and(|layout| layout.kind == LayoutKind::Strided);
    let all = common.map(|layout| u64::from(layout.ranks) * u64::from(threads));
    let sharers = |shared: bool| if shared { all.unwrap_or(u64::from(threads)) } else { 1 };
    let prefix = if requested.is_gdsio() { "gdsio" } else { "gpuio" };
    let prefix = requested.file_prefix.clone().unwrap_or_else(|| prefix.to_owned());
    one_directory(requested, layout)?;
    if let Some(names) = &requested.filenames {
        let (paths, infos) = named(requested, names, facts)?;
        let shared = requested.shared_files.unwrap_or(!requested.is_fio() && threads > 1);
        let shared = common.is_some() || shared;
        let sharers = sharers(shared);
        // Without a layout each rank has regions of its own threads only.
        let first = if common.is_some() { first } else { 0 };
        return Ok(Ground {
            directory: None,
            prefix,
            format: None,
            paths,
            infos,
            shared,
            sharers,
            first,
            strided,
            scratch: false,
            each: 1,
            lengths: None,
        });
    }
    let each = requested.files_per_thread.unwrap_or(1);
    let scratch = requested.directory.is_none();
    let rank = requested.rank.as_ref().map(|place| place.rank);
    let directory = requested.directory.clone().unwrap_or_else(|| scratch_of(rank));
    let numbers = first..first.saturating_add(threads);
    let format = requested.filename_format.as_ref().filter(|_| common.is_none());
    let (thread, file) = (numbers.end.saturating_sub(1), each.saturating_sub(1));
    let longest = match (common, format) {
        (Some(_), _) => format!("{prefix}.{SHARED}"),
        (None, Some(format)) => formatted_name(format, thread, file),
        (None, None) if each > 1 => format!("{prefix}.{thread}.{file}"),
        (None, None) => format!("{prefix}.{thread}"),
    };
    let all: Vec<&String> = iter::once(&directory).chain(&requested.more_directories).collect();
    for directory in &all {
        fits(requested, directory, &longest, format.is_some())?;
    }
    let paths = match common {
        Some(_) => vec![file_of(&directory, &prefix, SHARED)],
        None => own_files(&all, (&prefix, format), numbers, each),
    };
    let infos = paths.iter().map(|path| facts.targets.look(path)).collect();
    let (directory, shared) = (Some(directory), common.is_some());
    let sharers = sharers(shared);
    let each = if shared { 1 } else { each };
    let format = format.cloned();
    Ok(Ground {
        directory,
        prefix,
        format,
        paths,
        infos,
        shared,
        sharers,
        first,
        strided,
        scratch,
        each,
        lengths: None,
    })
}

/// Refuses several directories where threads have no files of their own in them.
fn one_directory(requested: &JobSpec, layout: Option<&LayoutPlan>) -> Result<(), PlanError> {
    let what = if requested.more_directories.is_empty() {
        return Ok(());
    } else if requested.filenames.is_some() {
        "threads take directories in turn, and by this filename_format they share the files; add \
         $jobnum to it, or give one directory"
    } else if layout.is_some()
        || requested.is_gdsio()
        || requested.feed != FeedRequest::default()
        || requested.replay.is_some()
    {
        "the files of this job are in one directory; write one job for each directory"
    } else {
        return Ok(());
    };
    Err(PlanError::usage(requested, "directory", what))
}

/// The named files, and what they are.
fn named(
    requested: &JobSpec,
    names: &[String],
    facts: &Facts<'_>,
) -> Result<(Vec<String>, Vec<Arc<TargetInfo>>), PlanError> {
    let join = |name: &String| match &requested.directory {
        // fio joins the two; a name that is absolute stays as it is.
        Some(dir) if !name.starts_with('/') => format!("{}/{name}", dir.trim_end_matches('/')),
        _ => name.clone(),
    };
    if requested.is_gdsio() && requested.directory.is_some() {
        let what = "-D (directory) and -f (filename) exclude each other; give one";
        return Err(PlanError::usage(requested, "filenames", what));
    }
    let paths: Vec<String> = names.iter().map(join).collect();
    let infos: Vec<Arc<TargetInfo>> = paths.iter().map(|path| facts.targets.look(path)).collect();
    if let Some(at) = infos.iter().position(|place| place.directory) {
        let what = format!("{} is a directory; give it with --directory", paths[at]);
        return Err(PlanError::usage(requested, "filenames", what));
    }
    Ok((paths, infos))
}

/// The length that was requested of each of a thread's files. Those of a range are drawn in whole
/// blocks, as fio does, but for all threads alike: each of them moves the same number of bytes.
pub(super) fn requested_lengths(
    requested: &JobSpec,
    files: usize,
    blocks: &[BlockShare],
) -> Result<Option<Vec<u64>>, PlanError> {
    let Some(least) = requested.file_bytes else { return Ok(None) };
    let Some(most) = requested.file_bytes_most else { return Ok(Some(vec![least; files])) };
    let unit = blocks.iter().map(|share| share.min_bytes).min().unwrap_or(1).max(1);
    let largest = blocks.iter().map(|share| share.max_bytes).max().unwrap_or(1);
    let (first, last) = (least.max(largest).div_ceil(unit), most / unit);
    let Some(more) = last.checked_sub(first) else {
        let what = format!(
            "no length from {least} to {most} bytes is a number of blocks, the largest of \
             {largest} bytes; give longer files, or lower bs"
        );
        return Err(PlanError::usage(requested, "file_bytes", what));
    };
    // Other numbers than the threads' own seeds.
    let seed = !requested.seed.unwrap_or(1);
    let drawn = |nth| (first + worker_seed(seed, nth) % more.saturating_add(1)) * unit;
    Ok(Some((0u32..).take(files).map(drawn).collect()))
}

/// The files of these threads, which take the directories in turn: fio spreads the clones of a job
/// like this, and not the files of one of them.
fn own_files(
    directories: &[&String],
    (prefix, format): (&str, Option<&String>),
    numbers: Range<u32>,
    each: u32,
) -> Vec<String> {
    let files = |directory: &str, numbers| match format {
        Some(format) => formatted(directory, format, numbers, each),
        None => numbered(directory, prefix, numbers, each),
    };
    if let [one] = directories {
        return files(one, numbers);
    }
    let in_turn = |thread: u32| directories[thread as usize % directories.len()];
    numbers.flat_map(|thread| files(in_turn(thread), thread..thread + 1)).collect()
}

/// The files of these threads, `each` of a thread.
fn numbered(directory: &str, prefix: &str, numbers: Range<u32>, each: u32) -> Vec<String> {
    let paths = files_of(directory, prefix, numbers);
    match each {
        0 | 1 => paths.collect(),
        _ => paths.flat_map(|path| (0..each).map(move |nth| format!("{path}.{nth}"))).collect(),
    }
}

/// The same by a format of names.
fn formatted(directory: &str, format: &str, numbers: Range<u32>, each: u32) -> Vec<String> {
    let directory = directory.trim_end_matches('/');
    let path = |thread, file| [directory, "/", &formatted_name(format, thread, file)].concat();
    numbers.flat_map(|thread| (0..each).map(move |file| path(thread, file))).collect()
}

/// Longest name of a file, and longest path with the byte that ends it (limits.h, `NAME_MAX` and
/// `PATH_MAX`).
const NAME_MOST: usize = 255;
const PATH_MOST: usize = 4096;

/// Refuses names that no file can have, before there is one for each file.
fn fits(
    requested: &JobSpec,
    directory: &str,
    longest: &str,
    formatted: bool,
) -> Result<(), PlanError> {
    let file = longest.rsplit('/').next().unwrap_or(longest).len();
    let path = directory.len() + 1 + longest.len();
    if file > NAME_MOST {
        let what = format!(
            "names of files would have {file} bytes, and {NAME_MOST} are the most; shorten {}",
            if formatted { "the job's, or filename_format" } else { "it" }
        );
        let field = if formatted { "filename_format" } else { "file_prefix" };
        return Err(PlanError::usage(requested, field, what));
    }
    if path >= PATH_MOST {
        let what = format!(
            "paths of files would have {path} bytes, and {} are the most; shorten directory or \
             file_prefix",
            PATH_MOST - 1
        );
        return Err(PlanError::usage(requested, "directory", what));
    }
    Ok(())
}

/// The last part of the name of a file that all threads share.
const SHARED: &str = "shared";

/// The file of a directory with this last part of its name. A plan may have millions: none takes
/// more memory than it has bytes.
fn file_of(directory: &str, prefix: &str, last: &str) -> String {
    let trimmed = if directory == "/" { "" } else { directory.trim_end_matches('/') };
    [trimmed, "/", prefix, ".", last].concat()
}

/// The files of threads of these numbers.
pub(super) fn files_of(
    directory: &str,
    prefix: &str,
    threads: std::ops::Range<u32>,
) -> impl Iterator<Item = String> {
    threads.map(move |n| file_of(directory, prefix, &n.to_string()))
}

/// This process's rank; 0 without others.
fn own_rank(requested: &JobSpec) -> u32 {
    requested.rank.as_ref().map_or(0, |place| place.rank)
}

/// The scratch directory; of each rank its own, since ranks end at different times.
fn scratch_of(rank: Option<u32>) -> String {
    rank.map_or_else(|| SCRATCH.to_owned(), |rank| format!("{SCRATCH}-{rank}"))
}

/// The number of a job's first thread among those of all ranks: each rank has as many.
pub(super) fn first_thread(requested: &JobSpec, threads: u32) -> u32 {
    own_rank(requested).saturating_mul(threads)
}

pub(super) fn lay(
    requested: &JobSpec,
    threads: u32,
    ground: &mut Ground,
    block_max: u64,
    alignment: u64,
    facts: &Facts<'_>,
) -> Result<Laid, PlanError> {
    let offset = requested.offset.unwrap_or(0);
    let read_only = requested.read_only == Some(true);
    let keeps = if read_only { "read_only" } else { "create_files" };
    if read_only || requested.create_files == Some(false) {
        let absent = ground.infos.iter().position(|place| place.length_bytes.is_none());
        if let Some(at) = absent {
            let path = &ground.paths[at];
            let what = format!("{path} does not exist, and is not to be made; name one that does");
            return Err(PlanError::usage(requested, keeps, what));
        }
    }
    let per_file = ground.directory.is_some() && !ground.shared;
    let parts = parts(requested, threads, ground, block_max, alignment, facts)?;
    let last = last_start(requested, threads, per_file);
    let sharers = ground.sharers;
    let used = |part: u64| {
        let all = part.checked_mul(sharers);
        all.and_then(|all| all.checked_add(offset)?.checked_add(last?))
            .filter(|length| *length <= i64::MAX as u64)
            .ok_or_else(|| {
                let what = "offset plus size of all threads is past the largest file";
                PlanError::usage(requested, "size", what)
            })
    };
    let mut targets = ground.targets(0);
    for (nth, target) in targets.iter_mut().enumerate() {
        target.length_bytes = longer(requested, ground, nth, used(parts.of(nth))?)?;
        let has = ground.infos[nth].length_bytes.unwrap_or(0);
        if read_only && has < target.length_bytes {
            let (path, needs) = (&target.path, target.length_bytes);
            let what = format!("{path} has {has} bytes of the {needs} that are read; use less");
            return Err(PlanError::usage(requested, keeps, what));
        }
    }
    let stripe = ground.strided.then(|| Stripe {
        block_bytes: block_max,
        stride_bytes: ground.sharers.saturating_mul(block_max),
    });
    let apart = if per_file { 0 } else { requested.offset_increment.unwrap_or(0) };
    let regions = (0..threads)
        .map(|thread| {
            let before = u64::from(ground.first) + u64::from(thread);
            let region = |target: u32| {
                let length = parts.of(target as usize);
                let step = if ground.strided { block_max } else { length };
                let at = if ground.shared { offset + before * step } else { offset };
                Region { target, offset: at + apart * u64::from(thread), length, stripe }
            };
            if per_file {
                let first = thread.saturating_mul(ground.each);
                (first..first.saturating_add(ground.each)).map(region).collect()
            } else {
                (0u32..).take(ground.infos.len()).map(region).collect()
            }
        })
        .collect();
    let size_percent = parts.percent.filter(|_| !parts.are_alike());
    let pass_bytes = parts.sum().min(parts.all);
    Ok(Laid { size_bytes: parts.all, pass_bytes, size_percent, targets, regions })
}

/// How far behind the first thread's region the last one's may start in addition: threads of named
/// files that share nothing may start apart all the same.
fn last_start(requested: &JobSpec, threads: u32, per_file: bool) -> Option<u64> {
    let apart = if per_file { 0 } else { requested.offset_increment.unwrap_or(0) };
    apart.checked_mul(u64::from(threads.saturating_sub(1)))
}

/// The length of the files: what is used of them, or longer where that was requested.
fn longer(requested: &JobSpec, ground: &Ground, nth: usize, used: u64) -> Result<u64, PlanError> {
    let Some(lengths) = &ground.lengths else { return Ok(used) };
    let wanted = lengths[nth % lengths.len()];
    let what = if wanted < used {
        format!("files of {wanted} bytes do not hold the {used} that the threads use of them")
    } else if wanted > i64::MAX as u64 {
        "it is past the largest file".to_owned()
    } else if ground.infos.iter().any(|place| place.device) {
        "a block device has the length that it has; leave it out".to_owned()
    } else {
        return Ok(wanted);
    };
    Err(PlanError::usage(requested, "file_bytes", what))
}

impl Ground {
    /// The files, of which so many bytes are used. They take the paths.
    pub(super) fn targets(&mut self, length_bytes: u64) -> Vec<TargetPlan> {
        std::mem::take(&mut self.paths)
            .into_iter()
            .zip(&self.infos)
            .map(|(path, place)| TargetPlan {
                file_number: file_number(&path),
                path,
                kind: if place.device { TargetKind::BlockDevice } else { TargetKind::File },
                length_bytes,
                // The guard looks at the real file and has the last word before anything runs.
                guard: match place.length_bytes {
                    None => GuardNote::Make,
                    Some(_) => GuardNote::ForeignReadOnly,
                },
                holes: Vec::new(),
            })
            .collect()
    }
}

/// The file's number in the pattern: a hash of its name (FNV-1a), so that a file can be verified
/// by any later job, whatever its position in that job's list.
pub(super) fn file_number(path: &str) -> u64 {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A thread's bytes, and how they lie in its files.
struct Parts {
    /// Bytes of a thread in all of its files, as requested.
    all: u64,
    /// Bytes in each of them; the same for all threads.
    each: Vec<u64>,
    /// The share of each file that this is, where no size in bytes was requested.
    percent: Option<u8>,
}

impl Parts {
    /// The bytes in the file of this number in the job's list.
    fn of(&self, nth: usize) -> u64 {
        self.each.get(nth % self.each.len().max(1)).copied().unwrap_or(0)
    }

    fn sum(&self) -> u64 {
        self.each.iter().sum()
    }

    fn are_alike(&self) -> bool {
        self.each.windows(2).all(|two| two[0] == two[1])
    }
}

/// A thread's part of each of its files. `size` is of all of them together, as in fio: they divide
/// it. Without a size, or with a share, it is that of each file that is there.
fn parts(
    requested: &JobSpec,
    threads: u32,
    ground: &Ground,
    block_max: u64,
    alignment: u64,
    facts: &Facts<'_>,
) -> Result<Parts, PlanError> {
    let files = ground.files_of_a_thread().max(1);
    let unit = if ground.strided && (files > 1 || requested.size.is_none()) {
        block_max.max(alignment).max(1)
    } else {
        alignment.max(1)
    };
    let divided = |all: u64| {
        let each = all / files as u64;
        // The bytes of one file are taken as they are.
        let whole = files == 1 && (requested.size.is_some() || !ground.strided);
        let each = if whole { each } else { each - each % unit };
        Parts { all, each: vec![each; files], percent: None }
    };
    // Files of several lengths are used whole; a size bounds what is moved, as in fio.
    let size = requested.size.filter(|_| requested.file_bytes_most.is_none());
    let parts = if let Some(size) = size {
        // fio's files are as long as that says, and a job no longer than its files.
        let most = requested.file_bytes.filter(|_| requested.is_fio());
        divided(most.map_or(size, |each| size.min(each.saturating_mul(files as u64))))
    } else if let Some(lengths) = lengths(ground) {
        let percent = requested.size_percent.unwrap_or(100);
        let each = |length: &u64| portion(*length, percent, requested, ground.sharers, unit);
        let each: Vec<u64> = lengths.iter().take(files).map(each).collect();
        let all = each.iter().sum();
        let percent = requested.size.is_none().then_some(percent);
        Parts { all: requested.size.map_or(all, |size| size.min(all)), each, percent }
    } else {
        divided(new_size(requested, threads, ground, block_max, facts)?)
    };
    match parts.each.iter().position(|part| *part < block_max) {
        None => Ok(parts),
        Some(at) if parts.percent.is_some() && is_whole(requested) => {
            // The file's owner is not known here: nothing is proposed that would make it longer.
            let what = format!(
                "{} holds {} bytes: too few for {} of one {block_max}-byte block each \
                 after offset {}; lower --bs or --threads, or name a longer file",
                ground.paths[at],
                ground.infos[at].length_bytes.unwrap_or(0),
                many(ground.sharers.max(threads.into()), "thread"),
                requested.offset.unwrap_or(0)
            );
            Err(PlanError::usage(requested, "filenames", what))
        }
        Some(_) if requested.scale.is_some() => {
            let what = format!(
                "it leaves {} bytes of each thread, less than a block of {block_max}; raise \
                 --scale",
                parts.all
            );
            Err(PlanError::usage(requested, "scale", what))
        }
        Some(_) => {
            let of =
                if files > 1 { format!(", which {files} files divide,") } else { String::new() };
            let unit = match parts.all {
                0..1024 => " (without a unit a size is in bytes: 64M)",
                _ => "",
            };
            let what = format!(
                "a size of {} bytes{unit} per thread{of} holds no block of {block_max} bytes; \
                 raise --size or lower --bs",
                parts.all
            );
            Err(PlanError::usage(requested, "size", what))
        }
    }
}

/// Whether a job takes all of its files, as long as they are.
fn is_whole(requested: &JobSpec) -> bool {
    requested.size.or(requested.file_bytes).is_none() && requested.size_percent.is_none()
}

/// The length of each of a thread's files: as requested, or as they are, where all are there.
fn lengths(ground: &Ground) -> Option<Vec<u64>> {
    let there = || ground.infos.iter().map(|place| place.length_bytes).collect();
    match &ground.lengths {
        Some(requested) => Some(requested.clone()),
        // Files of a directory are made as long as each other.
        None if ground.directory.is_some() => {
            let there: Option<Vec<u64>> = there();
            let shortest = there?.into_iter().min()?;
            Some(vec![shortest; ground.paths.len()])
        }
        None => there(),
    }
}

/// A share of a file behind the offset, for one of the threads that share it.
fn portion(length: u64, percent: u8, requested: &JobSpec, sharers: u64, unit: u64) -> u64 {
    let wanted = u128::from(length) * u128::from(percent) / 100;
    let left = length.saturating_sub(requested.offset.unwrap_or(0));
    let each = u64::try_from(wanted).unwrap_or(length).min(left) / sharers;
    each - each % unit
}

/// Bytes of each thread in files that are to be made, where no size was requested.
fn new_size(
    requested: &JobSpec,
    threads: u32,
    ground: &Ground,
    block_max: u64,
    facts: &Facts<'_>,
) -> Result<u64, PlanError> {
    if requested.size_percent.is_some() {
        let what = "a share of a file that is not there yet is no size; add filesize=, or give \
                    bytes";
        return Err(PlanError::usage(requested, "size", what));
    }
    if requested.is_gdsio() && mix_and_order(requested).0 > 0 {
        let what = "no size (-s) was given and the files are not there yet; write them first with \
                    -I 1 and the same -D, -w and -s";
        return Err(PlanError::usage(requested, "size", what));
    }
    Ok(suits(threads, ground, facts)
        .max(block_max.saturating_mul(ground.files_of_a_thread() as u64)))
}

/// A size that suits disk and memory: at most 1 GiB a thread, and all threads together at most a
/// quarter of the free space on the disk and half of usable memory.
fn suits(threads: u32, ground: &Ground, facts: &Facts<'_>) -> u64 {
    const MIB: u64 = 1 << 20;
    let threads = ground.sharers.max(u64::from(threads.max(1)));
    let share = |bytes: u64, of: u64| bytes / of / threads;
    let disk = ground.infos.iter().filter_map(|p| p.free_bytes).min();
    let disk = disk.map_or(u64::MAX, |free| share(free, 4));
    let memory = facts.host.memory.usable_bytes.map_or(u64::MAX, |usable| share(usable, 2));
    let size = SIZE.min(disk).min(memory).max(MIB);
    size - size % MIB
}
