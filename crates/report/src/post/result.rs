//! Result lines: gdsio's, elbencho's for terminals as of 3.0, and those of `fio` and `single`.

use gpuio_base::measured::tables;
use gpuio_base::units::float;

use crate::foreign::{Direction, Reading, elbencho, elbencho_text, fio, gdsio};
use crate::post::fio::Fio;
use crate::post::line::Line;
use crate::post::single::Live;
use crate::post::{Asked, Got};

const KIB: f64 = 1024.0;

/// A result with its place among those since the command. A later one at a place stands for the
/// one that was there.
pub(crate) type Given = (usize, Got);

/// Counts the places that are taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(usize);

impl Places {
    pub(crate) fn next(&mut self) -> usize {
        self.0 += 1;
        self.0 - 1
    }
}

/// The lines so far, as far as they are of the result to come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Results {
    places: Places,
    fio: Fio,
    /// The command above.
    asked: Option<Asked>,
    /// Whether a shortened line of gdsio may be its result still.
    waits: bool,
    live: Live,
    /// The place of the last live result.
    last: usize,
    phase: Option<Phase>,
}

/// elbencho's phase.
#[derive(Debug, Clone)]
struct Phase {
    reading: Reading,
    data: Option<f64>,
    /// The kinds of its lines so far: the same again is of a phase whose first line is not there.
    kinds: Vec<String>,
    place: Option<usize>,
}

/// Whether a line is gdsio's without its fields about the load: people shorten it.
pub(crate) fn is_short(text: &str) -> bool {
    let has = |field| text.contains(field);
    has("Throughput:") && has("Avg_Latency:") && !has("XferType:")
}

/// The results of fio's JSON or elbencho's CSV that begins at a line, and the index of the line
/// behind it.
pub(crate) fn document(lines: &[Line], index: usize) -> Option<(Vec<Got>, usize)> {
    let first = &lines[index];
    let rest = lines[index..].iter().map(|line| line.text.as_str());
    let (tool, name, count) = if first.text.starts_with("ISO date,") {
        let commas = first.text.matches(',').count();
        let rows = rest.clone().take_while(|row| row.matches(',').count() >= commas);
        (elbencho::TOOL, "elbencho", rows.count())
    } else if first.text.trim() == "{" {
        let mut depth = 0_usize;
        let whole = |row: &str| {
            depth = (depth + row.matches('{').count()).saturating_sub(row.matches('}').count());
            depth == 0
        };
        (fio::TOOL, "fio", rest.clone().position(whole)? + 1)
    } else {
        return None;
    };
    let text = rest.take(count).collect::<Vec<_>>().join("\n");
    let read = (tool.looks)(&text).then(|| (tool.read)(&text).ok()).flatten()?;
    let got = |reading: &Reading| Got {
        line: first.number,
        path: reading.path.clone().filter(|_| name == "elbencho"),
        ..of_reading(name, reading)
    };
    Some((read.readings.iter().map(got).collect(), index + count))
}

/// The results of a table that begins at a line, heads of its columns that are not read, and the
/// index of the line behind it.
pub(crate) fn table(lines: &[Line], index: usize) -> Option<(Vec<Got>, Vec<String>, usize)> {
    let (table, until) = table_at(lines, index)?;
    let got = |entry: &tables::Entry| Got {
        line: lines[index + entry.below].number,
        tool: "table",
        labels: entry.labels.clone(),
        direction: if entry.writes { Direction::Write } else { Direction::Read },
        random: entry.random,
        path: entry.path.map(str::to_owned),
        threads: entry.threads,
        depth: entry.depth,
        block: entry.block_bytes,
        rate: entry.rate,
        iops: entry.iops,
        latency: entry.latency_ns,
        percentiles: entry.percentiles.clone(),
        rounding: BY_HAND,
        ..Got::default()
    };
    Some((table.entries.iter().map(got).collect(), table.unread, until))
}

/// The table of results that begins at a line, and the index of the line behind it.
pub(crate) fn table_at(lines: &[Line], index: usize) -> Option<(tables::Table, usize)> {
    if !lines[index].text.trim_start().starts_with('|') {
        return None;
    }
    let from = index.saturating_sub(ABOVE);
    let near = lines[from..].iter().take(ABOVE + tables::MOST_ROWS + 3);
    let texts: Vec<&str> = near.map(|line| line.text.as_str()).collect();
    let table = tables::table(&texts, index - from)?;
    let until = index + table.lines;
    // Commands in cells are read as commands.
    if lines[index..until].iter().any(|line| line.prompt.is_some()) {
        return None;
    }
    Some((table, until))
}

