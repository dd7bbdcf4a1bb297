//! Results of programs that print a line per result, and few settings: dd (coreutils), hdparm's
//! `-t`, elbencho's live CSV (`--livecsv`, 3.0), KvikIO's `single_node_io.py`, the rates of
//! perftest (`ib_write_bw`), and the means of Vdbench (5.03 and 5.04). The settings are those of
//! the command above.

use gpuio_base::units::float;

use crate::foreign::Direction;
use crate::post::{Asked, Got};

const MIB: f64 = 1024.0 * 1024.0;
/// hdparm reads so much at a time (hdparm.c, `TIMING_BUF_MB`).
const HDPARM_BLOCK: u64 = 2 << 20;

/// The names of a table's columns, once its head was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    columns: Vec<String>,
    /// Threads and bytes of KvikIO's run.
    threads: Option<u64>,
    block: Option<u64>,
    /// Whether KvikIO says that cuFile is in its compatibility mode.
    compat: bool,
    /// The phase of elbencho's rows, and its milliseconds so far.
    phase: Option<(Direction, f64)>,
    /// Whether dd's last line was one of progress.
    goes_on: bool,
    /// perftest's direction, and the bytes per second of its unit.
    perftest: Option<(Direction, Option<f64>)>,
}

impl Live {
    /// The result of a line, and whether it stands for the one before it too, which was one of
    /// progress.
    pub(crate) fn line(&mut self, text: &str, asked: Option<&Asked>) -> Option<(Got, bool)> {
        let asked_of = |tool: &str| asked.filter(|asked| asked.tool == tool);
        if let Some((got, goes_on)) = dd(text, asked_of("dd")) {
            return Some((got, std::mem::replace(&mut self.goes_on, goes_on)));
        }
        let whole = hdparm(text).or_else(|| vdbench(text));
        let whole = whole.or_else(|| self.kvikio(text)).or_else(|| self.perftest(text));
        whole.map(|got| (got, false)).or_else(|| self.elbencho(text, asked_of("elbencho")))
    }

    /// ` 65536      5000             11012.21            11011.93            0.168029` below the
    /// names of the columns, whose unit is 2 to the 20 bytes or 10 to the 9 bits a second.
    fn perftest(&mut self, text: &str) -> Option<Got> {
        if let Some(title) = text.strip_suffix("BW Test") {
            let direction = match title.contains("Read") {
                true => Direction::Read,
                false => Direction::Write,
            };
            self.perftest = Some((direction, None));
            return None;
        }
        let (direction, unit) = self.perftest.as_mut()?;
        if text.starts_with("#bytes") {
            *unit = match text.split_once("BW average[")?.1.split_once("/sec]")?.0 {
                "MB" => Some(MIB),
                "Gb" => Some(1e9 / 8.0),
                _ => None,
            };
            return None;
        }
        let words: Vec<f64> =
            text.split_whitespace().map(str::parse::<f64>).collect::<Result<_, _>>().ok()?;
        let (&[bytes, count, _, mean, messages], unit) = (words.as_slice(), (*unit)?) else {
            return None;
        };
        Some(Got {
            tool: "perftest",
            direction: *direction,
            block: whole(bytes),
            data_bytes: Some(bytes * count),
            rate: Some(mean * unit),
            iops: Some(messages * 1e6),
            // Messages are printed with six decimals of a million.
            rounding: 0.5 / (messages * 1e6).max(1.0),
            ..Got::default()
        })
    }

