//! fio's results for terminals: the jobs of a run, and the lines that add to each of them.
//!
//! Jobs of one name and one group ran at once (`numjobs` without `group_reporting`) and are one
//! result, as fio's own total has it. A head without a request of its run above has no settings.

use crate::foreign::{Direction, fio_text};
use crate::post::Got;
use crate::post::line::Line;
use crate::post::result::{Given, Places, of_reading};

/// By how much a group's total may be above its jobs.
const TOTAL: f64 = 1.1;

/// A run, as far as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fio {
    jobs: Vec<fio_text::Job>,
    processes: Option<u64>,
    /// Places of the line of progress.
    states: Vec<(Direction, usize)>,
    blocks: Vec<Block>,
    /// The group whose totals come next: the jobs' own lines are over.
    group: Option<String>,
}

/// The result of a job.
#[derive(Debug, Clone, Default)]
struct Block {
    head: fio_text::Head,
    job: fio_text::Job,
    threads: Option<u64>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    place: usize,
    got: Got,
}

impl Block {
    /// Whether a job of this head ran at once, if it is of the same run.
    fn is_beside(&self, head: &fio_text::Head) -> bool {
        let of = |head: &fio_text::Head| (head.log.clone(), head.name.clone(), head.group.clone());
        of(&self.head) == of(head)
    }
}

impl Fio {
    /// The results that a line has, or to which it adds.
    pub(crate) fn line(&mut self, line: &Line, places: &mut Places) -> Vec<Given> {
        let text = line.text.trim();
        if let Some(readings) = fio_text::terse(text) {
            let all = readings.iter().map(|one| of_line(line, of_reading("fio", one)));
            return all.map(|got| (places.next(), got)).collect();
        }
        if let Some(job) = fio_text::job_line(text) {
            self.begin();
            if !self.jobs.iter().any(|known| known.name == job.name) {
                self.jobs.push(job);
            }
        }
        if text.starts_with("fio-") {
            self.begin();
        }
        if let Some(count) =
            fio_text::after(text, "Starting ").and_then(|word| word.parse::<u64>().ok())
        {
            self.begin();
            // Processes and threads of one run have a line each.
            self.processes = Some(self.processes.unwrap_or(0) + count);
        }
        if text.contains("Jobs: ") {
            return self.progress(line, places);
        }
        if let Some((_, rest)) = text.split_once("Run status group ") {
            self.group = rest.split(' ').next().map(str::to_owned);
            return Vec::new();
        }
        let head = fio_text::head(text);
        let has_head = head.is_some();
        if let Some(head) = head {
            self.head(head);
        }
        // Where the head is on the same line, no log is before it.
        if let Some((direction, log)) = fio_text::side_and_log(text) {
            let log = if has_head { "" } else { log };
            return self.rates(line, direction, log, places);
        }
        if let Some((mean, log)) = fio_text::mean_and_log(text) {
            return self.latency(mean.value, if has_head { "" } else { log });
        }
        self.total(line, places).into_iter().collect()
    }

    /// Where a result is there, a line above all results is another run's.
    fn begin(&mut self) {
        if !self.blocks.is_empty() || !self.states.is_empty() {
            *self = Fio::default();
        }
    }

    fn progress(&mut self, line: &Line, places: &mut Places) -> Vec<Given> {
        let job = match self.jobs.as_slice() {
            [job] if self.blocks.is_empty() => job.clone(),
            _ => fio_text::Job::default(),
        };
        let threads = fio_text::after(&line.text, "Jobs: ").and_then(|word| word.parse().ok());
        let states = fio_text::states(&job, "", &line.text);
        if !states.is_empty() && !self.blocks.is_empty() {
            *self = Fio::default();
        }
        let given = states.iter().map(|reading| {
            let got = of_line(line, Got { threads, ..of_reading("fio", reading) });
            let known = self.states.iter().find(|(direction, _)| *direction == got.direction);
            let place = known.map_or_else(|| places.next(), |(_, place)| *place);
            if known.is_none() {
                self.states.push((got.direction, place));
            }
            (place, got)
        });
        given.collect()
    }

    fn head(&mut self, head: fio_text::Head) {
        let same: Vec<&Block> = self.blocks.iter().filter(|one| one.is_beside(&head)).collect();
        let threads: u64 = self.blocks.iter().filter_map(|block| block.threads).sum();
        let fits = self.processes.is_some_and(|all| threads + head.threads <= all);
        let other = match same.first() {
            _ if self.group.is_some() => true,
            None => false,
            Some(first) if !first.head.date.is_empty() && !head.date.is_empty() => {
                first.head.date != head.date || self.processes.is_some() && !fits
            }
            Some(_) => !fits,
        };
        if other {
            *self = Fio::default();
        }
        let job = self.jobs.iter().find(|job| job.name == head.name && job.group == head.group);
        let job = job.cloned().unwrap_or_default();
        let threads = Some(head.threads);
        self.blocks.push(Block { head, job, threads, parts: Vec::new() });
    }

