//! Commands and job files without a result: the rate that the machine of the same text should
//! deliver for them, or the fact that is missing.

use gpuio_base::units::{format_bytes, human_count, human_decimal_rate};
use gpuio_machine::check::why;
use gpuio_machine::check::{Answer, Gpu, Pair, gpu_of, mount_of, verdict};
use gpuio_machine::flow::{By, End, Pattern, Stream, of_machine, uncounted_depth};
use gpuio_record::facts::{GpuFacts, Machine};

use super::machine::{drives, storage_of, towards};
use super::{Known, machine_of, say};
use crate::post::{About, Asked, Post, Run, Statement};

pub(super) fn hold(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let requests = post.runs.iter().filter_map(|run| Some((run, run.request()?)));
    let words = requests.map(|(run, asked)| {
        let words = expected(run, asked, machine_of(known, run))
            .unwrap_or_else(|missing| format!("No rate is known for it: {missing}."));
        say(post, About::Expected, &[run.line], words)
    });
    words.collect()
}

fn expected(run: &Run, asked: &Asked, known: Option<&Known<'_>>) -> Result<String, String> {
    let known = known.ok_or(
        "no machine is among these texts (nvidia-smi topo -m, lspci -tv, lspci -vv, lsblk, mount)",
    )?;
    let machine = known.machine;
    if asked.is_buffered() {
        return Err("it goes through the page cache, which has no figure".to_owned());
    }
    let direction = asked.direction.ok_or("whether it reads or writes is not said")?;
    let towards = towards(direction).ok_or("reads and writes share it, and their mix is not")?;
    let block_bytes = asked.block_or_usual().ok_or("its blocks are of several sizes")?;
    let (storage, what) = storage_of(run, machine, &drives(run, known).0).ok_or_else(|| {
        let places = asked.places.join(", ");
        let places = if places.is_empty() { "its files" } else { places.as_str() };
        format!("{places}: no mount or drive of these texts holds it (lsblk, mount)")
    })?;
    let (end, by, basis) = way(machine, asked)?;
    let (threads, depth) = (asked.threads.unwrap_or(1), asked.depth_of_thread());
    let stream = Stream {
        name: what.clone(),
        storage,
        end,
        by,
        towards,
        block_bytes,
        pattern: match asked.random {
            Some(true) => Pattern::Random,
            _ => Pattern::Sequential,
        },
        in_flight: Some(threads.saturating_mul(depth)),
        requested_bytes_per_s: None,
    };
    let expected = of_machine(machine, known.figures, &[stream]).streams.pop();
    let expected = expected.map(|one| one.expected).unwrap_or_default();
    let load = format!(
        "{threads} threads x depth {depth} of {} on {what}, {basis}",
        format_bytes(block_bytes)
    );
    let bottleneck = expected.bottleneck.as_deref().unwrap_or("nothing that has a figure");
    let depth = uncounted_depth(&expected);
    let most = if depth.is_some() { "at most " } else { "" };
    let depth = depth.map(|note| format!(" {note}")).unwrap_or_default();
    match (expected.bytes_per_s, expected.at_most) {
        (Some(rate), _) => {
            let ios = human_count(rate / gpuio_base::units::float(block_bytes));
            let rate = human_decimal_rate(rate);
            Ok(format!("{load}: {most}{rate}, {ios} IOPS, limited by {bottleneck}.{depth}"))
        }
        (None, most) => {
            let why = expected.unknown.unwrap_or_default();
            let most = most.map(human_decimal_rate);
            let most = most.map(|most| format!(" (at most {most}: {bottleneck})"));
            Err(format!("{load}: {why}{}", most.unwrap_or_default()))
        }
    }
}

/// The memory at the other end, how bytes get there, and both in words.
fn way(machine: &Machine, asked: &Asked) -> Result<(End, By, String), String> {
    let path = asked.path.as_deref().unwrap_or("host");
    if path == "host" {
        return Ok((End::Host, By::Host, "to host memory".to_owned()));
    }
    let find = |number: &u32| {
        let gpu = gpu_of(machine, &number.to_string());
        gpu.ok_or_else(|| format!("GPU {number} is not among those of these texts"))
    };
    let gpus = asked.gpus.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let addresses: Option<Vec<String>> = gpus.iter().map(|gpu| gpu.pci.clone()).collect();
    let end = match addresses.unwrap_or_default().as_slice() {
        [] => End::Uncounted,
        [one] => End::Gpu(one.clone()),
        all => End::Gpus(all.to_vec()),
    };
    let through = "through host memory".to_owned();
    if !path.starts_with("gds") {
        return Ok((end, By::Host, through));
    }
    Ok(match gds_of(machine, asked) {
        Answer::Yes => (end, By::Direct, "direct".to_owned()),
        Answer::No => (end, By::Host, format!("{through} (GDS is off there: `gpuio why`)")),
        _ => (end, By::Host, format!("{through} (whether GDS is on is not known: `gpuio why`)")),
    })
}

