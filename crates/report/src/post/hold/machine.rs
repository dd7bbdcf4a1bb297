//! A result against what the machine of the same text can deliver.

use gpuio_machine::flow::{By, End, Pattern, Storage, Stream, of_machine};
use gpuio_machine::topo::Class;
use gpuio_record::Towards;
use gpuio_record::facts::Machine;

use super::beside::{Share, of_storage};
use super::{Known, links, machine_of, say, words};
use crate::foreign::Direction;
use crate::post::seen::{Sight, moved, moving};
use crate::post::{About, Post, Run, Statement};

/// The share that a SATA link carries of its signalling rate: 8 bits of 10.
const SATA_BYTES_PER_BIT: f64 = 0.1;

pub(super) fn hold(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    for run in &post.runs {
        let own = machine_of(known, run);
        let mut said: Vec<Statement> =
            own.into_iter().flat_map(|known| of_run(post, run, known)).collect();
        // The link says it with its numbers.
        if links::limits(post, known, run) {
            said.retain(|one| one.about != About::Limit);
        }
        all.extend(said);
        all.extend(sata(post, run, own));
    }
    all
}

fn of_run(post: &Post, run: &Run, known: &Known<'_>) -> Vec<Statement> {
    let mut all = Vec::new();
    let (drives, line) = drives(run, known);
    all.extend(distance(post, run, known, &drives, line));
    all.extend(expected(post, run, known, &drives));
    all.extend(over_link(post, run, known.machine));
    all
}

/// A rate that the PCIe link of the only GPU can't carry. An idle GPU's generation is lower than a
/// busy one's, so the highest one counts, with the lanes of now.
fn over_link(post: &Post, run: &Run, machine: &Machine) -> Option<Statement> {
    let (got, asked) = (run.got.as_ref()?, run.asked.as_ref()?);
    let &[number] = &asked.gpus[..] else { return None };
    let path = got.path.as_deref().or(asked.path.as_deref())?;
    let rate = got.rate.filter(|_| path != "host")?;
    let gpu = machine.gpus.iter().find(|one| one.index.known() == Some(&number))?;
    let function = gpu.pci.as_deref().and_then(|pci| machine.function(pci));
    let (now, most) =
        function.map(|function| (function.link_now, function.link_most)).unwrap_or_default();
    let now = now.or(gpu.pcie_now.known().copied().unwrap_or_default());
    let most = most.or(gpu.pcie_most.known().copied().unwrap_or_default());
    let speed = most.mega_transfers?.max(now.mega_transfers.unwrap_or(0));
    let lanes = now.width?;
    let carries = gpuio_base::units::pcie_bytes_per_second(speed, lanes)? as f64;
    // Both directions of a mix have their own.
    let carries = if got.direction == Direction::Both { carries * 2.0 } else { carries };
    (rate > carries * 1.02).then(|| {
        let (is, of) = (words::rate(rate), words::rate(carries));
        let link = gpuio_record::facts::Lanes { mega_transfers: Some(speed), width: Some(lanes) };
        let text = format!(
            "{is} is more than the {of} that GPU {number}'s link carries ({link}): the bytes did \
             not reach this GPU over it, or the figure is another one's."
        );
        say(post, About::Contradiction, &[run.line, asked.line], text)
    })
}

/// The drives that moved the bytes, by iostat with its line, else by the command's places; only
/// those that the machine has. Some of an array's drives are not those of its files.
pub(super) fn drives(run: &Run, known: &Known<'_>) -> (Vec<String>, usize) {
    let machine = known.machine;
    for seen in &run.beside {
        let Sight::Disks(disks) = &seen.sight else { continue };
        if matches!(of_storage(&[*known], run, disks).0, Share::Part(..) | Share::Nothing) {
            continue;
        }
        let direction = run.got.as_ref().map_or(Direction::Both, |got| got.direction);
        let moving = moving(disks, direction);
        let busy = moving.iter().filter(|disk| moved(disk, direction) > 1e6);
        let names: Vec<String> = busy.map(|disk| disk.name.clone()).collect();
        let here = |name: &String| machine.block.iter().any(|drive| drive.facts.name == *name);
        if !names.is_empty() && names.iter().all(here) {
            return (names, seen.line);
        }
    }
    let places = run.asked.iter().flat_map(|asked| &asked.places);
    let mut names: Vec<String> =
        places.flat_map(|place| gpuio_machine::check::drives_of(machine, place)).collect();
    names.sort_unstable();
    names.dedup();
    (names, 0)
}