    fn rates(
        &mut self,
        line: &Line,
        direction: Direction,
        log: &str,
        places: &mut Places,
    ) -> Vec<Given> {
        let has = |block: &Block| block.parts.iter().any(|part| part.got.direction == direction);
        let of_log = self.of_log(log).filter(|at| self.group.is_none() && !has(&self.blocks[*at]));
        let at = of_log.unwrap_or_else(|| {
            // Its job's head is not there.
            let (jobs, one) = (std::mem::take(&mut self.jobs), self.processes == Some(1));
            let only = self.blocks.is_empty().then(|| <[_; 1]>::try_from(jobs).ok()).flatten();
            let job = only.map(|[job]| job).unwrap_or_default();
            let states = std::mem::take(&mut self.states);
            *self = Fio { states, ..Fio::default() };
            let threads = one.then_some(1);
            self.blocks.push(Block { job, threads, ..Block::default() });
            0
        });
        let block = &self.blocks[at];
        let mut reading = fio_text::of_job(&block.job, "", direction, block.threads);
        fio_text::rates(&mut reading, &line.text);
        let data_bytes = fio_text::moved(&line.text);
        let got = of_line(line, Got { data_bytes, ..of_reading("fio", &reading) });
        if got.rate.is_none() {
            return Vec::new();
        }
        let beside = self.blocks.iter().filter(|other| other.is_beside(&block.head));
        let mut beside = beside.flat_map(|other| &other.parts);
        let known = beside.find(|part| part.got.direction == direction).map(|part| part.place);
        let state = self.states.iter().position(|(way, _)| *way == direction);
        let state = state.filter(|_| known.is_none()).map(|at| self.states.remove(at).1);
        let place = known.or(state).unwrap_or_else(|| places.next());
        let block = &mut self.blocks[at];
        block.parts.push(Part { place, got });
        // Both directions share the I/Os in flight.
        let is_shared = block.parts.len() > 1;
        block.parts.iter_mut().for_each(|part| part.got.is_shared |= is_shared);
        self.whole(at)
    }

    fn latency(&mut self, mean: f64, log: &str) -> Vec<Given> {
        let at = self.of_log(log).filter(|_| self.group.is_none());
        let Some(at) = at else { return Vec::new() };
        let part = self.blocks[at].parts.last_mut();
        part.into_iter().for_each(|part| part.got.latency = Some(mean));
        self.whole(at)
    }

    /// The last job of a log: of any, where a line has none before it.
    fn of_log(&self, log: &str) -> Option<usize> {
        self.blocks.iter().rposition(|block| log.is_empty() || log == block.head.log)
    }

    /// The results of a job, with those of the jobs that ran beside it.
    fn whole(&self, at: usize) -> Vec<Given> {
        let places = self.blocks[at].parts.iter();
        let whole = |part: &Part| {
            let all = self.blocks.iter().flat_map(|block| &block.parts);
            let all: Vec<&Got> =
                all.filter(|one| one.place == part.place).map(|one| &one.got).collect();
            Some((part.place, together(&all)?))
        };
        places.filter_map(whole).collect()
    }

    /// A total that is of more than the jobs above it.
    fn total(&self, line: &Line, places: &mut Places) -> Option<Given> {
        let got = of_line(line, of_reading("fio", &fio_text::total(&line.text)?));
        let own = self
            .blocks
            .iter()
            .filter(|block| self.group.is_none() || self.group.as_ref() == Some(&block.head.group));
        let own = own.flat_map(|block| &block.parts).map(|part| &part.got);
        let rates = own.filter(|part| part.direction == got.direction).filter_map(|part| part.rate);
        let is_known = got.rate? <= rates.sum::<f64>() * TOTAL;
        (!is_known).then(|| (places.next(), got))
    }
}

fn of_line(line: &Line, got: Got) -> Got {
    Got { line: line.number, ..got }
}

/// Jobs that ran at once as one result: as fio has its totals, all data in the longest time.
fn together(all: &[&Got]) -> Option<Got> {
    let [first, ..] = all else { return None };
    let sum = |of: fn(&Got) -> Option<f64>| all.iter().map(|got| of(got)).sum::<Option<f64>>();
    let seconds = all.iter().map(|got| got.seconds).collect::<Option<Vec<_>>>();
    let seconds = seconds.map(|all| all.into_iter().fold(0.0, f64::max)).filter(|all| *all > 0.0);
    if all.len() == 1 {
        return Some((*first).clone());
    }
    let data = sum(|got| got.data_bytes);
    let rate = data.zip(seconds).map(|(data, seconds)| data / seconds);
    let ops = sum(|got| Some(got.iops? * got.seconds?));
    let iops = ops.zip(seconds).map(|(ops, seconds)| ops / seconds);
    let waited = sum(|got| Some(got.latency? * got.iops? * got.seconds?));
    Some(Got {
        threads: all.iter().map(|got| got.threads).sum(),
        data_bytes: data,
        seconds,
        rate: rate.or(sum(|got| got.rate)),
        iops: iops.or(sum(|got| got.iops)),
        latency: waited.zip(ops).map(|(waited, ops)| waited / ops),
        ..(*first).clone()
    })
}

