//! PCIe links of the text that run below their most, ports of which `ethtool` prints the speed, and
//! the results that they hold back.

use gpuio_base::units::{float, pcie_bytes_per_second};
use gpuio_machine::check::mount_of;
use gpuio_machine::flow::link::{PAYLOAD_TAKEN, Transport, ethernet, pcie};
use gpuio_record::facts::{Lanes, Machine, MountKind, PciFacts};

use super::{Known, machine, machine_of, say, words};
use crate::foreign::Direction;
use crate::post::figure::{self, Unit};
use crate::post::line::Line;
use crate::post::{About, Post, Run, Statement};

/// From this share of a link's ceiling on the link limits: acknowledgements, flow control and the
/// ends' own pauses take the rest.
const LIMITS: f64 = 0.75;
/// A rate above what a link carries by more than this did not go over it; printed digits round.
const ABOVE: f64 = 1.02;

/// A link below its most.
#[derive(Debug, Clone, PartialEq)]
struct Link {
    /// Where the text shows it; 0 where that line is not known.
    line: usize,
    of: End,
    now: Lanes,
    /// Unknown parts: not in the text.
    most: Lanes,
    /// Bytes of data in a packet, where that is known.
    payload: Option<u64>,
}

/// The device of a link.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Gpu {
        number: Option<u32>,
        address: Option<String>,
    },
    Function(String),
    /// The text does not name it.
    Unnamed,
}

/// Whether lanes are slower or fewer than they could be.
fn is_below(now: Lanes, most: Lanes) -> bool {
    let below = |pick: fn(&Lanes) -> Option<u64>| {
        pick(&now).zip(pick(&most)).is_some_and(|(now, most)| now < most)
    };
    below(|one| one.width) || below(|one| one.mega_transfers)
}

impl Link {
    fn name(&self) -> String {
        match &self.of {
            End::Gpu { number: Some(number), .. } => format!("GPU {number}'s link"),
            End::Gpu { address: Some(address), .. } | End::Function(address) => {
                format!("the link of {address}")
            }
            End::Gpu { .. } => "the GPU's link".to_owned(),
            End::Unnamed => format!("the link of line {}", self.line),
        }
    }

    /// Bytes of packets, and of data in them, that it carries in a second at a speed.
    fn carries(&self, lanes: Lanes) -> Option<(f64, f64)> {
        let (speed, width) = (lanes.mega_transfers?, lanes.width?);
        let payload = self.payload.unwrap_or(PAYLOAD_TAKEN);
        Some((float(pcie_bytes_per_second(speed, width)?), pcie(speed, width, payload)?))
    }

    /// The speed that counts first: an idle GPU lowers its own and raises it under load, and lanes
    /// stay.
    fn loaded(&self) -> Lanes {
        match self.of {
            End::Gpu { .. } => Lanes {
                mega_transfers: self.now.mega_transfers.max(self.most.mega_transfers),
                width: self.now.width,
            },
            _ => self.now,
        }
    }
}

/// Whether a run's bytes go over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Yes,
    /// The text does not say so.
    Perhaps,
    No,
}

/// How a rate stands to a link.
enum Held {
    Limits(Lanes),
    Below(Lanes),
    Above(Lanes),
}

fn held(link: &Link, rate: f64, direction: Direction) -> Option<Held> {
    // Both directions of a mix have their own.
    let rate = if direction == Direction::Both { rate / 2.0 } else { rate };
    let at = |lanes: Lanes| {
        let (packets, data) = link.carries(lanes)?;
        Some(match () {
            () if rate > packets * ABOVE => Held::Above(lanes),
            () if rate >= data * LIMITS => Held::Limits(lanes),
            () => Held::Below(lanes),
        })
    };
    // A GPU whose speed did not rise with the load.
    let asleep = at(link.now).filter(|held| matches!(held, Held::Limits(_)));
    if matches!(link.of, End::Gpu { .. }) && !is_below(link.loaded(), link.most) {
        return asleep;
    }
    let first = at(link.loaded())?;
    match first {
        Held::Below(_) => asleep.or(Some(first)),
        first => Some(first),
    }
}

