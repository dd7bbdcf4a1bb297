//! Results of load generators in a text of a machine: kept as they stand, for those who read
//! results.

use gpuio_base::measured::tables;
use gpuio_host::nvidia_gpu;
use gpuio_record::facts::{Fact, GpuFacts};
use serde_json::Value;

use crate::{CaptureError, Captured, Kind, json, lines};

/// Results of a tool, line by line as they stand in the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Results {
    /// The tool: `gdsio`, `fio`, `elbencho`.
    pub tool: &'static str,
    /// Its lines.
    pub text: String,
}

pub(crate) const GDSIO: Kind = Kind {
    command: "gdsio",
    gives: "result lines, also wrapped ones, for `gpuio compare`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.contains("XferType:") && text.contains("Throughput:"),
    add: add_gdsio,
};

pub(crate) const FIO: Kind = Kind {
    command: "fio",
    gives: "results as JSON and as the terminal shows them, for `gpuio compare`",
    most_bytes: crate::LOG,
    looks_like: |text| text.lines().any(is_fio) || is_fio_json(text),
    add: add_fio,
};

pub(crate) const ELBENCHO: Kind = Kind {
    command: "elbencho",
    gives: "results as CSV, live or not, and as the terminal shows them, for `gpuio compare`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| is_elbencho_head(line) || is_csv_head(line)),
    add: add_elbencho,
};

pub(crate) const DD: Kind = Kind {
    command: "dd",
    gives: "its rate, held by `gpuio check` against its command and other results",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| line.contains(" copied, ") && is_dd(line)),
    add: |text, captured| add_lines(text, captured, DD.command, is_dd),
};

pub(crate) const HDPARM: Kind = Kind {
    command: "hdparm",
    gives: "the rate of `-t`, held by `gpuio check` against its command and other results",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| line.trim_start().starts_with("Timing ")),
    add: |text, captured| add_lines(text, captured, HDPARM.command, is_hdparm),
};

pub(crate) const KVIKIO: Kind = Kind {
    command: "single_node_io.py",
    gives: "rates of KvikIO's benchmark, and its GPU",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| is_kvikio(line) && line.starts_with("cufile ")),
    add: add_kvikio,
};

pub(crate) const PERFTEST: Kind = Kind {
    command: "ib_write_bw",
    gives: "rates of perftest's programs, shown by `gpuio check`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(|line| line.contains("BW average[")),
    add: |text, captured| add_lines(text, captured, PERFTEST.command, is_perftest),
};

pub(crate) const VDBENCH: Kind = Kind {
    command: "vdbench",
    gives: "its mean rates, shown by `gpuio check`; its run files are named and not read",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let is = |line: &str| line.starts_with("Vdbench distribution:") || is_vdbench_mean(line);
        text.lines().any(|line| is(line.trim())) || is_vdbench_file(text)
    },
    add: add_vdbench,
};

pub(crate) const TABLE: Kind = Kind {
    command: "a table of results",
    gives: "rates, IOPS and latencies of a Markdown table, shown by `gpuio check`",
    most_bytes: crate::SHORT,
    looks_like: |text| {
        let lines: Vec<&str> = text.lines().collect();
        (0..lines.len()).any(|at| tables::table(&lines, at).is_some())
    },
    add: add_table,
};

/// Tools whose results `gpuio compare` reads.
pub(crate) const COMPARED: [&str; 3] = [GDSIO.command, FIO.command, ELBENCHO.command];

/// More texts of results than people paste.
const MOST: usize = 1000;

fn keep(captured: &mut Captured, tool: &'static str, text: String) {
    if !text.trim().is_empty() && captured.results.len() < MOST {
        captured.results.push(Results { tool, text });
    }
}

fn add_gdsio(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut own = String::new();
    let mut open = false;
    for (index, line) in lines(text) {
        let begins = line.contains("IoType:") || line.contains("XferType:");
        if begins || open {
            own.push_str(line);
            own.push('\n');
            // A line that was wrapped goes on until its time.
            let parts = line.contains("total_time") && line.trim_end().ends_with("secs");
            open = !parts && !line.trim().is_empty();
        } else {
            captured.skip(CaptureError::new(index, line, 0, "IoType: READ XferType: GPUD …"));
        }
    }
    keep(captured, GDSIO.command, own);
    Ok(())
}