/// The mount of a run's directory, where the machine has it and all places lie there.
fn mount<'m>(run: &Run, machine: &'m Machine) -> Option<&'m str> {
    let places = &run.asked.as_ref()?.places;
    let first = gpuio_machine::check::mount_of(machine, places.first()?)?;
    let point = first.mount.mount_point.as_str();
    let same = |place: &String| {
        gpuio_machine::check::mount_of(machine, place).is_some_and(|m| m.mount.mount_point == point)
    };
    (point != "/" && places.iter().all(same)).then_some(point)
}

/// How far the GPU is from the drives.
fn distance(
    post: &Post,
    run: &Run,
    known: &Known<'_>,
    drives: &[String],
    line: usize,
) -> Option<Statement> {
    let gpu = match run.asked.as_ref()?.gpus[..] {
        [gpu] => gpu,
        _ => return None,
    };
    let own = known.topology.find(&format!("GPU{gpu}"))?;
    let class = |name: &String| {
        let route = known.topology.route(own, known.topology.find(name)?)?;
        route.class.known().copied()
    };
    let classes: Vec<Class> = drives.iter().map(class).collect::<Option<_>>()?;
    let farthest = *classes.iter().max()?;
    let names = words::and(drives);
    let text = match farthest <= Class::Pxb {
        true => format!("GPU {gpu} and {names} are below one switch ({}).", farthest.name()),
        false => format!(
            "GPU {gpu} and {names} are not below one switch ({}: {}): bytes cross the processor, \
             and cuFile may take a detour through a nearer GPU.",
            farthest.name(),
            farthest.meaning()
        ),
    };
    Some(say(post, About::Path, &[run.line, line], text))
}

/// The direction of one that is not mixed.
pub(super) fn towards(direction: Direction) -> Option<Towards> {
    match direction {
        Direction::Read => Some(Towards::Read),
        Direction::Write => Some(Towards::Write),
        Direction::Both => None,
    }
}

/// The storage of a run's bytes, and its name: its drives, else its mount.
pub(super) fn storage_of(
    run: &Run,
    machine: &Machine,
    drives: &[String],
) -> Option<(Vec<Storage>, String)> {
    if drives.is_empty() {
        let point = mount(run, machine)?;
        return Some((vec![Storage::Mount(point.to_owned())], point.to_owned()));
    }
    let devices = drives.iter().map(|name| Storage::Device(name.clone())).collect();
    Some((devices, words::and(drives)))
}

/// The rate that `plan` computes for the same load.
fn expected(post: &Post, run: &Run, known: &Known<'_>, drives: &[String]) -> Option<Statement> {
    let got = run.got.as_ref()?;
    let (rate, block_bytes, towards) = (got.rate?, got.block?, towards(got.direction)?);
    let (storage, what) = storage_of(run, known.machine, drives)?;
    // The target's link only where one GPU is known: several are several streams.
    let gpu = run.asked.as_ref().filter(|asked| asked.gpus.len() == 1).map(|asked| asked.gpus[0]);
    let pci = gpu.and_then(|gpu| {
        let known = known.machine.gpus.iter().find(|one| one.index.known() == Some(&gpu));
        known.and_then(|gpu| gpu.pci.clone())
    });
    let random = got.random == Some(true);
    let to = |end: End| {
        let stream = Stream {
            name: what.clone(),
            storage: storage.clone(),
            end,
            by: By::Direct,
            towards,
            block_bytes,
            pattern: if random { Pattern::Random } else { Pattern::Sequential },
            in_flight: None,
            requested_bytes_per_s: None,
        };
        of_machine(known.machine, known.figures, &[stream]).total
    };
    // Where the way to the GPU has an unknown part, drives and their links limit all the same.
    let to_gpu = pci.map(|pci| to(End::Gpu(pci))).filter(|found| found.bytes_per_s.is_some());
    let expected = to_gpu.unwrap_or_else(|| to(End::Host));
    // Where a part's figure is missing, those that are known bound the rate.
    let is_bound = expected.bytes_per_s.is_none();
    let most = expected.bytes_per_s.or(expected.at_most).filter(|most| *most > 0.0)?;
    let limit = expected.bottleneck.unwrap_or_default();
    let of = words::rate(most);
    let share = rate / most;
    let is = words::rate(rate);
    let percent = share * 100.0;
    let text = match share {
        share if share > 1.1 => format!(
            "{is} is {percent:.0} % of the {of} that {what} should deliver at most ({limit}): a \
             cache served a part, or the figure is not this drive's."
        ),
        share if is_bound && share < 0.85 => return None,
        // Links of such drives have a rule of their own.
        _ if is_bound && drives.iter().any(|name| name.starts_with("sd")) => return None,
        _ if is_bound => {
            format!("{is} is {percent:.0} % of the {of} that {limit} lets through: it limits.")
        }
        share if share >= 0.85 => {
            format!("{is} is {percent:.0} % of what {what} should deliver: {limit} limits.")
        }
        _ => format!(
            "{is} is {percent:.0} % of the {of} that {what} should deliver ({limit}): something \
             else limits."
        ),
    };
    let contradicts = share > 1.1;
    let about = if contradicts { About::Contradiction } else { About::Limit };
    Some(say(post, about, &[run.line], text))
}