    /// A row of the whole run so far: bytes by time, so the last row has the run's mean.
    fn elbencho(&mut self, text: &str, asked: Option<&Asked>) -> Option<(Got, bool)> {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        if text.starts_with("ISO Date,Label,Phase,") {
            self.columns = cells.into_iter().map(str::to_owned).collect();
            self.phase = None;
            return None;
        }
        let cell = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            cells.get(at).copied().filter(|_| cells.len() == self.columns.len())
        };
        let number = |name: &str| cell(name)?.parse::<f64>().ok();
        let direction = match cell("Phase")? {
            "READ" => Direction::Read,
            "WRITE" => Direction::Write,
            _ => return None,
        };
        let (data, ms) = (number("DoneBytes")?, number("RuntimeMS")?);
        let seconds = ms / 1e3;
        let rate = (cell("Rank")? == "Total" && seconds > 0.0).then(|| data / seconds)?;
        let block = asked.and_then(block_of);
        let last = self.phase.replace((direction, ms));
        let goes_on = last.is_some_and(|(way, before)| way == direction && before <= ms);
        let got = Got {
            tool: "elbencho",
            direction,
            random: asked.and_then(|asked| asked.random),
            path: asked.and_then(|asked| asked.path.clone()),
            threads: number("Active").and_then(whole),
            depth: asked.and_then(|asked| asked.depth),
            block,
            data_bytes: Some(data),
            seconds: Some(seconds),
            rate: Some(rate),
            iops: block.map(|block| rate / float(block)),
            latency: number("Lat IO us").filter(|us| *us > 0.0).map(|us| us * 1e3),
            // Its latency is of the last interval.
            rounding: 0.05,
            ..Got::default()
        };
        Some((got, goes_on))
    }

    /// `cufile read       | 901.62 MiB/s`, below `nthreads          | 1`.
    fn kvikio(&mut self, text: &str) -> Option<Got> {
        self.compat |= text == "GDS not enabled" || text.contains("(Compatibility Mode)");
        let (name, value) = text.split_once('|')?;
        let first = value.split_whitespace().next()?;
        match name.trim() {
            "nthreads" => self.threads = first.parse().ok(),
            "nbytes" => self.block = first.parse().ok(),
            _ => {}
        }
        let (api, side) = name.trim().split_once(' ')?;
        let path = match api {
            "cufile" => Some(if self.compat { "compat" } else { "gds" }.to_owned()),
            "posix" => None,
            _ => return None,
        };
        let direction = match side {
            "read" => Direction::Read,
            "write" => Direction::Write,
            _ => return None,
        };
        let (rate, unit) = value.trim().split_once(' ')?;
        let scale = match unit.split_whitespace().next()? {
            "KiB/s" => 1024.0,
            "MiB/s" => MIB,
            "GiB/s" => 1024.0 * MIB,
            _ => return None,
        };
        Some(Got {
            tool: "kvikio",
            direction,
            path,
            threads: self.threads,
            data_bytes: self.block.map(float),
            rate: Some(rate.parse::<f64>().ok()? * scale),
            ..Got::default()
        })
    }
}

fn block_of(asked: &Asked) -> Option<u64> {
    asked.block.filter(|(least, most)| least == most).map(|(block, _)| block)
}

fn whole(value: f64) -> Option<u64> {
    (value >= 1.0).then_some(gpuio_base::units::whole(value))
}

/// `10737418240 bytes (11 GB, 10 GiB) copied, 5.5149 s, 1.9 GB/s`. With `status=progress` lines
/// of whole seconds come before the last one: whether it is one of these.
fn dd(text: &str, asked: Option<&Asked>) -> Option<(Got, bool)> {
    let asked = asked?;
    let (data, rest) = text.split_once(" bytes ")?;
    let (seconds, _) = rest.split_once("copied, ")?.1.split_once(" s,")?;
    let data = data.trim().parse::<f64>().ok()?;
    let time = seconds.parse::<f64>().ok().filter(|time| *time > 0.0)?;
    let (rate, block) = (data / time, block_of(asked));
    let got = Got {
        tool: "dd",
        direction: asked.direction?,
        random: Some(false),
        path: asked.path.clone(),
        threads: Some(1),
        depth: Some(1),
        block,
        data_bytes: Some(data),
        seconds: Some(time),
        rate: Some(rate),
        iops: block.map(|block| rate / float(block)),
        ..Got::default()
    };
    Some((got, !seconds.contains('.')))
}

/// ` Timing buffered disk reads: 1122 MB in 3.00 seconds = 373.60 MB/sec`, in MB of 2 to the 20;
/// with `--direct` it says `O_DIRECT`. Cached reads are of memory alone.
fn hdparm(text: &str) -> Option<Got> {
    let rest = text.strip_prefix("Timing ")?;
    let path = match rest.split_once(" disk reads:")?.0 {
        "buffered" => "cached",
        "O_DIRECT" => "host",
        _ => return None,
    };
    let (data, rest) = rest.split_once(':')?.1.split_once(" MB in ")?;
    let (seconds, _) = rest.split_once(" seconds")?;
    let data = data.trim().parse::<f64>().ok()? * MIB;
    let seconds = seconds.trim().parse::<f64>().ok().filter(|time| *time > 0.0)?;
    Some(Got {
        tool: "hdparm",
        direction: Direction::Read,
        random: Some(false),
        path: Some(path.to_owned()),
        threads: Some(1),
        block: Some(HDPARM_BLOCK),
        data_bytes: Some(data),
        seconds: Some(seconds),
        rate: Some(data / seconds),
        iops: Some(data / seconds / float(HDPARM_BLOCK)),
        ..Got::default()
    })
}

