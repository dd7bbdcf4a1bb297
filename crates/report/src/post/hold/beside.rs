//! A result against what other tools saw in the same minute.

use gpuio_base::document::unique;
use gpuio_base::units::{float, human_bytes};
use gpuio_machine::check::{Answer, whole_below};

use super::requested::gds_of;
use super::{Known, machine_of, say, words};
use crate::foreign::Direction;
use crate::post::command::one_at_a_time;
use crate::post::seen::{CuFile, Disk, Module, Sight, Traffic, moved, moving};
use crate::post::{About, Got, Post, Run, Seen, Statement};

/// By how much tools that count at different places and in different seconds differ: within it they
/// agree. NVIDIA's guide has up to 3 % between gdsio and iostat.
const AGREE: f64 = 0.10;

/// The same for the traffic of two GPUs in one second, and the least of it that is a load's.
const RELAYED: f64 = 0.02;
const RELAYED_LEAST: f64 = 100e6;

/// The same for queues: older kernels count requests that are still under way.
const LITTLE: f64 = 0.25;

/// The same for sums within one report: its lines are of one moment.
const SUMS: f64 = 0.01;

pub(super) fn hold(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    for run in &post.runs {
        for seen in &run.apart {
            let agreed = match &seen.sight {
                Sight::Disks(disks) => disks_of(post, known, run, seen, disks),
                _ => Vec::new(),
            };
            if agreed.iter().any(|one| one.about == About::Agreement) {
                all.extend(agreed);
                continue;
            }
            let text = format!(
                "{} and the run stand one after the other at one prompt: whether any of it is of \
                 the run's time is not said, so nothing follows from it.",
                seen.tool
            );
            all.push(say(post, About::Next, &[run.line, seen.line], text));
        }
        for seen in &run.beside {
            match &seen.sight {
                Sight::Disks(disks) => {
                    all.extend(disks_of(post, known, run, seen, disks));
                    all.extend(queues_left_out(post, seen, disks));
                    if run.got.is_none() {
                        all.extend(above(post, seen, disks));
                    }
                }
                Sight::CuFile(stats) => all.extend(cufile(post, run, seen, stats)),
                Sight::Module(module) => {
                    all.extend(moved_though_off(post, known, run, (seen.line, module)));
                    let text = module.across.iter().map(|(gpu, share)| {
                        format!(
                            "{share:.0} % of the transfers of GPU {gpu} crossed PCIe root ports \
                             (nvidia-fs): drives or cards and GPU are below different ones."
                        )
                    });
                    all.extend(text.map(|text| say(post, About::Limit, &[seen.line], text)));
                    if module.errors > 0.0 {
                        let errors = words::count(module.errors);
                        let text = format!("nvidia-fs counts {errors} failed I/Os: see dmesg.");
                        all.push(say(post, About::Next, &[seen.line], text));
                    }
                }
                Sight::SinceBoot => {
                    let text = "iostat's only report is the mean since boot, and shows nothing of \
                                this run: `iostat -xy 5` beside it does.";
                    all.push(say(post, About::Next, &[seen.line], text.to_owned()));
                }
                Sight::Gpus(gpus) if run.got.is_none() => all.extend(relayed(post, seen, gpus)),
                Sight::Gpus(_) => {}
            }
        }
    }
    all
}