#[cfg(test)]
mod tests {
    use crate::post::{About, Post, hold, read};

    const HEAD: &str = "t: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, (T) \
                        1024KiB-1024KiB, ioengine=libaio, iodepth=16\n";

    fn block(name: &str, group: u32, jobs: u32, time: &str, mib: u32) -> String {
        let latency = jobs * 16 * 1_000_000 / mib;
        format!(
            "{name}: (groupid={group}, jobs={jobs}): err= 0: pid=1: Sat Jul 30 19:26:{time} \
             2022\n  read: IOPS={mib}, BW={mib}MiB/s (1MB/s)({}MiB/10000msec)\n     lat (usec): \
             min=1, max=9, avg={latency}, stdev=1\n",
            mib * 10
        )
    }

    fn rates(post: &Post) -> Vec<(Option<u64>, f64)> {
        let got = post.runs.iter().filter_map(|run| run.got.as_ref());
        got.map(|got| (got.threads, (got.rate.unwrap() / 1024.0 / 1024.0).round())).collect()
    }

    fn said(post: Post, about: About) -> Vec<String> {
        let all = hold(&[post], &[]).into_iter().filter(|one| one.about == about);
        all.map(|one| one.words).collect()
    }

    #[test]
    fn every_result_of_a_text_stays() {
        let run = |time, mib| {
            format!("{HEAD}fio-3.28\nStarting 1 process\n{}", block("t", 0, 1, time, mib))
        };
        let (one, other) = (run("19", 3000), run("44", 6000));
        let post = read("post", &format!("Before:\n{one}\nAfter:\n{other}"));
        assert_eq!(rates(&post), [(Some(1), 3000.0), (Some(1), 6000.0)]);
        let compared = said(post, About::Compared);
        assert!(compared[0].contains("2.00 of the rate"), "{compared:?}");
        // The second without its first lines, at another time or behind the totals of the first.
        let status = "Run status group 0 (all jobs):\n   READ: bw=3000MiB/s (1MB/s), \
                      3000MiB/s-3000MiB/s (1MB/s-1MB/s), io=29.3GiB (1GB), run=10000-10000msec\n";
        for text in [
            format!("{one}and now\n{}", block("t", 0, 1, "44", 6000)),
            format!("{one}{status}and now\n{}", block("t", 0, 1, "19", 6000)),
            format!("{}again:\n{}", block("t", 0, 8, "19", 3000), block("t", 0, 8, "44", 6000)),
        ] {
            let post = read("post", &text);
            let all: Vec<f64> = rates(&post).iter().map(|one| one.1).collect();
            assert_eq!(all, [3000.0, 6000.0], "{text}");
            let last = post.runs[1].got.as_ref().unwrap();
            assert_eq!((last.depth, last.block), (None, None), "of another run");
        }
        let progress =
            |mib| format!("{HEAD}Jobs: 1 (f=1): [R(1)][9.0%][r={mib}MiB/s][r={mib} IOPS]\n");
        let post = read("post", &format!("{}{}", progress(300), progress(600)));
        assert_eq!(rates(&post), [(Some(1), 300.0), (Some(1), 600.0)]);
        let whole = read("post", &(progress(300) + &block("t", 0, 1, "19", 400)));
        assert_eq!(rates(&whole), [(Some(1), 400.0)], "progress gives way to its result");
    }

    #[test]
    fn jobs_of_one_run_are_one_result_and_other_jobs_are_others() {
        let text = format!(
            "{HEAD}...\nfio-3.33\nStarting 4 processes\n{}{}",
            block("t", 0, 1, "19", 1600).repeat(4),
            "Run status group 0 (all jobs):\n   READ: bw=6400MiB/s (1MB/s), 1600MiB/s-1600MiB/s \
             (1MB/s-1MB/s), io=62.5GiB (1GB), run=10000-10000msec\n"
        );
        for text in [text.clone(), text.replace("READ: bw", "x")] {
            let post = read("post", &text);
            assert_eq!(rates(&post), [(Some(4), 6400.0)]);
            assert_eq!(said(post.clone(), About::Contradiction), [""; 0]);
            let agree = said(post, About::Agreement);
            assert!(agree[0].contains("in flight in 1"), "{agree:?}");
        }
        let two = HEAD.replace("t: (g=0)", "u: (g=1)");
        let text = format!(
            "{HEAD}{two}Starting 2 processes\n{}{}",
            block("t", 0, 1, "19", 1600),
            block("u", 1, 1, "49", 800)
        );
        let post = read("post", &text);
        assert_eq!(rates(&post), [(Some(1), 1600.0), (Some(1), 800.0)]);
        assert_eq!(said(post, About::Limit), [""; 0], "each has its own thread");
    }