/// `14:13:02.050  avg_2-60  6533.12  6533.12 1048576 100.00  4.898 …`: I/Os and MiB a second, bytes
/// of an I/O, reads in percent, latency in ms. A mix is no result of either direction.
fn vdbench(text: &str) -> Option<Got> {
    let mut words = text.split_whitespace().skip(1);
    let (from, to) = words.next()?.strip_prefix("avg_")?.split_once('-')?;
    let span = from.parse::<f64>().ok().zip(to.parse::<f64>().ok())?;
    let figures: Vec<f64> = words.take(5).map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[iops, rate, block, reads, milliseconds] = figures.as_slice() else { return None };
    let direction = match reads {
        100.0 => Direction::Read,
        0.0 => Direction::Write,
        _ => return None,
    };
    Some(Got {
        tool: "vdbench",
        direction,
        block: whole(block),
        seconds: Some(span.1 - span.0 + 1.0),
        rate: Some(rate * MIB),
        iops: Some(iops),
        latency: Some(milliseconds * 1e6),
        ..Got::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Got> {
        let post = crate::post::read("post", text);
        post.runs.into_iter().filter_map(|run| run.got).collect()
    }

    #[test]
    fn dd_s_direction_is_that_of_the_file_and_other_results_are_left_out() {
        let of = |text: &str| {
            let post = crate::post::read("post", text);
            let got = post.runs.iter().filter_map(|run| run.got.as_ref());
            let got: Vec<Direction> = got.map(|got| got.direction).collect();
            let said = crate::post::unread(&[post]);
            (got, said.iter().map(|one| (one.about, one.lines[0])).collect::<Vec<_>>())
        };
        let copied = "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.497434 s, 2.2 GB/s\n";
        let left = (crate::post::About::LeftOut, 2);
        for (operands, got) in [
            ("if=/d/data of=/dev/zero", Some(Direction::Read)),
            ("if=/d/data of=/dev/null", Some(Direction::Read)),
            ("if=/dev/zero of=/d/data", Some(Direction::Write)),
            ("if=/dev/zero of=/dev/null", None),
            ("if=/a/data of=/b/data", None),
        ] {
            let found = of(&format!("$ dd bs=512k count=2048 {operands}\n{copied}"));
            let lost = if got.is_some() { Vec::new() } else { vec![left] };
            assert_eq!(found, (got.into_iter().collect(), lost), "{operands}");
        }
        let hdparm = "$ hdparm -Tt /dev/sda\n Timing cached reads:   37034 MB in  1.99 seconds = \
                      18631.17 MB/sec\n Timing buffered disk reads: 8172 MB in  3.00 seconds = \
                      2723.70 MB/sec\n";
        assert_eq!(of(hdparm), (vec![Direction::Read], vec![left]));
    }

    #[test]
    fn kvikio_s_warning_is_the_path_of_cufile() {
        let of = |warning: &str| {
            let text = format!("{warning}nthreads | 4\ncufile read       |   1.92 GiB/s\n");
            let post = crate::post::read("post", &text);
            post.runs[0].got.as_ref().and_then(|got| got.path.clone())
        };
        let banner = "   WARNING - cuFile compat mode\n         GDS not enabled\n";
        assert_eq!(of(banner).as_deref(), Some("compat"));
        assert_eq!(of("GDS driver        | N/A (Compatibility Mode)\n").as_deref(), Some("compat"));
        assert_eq!(of("GDS driver        | v2.17\n").as_deref(), Some("gds"));
    }

    #[test]
    fn dd_has_the_settings_of_its_command() {
        let text = "$ dd if=/dev/zero of=/data/x oflag=direct bs=4M count=512 status=progress\n\
                    1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1 s, 1.1 GB/s\n512+0 records in\n\
                    512+0 records out\n2147483648 bytes (2.1 GB, 2.0 GiB) copied, 2.0 s, 1.1 GB/s\n\
                    # dd if=/data/x of=/dev/null bs=1M\n\
                    2147483648 bytes (2.1 GB) copied, 1.0 s, 2.1 GB/s\n";
        let all = all(text);
        let of = |at: usize| {
            let got: &Got = &all[at];
            (got.line, got.direction, got.path.as_deref(), got.rate)
        };
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(of(0), (5, Direction::Write, Some("host"), Some(1024.0 * MIB)));
        assert_eq!(of(1), (7, Direction::Read, Some("cached"), Some(2048.0 * MIB)));
        assert_eq!((all[0].block, all[0].iops), (Some(4 << 20), Some(256.0)));
    }

    #[test]
    fn hdparm_reads_through_the_page_cache_unless_it_says_otherwise() {
        let text = "# hdparm -tT /dev/nvme1n1\n/dev/nvme1n1:\n Timing cached reads: 20000 MB in  \
                    2.00 seconds = 10000.00 MB/sec\n Timing buffered disk reads: 1200 MB in  3.00 \
                    seconds = 400.00 MB/sec\n# hdparm -t --direct /dev/nvme1n1\n\
                    Timing O_DIRECT disk reads: 3000 MB in  3.00 seconds = 1000.00 MB/sec\n";
        let post = crate::post::read("post", text);
        let of = |at: usize| post.runs[at].got.as_ref().unwrap();
        assert_eq!((of(0).path.as_deref(), of(0).rate), (Some("cached"), Some(400.0 * MIB)));
        assert_eq!((of(1).path.as_deref(), post.runs.len()), (Some("host"), 2));
        assert_eq!(post.runs[0].asked.as_ref().unwrap().places, ["/dev/nvme1n1"]);
    }

    #[test]
    fn a_live_table_is_one_result_with_the_mean_so_far() {
        let text = "h:~$ elbencho /m/v{1..4} --livecsv stdout --lat --read --direct --block 1m \
                    --threads 4 --iodepth 2 --timelimit 9\n\
                    ISO Date,Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,\
                    Entries,Entries/s,Lat Ent us,Lat IO us,Active,CPU,Service,\n\
                    x,,READ,1000,Total,,50,2147483648,2048,2048,0,0,0,3906,4,5,,\n\
                    x,,READ,2000,Total,,99,6442450944,4096,4096,0,0,0,2604,4,5,,\n";
        let all = all(text);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].rate, all[0].iops), (Some(3072.0 * MIB), Some(3072.0)));
        assert_eq!((all[0].threads, all[0].depth, all[0].seconds), (Some(4), Some(2), Some(2.0)));
        let said = crate::post::hold(&[crate::post::read("post", text)], &[]);
        assert!(said.iter().all(|one| !one.words.contains("requests time")), "a limit: {said:?}");
    }

    #[test]
    fn perftest_prints_a_row_per_size() {
        let text = "                    RDMA_Read BW Test\n Number of qps   : 1\tTransport type : \
                    IB\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   \
                    MsgRate[Mpps]\n 1048576    5000             11100.21            11000.00\t\t   \
                    0.011000\n 33554432   5000             0.00            11000.00\t\t   \
                    0.000344\n";
        let all = all(text);
        assert_eq!((all.len(), all[0].direction), (2, Direction::Read));
        assert_eq!((all[0].rate, all[0].block), (Some(11_000.0 * MIB), Some(1 << 20)));
        assert_eq!(all[1].block, Some(32 << 20));
        let post = crate::post::read("post", text);
        let said = crate::post::hold(&[post], &[]);
        assert!(said.iter().all(|one| one.about != crate::post::About::Contradiction), "{said:?}");
    }

    #[test]
    fn vdbench_prints_a_mean_of_intervals() {
        let row =
            "14:13:02.050  avg_2-60  2000.00  500.00  262144 READS  5.000  5.000  0.000  12.1";
        let one = |reads: &str| all(&row.replace("READS", reads)).pop();
        let (read, write) = (one("100.00").unwrap(), one("0.00").unwrap());
        assert_eq!((read.direction, write.direction), (Direction::Read, Direction::Write));
        assert_eq!((read.rate, read.iops), (Some(500.0 * MIB), Some(2000.0)));
        assert_eq!((read.block, read.latency), (Some(256 << 10), Some(5e6)));
        assert_eq!(read.seconds, Some(59.0));
        assert!(one("70.00").is_none(), "a mix");
        assert!(all("14:13:03.050  1  2000.00  500.00  262144 100.00  5.000").is_empty());
    }

    #[test]
    fn kvikio_prints_a_rate_by_interface_and_direction() {
        let all = all("nbytes            | 1048576 bytes (1.00 MiB)\nnthreads          | 2\n\
                       cufile read       | 900.00 MiB/s\nposix write       |   1.50 GiB/s\n");
        assert_eq!((all.len(), all[0].threads), (2, Some(2)));
        assert_eq!((all[0].path.as_deref(), all[0].rate), (Some("gds"), Some(900.0 * MIB)));
        assert_eq!((all[1].path.as_deref(), all[1].direction), (None, Direction::Write));
    }
}