pub(super) fn hold(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let (mut all, mut ports): (Vec<Statement>, Vec<Statement>) = (Vec::new(), Vec::new());
    let rated = |run: &&Run| rate_of(run).is_some();
    for run in post.runs.iter().filter(rated) {
        for (link, over) in of_run(post, known, run) {
            all.extend(said(post, run, &link, over));
        }
        ports.extend(machine_of(known, run).and_then(|one| port(post, one.machine, run)));
    }
    if !post.runs.iter().any(|run| rated(&run)) {
        all.extend(in_words(post, known));
    }
    // The result nearest to the ceiling says most.
    let limits = |one: &Statement| one.words.contains(WORD);
    if all.iter().any(limits) {
        all.retain(limits);
    }
    all.into_iter().chain(ports).collect()
}

/// A run on a file system of the network against the speed of a port: `Speed: 10000Mb/s`.
fn port(post: &Post, machine: &Machine, run: &Run) -> Option<Statement> {
    const MTU: u64 = 1500;
    let (rate, _) = rate_of(run)?;
    let places = &run.asked.as_ref()?.places;
    let mount = mount_of(machine, places.first()?)?;
    let local = [MountKind::Block, MountKind::Memory, MountKind::Overlay, MountKind::Other];
    if local.contains(&mount.kind) {
        return None;
    }
    let of_line = |line: &Line| {
        let speed = line.text.trim().strip_prefix("Speed: ")?.strip_suffix("Mb/s")?;
        Some((line.number, speed.trim().parse::<u64>().ok()?))
    };
    let (line, megabits, data) =
        post.lines.iter().filter_map(of_line).find_map(|(line, speed)| {
            let data = ethernet(speed, MTU, Transport::Tcp);
            let wire = float(speed) * 125_000.0;
            (data * LIMITS..=wire * ABOVE).contains(&rate).then_some((line, speed, data))
        })?;
    let text = format!(
        "{} is {:.0} % of the {} that a port of {megabits} Mb/s carries (line {line}; TCP, MTU \
         {MTU} taken): the port limits, if {} is reached over it.",
        words::rate(rate),
        rate / data * 100.0,
        words::rate(data),
        mount.mount.mount_point
    );
    Some(say(post, About::Limit, &[run.line, line], text))
}

/// The words of a link that limits.
const WORD: &str = "the downgraded link limits";