/// People round, and some write GB for GiB.
pub(crate) const BY_HAND: f64 = 0.1;
/// Lines above a table that may name it.
const ABOVE: usize = 8;

impl Results {
    /// Where a command is above.
    pub(crate) fn of(asked: &Asked) -> Self {
        let waits = asked.tool == "gdsio";
        Results { asked: Some(asked.clone()), waits, ..Results::default() }
    }

    /// The results that a line has, or to which it adds.
    pub(crate) fn line(&mut self, line: &Line) -> Vec<Given> {
        let text = line.text.trim();
        if text.contains("XferType:") && text.contains("Throughput:") {
            return of_gdsio(line).map(|got| (self.places.next(), got)).into_iter().collect();
        }
        if is_short(text) {
            let waits = std::mem::take(&mut self.waits);
            let got = self.asked.as_ref().filter(|_| waits);
            let got = got.and_then(|asked| shortened(line, asked));
            return got.map(|got| (self.places.next(), got)).into_iter().collect();
        }
        if let Some((got, again)) = self.live.line(text, self.asked.as_ref()) {
            self.last = if again { self.last } else { self.places.next() };
            return vec![(self.last, Got { line: line.number, ..got })];
        }
        let given = self.fio.line(line, &mut self.places);
        if !given.is_empty() {
            return given;
        }
        let given = self.elbencho(text);
        given.map(|(place, got)| (place, Got { line: line.number, ..got })).into_iter().collect()
    }

    fn elbencho(&mut self, text: &str) -> Option<Given> {
        let (phase, kind, values) = elbencho_text::parts(text)?;
        if let Some(phase) = phase {
            let begins = kind.starts_with("Elapsed");
            let reading = phase.result().filter(|_| begins);
            if begins || phase.result().is_some() {
                let phase = |reading| Phase { reading, data: None, kinds: vec![], place: None };
                self.phase = reading.map(phase);
            }
        }
        let phase = self.phase.as_mut()?;
        if kind == "Total MiB" {
            let bytes = elbencho_text::last(values).parse::<f64>().map(|mib| mib * KIB * KIB);
            phase.data = phase.data.or(bytes.ok());
        } else if phase.kinds.iter().any(|known| known == kind) {
            self.phase = None;
            return None;
        } else if elbencho_text::figure(&mut phase.reading, kind, values) {
            phase.kinds.push(kind.to_owned());
        } else {
            return None;
        }
        let got = Got { data_bytes: phase.data, ..of_reading("elbencho", &phase.reading) };
        got.rate?;
        let place = phase.place.unwrap_or_else(|| self.places.next());
        phase.place = Some(place);
        Some((place, got))
    }
}

/// A result as its tool's reader has it. The engine says by which way fio's bytes went.
pub(super) fn of_reading(tool: &'static str, reading: &Reading) -> Got {
    let figure = |name: &str| reading.figures.get(name).map(|figure| figure.value);
    let share = |name: &str| {
        let figure = reading.figures.get(name).filter(|figure| figure.value > 0.0);
        figure.map_or(0.0, |figure| figure.off / figure.value)
    };
    Got {
        tool,
        direction: reading.direction,
        random: reading.random,
        threads: reading.threads,
        depth: reading.depth,
        block: reading.block_bytes,
        engine: reading.engine.clone(),
        ops: reading.ops,
        data_bytes: reading.data_bytes,
        seconds: reading.seconds,
        rate: figure("throughput"),
        iops: figure("iops"),
        latency: figure("mean"),
        rounding: ["throughput", "iops", "mean"].into_iter().map(share).sum(),
        is_shared: reading.mix.is_some(),
        ..Got::default()
    }
}

fn of_gdsio(line: &Line) -> Option<Got> {
    let text = &line.text;
    let reading = gdsio::line(text).ok()?;
    let size = gdsio::inside(text, "DataSetSize:", "(KiB)").ok()?;
    let set = size.split_once('/').and_then(|(_, set)| set.trim().parse::<f64>().ok());
    Some(Got {
        line: line.number,
        depth: reading.depth.filter(|_| text.contains("IoDepth:")),
        set_bytes: set.map(|set| set * KIB),
        path: reading.path.clone(),
        ..of_reading("gdsio", &reading)
    })
}