    #[test]
    fn lines_of_a_log_and_lines_without_a_head_are_results() {
        let log = |host: &str, mib| {
            let text = block("t", 0, 1, "19", mib);
            text.lines().map(|line| format!("12:06 {host}: {line}\n")).collect::<String>()
        };
        let (one, other) = (log("n1", 300), log("n2", 600));
        let mixed: Vec<&str> = one.lines().zip(other.lines()).flat_map(|(a, b)| [a, b]).collect();
        for text in [mixed.join("\n"), format!("{one}{other}")] {
            let post = read("post", &text);
            assert_eq!(rates(&post), [(Some(1), 300.0), (Some(1), 600.0)], "{text}");
            let latency = |at: usize| post.runs[at].got.as_ref().and_then(|got| got.latency);
            assert!(latency(0).unwrap() > latency(1).unwrap() * 1.9, "{post:?}");
        }
        let post = read("post", &one);
        assert_eq!(rates(&post), [(Some(1), 300.0)]);
        assert!(post.runs[0].got.as_ref().unwrap().latency.is_some());
        let bare = "  read: IOPS=84, BW=42.0MiB/s (44.4MB/s)(128MiB/3020msec)\n";
        assert_eq!(rates(&read("post", &bare.repeat(2))), [(None, 42.0), (None, 42.0)]);
        let total = "   READ: bw=5321MiB/s (5580MB/s), 5321MiB/s-5321MiB/s (5580MB/s-5580MB/s), \
                     io=156GiB (167GB), run=30003-30003msec\n";
        assert_eq!(rates(&read("post", &total.repeat(2))), [(None, 5321.0), (None, 5321.0)]);
        let command = "$ fio --minimal --name=r --rw=read --filename=/dev/nvme0n1\n";
        let terse = "3;fio-3.28;r;0;0;33554432;3355443;3276;10000;5;120;15.2;4.1;200;25000;9750.1;\
                     900.5;1.0%=7635;99.0%=12386;210;25010;9765.3;900.6;3200000;3400000;100.0%;\
                     3355443.2;20000.1;0;0;0;0;0;0;0.0;0.0;0;0;0.0;0.0;0%=0;0%=0;0;0;0.0;0.0;0;0;\
                     0.0%;0.0;0.0;0.5%\n";
        let post = read("post", &format!("{command}{terse}"));
        let got = post.runs[0].got.as_ref().unwrap();
        assert_eq!((post.runs.len(), got.iops, got.latency), (1, Some(3276.0), Some(9_765_300.0)));
        assert!(post.runs[0].request().is_none());
    }

    #[test]
    fn a_mix_shares_its_depth_and_a_rate_limit_is_said() {
        let mix = "m: (g=0): rw=randrw, bs=(R) 8192B-8192B, (W) 8192B-8192B, ioengine=libaio, \
                   iodepth=16\nStarting 4 processes\nm: (groupid=0, jobs=4): err= 0: pid=1: Thu \
                   Jun  6 12:00:00 2024\n  read: IOPS=140k, BW=1094MiB/s \
                   (1147MB/s)(32.0GiB/30001msec)\n     lat (usec): min=61, max=2575, avg=312.85\n  \
                   write: IOPS=60.1k, BW=469MiB/s (492MB/s)(13.7GiB/30001msec)\n     lat (usec): \
                   min=21, max=2575, avg=334.85\n";
        for text in [mix.to_owned(), mix.replace("rw=randrw", "rw=x")] {
            let post = read("post", &text);
            assert_eq!(post.runs.len(), 2);
            assert_eq!(said(post, About::Limit), [""; 0]);
        }
        let limited = "$ fio --name=t --filename=/data/x --rw=read --bs=1M --rate=500m \
                       --iodepth=16 --ioengine=libaio --direct=1\n";
        let slow = block("t", 0, 1, "19", 500).replace("avg=32000", "avg=400");
        let post = read("post", &format!("{limited}{HEAD}{slow}"));
        let limit = said(post, About::Limit).concat();
        assert!(limit.contains("the command limits its rate"), "{limit}");
        let free = read("post", &format!("{HEAD}{slow}"));
        assert!(said(free, About::Limit).concat().contains("a limit of the rate"));
    }
}