/// I/Os that nvidia-fs counts for a run whose place has no GDS by the facts of the text.
fn moved_though_off(
    post: &Post,
    known: &[Known<'_>],
    run: &Run,
    (line, module): (usize, &Module),
) -> Option<Statement> {
    let asked = run.asked.as_ref().filter(|_| module.counted() > 0.0)?;
    let off = gds_of(machine_of(known, run)?.machine, asked) == Answer::No;
    let is_gds = asked.path.as_deref().is_none_or(|path| path.starts_with("gds"));
    (off && is_gds).then(|| {
        let text = format!(
            "GDS is off for {} by the facts of these texts (`gpuio why`), and nvidia-fs counts {} \
             I/Os: whether GDS is on there is unknown. If the counts grow during the run, it is \
             on, and a fact is of another mount or time.",
            asked.places.join(", "),
            words::count(module.counted())
        );
        say(post, About::Contradiction, &[asked.line, line], text)
    })
}

/// Whether the drives move what a result has.
pub(in crate::post) fn agree(disks: &[Disk], got: &Got) -> bool {
    let sum: f64 = moving(disks, got.direction).iter().map(|one| moved(one, got.direction)).sum();
    got.rate.is_some_and(|rate| is_alike(sum / rate))
}

/// Whether a share of one rate of another is within what tools differ by.
pub(in crate::post) fn is_alike(share: f64) -> bool {
    (1.0 - AGREE..=1.0 + AGREE).contains(&share)
}

/// How much of the storage below a run's files the devices of a list are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it: its drives, or the array above them.
    Whole,
    /// So many of its drives, of so many.
    Part(u64, u64),
    /// None of it.
    Nothing,
    /// The texts do not show all of it.
    Unknown,
}