/// A line of rate and latency alone: the rest is what the command requests.
fn shortened(line: &Line, asked: &Asked) -> Option<Got> {
    let number = |name, unit| gdsio::inside(&line.text, name, unit).ok()?.parse::<f64>().ok();
    let rate = number("Throughput:", "GiB/sec")? * KIB * KIB * KIB;
    let block = asked.block.filter(|(least, most)| least == most).map(|(block, _)| block);
    // A batch's latency is per batch or per I/O, by the release.
    let latency = number("Avg_Latency:", "usecs").filter(|_| asked.depth.is_none());
    Some(Got {
        line: line.number,
        tool: "gdsio",
        direction: asked.direction?,
        random: asked.random,
        path: asked.path.clone(),
        threads: asked.threads,
        depth: asked.depth,
        block,
        rate: Some(rate),
        iops: block.map(|block| rate / float(block)),
        latency: latency.map(|usecs| usecs * 1000.0),
        ..Got::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Got> {
        let lines = crate::post::line::lines(text);
        let mut results = Results::default();
        let given = lines.iter().flat_map(|line| results.line(line));
        given.map(|(_, got)| got).collect()
    }

    const MIB: f64 = KIB * KIB;

    /// Documents stand among the lines of a post, below their commands.
    #[test]
    fn json_of_fio_and_csv_of_elbencho_are_results() {
        let job = |name: &str| {
            format!(
                "{{\"jobname\":\"{name}\",\"job options\":{{\"rw\":\"read\",\"bs\":\"1m\"}},\
                 \"read\":{{\"total_ios\":100,\"io_bytes\":104857600,\"bw_bytes\":1048576,\
                 \"iops\":1.0,\"runtime\":100000}},\"write\":{{\"total_ios\":0}}}}"
            )
        };
        let json = format!(
            "fio-3.33\n{{\n\"fio version\" : \"fio-3.33\",\n\"jobs\" : [{},\n{}]\n}}",
            job("a"),
            job("b")
        );
        let csv = "ISO date,operation,block size,threads,MiB/s [last],IOPS [last],version,command\n\
                   x,READ,1048576,16,10915,10915,3.0-5,\"elbencho\" \"--gds\" \"--gpuids\" \"0\"";
        let post = crate::post::read("post", &format!("I ran\n{json}\nand\n{csv}\nthat is all\n"));
        let all: Vec<Got> = post.runs.into_iter().filter_map(|run| run.got).collect();
        let of = |got: &Got| (got.tool, got.line, got.rate);
        assert_eq!(
            all.iter().map(of).collect::<Vec<_>>(),
            [("fio", 3, Some(MIB)), ("fio", 3, Some(MIB)), ("elbencho", 9, Some(10915.0 * MIB)),]
        );
        assert_eq!((all[2].path.as_deref(), all[2].threads), (Some("gds"), Some(16)));
    }

    #[test]
    fn rows_of_a_table_are_results() {
        let text = "We ran:\n\n| Threads | Read (GiB/s) | Write (GiB/s) |\n|---|---|---|\n\
                    | 8 | 6.0 | 2.0 |\n| 16 | 11.5 | 2.1 |\n| 32 | 13.0 | 2.1 |\n";
        let post = crate::post::read("post", text);
        let all: Vec<&Got> = post.runs.iter().filter_map(|run| run.got.as_ref()).collect();
        assert_eq!((all.len(), all[2].line, all[2].threads), (6, 6, Some(16)));
        assert_eq!((all[1].direction, all[1].rate), (Direction::Write, Some(2048.0 * MIB)));
        let said = crate::post::hold(std::slice::from_ref(&post), &[]);
        let about = said.iter().map(|one| one.about).collect::<Vec<_>>();
        assert_eq!(about, [crate::post::About::Compared; 2], "{said:?}");
        assert!(said[0].words.contains("It flattens"), "{said:?}");
        let command = text.replace("| 8 |", "| gdsio -x 0 -D /d |");
        let post = crate::post::read("post", &command);
        assert!(post.runs.iter().all(|run| run.got.is_none()), "{post:?}");
    }

    #[test]
    fn a_line_of_gdsio_has_all_its_figures() {
        let got = of("IoType: READ XferType: GPUD Threads: 8 DataSetSize: 818796544/4096000(KiB) \
                      IOSize: 1024(KiB) Throughput: 6.524658 GiB/sec, Avg_Latency: 1197.370995 \
                      usecs ops: 799606 total_time 119.679102 secs")
        .remove(0);
        assert_eq!((got.threads, got.block, got.ops), (Some(8), Some(1 << 20), Some(799_606.0)));
        assert_eq!(got.data_bytes, Some(818_796_544.0 * KIB));
        assert!((got.in_flight().unwrap() - 8.0).abs() < 0.01);
        assert_eq!(got.path.as_deref(), Some("gds"));
    }

    #[test]
    fn fio_for_terminals_is_read_in_both_forms() {
        let old = "# fio -f r.fio a: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, \
                   iodepth=32 fio-2.2.10 Starting 1 process Jobs: 1 (f=1): [r(1)] [25.0% done] \
                   [383.8MB/0KB/0KB /s] [98.3K/0/0 iops] [eta 02m:15s]";
        let got = of(old).remove(0);
        assert_eq!((got.block, got.depth, got.threads), (Some(4096), Some(32), Some(1)));
        assert_eq!(got.rate, Some(383.8 * MIB));
        assert_eq!(got.iops, Some(98_300.0));
        let new = "a: (g=0): rw=write, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, \
                   ioengine=io_uring, iodepth=8\nStarting 2 processes\na: (groupid=0, jobs=2): \
                   err= 0: pid=1\n  write: IOPS=519, \
                   BW=519MiB/s (544MB/s)(91.2GiB/180001msec); 0 zone resets\n    lat (usec): \
                   min=9, max=11, avg=30825.40, stdev= 1\n";
        let all = of(new);
        let last = all.last().unwrap();
        assert_eq!((last.direction, last.block), (Direction::Write, Some(1 << 20)));
        assert_eq!((last.threads, last.seconds), (Some(2), Some(180.001)));
        assert!((last.in_flight().unwrap() - 16.0).abs() < 0.1, "{last:?}");
        let mixed = of("a: (g=0): rw=randwrite, bs=4K-4K, ioengine=psync, iodepth=1\nJobs: 1 \
                        (f=1): [w(1)] [51% done] [0KB/135.3MB/0KB /s] [0/34.7K/0 iops]");
        assert_eq!((mixed[0].direction, mixed[0].iops), (Direction::Write, Some(34_700.0)));
        let three = of("a: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=libaio, iodepth=4\n\
                        Jobs: 1 (f=1): [r(1)][50.0%][r=384MiB/s][r=98.2k IOPS][eta 01m]");
        assert_eq!((three[0].rate, three[0].iops), (Some(384.0 * MIB), Some(98_200.0)));
    }

    #[test]
    fn each_phase_of_elbencho_is_a_result() {
        let table = |rate| {
            format!(
                "OPERATION RESULT TYPE FIRST DONE LAST DONE\nWRITE Elapsed ms : 203 211\n\
                 IOPS : 4838 {rate}\nThroughput MiB/s : 4838 {rate}\nTotal MiB : 983 1024\n---\n"
            )
        };
        let rates = |text: &str| {
            let post = crate::post::read("post", text);
            let got = post.runs.iter().filter_map(|run| run.got.as_ref()?.rate);
            got.map(|rate| rate / MIB).collect::<Vec<_>>()
        };
        let two = format!("Without cufile:\n{}With cufile:\n{}", table(4853), table(6781));
        assert_eq!(rates(&two), [4853.0, 6781.0]);
        let cut = two.replacen("WRITE Elapsed ms : 203 211\n", "", 2);
        assert!(rates(&cut).is_empty(), "which phase is not said");
        let one = table(4853) + "IOPS : 1 1\nThroughput MiB/s : 1 1\n";
        assert_eq!(rates(&one), [4853.0]);
        let head = "ISO Date,Label,Phase,RuntimeMS,Rank,Done%,DoneBytes\n";
        let row = |ms: u32| format!("x,,READ,{ms},Total,1,{}\n", ms << 20);
        let (live, again) = (row(1000) + &row(2000), row(1000));
        assert_eq!(rates(&format!("{head}{live}")), [1000.0]);
        assert_eq!(rates(&format!("{head}{live}{again}")), [1000.0; 2]);
        assert_eq!(rates(&format!("{head}{live}\n{head}{live}")), [1000.0; 2]);
    }

    #[test]
    fn elbencho_for_terminals_is_read() {
        let text = "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\nREAD        Elapsed \
                    time     :     6.043s     6.110s\n            IOPS             :      10848  \
                    10764\n            Throughput MiB/s :      10848      10764\n            Total \
                    MiB        :      65562      65768\n";
        let all = of(text);
        let got = all.last().unwrap();
        assert_eq!((got.rate, got.iops), (Some(10_764.0 * MIB), Some(10_764.0)));
        assert_eq!((got.data_bytes, got.seconds), (Some(65_768.0 * MIB), Some(6.11)));
    }
}