/// Whether such a link explains the rate of a run.
pub(super) fn limits(post: &Post, known: &[Known<'_>], run: &Run) -> bool {
    let Some((rate, direction)) = rate_of(run) else { return false };
    of_run(post, known, run)
        .iter()
        .any(|(link, _)| matches!(held(link, rate, direction), Some(Held::Limits(_))))
}

fn rate_of(run: &Run) -> Option<(f64, Direction)> {
    let direction = run.got.as_ref().map_or(Direction::Read, |got| got.direction);
    Some((words::rate_of(run).filter(|rate| *rate > 0.0)?, direction))
}

/// The links below their most that a run's bytes may go over.
fn of_run(post: &Post, known: &[Known<'_>], run: &Run) -> Vec<(Link, Over)> {
    let one = machine_of(known, run);
    let all = links(post, one.map(|one| one.machine)).into_iter();
    let all = all.map(|link| (over(&link, run, one), link));
    let all: Vec<(Over, Link)> = all.filter(|(over, _)| *over != Over::No).collect();
    let known_one = all.iter().any(|(over, _)| *over == Over::Yes);
    let kept = all.into_iter().filter(|(over, _)| !known_one || *over == Over::Yes);
    kept.map(|(over, link)| (link, over)).collect()
}

fn over(link: &Link, run: &Run, known: Option<&Known<'_>>) -> Over {
    let asked = run.asked.as_ref();
    let gpus = asked.map_or(&[][..], |asked| &asked.gpus[..]);
    let path = run.got.as_ref().and_then(|got| got.path.as_deref());
    let path = path.or(asked.and_then(|asked| asked.path.as_deref()));
    match &link.of {
        End::Gpu { number, .. } => match (path, gpus) {
            (Some("host"), _) | (None, []) => Over::No,
            (_, [gpu]) if Some(*gpu) == *number => Over::Yes,
            (Some(_), []) => Over::Perhaps,
            _ => Over::No,
        },
        // Several drives share the bytes in a way that one link says nothing of.
        End::Unnamed if drives(run, known).is_some_and(|all| all.len() > 1) => Over::No,
        End::Unnamed if is_on_array(run, known) => Over::No,
        End::Unnamed => Over::Perhaps,
        End::Function(address) => of_function(address, run, known),
    }
}

/// The drives of a run with their addresses; `None` where the texts do not show all.
fn drives(run: &Run, known: Option<&Known<'_>>) -> Option<Vec<Option<String>>> {
    let known = known?;
    let (names, _) = machine::drives(run, known);
    let of = |name: &String| {
        let found = known.machine.block.iter().find(|one| one.facts.name == *name)?;
        found.pci.first().cloned()
    };
    (!names.is_empty()).then(|| names.iter().map(of).collect())
}

/// Whether a run's files lie on a software array, whose drives the texts may not show: each has a
/// share of the bytes.
pub(super) fn is_on_array(run: &Run, known: Option<&Known<'_>>) -> bool {
    let is_array = |node: &str| node.starts_with("/dev/md");
    let mounted = |place: &String| {
        let mount = known.and_then(|known| mount_of(known.machine, place));
        mount.is_some_and(|mount| is_array(&mount.mount.source))
    };
    let places = run.asked.iter().flat_map(|asked| &asked.places);
    places.into_iter().any(|place| is_array(place) || mounted(place))
}

fn of_function(address: &str, run: &Run, known: Option<&Known<'_>>) -> Over {
    let Some(one) = known else { return Over::Perhaps };
    let class = one.machine.function(address).and_then(|function| function.class);
    let kind = class.map(|class| class >> 16);
    match drives(run, known).as_deref() {
        Some([Some(drive)]) => {
            let way = one.machine.upstream_path(drive);
            let on = way.iter().any(|step| step.address == address);
            if on { Over::Yes } else { Over::No }
        }
        Some([None]) | None => match kind {
            Some(0x01) | None if is_on_array(run, known) => Over::No,
            Some(0x01) | None => Over::Perhaps,
            Some(0x02) if drives(run, known).is_none() => Over::Perhaps,
            Some(_) => Over::No,
        },
        Some(_) => Over::No,
    }
}

/// The links of a text below their most: those that lspci prints, and those of GPUs by NVIDIA's
/// driver.
fn links(post: &Post, machine: Option<&Machine>) -> Vec<Link> {
    let mut all = printed(&post.lines, machine);
    let gpus = machine.map_or(&[][..], |machine| &machine.gpus[..]);
    for gpu in gpus {
        let (Some(now), Some(most)) = (gpu.pcie_now.known(), gpu.pcie_most.known()) else {
            continue;
        };
        let of = End::Gpu { number: gpu.index.known().copied(), address: gpu.pci.clone() };
        let is_known = all.iter().any(|one| one.of == of);
        let of_driver = |line: &&Line| {
            ["pcie.link", "Link Width", "PCIe Generation"].iter().any(|w| line.text.contains(w))
        };
        let line = post.lines.iter().find(of_driver).map_or(0, |line| line.number);
        let link = Link { line, of, now: *now, most: *most, payload: None };
        if !is_known && is_below(link.now, link.most) {
            all.push(link);
        }
    }
    all
}

fn printed(lines: &[Line], machine: Option<&Machine>) -> Vec<Link> {
    let mut all = Vec::new();
    let (mut function, mut most) = (None, Lanes::default());
    for line in lines {
        if line.prompt.is_some() || !line.text.starts_with(' ') {
            let found = machine.and_then(|machine| named(machine, line));
            // `grep` leaves lines of links without their indent.
            if line.prompt.is_some() || found.is_some() {
                (function, most) = (found, Lanes::default());
            }
        }
        if let Some((_, rest)) = line.text.split_once("LnkCap:") {
            most = Lanes::of_lspci(rest).unwrap_or_default();
        }
        let Some((_, rest)) = line.text.split_once("LnkSta:") else { continue };
        let Some(now) = Lanes::of_lspci(rest) else { continue };
        let of = match function {
            None => End::Unnamed,
            Some(one) => of_machine(machine, one),
        };
        let payload = function.and_then(|one| one.max_payload_bytes.known().copied());
        let payload = payload.map(u64::from);
        let link = Link { line: line.number, of, now, most, payload };
        if rest.contains("(downgraded)") || is_below(now, most) {
            all.push(link);
        }
        most = Lanes::default();
    }
    // The port above a device has the same link.
    let is_bridge = |link: &Link| match &link.of {
        End::Function(address) => {
            let function = machine.and_then(|machine| machine.function(address));
            function.and_then(|one| one.class).is_some_and(|class| class >> 16 == 0x06)
        }
        _ => false,
    };
    all.retain(|link| !is_bridge(link));
    all
}

fn of_machine(machine: Option<&Machine>, function: &PciFacts) -> End {
    let gpus = machine.map_or(&[][..], |machine| &machine.gpus[..]);
    match gpus.iter().find(|gpu| gpu.pci.as_deref() == Some(&function.address)) {
        Some(gpu) => {
            End::Gpu { number: gpu.index.known().copied(), address: Some(function.address.clone()) }
        }
        None => End::Function(function.address.clone()),
    }
}

/// The function that a line begins with, or that its command names: `41:00.0` is `0000:41:00.0`.
fn named<'m>(machine: &'m Machine, line: &Line) -> Option<&'m PciFacts> {
    let text = line.prompt.as_ref().map_or(line.text.as_str(), |prompt| &prompt.command);
    let most = if line.prompt.is_some() { usize::MAX } else { 1 };
    let mut words = text.split_whitespace().take(most);
    words.find_map(|word| {
        let word = word.strip_prefix("-s").unwrap_or(word);
        let is = |one: &&PciFacts| {
            let rest = one.address.strip_suffix(word);
            word.contains(':') && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(':'))
        };
        machine.pci.iter().find(is)
    })
}