/// A run on a SATA drive against the links that the text names (`SATA link up 3.0 Gbps`).
/// Each drive of several has a link of its own.
fn sata(post: &Post, run: &Run, known: Option<&Known<'_>>) -> Option<Statement> {
    let got = run.got.as_ref()?;
    let rate = got.rate?;
    let places = run.asked.as_ref().map_or(0, |asked| asked.places.len());
    let on_several = places > 1 || links::is_on_array(run, known);
    let asked = run.asked.iter().flat_map(|asked| &asked.places);
    let seen = run.beside.iter().filter_map(|seen| match &seen.sight {
        Sight::Disks(disks) => Some(moving(disks, got.direction)),
        _ => None,
    });
    let busy: Vec<_> = seen.flatten().collect();
    let rate = match busy.as_slice() {
        [] if on_several => return None,
        [] | [_] => rate,
        all => all.iter().map(|disk| moved(disk, got.direction)).fold(0.0, f64::max),
    };
    let of_busiest = if busy.len() > 1 { " of the busiest drive" } else { "" };
    let busy = busy.iter().map(|disk| &disk.name);
    let is_disk = |name: &String| name.trim_start_matches("/dev/").starts_with("sd");
    let on_disk = asked.chain(busy).any(is_disk);
    let links = links(post);
    let most = links.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    if most > 0.0 && rate > most * 1.2 && run.beside.is_empty() {
        let lines: Vec<usize> = [got.line].into_iter().chain(links.iter().map(|l| l.0)).collect();
        let text = format!(
            "{} is {:.1} times what the fastest SATA link of this text carries ({}): if the data \
             is on such a drive, a cache moved it.",
            words::rate(rate),
            rate / most,
            words::rate(most)
        );
        return Some(say(post, About::Path, &lines, text));
    }
    let fits = |link: &&(usize, f64)| (0.8..=1.02).contains(&(rate / link.1));
    let (line, bytes) = links.iter().filter(fits).min_by(|a, b| a.1.total_cmp(&b.1))?;
    on_disk.then(|| {
        let text = format!(
            "{}{of_busiest} is {:.0} % of the {} that the SATA link of line {line} carries: the \
             link limits, if the drive is on it.",
            words::rate(rate),
            rate / bytes * 100.0,
            words::rate(*bytes)
        );
        say(post, About::Limit, &[got.line, *line], text)
    })
}

