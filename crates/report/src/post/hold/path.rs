//! The way of the bytes, by what looked on.

use std::collections::BTreeMap;

use super::{Known, changes, machine_of, requested::gds_of, say, words};
use crate::foreign::Direction;
use crate::post::line::Line;
use crate::post::seen::{CuFile, Sight, Traffic};
use crate::post::{About, Post, Run, Statement};
use gpuio_machine::check::{Answer, Compat, all_through_host, compat_mode};
use gpuio_machine::topo::{Class, DeviceKind, Topology};
use gpuio_record::facts::{Fact, Machine};

/// Traffic above this share of a run's rate carries its bytes: headers add a quarter at most, and
/// dmon's samples of 20 ms scatter.
pub(in crate::post) const CARRIES: f64 = 0.5;

pub(super) fn path(post: &Post, known: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut by_request: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    for run in &post.runs {
        let own = of_run(post, known, run);
        let is_gdsio = run.got.as_ref().is_some_and(|got| got.tool.starts_with("gdsio"));
        let path = requested(run).filter(|_| is_gdsio && own.is_empty());
        if let Some(path) = path {
            by_request.entry(path).or_default().push(run);
        }
        all.extend(own);
    }
    for (path, runs) in by_request {
        for one in as_requested(post, known, &path, &runs) {
            // The advice may stand for other runs already.
            if all.iter().all(|said: &Statement| said.words != one.words) {
                all.push(one);
            }
        }
    }
    all
}

/// Results of gdsio of which the XferType alone says the way.
fn as_requested(post: &Post, known: &[Known<'_>], path: &str, runs: &[&Run]) -> Vec<Statement> {
    let lines: Vec<usize> = runs.iter().map(|run| run.line).collect();
    let whose = if runs.len() == 1 { "its" } else { "their" };
    if !is_gds(Some(path)) {
        let by = by_request(path);
        let text = format!("As requested {by}: {whose} XferType is all that says so.");
        return vec![say(post, About::Path, &lines, text)];
    }
    let text = format!("{UNDECIDED}: {whose} XferType (path {path}) is a request.");
    let next = advice(post, known, runs[0], None, false).into_iter();
    let next = next.map(|one| say(post, one.about, &lines, one.words));
    [say(post, About::Path, &lines, text)].into_iter().chain(next).collect()
}

/// A path that is none of cuFile's, in words.
fn by_request(path: &str) -> &'static str {
    match path {
        "host" => "into host memory only",
        "cached" => "through the page cache and host memory",
        _ => "through host memory",
    }
}

const UNDECIDED: &str = "Between storage and GPU memory; whether directly or by way of host memory \
                         is not decided by what is here";

/// Facts about a run's way, with their lines.
#[derive(Default)]
struct Facts {
    words: Vec<String>,
    lines: Vec<usize>,
}

impl Facts {
    fn add(&mut self, line: usize, words: String) {
        self.words.push(words);
        self.lines.push(line);
    }
}