/// Keeps the lines that a tool prints.
fn add_lines(
    text: &str,
    captured: &mut Captured,
    tool: &'static str,
    is_own: impl Fn(&str) -> bool,
) -> Result<(), CaptureError> {
    let mut own = String::new();
    for (index, line) in lines(text) {
        if is_own(line) {
            own.push_str(line);
            own.push('\n');
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a line of the tool's results"));
        }
    }
    keep(captured, tool, own);
    Ok(())
}

fn add_table(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let all: Vec<&str> = text.lines().collect();
    let mut own = String::new();
    let mut until = 0;
    for (index, line) in lines(text) {
        if index >= until {
            until = index + tables::table(&all, index).map_or(0, |table| table.lines);
        }
        if index < until {
            own.push_str(line);
            own.push('\n');
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a row of a table of results"));
        }
    }
    keep(captured, TABLE.command, own);
    Ok(())
}

/// `10737418240 bytes (11 GB, 10 GiB) copied, 5.5149 s, 1.9 GB/s`, `2560+0 records in`.
fn is_dd(line: &str) -> bool {
    let counts = |line: &str, word| {
        let count = line.trim().strip_suffix(word).and_then(|count| count.split_once('+'));
        count.is_some_and(|(a, b)| a.parse::<u64>().is_ok() && b.parse::<u64>().is_ok())
    };
    line.contains(" bytes") && line.contains(" copied, ")
        || counts(line, " records in")
        || counts(line, " records out")
}

/// ` Timing buffered disk reads: …` below `/dev/nvme1n1:`.
fn is_hdparm(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("Timing ") || line.starts_with("/dev/") && line.ends_with(':')
}

/// ` #bytes     #iterations    BW peak[MB/sec] …` and rows of five figures, below settings.
fn is_perftest(line: &str) -> bool {
    const SETTINGS: [&str; 17] = [
        "Dual-port",
        "GID",
        "rdma_cm QPs",
        "Data ex. method",
        "Outstand reads",
        "local address",
        "remote address",
        "Conflicting CPU frequency",
        "Number of qps",
        "Connection type",
        "PCIe relax order",
        "ibv_wr* API",
        "TX depth",
        "CQ Moderation",
        "Mtu",
        "Link type",
        "Max inline data",
    ];
    let line = line.trim();
    let figures = || line.split_whitespace().map(str::parse::<f64>);
    let row = figures().count() == 5 && figures().all(|one| one.is_ok());
    let ruler = line.len() > 8 && line.bytes().all(|byte| byte == b'-');
    let known = SETTINGS.iter().any(|name| line.starts_with(name) && line.contains(':'));
    row || ruler || known || line.starts_with("#bytes") || line.ends_with(" BW Test")
}

/// `cufile read       | 901.62 MiB/s`, in a table of `GPU`, `nthreads` and others.
fn is_kvikio(line: &str) -> bool {
    let line = line.trim();
    let ruler = line.len() > 8 && line.bytes().all(|byte| matches!(byte, b'-' | b'='));
    ruler
        || line == "Roundtrip benchmark"
        || line.split_once('|').is_some_and(|(name, _)| {
            const NAMES: [&str; 9] = [
                "GPU",
                "BAR1",
                "GDS",
                "nbytes",
                "4K",
                "pre-reg-buf",
                "directory",
                "nthreads",
                "nruns",
            ];
            let first = name.split_whitespace().next().unwrap_or_default();
            NAMES.contains(&first) || ["cufile", "posix", "zarr"].contains(&first)
        })
}

fn add_kvikio(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let gpu = text.lines().find_map(|line| {
        let (name, value) = line.split_once('|').filter(|(name, _)| name.trim() == "GPU")?;
        let (model, number) = value.trim().strip_suffix(')')?.split_once(" (dev #")?;
        let index = number.parse::<u32>().ok();
        index.map(|index| (index, model.trim().to_owned())).filter(|_| !name.is_empty())
    });
    if let Some((index, model)) = gpu {
        let (index, name) = (Fact::Known(index), Fact::Known(model));
        let gpu = GpuFacts { index, name, ..GpuFacts::default() };
        nvidia_gpu::merge(&mut captured.machine.gpus, vec![gpu]);
    }
    add_lines(text, captured, KVIKIO.command, is_kvikio)
}

/// `seq-read: (g=0): rw=read, bs=…`, which begins fio's text, and `name: (groupid=0, jobs=1): err=
/// 0`.
fn is_fio(line: &str) -> bool {
    line.contains(": (g=") && line.contains("): rw=")
        || line.contains(": (groupid=") && line.contains("jobs=")
}