/// SATA links with their bytes per second.
fn links(post: &Post) -> Vec<(usize, f64)> {
    let of_line = |line: &crate::post::line::Line| {
        let (_, rest) = line.text.split_once("SATA link up ")?;
        let (speed, _) = rest.split_once(" Gbps")?;
        let megabits = speed.parse::<f64>().ok()? * 1e3;
        Some((line.number, megabits * 1e6 * SATA_BYTES_PER_BIT))
    };
    post.lines.iter().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use gpuio_machine::flow::Figures;
    use gpuio_machine::topo::Topology;

    use super::*;

    /// A command's directory lies on a drive of the text, whose node is not that of the GPU.
    #[test]
    fn a_result_is_joined_with_the_drives_of_its_mount() {
        let text = "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \
                    \tSYS\t0-15\t0\nGPU1\tSYS\t X \t16-31\t1\n$ lspci -vvn\n\
                    41:00.0 0108: 144d:a824 (prog-if 02)\n\tNUMA node: 1\n$ ls -l \
                    /dev/disk/by-path\nlrwxrwxrwx 1 root root 13 Jan  1 00:00 \
                    pci-0000:41:00.0-nvme-1 -> ../../nvme0n1\n$ mount\n/dev/nvme0n1 on /data type \
                    xfs (rw)\n$ gdsio -D /data/x -w 8 -d 0 -x 0 -I 0 -i 1M\nIoType: READ XferType: \
                    GPUD Threads: 8 DataSetSize: 8388608/8388608(KiB) IOSize: 1024(KiB) \
                    Throughput: 1.000000 GiB/sec, Avg_Latency: 7812.5 usecs ops: 8192 total_time \
                    8.000000 secs\n";
        let mut captured = gpuio_capture::Captured::default();
        gpuio_capture::read("post", text, &mut captured).unwrap();
        let (machine, figures) = (&captured.machine, &Figures::built_in());
        let topology = &Topology::of(machine, &[]);
        let known = Known { host: None, machine, topology, figures };
        let said = |text: &str| {
            let said = hold(&crate::post::read("post", text), &[known]);
            said.into_iter().find(|one| one.about == About::Path).map(|one| one.words)
        };
        let far = said(text).unwrap();
        assert!(far.starts_with("GPU 0 and nvme0n1 are not below one switch (SYS"), "{far}");
        assert_eq!(said(&text.replace("-D /data/x", "-D /home/x")), None);
    }

    /// The link of one drive says nothing of the rate of an array.
    #[test]
    fn an_array_is_not_held_against_the_link_of_one_drive() {
        let text = |place: &str, rows: &str| {
            format!(
                "$ mount\n/dev/md0 on /raid type xfs (rw)\n$ dmesg\n[    2.1] ata1: SATA link up \
                 6.0 Gbps (SStatus 133 SControl 300)\n$ lspci -vv -s 41:00.0\n41:00.0 \
                 Non-Volatile memory controller: Samsung (prog-if 02)\n\tLnkCap:\tPort #0, Speed \
                 16GT/s, Width x1\n\tLnkSta:\tSpeed 5GT/s (downgraded), Width x1\n$ gdsio -D \
                 {place} -d 0 -w 8 -s 1G -i 1M -x 0 -I 0\nIoType: READ XferType: GPUD Threads: 8 \
                 DataSetSize: 16777216/8388608(KiB) IOSize: 1024(KiB) Throughput: 0.400000 \
                 GiB/sec, Avg_Latency: 19531.2 usecs ops: 16384 total_time 40.000000 secs\n$ \
                 iostat -xmy 5\nDevice r/s rMB/s %util\n{rows}"
            )
        };
        let limits = |text: &str| {
            let mut captured = gpuio_capture::Captured::default();
            gpuio_capture::read("post", text, &mut captured).unwrap();
            let (machine, figures) = (&captured.machine, &Figures::built_in());
            let topology = &Topology::of(machine, &[]);
            let known = Known { host: None, machine, topology, figures };
            let post = crate::post::read("post", text);
            let all = hold(&post, &[known]).into_iter().chain(links::hold(&post, &[known]));
            let all = all.filter(|one| one.about == About::Limit).map(|one| one.words);
            all.filter(|words| words.contains("link")).collect::<Vec<_>>()
        };
        let two = "sda 1640.00 205.00 99.00\nsdb 1640.00 205.00 99.00\nmd0 3280.00 410.00 0.00\n";
        assert_eq!(limits(&text("/raid/x", two)), Vec::<String>::new());
        let one = limits(&text("/home/x", "sda 3280.00 410.00 99.00\n"));
        assert!(one.iter().any(|words| words.contains("link of 0000:41:00.0")), "{one:?}");
    }

    #[test]
    fn a_rate_above_the_gpus_link_is_a_contradiction() {
        let text = "$ nvidia-smi --query-gpu=index,pci.bus_id,pcie.link.gen.current,\
                    pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max --format=csv\n\
                    index, pci.bus_id, pcie.link.gen.current, pcie.link.gen.max, \
                    pcie.link.width.current, pcie.link.width.max\n\
                    5, 00000000:A4:00.0, 1, 4, 8, 16\n$ gdsio -D /mnt/nfs -w 8 -d 5 -x 0 -I 0 -i \
                    1M\nIoType: READ XferType: GPUD Threads: 8 DataSetSize: \
                    8388608/8388608(KiB) IOSize: 1024(KiB) Throughput: 20.000000 GiB/sec, \
                    Avg_Latency: 390.6 usecs ops: 8192 total_time 0.400000 secs\n";
        let said = |text: &str| {
            let mut captured = gpuio_capture::Captured::default();
            gpuio_capture::read("post", text, &mut captured).unwrap();
            let (machine, figures) = (&captured.machine, &Figures::built_in());
            let topology = &Topology::of(machine, &[]);
            let known = Known { host: None, machine, topology, figures };
            let said = hold(&crate::post::read("post", text), &[known]);
            said.into_iter().find(|one| one.about == About::Contradiction).map(|one| one.words)
        };
        let found = said(text).unwrap();
        assert!(found.contains("GPU 5's link carries (16 GT/s x8)"), "{found}");
        assert_eq!(said(&text.replace("20.000000", "14.000000")), None);
        let idle = text.replace("pcie.link.gen.max, ", "").replace("1, 4, 8", "1, 8");
        assert_eq!(said(&idle), None, "the speed under load is not known");
        assert_eq!(said(&text.replace("-x 0", "-x 1").replace("GPUD", "CPUONLY")), None);
    }

    /// A server of unknown figures: the card's port is what is known.
    #[test]
    fn the_port_of_a_network_mount_limits() {
        let text = "$ ibdev2netdev -v\n0000:c1:00.0 mlx5_4 (MT4129 - MCX75310) CX7 fw 28.39 port 1 \
                    (ACTIVE) ==> ens6np0 (Up)\n$ ibstatus\nInfiniband device 'mlx5_4' port 1 \
                    status:\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 100 \
                    Gb/sec (4X EDR)\n\tlink_layer:\t Ethernet\n$ ip addr\n5: ens6np0: \
                    <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP\n    inet \
                    10.20.0.11/24 brd 10.20.0.255 scope global ens6np0\n$ ip route\n10.20.0.0/24 \
                    dev ens6np0 proto kernel scope link src 10.20.0.11\n$ mount\n10.20.0.5:/export \
                    on /mnt/nfs type nfs4 (rw,vers=4.2,proto=rdma,addr=10.20.0.5)\n$ gdsio -D \
                    /mnt/nfs -d 0 -w 16 -s 10G -i 1M -x 0 -I 0 -T 30\nIoType: READ XferType: GPUD \
                    Threads: 16 DataSetSize: 350224384/167772160(KiB) IOSize: 1024(KiB) \
                    Throughput: 11.410000 GiB/sec, Avg_Latency: 1369.000000 usecs ops: 342016 \
                    total_time 29.273000 secs\n";
        let said = |text: &str| {
            let mut captured = gpuio_capture::Captured::default();
            gpuio_capture::read("post", text, &mut captured).unwrap();
            captured.finish();
            let (machine, figures) = (&captured.machine, &Figures::built_in());
            let topology = &Topology::of(machine, &[]);
            let known = Known { host: None, machine, topology, figures };
            let said = hold(&crate::post::read("post", text), &[known]);
            said.into_iter().find(|one| one.about == About::Limit).map(|one| one.words)
        };
        let found = said(text).unwrap();
        assert!(found.contains("port ens6np0") && found.ends_with("it limits."), "{found}");
        assert_eq!(said(&text.replace("11.410000", "3.410000")), None);
    }

    #[test]
    fn a_slow_sata_link_is_named() {
        let text = "[ 10.1] ata3: SATA link up 3.0 Gbps (SStatus 123)\n# fio --name=a --rw=read \
                    --bs=1M --filename=/dev/sda\na: (g=0): rw=read, bs=1M-1M, ioengine=libaio, \
                    iodepth=32\nJobs: 1 (f=1): [R(1)] [9% done] [262.0MB/0KB/0KB /s] [262/0/0 \
                    iops]\n";
        let post = crate::post::read("post", text);
        let said = hold(&post, &[]);
        assert!(said[0].words.contains("92 %") && said[0].lines == [1, 4], "{said:?}");
        let fast = text.replace("262.0MB", "5433MB").replace("262/", "5433/");
        let said = hold(&crate::post::read("post", &fast), &[]);
        assert!(said[0].words.contains("a cache moved it"), "{said:?}");
        let far = text.replace("262.0MB", "100.0MB");
        assert_eq!(hold(&crate::post::read("post", &far), &[]), []);
    }
}