/// Whether GDS is on between the GPUs and the first place of a command. Where the texts list no
/// GPU, the storage alone may say that it is off.
pub(super) fn gds_of(machine: &Machine, asked: &Asked) -> Answer {
    let mount = asked.places.first().and_then(|place| Some((place, mount_of(machine, place)?)));
    let unlisted = GpuFacts::default();
    let gpus = asked.gpus.iter().map(|number| match machine.gpus.is_empty() {
        true => Some(&unlisted),
        false => gpu_of(machine, &number.to_string()),
    });
    match (mount, gpus.collect::<Option<Vec<_>>>()) {
        (Some((place, mount)), Some(gpus)) if !gpus.is_empty() => {
            Answer::of_all(gpus.into_iter().map(|gpu| {
                why::of(&verdict(&Pair { machine, mount, gpu: Gpu::Real(gpu) }, place)).gds
            }))
        }
        _ => Answer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use gpuio_machine::flow::Figures;
    use gpuio_machine::topo::Topology;

    use super::*;
    use crate::post::hold::hold;

    const MACHINE: &str = "$ lsblk -o NAME,MODEL,SIZE,TYPE,MOUNTPOINT\nNAME MODEL SIZE TYPE \
                           MOUNTPOINT\nnvme0n1 SAMSUNG MZQL23T8HCLS-00A07 3.5T disk /data\n$ \
                           mount\n/dev/nvme0n1 on /data type xfs (rw)\n$ ls -l \
                           /dev/disk/by-path\nlrwxrwxrwx 1 root root 13 Jan  1 00:00 \
                           pci-0000:41:00.0-nvme-1 -> ../../nvme0n1\n$ lspci\n41:00.0 \
                           Non-Volatile memory controller: Samsung PM9A3\n\
                           $ nvidia-smi -L\nGPU 0: NVIDIA A100 (UUID: GPU-a)\n";

    fn said(command: &str, with_machine: bool) -> Option<String> {
        let mut captured = gpuio_capture::Captured::default();
        gpuio_capture::read("machine", MACHINE, &mut captured).unwrap();
        let (machine, figures) = (&captured.machine, &Figures::built_in());
        let topology = &Topology::of(machine, &[]);
        let known = [Known { host: None, machine, topology, figures }];
        let known = if with_machine { &known[..] } else { &[] };
        let said = hold(&[crate::post::read("command", command)], known);
        said.into_iter().find(|one| one.about == About::Expected).map(|one| one.words)
    }

    #[test]
    fn a_command_without_a_result_has_a_rate_or_says_what_is_missing() {
        for (command, words) in [
            (
                "$ gdsio -D /data/x -d 0 -w 8 -s 1G -i 1M -x 2 -I 0",
                "8 threads x depth 1 of 1M on nvme0n1, through host memory: at most 6.80 GB/s",
            ),
            (
                "fio --name=a --directory=/data --rw=randread --iodepth=4 --numjobs=2 --direct=1 \
                 --ioengine=libaio --size=1G",
                "2 threads x depth 4 of 4K on nvme0n1, to host memory: ",
            ),
            (
                "elbencho -w -t 16 -b 2m --direct --iodepth 3 /data/f",
                "16 threads x depth 3 of 2M on nvme0n1, to host memory: ",
            ),
            ("$ fio --name=a --directory=/data --rw=read", "missing: the page cache"),
            ("$ gdsio -D /other -d 0 -w 8 -x 2 -I 0", "missing: /other"),
            ("$ gdsio -D /data -d 7 -w 8 -x 2 -I 0", "missing: GPU 7 is not"),
        ] {
            let said = said(command, true).unwrap();
            match words.strip_prefix("missing: ") {
                Some(fact) => assert!(said.starts_with("No rate") && said.contains(fact), "{said}"),
                None => assert!(said.starts_with(words), "{said}"),
            }
        }
        let alone = said("$ gdsio -D /data/x -d 0 -w 8 -x 2 -I 0", false).unwrap();
        assert!(alone.contains("no machine is among these texts"), "{alone}");
        let ran = "$ gdsio -D /data/x -d 0 -w 8 -s 1G -i 1M -x 2 -I 0\nIoType: READ XferType: \
                   CPU_GPU Threads: 8 DataSetSize: 8388608/8388608(KiB) IOSize: 1024(KiB) \
                   Throughput: 1.0 GiB/sec, Avg_Latency: 7812.5 usecs ops: 8192 total_time 8 \
                   secs\n";
        assert_eq!(said(ran, true), None, "a result says more");
    }
}