/// `8 GT/s x4, 3.67 GiB/s less the heads of packets of 256 B`.
fn how(link: &Link, lanes: Lanes, packets: f64) -> String {
    let payload = link.payload.unwrap_or(PAYLOAD_TAKEN);
    let taken = if link.payload.is_none() { " (MaxPayload taken)" } else { "" };
    format!("{lanes}, {} less the heads of packets of {payload} B{taken}", words::rate(packets))
}

fn said(post: &Post, run: &Run, link: &Link, over: Over) -> Option<Statement> {
    let (rate, direction) = rate_of(run)?;
    let held = held(link, rate, direction)?;
    let both =
        if direction == Direction::Both { " (both directions; half of it each)" } else { "" };
    let is = format!("{}{both}", words::rate(rate));
    let rate = if direction == Direction::Both { rate / 2.0 } else { rate };
    let line = run.in_words.as_ref().map_or(run.line, |(_, line)| *line);
    let text = in_text(link, (&is, rate), &held, over)?;
    Some(say(post, About::Limit, &[line, link.line], text))
}

fn in_text(link: &Link, (is, rate): (&str, f64), held: &Held, over: Over) -> Option<String> {
    let name = link.name();
    let condition = match over {
        Over::Perhaps => " Whether the bytes go over this link is not shown.",
        _ => "",
    };
    let (Held::Limits(lanes) | Held::Below(lanes) | Held::Above(lanes)) = *held;
    let (packets, data) = link.carries(lanes)?;
    let full = link.carries(link.most).map(|(_, full)| full).filter(|full| *full > data);
    let could = match full {
        Some(full) => format!("at {} it would carry {}", link.most, words::rate(full)),
        None => "its most is not in the text (LnkCap)".to_owned(),
    };
    let (of, percent) = (words::rate(data), rate / data * 100.0);
    let how = how(link, lanes, packets);
    let asleep = lanes != link.loaded();
    Some(match held {
        Held::Limits(_) => {
            let when = match asleep {
                true => {
                    " if it ran so during the run: an idle GPU lowers its speed, so read it under \
                     load"
                }
                false if over == Over::Perhaps => " if the bytes go over it",
                false => "",
            };
            format!(
                "{is} is {percent:.0} % of the {of} that {name} carries ({how}): {WORD}{when}; \
                 {could}. `gpuio explain pcie-link` has what to do."
            )
        }
        Held::Below(_) => format!(
            "{} is downgraded to {how}, so it carries {of} at most; {could}. {is} is {percent:.0} \
             % of that: this link is not what limits here.{condition}",
            capital(&name)
        ),
        Held::Above(_) => format!(
            "{} is downgraded to {}, which carries {} at most; {could}. {is} is more: the bytes \
             did not go over it, or a cache served a part.{condition}",
            capital(&name),
            lanes,
            words::rate(packets)
        ),
    })
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Rates in sentences against the links of a text that has no result of a tool.
pub(super) fn in_words(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let machine = match known {
        [one] => Some(one.machine),
        _ => None,
    };
    let links = links(post, machine).into_iter();
    let links: Vec<Link> = links.filter(|link| !matches!(link.of, End::Gpu { .. })).collect();
    let mut all = Vec::new();
    for line in &post.lines {
        let figures = figure::figures(&line.text).into_iter();
        for figure in figures.filter(|one| one.unit == Unit::Rate) {
            let Some(rate) = figure.rate() else { continue };
            for link in &links {
                let Some(found) = held(link, rate, Direction::Read) else { continue };
                if !matches!(found, Held::Limits(_)) {
                    continue;
                }
                let is = (format!("{}, if that is a measured rate,", figure.text), rate);
                let text = in_text(link, (&is.0, is.1), &found, Over::Perhaps);
                let lines = [line.number, link.line];
                all.extend(text.map(|text| say(post, About::Limit, &lines, text)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use gpuio_machine::flow::Figures;
    use gpuio_machine::topo::Topology;

    use crate::post::hold::{Known, hold};
    use crate::post::{About, figures_in_words, read};

    /// The limits that are said of a text.
    fn said(text: &str) -> Vec<(String, Vec<usize>)> {
        let mut captured = gpuio_capture::Captured::default();
        let known = gpuio_capture::read("post", text, &mut captured).is_ok();
        captured.finish();
        let (machine, figures) = (&captured.machine, &Figures::built_in());
        let topology = &Topology::of(machine, &[]);
        let one = Known { host: None, machine, topology, figures };
        let known = if known { vec![one] } else { Vec::new() };
        let all = hold(&[read("post", text)], &known).into_iter();
        all.filter(|one| one.about == About::Limit).map(|one| (one.words, one.lines)).collect()
    }

    fn only(text: &str) -> (String, Vec<usize>) {
        let all = said(text);
        let [one] = &all[..] else { panic!("{text}{all:?}") };
        one.clone()
    }

    /// A drive of 16 GT/s x4 in a slot of 8 GT/s, and a read from it.
    fn fio(above: &str, rate: u32) -> String {
        let msec = 64 * 1024 * 1000 / rate;
        format!(
            "$ sudo lspci -vvv{above}$ fio --name=r --filename=/dev/nvme0n1 --rw=read --bs=1M \
             --direct=1 --ioengine=libaio --iodepth=32\nr: (g=0): rw=read, bs=(R) \
             1024KiB-1024KiB, ioengine=libaio, iodepth=32\nfio-3.33\nStarting 1 process\nr: \
             (groupid=0, jobs=1): err= 0: pid=7: Thu Jan  1 00:00:00 2026\n  read: IOPS={rate}, \
             BW={rate}MiB/s (9MB/s)(64.0GiB/{msec}msec)\n"
        )
    }

    const LINK: &str = "LnkCap:\tPort #0, Speed 16GT/s, Width x4, ASPM L1\n\t\tLnkSta:\tSpeed \
                        8GT/s (downgraded), Width x4\n";

    /// 8 GT/s x4 are 3.94 GB/s by 128b/130b, and 3.60 GB/s of data in packets of 256 bytes.
    #[test]
    fn a_downgraded_link_limits_what_is_near_its_ceiling() {
        let grep = format!(" -s 41:00.0 | grep Lnk\n\t\t{LINK}");
        let (words, lines) = only(&fio(&grep, 3348));
        assert!(words.starts_with("3.27 GiB/s is 97 % of the 3.35 GiB/s that the link of 0000:41"));
        assert!(words.contains("8 GT/s x4, 3.67 GiB/s less the heads of packets of 256 B (MaxP"));
        assert!(
            words.contains("): the downgraded link limits if the bytes go over it; at 16 GT/s")
        );
        assert!(words.contains("x4 it would carry 6.71 GiB/s"), "{words}");
        assert_eq!(lines, [3, 9]);
        let slow = only(&fio(&grep, 1000)).0;
        assert!(slow.contains("is downgraded to 8 GT/s x4") && slow.contains("29 % of that: this"));
        let fast = only(&fio(&grep, 6000)).0;
        assert!(fast.contains("did not go over it, or a cache served a part"), "{fast}");
        let full = grep.replace("8GT/s (downgraded)", "16GT/s");
        assert_eq!(said(&fio(&full, 3348)), []);
    }

    #[test]
    fn the_relation_of_the_text_says_whether_a_link_is_the_drive_s() {
        let block = format!("\n41:00.0 Non-Volatile memory controller: Samsung\n\t\t{LINK}");
        let of = |address: &str| {
            format!(
                "{block}$ ls -l /sys/block\nlrwxrwxrwx 1 root root 0 Jan  1 00:00 nvme0n1 -> \
                 ../devices/pci0000:40/0000:40:01.1/0000:{address}/nvme/nvme0/nvme0n1\n"
            )
        };
        let words = only(&fio(&of("41:00.0"), 3348)).0;
        assert!(words.contains("the downgraded link limits; at 16 GT/s"), "{words}");
        assert_eq!(said(&fio(&of("42:00.0"), 3348)), []);
    }

    #[test]
    fn a_gpu_s_lanes_count_and_its_speed_may_be_that_of_an_idle_one() {
        let text = |now: &str, rate: &str| {
            let number: f64 = rate.parse().unwrap();
            // 190.949 GiB, by 16 threads that wait for each I/O.
            let (seconds, latency) = (190.949 / number, 15_625.0 / number);
            format!(
                "$ nvidia-smi --query-gpu=index,pci.bus_id,pcie.link.gen.current,\
                 pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv\n\
                 index, pci.bus_id, pcie.link.gen.current, pcie.link.gen.max, \
                 pcie.link.width.current, pcie.link.width.max\n0, 00000000:3B:00.0, {now}, 16\n$ \
                 gdsio -D /mnt/raid -d 0 -w 16 -s 10G -i 1M -x 0 -I 0 -T 30\nIoType: READ \
                 XferType: GPUD Threads: 16 DataSetSize: 200224384/167772160(KiB) IOSize: \
                 1024(KiB) Throughput: {rate} GiB/sec, Avg_Latency: {latency:.1} usecs ops: \
                 195532 total_time {seconds:.3} secs\n"
            )
        };
        let narrow = only(&text("1, 4, 4", "6.4")).0;
        assert!(narrow.contains("that GPU 0's link carries (16 GT/s x4,"), "{narrow}");
        assert!(narrow.contains("the downgraded link limits; at 16 GT/s x16"), "{narrow}");
        let idle = only(&text("1, 4, 16", "3.0")).0;
        assert!(idle.contains("limits if it ran so during the run: an idle GPU"), "{idle}");
        for awake in ["4, 4, 16", "1, 4, 16"] {
            assert_eq!(said(&text(awake, "20.0")), [], "{awake}");
        }
        let host = text("1, 4, 4", "6.4").replace("-x 0", "-x 1").replace("GPUD", "CPUONLY");
        assert_eq!(said(&host), []);
    }

    #[test]
    fn a_rate_in_words_beside_a_link_alone_is_held_against_it() {
        let text = format!("I only get 3.4 GB/s, the data sheet has 7 GB/s.\n    {LINK}");
        let words = figures_in_words(&text).unwrap();
        assert!(words.contains("3.4 GB/s, if that is a measured rate, is 94 % of"), "{words}");
        assert!(words.contains("that the link of line 3 carries"), "{words}");
    }

    #[test]
    fn a_port_limits_a_mount_of_the_network() {
        let text = |kind: &str, rate: &str| {
            format!(
                "$ mount\n{kind}\n$ ethtool ens6 | grep Speed\n\tSpeed: 10000Mb/s\n$ gdsio -D \
                 /d -d 0 -w 8 -s 1G -i 1M -x 1 -I 0\nIoType: READ XferType: CPUONLY Threads: 8 \
                 DataSetSize: 8388608/8388608(KiB) IOSize: 1024(KiB) Throughput: {rate} GiB/sec, \
                 Avg_Latency: 7160.0 usecs ops: 8192 total_time 7.34 secs\n"
            )
        };
        let nfs = "nas:/a on /d type nfs (rw,vers=3,proto=tcp,addr=192.0.2.9)";
        let words = only(&text(nfs, "1.09")).0;
        assert!(words.contains("a port of 10000 Mb/s carries (line 4; TCP"), "{words}");
        assert_eq!(said(&text(nfs, "0.5")), []);
        assert_eq!(said(&text("/dev/nvme0n1 on /d type xfs (rw)", "1.09")), []);
    }
}