/// That share, and the devices that are it: an array itself where not all its members are listed.
pub(super) fn of_storage(
    known: &[Known<'_>],
    run: &Run,
    disks: &[Disk],
) -> (Share, Option<Vec<Disk>>) {
    let places = run.asked.as_ref().map_or(&[][..], |asked| &asked.places);
    let listed = |name: &str| disks.iter().any(|disk| disk.name == name);
    let own = |names: &[&str]| {
        let own = disks.iter().filter(|disk| names.contains(&disk.name.as_str()));
        Some(own.cloned().collect())
    };
    let nodes: Vec<&str> = places.iter().filter_map(|place| place.strip_prefix("/dev/")).collect();
    if !places.is_empty() && nodes.len() == places.len() && nodes.iter().all(|name| listed(name)) {
        return (Share::Whole, own(&nodes));
    }
    let whole = machine_of(known, run).and_then(|known| {
        let whole = places.iter().map(|place| whole_below(known.machine, place));
        whole.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
    });
    let Some(whole) = whole else { return (Share::Unknown, None) };
    let top: Vec<&str> = unique(whole.iter().flat_map(|one| one.top.iter().copied()));
    let drives: Vec<&str> = unique(whole.iter().flat_map(|one| one.drives.iter().copied()));
    let seen = drives.iter().filter(|name| listed(name)).count();
    match seen {
        _ if seen == drives.len() => (Share::Whole, None),
        _ if top.iter().all(|name| listed(name)) => (Share::Whole, own(&top)),
        0 => (Share::Nothing, None),
        _ => (Share::Part(seen as u64, drives.len() as u64), own(&drives)),
    }
}

/// The words on devices that are not all of the storage, in place of a contradiction.
fn in_part(
    post: &Post,
    (lines, names): (&[usize; 2], &str),
    share: &Share,
    (tool, rate, sum): (&str, f64, f64),
) -> Option<Statement> {
    let (own, at_drives) = (words::rate(rate), words::rate(sum));
    let held = format!("{tool} has {own}, iostat {at_drives} at {names}");
    let (about, text) = match *share {
        Share::Whole => return None,
        Share::Part(seen, of) => {
            let all = sum / float(seen) * float(of);
            let fits = is_alike(all / rate);
            let which = match seen {
                1 => format!("{names} is one of {of} drives below the file"),
                _ => format!("{names} are {seen} of {of} drives below the file"),
            };
            let text = format!(
                "{held}. {which}: if all move as much, they move {}, {:.0} % of it.",
                words::rate(all),
                all / rate * 100.0
            );
            let next = "`iostat -xm 5` of all of them shows the rest.";
            match fits {
                true => (About::Agreement, text),
                false => (About::Next, format!("{text} {next}")),
            }
        }
        Share::Nothing => {
            let why = "which is none of the storage below the file, so nothing follows from it";
            (About::Next, format!("{held}, {why}."))
        }
        Share::Unknown => {
            let why = "whether that is the whole storage below the file is not shown, so nothing \
                       follows from it. `lsblk`, `mount` and /proc/mdstat show it";
            (About::Next, format!("{held}: {why}."))
        }
    };
    Some(say(post, about, lines, text))
}

fn disks_of(
    post: &Post,
    known: &[Known<'_>],
    run: &Run,
    seen: &Seen,
    disks: &[Disk],
) -> Vec<Statement> {
    let (storage, own) = of_storage(known, run, disks);
    let disks = own.as_deref().unwrap_or(disks);
    let Some(got) = run.got.as_ref() else { return in_words(post, run, seen, disks, &storage) };
    let moving = moving(disks, got.direction);
    let sum: f64 = moving.iter().map(|disk| moved(disk, got.direction)).sum();
    let Some(rate) = got.rate.filter(|rate| *rate > 0.0) else { return Vec::new() };
    let names = words::and(&moving.iter().map(|disk| disk.name.clone()).collect::<Vec<_>>());
    let lines = [got.line, seen.line];
    let (own, side) = (words::rate(rate), words::moves(got.direction));
    let at_drives = words::rate(sum);
    let share = sum / rate;
    let mut all = Vec::new();
    if is_alike(share) {
        let text = format!(
            "iostat's {names} and {} agree: {at_drives} and {own}, {} apart (iostat's kB are 1024 \
             bytes). These drives moved the bytes, no cache.",
            got.tool,
            words::apart(sum, rate)
        );
        all.push(say(post, About::Agreement, &lines, text));
        all.extend(split(post, got, seen, &moving));
        all.extend(queue(post, run, got, seen, &moving));
    } else if let Some(said) = in_part(post, (&lines, &names), &storage, (got.tool, rate, sum)) {
        all.push(said);
    } else {
        let why = match (share < 1.0, got.direction) {
            (true, Direction::Write) => {
                "the rest is in a cache and not yet written, or went elsewhere"
            }
            (true, _) => "the rest came from a cache (page cache, or the drive is another one)",
            (false, Direction::Write) => {
                "redundancy, a journal, another program, or data of before that is written now"
            }
            (false, _) => "read-ahead, another program, or another minute",
        };
        let text = format!(
            "{} has {side} of {own}, iostat {at_drives} at {names}, {:.0} % of it: {why}.",
            got.tool,
            share * 100.0
        );
        all.push(say(post, About::Contradiction, &lines, text));
    }
    all.extend(busy(post, seen, &moving));
    all
}

/// Arrays and volumes that move what the drives of the list move together.
fn above(post: &Post, seen: &Seen, disks: &[Disk]) -> Vec<Statement> {
    let sum = |side| disks.iter().map(|disk| moved(disk, side)).sum::<f64>();
    let side = match sum(Direction::Write) > sum(Direction::Read) {
        true => Direction::Write,
        false => Direction::Read,
    };
    let moving: Vec<&Disk> = moving(disks, side);
    let all: f64 = moving.iter().map(|disk| moved(disk, side)).sum();
    let names: Vec<String> = moving.iter().map(|disk| disk.name.clone()).collect();
    let arrays = disks.iter().filter(|disk| disk.is_made_of_others() && moving.len() > 1);
    let alike = arrays.filter(|disk| (moved(disk, side) / all - 1.0).abs() <= SUMS);
    let said = alike.map(|disk| {
        let own = moved(disk, side);
        let text = format!(
            "iostat's {} and {} agree: {} and together {}, {} apart. So these are the drives below \
             it that move its bytes.",
            disk.name,
            words::and(&names),
            words::rate(own),
            words::rate(all),
            words::apart(own, all)
        );
        say(post, About::Agreement, &[seen.line], text)
    });
    said.collect()
}

/// A rate in words instead of a result line.
fn in_words(post: &Post, run: &Run, seen: &Seen, disks: &[Disk], share: &Share) -> Vec<Statement> {
    let Some((figure, line)) = &run.in_words else { return Vec::new() };
    let both: Vec<(f64, Vec<&Disk>)> = [Direction::Read, Direction::Write]
        .map(|side| {
            let moving = moving(disks, side);
            (moving.iter().map(|disk| moved(disk, side)).sum(), moving)
        })
        .into();
    let Some((sum, moving)) = both.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Vec::new();
    };
    let names = words::and(&moving.iter().map(|disk| disk.name.clone()).collect::<Vec<_>>());
    let (said, at_drives) = (&figure.text, words::rate(sum));
    let apart = words::apart(sum, figure.near(sum));
    let fits = figure.is_about(sum, AGREE);
    let rate = figure.near(sum);
    let part = in_part(post, (&[*line, seen.line], &names), share, ("The text", rate, sum));
    if let Some(part) = part.filter(|_| !fits) {
        return vec![part];
    }
    let (about, verb) = match fits {
        true => (About::Agreement, "agree"),
        false => (About::Contradiction, "do not agree"),
    };
    let text = format!(
        "iostat's {names} and the rate in words {verb}: {at_drives} and {said}, {apart} apart. The \
         text has no result line for it."
    );
    vec![say(post, about, &[*line, seen.line], text)]
}

/// I/Os that the block layer splits.
fn split(post: &Post, got: &Got, seen: &Seen, moving: &[&Disk]) -> Option<Statement> {
    let (block, first) = (float(got.block?), moving.first()?);
    let request = first.request_bytes.filter(|bytes| *bytes > 0.0)?;
    let parts = block / request;
    (parts >= 1.5).then(|| {
        let text = format!(
            "An I/O of {} reaches the drives as {parts:.0} requests of {}: limits of array \
             chunks and drives (max_sectors_kb), and no fault. Their latencies and counts are not \
             those of the program.",
            words::bytes(got.block.unwrap_or(0)),
            human_bytes(request)
        );
        say(post, About::Agreement, &[got.line, seen.line], text)
    })
}

/// Requests in flight that do not reach the drive.
fn queue(post: &Post, run: &Run, got: &Got, seen: &Seen, moving: &[&Disk]) -> Option<Statement> {
    let queue = moving.iter().map(|disk| disk.queue.filter(|_| !is_other_queue(disk)));
    let queue: f64 = queue.sum::<Option<f64>>()?;
    let depth = got.depth.or_else(|| run.asked.as_ref()?.depth)?;
    let wanted = float(depth.saturating_mul(got.threads.unwrap_or(1)));
    if wanted < 4.0 || queue * 2.0 > wanted {
        return None;
    }
    let why = match got.engine.as_deref() {
        Some(engine) if one_at_a_time(engine) => {
            format!("{engine} waits for each I/O, iodepth has no effect; use libaio or io_uring")
        }
        Some("libaio") => {
            "libaio waits where a file is not opened with O_DIRECT; add direct=1".to_owned()
        }
        _ => "the engine or a layer between takes fewer at once".to_owned(),
    };
    let text = format!("{wanted} I/Os in flight are requested, the drives see {queue:.2}: {why}.");
    Some(say(post, About::Limit, &[got.line, seen.line], text))
}

/// Bytes that one GPU passes on to another, where no result says at what rate they come.
fn relayed(post: &Post, seen: &Seen, gpus: &[Traffic]) -> Option<Statement> {
    let passes = |from: &Traffic, to: &Traffic| {
        let equal = (from.sent / to.received - 1.0).abs() <= RELAYED;
        let comes_in = from.received >= from.sent * (1.0 - AGREE);
        let ends = to.sent < to.received / 2.0;
        from.gpu != to.gpu && to.received >= RELAYED_LEAST && equal && comes_in && ends
    };
    let pairs = gpus.iter().flat_map(|from| gpus.iter().map(move |to| (from, to)));
    let pairs: Vec<_> = pairs.filter(|(from, to)| passes(from, to)).collect();
    let [(from, to)] = pairs.as_slice() else { return None };
    let text = format!(
        "GPU {} sends {}, GPU {} receives {} ({} apart), and {} comes into GPU {}: the bytes go \
         through its memory.",
        from.gpu,
        words::rate(from.sent),
        to.gpu,
        words::rate(to.received),
        words::apart(from.sent, to.received),
        words::rate(from.received),
        from.gpu
    );
    Some(say(post, About::Path, &[seen.line], text))
}

/// Whether a queue is not that which the rates and times of requests say (Little's law).
fn is_other_queue(disk: &Disk) -> bool {
    let Some((queue, waiting)) = disk.queue.zip(disk.waiting) else { return false };
    // Half a digit of the queue itself, too.
    (queue - waiting).abs() > waiting.max(queue) * LITTLE + disk.waiting_off + 0.005
}

/// Queues from which nothing follows. Some kernels count them wrong: that of NVIDIA's guide for the
/// DGX A100 (5.4) has 0.04 where 24 were in flight.
fn queues_left_out(post: &Post, seen: &Seen, disks: &[Disk]) -> Option<Statement> {
    let wrong: Vec<String> = disks
        .iter()
        .filter(|disk| is_other_queue(disk))
        .filter_map(|disk| Some(format!("{}: {:.2}, {:.2}", disk.name, disk.queue?, disk.waiting?)))
        .collect();
    (!wrong.is_empty()).then(|| {
        let text = format!(
            "iostat's queue (aqu-sz) is not the rate of requests x their times (r_await, w_await), \
             which is how many were in flight ({}): the kernel counts it wrong, or a figure was \
             changed. Nothing is concluded from this queue.",
            wrong.join("; ")
        );
        say(post, About::LeftOut, &[seen.line], text)
    })
}

fn busy(post: &Post, seen: &Seen, moving: &[&Disk]) -> Option<Statement> {
    let full = moving.iter().filter(|disk| disk.busy.is_some_and(|busy| busy >= 95.0));
    let names: Vec<String> = full.map(|disk| disk.name.clone()).collect();
    let nvme = names.iter().any(|name| name.starts_with("nvme"));
    (!names.is_empty() && names.len() == moving.len()).then(|| {
        let but = match nvme {
            true => {
                " %util of an NVMe drive says only that there was always a request, not that it \
                      could take no more."
            }
            false => "",
        };
        let text = format!("{} always had requests (%util).{but}", words::and(&names));
        say(post, About::Limit, &[seen.line], text)
    })
}

fn cufile(post: &Post, run: &Run, seen: &Seen, stats: &CuFile) -> Vec<Statement> {
    let mut all = Vec::new();
    let (read, write) = (stats.read_rate.unwrap_or(0.0), stats.write_rate.unwrap_or(0.0));
    let own = read.max(write);
    let latency = if read >= write { stats.read_latency } else { stats.write_latency };
    if let Some(got) = &run.got
        && let Some(rate) = got.rate.filter(|_| own > 0.0)
    {
        let (a, b, apart) = (words::rate(own), words::rate(rate), words::apart(own, rate));
        let lines = [got.line, seen.line];
        if (own / rate - 1.0).abs() <= AGREE {
            let text = format!("gds_stats and {} agree: {a} and {b}, {apart} apart.", got.tool);
            all.push(say(post, About::Agreement, &lines, text));
        } else {
            let text = format!(
                "gds_stats has {a}, {} {b}, {apart} apart: gds_stats counts from the start of its \
                 process, or it is another run.",
                got.tool
            );
            all.push(say(post, About::Contradiction, &lines, text));
        }
    }
    all.extend(sizes(post, run, seen, stats));
    let total: f64 = stats.gpus.iter().map(|gpu| gpu.ios).sum();
    let threads = run.asked.as_ref().and_then(|asked| asked.threads);
    let block = run.asked.as_ref().and_then(|asked| asked.block).map(|block| float(block.0));
    if let (Some(latency), Some(threads), Some(block)) = (latency, threads, block)
        && total > 0.0
    {
        let in_flight = latency / 1e9 * own / block;
        let share = in_flight / float(threads);
        let fits = (0.7..=1.1).contains(&share);
        let about = if fits { About::Agreement } else { About::Contradiction };
        let text = format!(
            "gds_stats' latency x rate are {in_flight:.1} I/Os in flight, {:.0} % of the {threads} \
             threads of the command.",
            share * 100.0
        );
        let line = run.asked.as_ref().map_or(0, |asked| asked.line);
        all.push(say(post, about, &[line, seen.line], text));
    }
    all
}

/// Sizes that gds_stats counts, against the block that the command requests.
fn sizes(post: &Post, run: &Run, seen: &Seen, stats: &CuFile) -> Option<Statement> {
    let asked = run.asked.as_ref()?;
    let (least, most) = asked.block?;
    let outside = |(from, _, _): &&(u64, f64, f64)| from.saturating_mul(2) <= least || *from > most;
    let strange: Vec<String> = stats
        .sizes
        .iter()
        .filter(outside)
        .map(|(from, reads, writes)| {
            format!("{} from {} on", words::count(reads + writes), words::bytes(*from))
        })
        .collect();
    (!strange.is_empty()).then(|| {
        let text = format!(
            "The command requests blocks of {}; gds_stats counts {}.",
            words::bytes(least),
            strange.join(", ")
        );
        say(post, About::Contradiction, &[asked.line, seen.line], text)
    })
}

#[cfg(test)]
mod tests {
    use gpuio_machine::flow::Figures;
    use gpuio_machine::topo::Topology;

    use super::*;

    /// Statements about a text with its machine.
    fn said(text: &str) -> Vec<Statement> {
        let mut captured = gpuio_capture::Captured::default();
        gpuio_capture::read("post", text, &mut captured).unwrap();
        let (machine, figures) = (&captured.machine, &Figures::built_in());
        let topology = &Topology::of(machine, &[]);
        let known = Known { host: None, machine, topology, figures };
        super::hold(&crate::post::read("post", text), &[known])
    }

    const DRIVE: &str = "h> mount\n/dev/nvme0n1 on /d type xfs (rw)\n";

    #[test]
    fn traffic_that_a_gpu_passes_on_is_named_without_a_result() {
        let dmon = |out: u64| {
            said(&format!(
                "dcgmi dmon -e 1009,1010 -d 1000\n# Entity PCITX PCIRX\n      Id\n    GPU 0 {out} \
                 5237742827\n    GPU 1 435418 637272\n    GPU 12 528378278 4721644934\n"
            ))
        };
        let all = dmon(4_712_070_210);
        let words =
            "(0.2 % apart), and 4.88 GiB/s comes into GPU 0: the bytes go through its memory.";
        assert!(all.len() == 1 && all[0].words.ends_with(words), "{all:?}");
        assert_eq!(dmon(435_418), []);
    }

    #[test]
    fn a_queue_that_is_not_rate_times_time_is_named() {
        let iostat = |queue: &str| {
            let text = format!(
                "iostat -x 5\nDevice r/s rkB/s r_await rareq-sz w/s wkB/s w_await wareq-sz aqu-sz \
                 %util\nsdb 98170.00 392680.00 0.32 4.00 0.00 0.00 0.00 0.00 {queue} 100.00\n"
            );
            let all = said(&text);
            all.into_iter().filter(|one| one.about == About::LeftOut).collect::<Vec<_>>()
        };
        assert_eq!(iostat("31.35"), []);
        let wrong = iostat("3.14");
        assert!(wrong.len() == 1 && wrong[0].words.contains("(sdb: 3.14, 31.41)"), "{wrong:?}");
    }

    /// A drive beside others that hold parts of a file says nothing against the file's rate.
    #[test]
    fn the_rate_of_one_drive_is_held_against_that_of_all_only_where_it_is_all() {
        let fio = |place: &str, rate: &str| {
            format!(
                "$ fio --name=r --filename={place} --rw=read --bs=1M --direct=1 --numjobs=8\nr: \
                 (g=0): rw=read, bs=(R) 1024KiB-1024KiB, ioengine=libaio, iodepth=32\nfio-3.33\n\
                 Starting 8 processes\nr: (groupid=0, jobs=8): err= 0: pid=7: Thu Jan  1 00:00:00 \
                 2026\n  read: IOPS=24.9k, BW={rate}GiB/s (26.1GB/s)(512GiB/21070msec)\n"
            )
        };
        let iostat = |rows: &[(&str, u32)]| {
            let rows = rows.iter().map(|(name, rate)| format!("{name} 12000.00 {rate} 99.90\n"));
            format!("iostat -xm 5\nDevice r/s rMB/s %util\n{}", rows.collect::<String>())
        };
        let array = "$ cat /proc/mdstat\nPersonalities : [raid0]\nmd0 : active raid0 nvme3n1[3] \
                     nvme2n1[2] nvme1n1[1] nvme0n1[0]\n      15002423296 blocks super 1.2 512k \
                     chunks\n\nunused devices: <none>\n$ mount\n/dev/md0 on /m type xfs (rw)\n\
                     /dev/nvme9n1 on /one type xfs (rw)\n/dev/sda1 on /pool type btrfs (rw)\n";
        let all = [0, 1, 2, 3].map(|nth| format!("nvme{nth}n1"));
        let each = |rate| all.each_ref().map(|name| (name.as_str(), rate));
        let part = "is one of 4 drives below the file";
        let cache = "came from a cache";
        for (place, rate, rows, about, words) in [
            ("/m/f", "24.3", &[("nvme0n1", 6000)][..], About::Agreement, part),
            ("/m/f", "24.3", &[("nvme0n1", 3000)][..], About::Next, part),
            (
                "/m/f",
                "24.3",
                &[("nvme0n1", 6000), ("nvme2n1", 6000)][..],
                About::Agreement,
                "2 of 4",
            ),
            ("/m/f", "24.3", &each(6200)[..], About::Agreement, "agree"),
            ("/m/f", "24.3", &each(1500)[..], About::Contradiction, cache),
            // The array's own row is all of it, whatever else is listed.
            ("/m/f", "24.3", &[("nvme0n1", 6200), ("md0", 24800)][..], About::Agreement, "md0"),
            (
                "/m/f",
                "24.3",
                &[("nvme0n1", 1500), ("md0", 6000)][..],
                About::Contradiction,
                "at md0",
            ),
            ("/dev/md0", "24.3", &[("md0", 6000)][..], About::Contradiction, cache),
            ("/one/f", "24.3", &[("nvme9n1", 6000)][..], About::Contradiction, cache),
            ("/one/f", "24.3", &[("sdz", 6000)][..], About::Next, "none of the storage below"),
            ("/pool/f", "24.3", &[("sda", 6000)][..], About::Next, "is not shown"),
            ("f", "24.3", &[("nvme0n1", 6000)][..], About::Next, "is not shown"),
        ] {
            let all = said(&format!("{array}{}{}", fio(place, rate), iostat(rows)));
            let found = all.iter().find(|one| one.words.contains("iostat"));
            let found = found.unwrap_or_else(|| panic!("{place} {rows:?}: {all:?}"));
            assert!(
                found.about == about && found.words.contains(words),
                "{place} {rows:?}: {found:?}"
            );
            let accused = all.iter().any(|one| one.about == About::Contradiction);
            assert_eq!(accused, about == About::Contradiction, "{place} {rows:?}: {all:?}");
        }
    }

    #[test]
    fn iostat_that_ended_before_a_run_is_not_beside_it() {
        let run = "h> gdsio -D /d -d 0 -w 32 -s 1G -i 1M -x 0 -I 0\nIoType: READ XferType: GPUD \
                   Threads: 32 DataSetSize: 204472320/33554432(KiB) IOSize: 1024(KiB) Throughput: \
                   9.9 GiB/sec, Avg_Latency: 3156.0 usecs ops: 199680 total_time 19.7 secs\n";
        let disk = |rate: u32| {
            format!("h> iostat -xmy 1 1\nDevice r/s rMB/s %util\nnvme0n1 52000.00 {rate} 99.90\n")
        };
        let said = |text: &str| said(&format!("{DRIVE}{text}"));
        let is = |text: &str, about: About| said(text).iter().any(|one| one.about == about);
        let text = disk(6500) + run;
        let all = said(&text);
        assert!(all.len() == 1 && all[0].about == About::Next, "{text}{all:?}");
        // Below its end, too.
        let all = said(&(run.to_owned() + &disk(6500)));
        let next = all.iter().any(|one| one.words.contains("one after the other at one prompt"));
        assert!(next && all.iter().all(|one| one.about != About::Contradiction), "{all:?}");
        assert!(is(&(run.to_owned() + &disk(10100)), About::Agreement), "it shows itself");
        let all = text.replace("h> ", "$ ");
        assert!(!is(&all, About::Contradiction) && is(&all, About::Next), "{all}");
        let (table, (command, result)) = (disk(6500), run.split_once('\n').unwrap());
        let table = table.split_once('\n').unwrap().1;
        // In the background, at another prompt, without one or below the run it may be.
        for other in [
            text.replace("-I 0\n", "-I 0 &\n").replace("1 1\n", "1 1 &\n"),
            text.replace("1 1\n", "1 1 & sleep 1\n"),
            text.replace("1 1\n", "1 1 & disown\n"),
            text.replace("h> iostat", "h> (iostat").replace("1 1\n", "1 1 > log &)\n"),
            format!("h> iostat -xmy 1 1 & {}\n{table}{result}", &command["h> ".len()..]),
            format!("{command} & iostat -xmy 1 1\n{table}{result}"),
            text.replace("h> iostat", "me@h2:~$ iostat"),
            text.replace("h> iostat", "iostat"),
            run.to_owned() + &disk(6500).replace("h> iostat", "me@h2:~$ iostat"),
            run.replace("-I 0\n", "-I 0 &\n") + &disk(6500),
        ] {
            assert!(is(&other, About::Contradiction), "{other}");
        }
        assert!(is(&(disk(10100) + run), About::Agreement), "it shows itself");
    }

    #[test]
    fn counts_of_nvidia_fs_contradict_that_gds_is_off() {
        let text = "$ mount\n/dev/md7 on /raid type ext4 (rw,data=writeback)\n$ nvidia-smi -L\nGPU \
                    0: NVIDIA A100 (UUID: GPU-a)\n$ gdsio -D /raid/x -d 0 -w 8 -s 1G -i 1M -x 0 -I \
                    0\n$ cat /proc/driver/nvidia-fs/stats\nGDS Version: 1.7.0.149\nNVFS \
                    statistics(ver: 4.0)\nNVFS Driver(version: 2:17:5)\nReads : n=4200 ok=4200 \
                    err=0 readMiB=4200 io_state_err=0\nWrites : n=0 ok=0 err=0 writeMiB=0\n";
        let said = |text: &str| {
            let all = super::tests::said(text).into_iter();
            let mut all = all.filter(|one| one.about == About::Contradiction);
            all.next().map(|one| one.words)
        };
        let found = said(text).unwrap();
        assert!(found.contains("off for /raid/x") && found.contains("unknown"), "{found}");
        assert_eq!(said(&text.replace("writeback", "ordered")), None);
        assert_eq!(said(&text.replace("4200", "0")), None);
    }
}