fn of_run(post: &Post, known: &[Known<'_>], run: &Run) -> Vec<Statement> {
    let mut facts = Facts::default();
    facts.lines.extend(run.got.as_ref().map(|got| got.line));
    facts.lines.extend(run.in_words.as_ref().map(|words| words.1));
    let direction = direction(run);
    let through = through(run, &mut facts);
    let (mut posix, mut gds) = library(run, &mut facts);
    let module = module(run, direction, &mut facts);
    let requested = requested(run);
    let settled = posix || gds || module;
    let mode = is_gds(requested.as_deref()).then(|| mode(post, known, run)).flatten();
    let denied = mode.as_ref().filter(|(mode, _)| match mode {
        Compat::Forced => gds || module,
        Compat::Forbidden => posix,
        Compat::Allowed => false,
    });
    if let Some((_, words)) = denied {
        let seen = facts.words.join("; ");
        let text = format!(
            "{seen}, and {words}: one of both is of another time or configuration, so the way of \
             the bytes is not decided."
        );
        return vec![say(post, About::Contradiction, &facts.lines, text)];
    }
    let mode = mode.filter(|_| !settled);
    if let Some((mode, words)) = &mode {
        (posix, gds) = (*mode == Compat::Forced, *mode == Compat::Forbidden);
        facts.words.push(words.clone());
    }
    let ends = ends(run, through, direction, &mut facts);
    let shown = shows_other_gpus(run);
    let opening = match (through, posix, requested.as_deref()) {
        (Some(gpu), _, _) => {
            format!("Most likely through the memory of GPU {gpu}, which is not the target")
        }
        (None, true, _) => "Most likely through host memory (cuFile's POSIX path)".to_owned(),
        (None, false, Some(path)) if !is_gds(Some(path)) => {
            format!("As requested {}", by_request(path))
        }
        (None, false, _) if (gds || module) && shown => {
            "Most likely directly between storage and GPU memory".to_owned()
        }
        (None, false, _) if gds || module => {
            "Most likely not through host memory; whether directly or by way of another GPU is not \
             shown"
                .to_owned()
        }
        (None, false, Some(_)) if !ends.is_empty() || mode.is_some() => UNDECIDED.to_owned(),
        (None, false, None) if !ends.is_empty() => "Not decided by what is here".to_owned(),
        _ => return Vec::new(),
    };
    let facts_in_words = facts.words.join("; ");
    let label = label(run);
    let mut all = Vec::new();
    if facts.words.is_empty() {
        return all;
    }
    let text = format!("{label}{opening}: {facts_in_words}.");
    all.push(say(post, About::Path, &facts.lines, text));
    all.extend(advice(post, known, run, through, (gds || module) && shown || posix));
    all
}

fn label(run: &Run) -> String {
    let figures = run.got.as_ref().map(words::figures);
    let said = run.in_words.as_ref().map(|(figure, _)| format!("{} in words", figure.text));
    let gpu = run.asked.as_ref().filter(|asked| !asked.gpus.is_empty());
    let gpu = gpu.map(|asked| format!(", {}", words::gpus(&asked.gpus))).unwrap_or_default();
    figures.or(said).map(|text| format!("({text}{gpu}) ")).unwrap_or_default()
}

/// The direction: of the result, of the command, or of the busier side of the drives.
fn direction(run: &Run) -> Direction {
    let got = run.got.as_ref().map(|got| got.direction);
    let asked = run.asked.as_ref().and_then(|asked| asked.direction);
    got.or(asked).unwrap_or_else(|| {
        let disks = run.beside.iter().find_map(|seen| match &seen.sight {
            Sight::Disks(disks) => Some(disks),
            _ => None,
        });
        let sum = |of: fn(&crate::post::seen::Disk) -> f64| {
            disks.map_or(0.0, |disks| disks.iter().map(of).sum::<f64>())
        };
        let writes = sum(|disk| disk.written_bytes) > sum(|disk| disk.read_bytes);
        if writes { Direction::Write } else { Direction::Read }
    })
}

fn requested(run: &Run) -> Option<String> {
    let got = run.got.as_ref().and_then(|got| got.path.clone());
    got.or_else(|| run.asked.as_ref()?.path.clone())
}

/// Whether a path is cuFile's, in any of its calls.
fn is_gds(path: Option<&str>) -> bool {
    path.is_some_and(|path| path.starts_with("gds"))
}

/// cuFile's compatibility mode for a run with a result, and what follows from it in words. Where it
/// is allowed and GDS is off, it is as good as forced. `None` where the text has it for another
/// state of the machine, or a variable that may be the run's.
fn mode(post: &Post, known: &[Known<'_>], run: &Run) -> Option<(Compat, String)> {
    run.got.as_ref()?;
    let known = machine_of(known, run).map(|known| known.machine);
    let own = environment(post, run, known)?;
    let mut machine = known.cloned().unwrap_or_default();
    if !own.is_empty() {
        let mut all = machine.cufile.environment.known().cloned().unwrap_or_default();
        all.extend(own);
        machine.cufile.environment = Fact::Known(all);
    }
    let counts = |seen: &crate::post::Seen| match &seen.sight {
        Sight::Module(module) => module.counted() > 0.0,
        _ => false,
    };
    // I/Os that nvidia-fs counts speak against it.
    let off = || {
        let asked = run.asked.as_ref().is_some_and(|one| gds_of(&machine, one) == Answer::No);
        !run.beside.iter().any(counts) && (asked || all_through_host(&machine))
    };
    let Some((mode, from)) = compat_mode(&machine).or_else(|| printed_mode(post)) else {
        let words = "GDS is off there (`gpuio why`), and this run has a result";
        return off().then(|| (Compat::Forced, words.to_owned()));
    };
    // Lines printed before a change, or after it, are not of the other side.
    let side = changes::side_of(post, run.line);
    let mut printed = post.lines.iter().filter(|line| line.text.contains("compat_mode"));
    let is_of_run = |line: &Line| changes::side_of(post, line.number) == side;
    if !from.starts_with(VARIABLES) && side > 0 && !printed.any(is_of_run) {
        return None;
    }
    Some(match mode {
        Compat::Forced => (mode, format!("compatibility mode is forced ({from})")),
        Compat::Forbidden => {
            let words = "I/O that can't be direct fails, and this run has a result";
            (mode, format!("compatibility mode is forbidden ({from}): {words}"))
        }
        Compat::Allowed if off() => {
            let words = "GDS is off there (`gpuio why`), and compatibility mode is allowed";
            (Compat::Forced, format!("{words} ({from})"))
        }
        Compat::Allowed => {
            let words = "I/O that can't be direct goes through host memory unseen";
            (mode, format!("compatibility mode is allowed ({from}): {words}"))
        }
    })
}

/// The mode by lines of cufile.json that stand alone, as `grep` leaves them.
fn printed_mode(post: &Post) -> Option<(Compat, String)> {
    let of = |key: &str| {
        let found = post.lines.iter().rev().find_map(|line| {
            let rest = line.text.trim().strip_prefix(key)?.trim_start().strip_prefix(':')?;
            let value = rest.trim().trim_end_matches(',').trim();
            Some((line.number, value.parse::<bool>().ok()?))
        });
        found.map(|(number, value)| (value, format!("line {number}: {key}: {value}")))
    };
    if let Some((true, from)) = of("\"force_compat_mode\"") {
        return Some((Compat::Forced, from));
    }
    let (allowed, from) = of("\"allow_compat_mode\"")?;
    Some((if allowed { Compat::Allowed } else { Compat::Forbidden }, from))
}

/// How the names of cuFile's variables for the compatibility mode begin and end.
const VARIABLES: &str = "CUFILE_";
const MODE: &str = "_COMPAT_MODE";

/// Whether a command sets one of them.
pub(crate) fn sets_mode(line: &Line) -> bool {
    line.prompt.is_some() && line.text.contains(VARIABLES) && line.text.contains(MODE)
}

/// The variables of the compatibility mode in a run's environment: of its command, or of what was
/// exported above it. `None` where the text names one otherwise, or a value that cuFile does not
/// take.
fn environment(
    post: &Post,
    run: &Run,
    machine: Option<&Machine>,
) -> Option<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    let own = run.asked.as_ref().map(|asked| asked.line);
    let known = machine.and_then(|machine| machine.cufile.environment.known());
    for line in post.lines.iter().filter(|line| line.text.contains(MODE)) {
        let is_command = line.prompt.is_some();
        let mut exports = false;
        let words = line.text.split([' ', ';', '&']).map(|word| word.trim_matches(['"', '\'']));
        for word in words {
            exports |= word == "export" || word == "unset";
            let Some(at) = word.find(VARIABLES).filter(|_| word.contains(MODE)) else { continue };
            let (name, value) = word[at..].split_once('=').unwrap_or((&word[at..], ""));
            let value = value.trim_matches(['"', '\'']);
            let printed = known.is_some_and(|known| known.contains_key(name));
            let is_set = matches!(value, "0" | "1" | "true" | "false" | "TRUE" | "FALSE");
            let counts = exports && own.is_some_and(|own| line.number <= own);
            match is_command && at == 0 {
                true if line.text.contains(&format!("unset {name}")) && own.is_some() => {
                    if counts {
                        all.remove(name);
                    }
                }
                true if is_set && own.is_some() => {
                    if counts || Some(line.number) == own {
                        all.insert(name.to_owned(), value.to_owned());
                    }
                }
                _ if printed => {}
                _ => return None,
            }
        }
    }
    Some(all)
}

/// The rate that traffic is held against: the run's, else the one of gds_stats.
fn rate(run: &Run) -> Option<f64> {
    let stats = |seen: &crate::post::Seen| match &seen.sight {
        Sight::CuFile(stats) => {
            stats.read_rate.into_iter().chain(stats.write_rate).reduce(f64::max)
        }
        _ => None,
    };
    words::rate_of(run).or_else(|| run.beside.iter().find_map(stats))
}

/// All traffic with its lines and tools.
fn traffic(run: &Run) -> impl Iterator<Item = (usize, &'static str, &Traffic)> {
    run.beside.iter().flat_map(|seen| {
        let gpus: &[Traffic] = match &seen.sight {
            Sight::Gpus(gpus) => gpus,
            _ => &[],
        };
        gpus.iter().map(move |gpu| (seen.line, seen.tool, gpu))
    })
}

/// A GPU that is not the target, and through which the bytes went: they go in and out, or its pool
/// of bounce buffers is in use.
fn through(run: &Run, facts: &mut Facts) -> Option<u32> {
    let targets = targets(run);
    let mut found = None;
    if let Some(rate) = rate(run) {
        for (line, tool, gpu) in traffic(run) {
            let both = gpu.received >= CARRIES * rate && gpu.sent >= CARRIES * rate;
            if both && !targets.contains(&gpu.gpu) {
                let (into, out) = (words::rate(gpu.received), words::rate(gpu.sent));
                facts.add(line, format!("{tool} has {into} into and {out} out of GPU {}", gpu.gpu));
                found = Some(gpu.gpu);
            }
        }
    }
    for seen in &run.beside {
        let Sight::CuFile(stats) = &seen.sight else { continue };
        let targets: Vec<u32> =
            targets.iter().copied().chain(stats.gpus.iter().map(|gpu| gpu.gpu)).collect();
        for (gpu, used, of) in stats.pools.iter().filter(|(_, used, _)| *used > 0) {
            if !targets.contains(gpu) && !targets.is_empty() {
                let text =
                    format!("gds_stats has {used} of {of} bounce buffers of GPU {gpu} in use");
                facts.add(seen.line, text);
                found = found.or(Some(*gpu));
            }
        }
    }
    found
}

/// Whether a tool shows that the bytes went through no GPU beside the target: the traffic of
/// another one, or the pools of bounce buffers.
fn shows_other_gpus(run: &Run) -> bool {
    let targets = targets(run);
    let traffic =
        traffic(run).any(|(_, _, gpu)| !targets.is_empty() && !targets.contains(&gpu.gpu));
    let pools = run.beside.iter().any(|seen| match &seen.sight {
        Sight::CuFile(stats) => !stats.pools.is_empty(),
        _ => false,
    });
    traffic || pools
}

/// The GPUs that the command names.
fn targets(run: &Run) -> Vec<u32> {
    run.asked.as_ref().map(|asked| asked.gpus.clone()).unwrap_or_default()
}

/// Whether I/Os took the POSIX path, and whether none of any did.
fn library(run: &Run, facts: &mut Facts) -> (bool, bool) {
    let (mut posix, mut gds) = (false, false);
    for seen in &run.beside {
        let Sight::CuFile(CuFile { gpus, .. }) = &seen.sight else { continue };
        for gpu in gpus {
            let (ios, of) = (words::count(gpu.ios), words::count(gpu.posix));
            if gpu.posix >= 0.5 * gpu.ios {
                posix = true;
                let text = format!("{of} of {ios} I/Os of GPU {} took the POSIX path", gpu.gpu);
                facts.add(seen.line, text);
            } else {
                gds = true;
                let few = if gpu.posix > 0.0 { format!("{of} of") } else { "none of".to_owned() };
                let text = format!("{few} {ios} I/Os of GPU {} took the POSIX path", gpu.gpu);
                facts.add(seen.line, text);
            }
        }
    }
    (posix, gds)
}

/// Whether nvidia-fs moves bytes at the run's rate.
fn module(run: &Run, direction: Direction, facts: &mut Facts) -> bool {
    let Some(rate) = rate(run) else { return false };
    let mut moved = false;
    for seen in &run.beside {
        let Sight::Module(module) = &seen.sight else { continue };
        let own = match direction {
            Direction::Write => module.write_rate,
            Direction::Read | Direction::Both => module.read_rate,
        };
        if let Some(own) = own.filter(|own| (own / rate - 1.0).abs() < 0.1) {
            moved = true;
            facts.add(seen.line, format!("nvidia-fs counts {}", words::rate(own)));
        }
    }
    moved
}

/// The GPUs where bytes end or begin, by traffic in one direction.
fn ends(run: &Run, through: Option<u32>, direction: Direction, facts: &mut Facts) -> Vec<u32> {
    let Some(rate) = rate(run) else { return Vec::new() };
    let mut found = Vec::new();
    for (line, tool, gpu) in traffic(run).filter(|(_, _, gpu)| Some(gpu.gpu) != through) {
        let (own, side) = match direction {
            Direction::Write => (gpu.sent, "out of"),
            Direction::Read | Direction::Both => (gpu.received, "into"),
        };
        if own >= CARRIES * rate {
            let (value, times) = (words::rate(own), own / rate);
            facts.add(
                line,
                format!(
                    "{tool} has {value} {side} GPU {} ({times:.2} of the run's rate, with headers)",
                    gpu.gpu
                ),
            );
            found.push(gpu.gpu);
        } else if targets(run).contains(&gpu.gpu) {
            let value = words::rate(own);
            facts.add(line, format!(
                "{tool} has only {value} {side} GPU {}, the target: not the minute of the run, or \
                 not its GPU",
                gpu.gpu
            ));
            found.push(gpu.gpu);
        }
    }
    found
}

/// Advice on what to run next, so that the way is known or is the short one.
fn advice(
    post: &Post,
    known: &[Known<'_>],
    run: &Run,
    through: Option<u32>,
    decided: bool,
) -> Vec<Statement> {
    let is_gds = requested(run).is_none_or(|path| is_gds(Some(&path)));
    let line = [run.line];
    if let Some(gpu) = through {
        let near = machine_of(known, run).and_then(|known| near(known.topology, gpu));
        let near = near.map(|names| format!(" ({names})")).unwrap_or_default();
        let text = format!(
            "Give the load a GPU below the switch of its drives: GPU {gpu}, through which cuFile \
             sent the bytes, or one beside it{near}; `gpuio plan` names the pairs, and `gpuio \
             bench --path routed --via-gpu {gpu}` measures the detour alone."
        );
        return vec![say(post, About::Next, &line, text)];
    }
    if decided || !is_gds || run.asked.is_none() && run.got.is_none() {
        return Vec::new();
    }
    let text = "Decide the way: `gds_stats -p PID -l 3` during the run (posix= and pool buffers), \
                PCIe traffic of all GPUs at once (`dcgmi dmon -e 1009,1010`), \
                /proc/driver/nvidia-fs/stats before and after; or `gpuio bench`, which reports the \
                path taken with its evidence.";
    vec![say(post, About::Next, &line, text.to_owned())]
}

/// The GPUs below one switch with this one.
fn near(topology: &Topology, gpu: u32) -> Option<String> {
    let own = topology.find(&format!("GPU{gpu}"))?;
    let gpus = topology.of_kind(DeviceKind::Gpu).filter(|(index, _)| *index != own);
    let near = gpus.filter(|(index, _)| {
        let class = topology.route(own, *index).and_then(|route| route.class.known().copied());
        class.is_some_and(|class| class <= Class::Pxb)
    });
    let names: Vec<String> = near.map(|(_, device)| device.name.clone()).collect();
    (!names.is_empty()).then(|| words::and(&names))
}

#[cfg(test)]
mod tests {
    use gpuio_machine::flow::Figures;
    use gpuio_machine::topo::Topology;

    use crate::post::hold::Known;
    use crate::post::{About, hold, read};

    /// The statements on the path that a post gives.
    fn on_the_path(text: &str) -> Vec<String> {
        let mut captured = gpuio_capture::Captured::default();
        gpuio_capture::read("post", text, &mut captured).unwrap();
        let (machine, figures) = (&captured.machine, &Figures::built_in());
        let topology = &Topology::of(machine, &[]);
        let known = Known { host: None, machine, topology, figures };
        let said = hold(&[read("post", text)], &[known]).into_iter();
        said.filter(|one| one.about == About::Path).map(|one| one.words).collect()
    }

    /// gdscheck's compatibility mode says where a result's bytes went that nothing looked at.
    #[test]
    fn the_compatibility_mode_that_gdscheck_printed_decides_the_way() {
        let said = |modes: [&str; 2], mount: &str, x: &str| {
            let text = format!(
                "GDS release version: 1.7\n NVMe : Supported\n properties.use_compat_mode : \
                 {}\n properties.force_compat_mode : {}\n$ mount\n{mount}\n$ nvidia-smi -L\nGPU 0: \
                 NVIDIA A100 (UUID: GPU-a)\n$ gdsio -D /d -d 0 -w 8 -s 1G -i 1M -x {x} -I 0\n\
                 IoType: READ XferType: GPUD Threads: 8 DataSetSize: 8388608/8388608(KiB) IOSize: \
                 1024(KiB) Throughput: 5.0 GiB/sec, Avg_Latency: 1562.5 usecs ops: 8192 \
                 total_time 1.6 secs\n",
                modes[0], modes[1]
            );
            let text = if x == "1" { text.replace("GPUD", "CPUONLY") } else { text };
            on_the_path(&text).concat()
        };
        let xfs = "/dev/nvme0n1 on /d type xfs (rw)";
        let nfs = "nas:/a on /d type nfs (rw,vers=3,proto=tcp,addr=192.0.2.9)";
        for (modes, mount, words) in [
            (["true", "true"], xfs, "through host memory (cuFile's POSIX path): compat"),
            (["false", "false"], xfs, "not through host memory; whether directly or by"),
            (["true", "false"], xfs, "not decided by what is here: compatibility mode is"),
            (["true", "false"], nfs, "through host memory (cuFile's POSIX path): GDS is"),
        ] {
            let said = said(modes, mount, "0");
            assert!(said.contains(words), "{modes:?} {mount}: {said}");
        }
        assert!(!said(["true", "true"], xfs, "1").contains("compatibility"));
    }

    /// NFS over TCP has no GDS, whatever the mode is: a result is one of host memory.
    #[test]
    fn a_result_where_gds_is_off_went_through_host_memory() {
        let said = |mount: &str| {
            let text = format!(
                "$ mount\n{mount}\n$ gdsio -D /d -d 0 -w 8 -s 1G -i 1M -x 0 -I 0\nIoType: READ \
                 XferType: GPUD Threads: 8 DataSetSize: 8388608/8388608(KiB) IOSize: 1024(KiB) \
                 Throughput: 1.0 GiB/sec, Avg_Latency: 7812.5 usecs ops: 8192 total_time 8.0 secs\n"
            );
            on_the_path(&text).swap_remove(0)
        };
        let tcp = said("nas:/a on /d type nfs (rw,vers=3,proto=tcp,addr=192.0.2.9)");
        assert!(tcp.contains("through host memory (cuFile's POSIX path): GDS is off"), "{tcp}");
        let rdma = "nas:/a on /d type nfs (rw,vers=3,proto=rdma,addr=192.0.2.9)";
        assert!(!said(rdma).contains("GDS is off"), "{}", said(rdma));
        let grep = "$ cat /etc/cufile.json | grep compat\n        \"allow_compat_mode\": VALUE,";
        for (value, words) in
            [("true", "is allowed (line 4: "), ("false", "is forbidden (line 4: ")]
        {
            let text = format!("{rdma}\n{}", grep.replace("VALUE", value));
            assert!(said(&text).contains(words), "{}", said(&text));
        }
    }

    /// gdsio names the mode that was requested: the section is there, and says no more than that.
    #[test]
    fn a_result_whose_xfer_type_alone_is_known_has_its_way_too() {
        let line = |xfer: &str| {
            format!(
                "IoType: READ XferType: {xfer} Threads: 8 DataSetSize: 8388608/8388608(KiB) \
                 IOSize: 1024(KiB) Throughput: 5.0 GiB/sec, Avg_Latency: 1562.5 usecs ops: 8192 \
                 total_time 1.6 secs\n"
            )
        };
        let text = line("GPUD") + &line("CPU_GPU") + &line("GPUD") + &line("CPUONLY");
        let said = hold(&[read("post", &text)], &[]);
        let of = |about| said.iter().filter(move |one| one.about == about).collect::<Vec<_>>();
        let paths = of(About::Path);
        let way = |words: &str| paths.iter().find(|one| one.words.contains(words)).unwrap();
        assert_eq!(way("not decided by what is here: their XferType (path gds)").lines, [1, 3]);
        assert_eq!(way("As requested through host memory: its XferType").lines, [2]);
        assert_eq!(way("As requested into host memory only: its XferType").lines, [4]);
        assert_eq!(of(About::Next).len(), 1, "{said:?}");
    }

    /// Variables go before the file; where a text's change or words leave them open, so is the way.
    #[test]
    fn the_way_is_that_of_the_run_s_own_environment() {
        let said = |text: &str| {
            let mut captured = gpuio_capture::Captured::default();
            gpuio_capture::read("post", text, &mut captured).unwrap();
            let (machine, figures) = (&captured.machine, &Figures::built_in());
            let topology = &Topology::of(machine, &[]);
            let known = Known { host: None, machine, topology, figures };
            let said = hold(&[read("post", text)], &[known]).into_iter();
            let kinds = [About::Path, About::Contradiction];
            let said = said.filter(|one| kinds.contains(&one.about));
            said.map(|one| one.words + "\n").collect::<String>()
        };
        let check = |allowed, forced| {
            format!(
                "$ gdscheck -p\nGDS release version: 1.7\n NVMe : Supported\n \
                 properties.use_compat_mode : {allowed}\n properties.force_compat_mode : {forced}\n"
            )
        };
        let line = "IoType: READ XferType: GPUD Threads: 8 DataSetSize: 8388608/8388608(KiB) \
                    IOSize: 1024(KiB) Throughput: 5.0 GiB/sec, Avg_Latency: 1562.5 usecs ops: 8192 \
                    total_time 1.6 secs\n";
        let run = format!("gdsio -D /d -d 0 -w 8 -s 1G -i 1M -x 0 -I 0\n{line}");
        let off = check(false, false);
        let forbidden = "not through host memory";
        let forced = "through host memory (cuFile's POSIX path): compatibility mode is forced";
        for (above, words) in [
            ("$ ", forbidden),
            ("$ CUFILE_FORCE_COMPAT_MODE=true ", forced),
            ("$ env CUFILE_FORCE_COMPAT_MODE=1 ", forced),
            ("$ export CUFILE_FORCE_COMPAT_MODE=\"true\"\n$ ", forced),
            ("$ export CUFILE_FORCE_COMPAT_MODE=true; ", forced),
            ("$ export CUFILE_ALLOW_COMPAT_MODE=true\n$ ", "not decided by what is here: compat"),
            (
                "$ export CUFILE_FORCE_COMPAT_MODE=1\n$ unset CUFILE_FORCE_COMPAT_MODE\n$ ",
                forbidden,
            ),
            ("$ CUFILE_FORCE_COMPAT_MODE=true gdscheck -p\n$ ", forbidden),
        ] {
            let said = said(&format!("{above}{run}{off}"));
            assert!(said.contains(words), "{above}: {said}");
        }
        for open in [
            "# docker run -e CUFILE_FORCE_COMPAT_MODE=true img\n$ ",
            "I set CUFILE_FORCE_COMPAT_MODE=true for it.\n$ ",
            "$ export CUFILE_FORCE_COMPAT_MODE=yes\n$ ",
        ] {
            let said = said(&format!("{open}{run}{off}"));
            assert!(!said.contains("Most likely"), "{open}: {said}");
        }
        let change = format!("Without nvidia-fs:\n$ {run}With nvidia-fs loaded:\n$ {run}{off}");
        assert_eq!(said(&change).matches(forbidden).count(), 1, "{}", said(&change));
        // gdscheck and what looked on contradict each other.
        let counts = "$ cat /proc/driver/nvidia-fs/stats\nGDS Version: 1.7.0.149\nNVFS \
                      statistics(ver: 4.0)\nNVFS Driver(version: 2:17:5)\nReads : n=4200 ok=4200 \
                      err=0 readMiB=4200 io_state_err=0\nReads : Bandwidth(MiB/s)=5120 \
                      Avg-Latency(usec)=620\nWrites : n=0 ok=0 err=0 writeMiB=0\n";
        let both = said(&format!("$ {run}{counts}{}", check(true, true)));
        assert!(both.contains("and compatibility mode is forced") && !both.contains("Most likely"));
        // Lines of gdscheck about devices are no titles of a change.
        let more = "Found ACS enabled for switch 0000:3a:00.0\nIOMMU: disabled\n";
        let both = said(&format!("{}{more}{counts}{line}", check(true, true)));
        assert!(both.contains("and compatibility mode is forced"), "{both}");
        let whole = "$ gdscheck -p\n GDS release version: 1.16.0.49\n NVMe : compat\n NVMeOF : \
                     compat\n NFS : compat\n WekaFS : compat\n properties.use_compat_mode : \
                     true\n properties.force_compat_mode : false\n";
        let all = said(&format!("{whole}{line}"));
        assert!(all.contains("Most likely through host memory"), "{all}");
        let part = said(&format!("{}{line}", whole.replace("NVMe : compat", "NVMe : Supported")));
        assert!(!part.contains("Most likely"), "{part}");
    }

    /// Bytes that took no POSIX path may still have gone by way of another GPU.
    #[test]
    fn no_posix_path_is_no_direct_one_where_pools_and_traffic_are_not_shown() {
        let stats = "$ gdsio -D /d -d 10 -w 64 -s 1G -i 4K -x 0 -I 2\n$ gds_stats -p 1 -l 3\n\
                     cuFile STATS VERSION : 3\nGLOBAL STATS:\nTotal Files: 64\nPER_GPU STATS:\nGPU \
                     10 Read: bw=0.124 util(%)=6387 n=1279109 posix=0 unalign=0 r_sparse=0 \
                     r_inline=0 err=0 MiB=4996 Write: bw=0 util(%)=0 n=0 posix=0 unalign=0 err=0 \
                     MiB=0 BufRegister: n=64 err=0 free=0 MiB=0\n";
        let pool = "PER_GPU POOL BUFFER STATS:\nGPU : 0 pool_size_MiB : 64 usage : USED/64 \
                    used_MiB : USED\n";
        for (pool, way) in [
            (pool.replace("USED", "63"), "through the memory of GPU 0"),
            (pool.replace("USED", "0"), "directly between storage and GPU memory"),
            (String::new(), "not through host memory; whether directly or by way of another GPU"),
        ] {
            let said = hold(&[read("post", &format!("{stats}{pool}"))], &[]);
            let said = said.iter().find(|one| one.about == About::Path).unwrap();
            assert!(said.words.contains(&format!("Most likely {way}")), "{}", said.words);
        }
    }
}