fn is_fio_json(text: &str) -> bool {
    text.contains("\"fio version\"") && json::find(text, is_fio_page).is_some()
}

fn is_fio_page(value: &Value) -> bool {
    value["fio version"].is_string()
}

fn add_fio(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    if let Some(found) = is_fio_json(text).then(|| json::find(text, is_fio_page)).flatten() {
        let (from, to) = found.lines();
        let own: Vec<&str> = text.lines().skip(from).take(to - from).collect();
        keep(captured, FIO.command, own.join("\n"));
        json::skip_others(text, &found, captured);
        return Ok(());
    }
    let mut own = String::new();
    let mut begun = false;
    for (index, line) in lines(text) {
        begun |= is_fio(line);
        // Everything that fio prints below its first line is indented or has a known beginning.
        let words = line.trim_start();
        let known = [
            "...",
            "fio-",
            "Starting ",
            "Jobs: ",
            "Run status",
            "Disk stats",
            "READ:",
            "WRITE:",
            "MIXED:",
        ];
        let ours = begun
            && (is_fio(line)
                || line.starts_with(' ')
                || known.iter().any(|start| words.starts_with(start)));
        if ours {
            own.push_str(line);
            own.push('\n');
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a line of fio's results"));
        }
    }
    keep(captured, FIO.command, own);
    Ok(())
}

/// `OPERATION   RESULT TYPE         FIRST DONE   LAST DONE`.
fn is_elbencho_head(line: &str) -> bool {
    line.trim_start().starts_with("OPERATION") && line.contains("FIRST DONE")
}

fn is_csv_head(line: &str) -> bool {
    line.starts_with("ISO date,") && line.contains("MiB/s [last]") || is_live_head(line)
}

/// The head of `--livecsv`.
fn is_live_head(line: &str) -> bool {
    line.starts_with("ISO Date,Label,Phase,RuntimeMS,")
}

fn add_elbencho(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    let mut own = String::new();
    let (mut csv, mut begun) = (0, false);
    for (index, line) in lines(text) {
        if is_csv_head(line) {
            csv = line.matches(',').count();
        }
        begun |= is_elbencho_head(line);
        let row = csv > 0 && line.matches(',').count() >= csv;
        // Rows have a colon between name and figures; rulers are of equals signs.
        let ours = row
            || begun
                && (is_elbencho_head(line)
                    || line.contains(" : ")
                    || line.trim_start().starts_with("===")
                    || line.split_once(':').is_some_and(|(_, rest)| rest.starts_with(' ')));
        if ours {
            own.push_str(line);
            own.push('\n');
        } else {
            captured.skip(CaptureError::new(index, line, 0, "a line of elbencho's results"));
        }
    }
    keep(captured, ELBENCHO.command, own);
    Ok(())
}

/// `14:13:02.050  avg_2-60  6533.12  6533.12 1048576 100.00 …`.
fn is_vdbench_mean(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let timed = is_vdbench_time(words.next().unwrap_or_default());
    timed && words.next().is_some_and(|word| word.starts_with("avg_"))
}

/// `14:13:02.050`.
fn is_vdbench_time(word: &str) -> bool {
    word.len() == 12
        && word.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            8 => byte == b'.',
            _ => byte.is_ascii_digit(),
        })
}

/// `sd=sd1,lun=…`, `wd=…` and `rd=…`, a line each.
fn is_vdbench_file(text: &str) -> bool {
    let has = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
    has("rd=") && (has("wd=") || has("fwd=")) && (has("sd=") || has("fsd="))
}

fn add_vdbench(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    // Its run file is nothing but lines with an equals sign, and comments.
    let is_file = is_vdbench_file(text);
    let keys = ["sd=", "wd=", "rd=", "fsd=", "fwd=", "hd=", "data_errors="];
    let known = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        let head = ["interval", "rate", "Vdbench", "Copyright", "For documentation"];
        is_vdbench_time(first)
            || is_file && (keys.iter().any(|key| first.starts_with(key)) || first.starts_with('*'))
            || head.iter().any(|word| line.trim_start().starts_with(word))
            || line.contains(" interval ") && line.contains("i/o")
    };
    if is_file {
        captured.remarks.push(
            "A run file of Vdbench's is not read: give the load by flags, or as a job file of \
             gdsio or fio."
                .to_owned(),
        );
    }
    add_lines(text, captured, VDBENCH.command, known)
}
