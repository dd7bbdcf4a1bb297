//! `iostat` (sysstat), with any of its flags and columns: a report per interval, with the
//! processors' shares and a line per device.

use serde_json::Value;

use super::{Measured, Reader, Tables, Tool, below, is_cut, number};

pub(super) const TOOL: Tool = Tool {
    command: COMMAND,
    begins: is_head,
    wanted: "a device below iostat's head",
    reader: || Box::<Iostat>::default(),
};

const COMMAND: &str = "iostat";
const CPU: &str = "avg-cpu:";
/// The name of the row of processors' shares.
pub const PROCESSORS: &str = "processors";

fn is_head(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = matches!(words.next(), Some("Device" | "Device:"));
    let known =
        ["tps", "r/s", "rrqm/s", "kB_read/s", "MB_read/s", "rkB/s", "rMB/s", "%util", "aqu-sz"];
    first && words.any(|word| known.contains(&word))
}

/// Whether a line is the head of the processors' shares.
pub fn is_head_of_cpu(line: &str) -> bool {
    begins_head_of_cpu(line) && line.contains("%idle")
}

/// Whether a line begins as that head does; editors make a capital of its first letter.
fn begins_head_of_cpu(line: &str) -> bool {
    let first = line.trim_start().get(..CPU.len());
    first.is_some_and(|first| first.eq_ignore_ascii_case(CPU))
}

/// Kernel release and host in the line above everything:
/// `Linux 5.15.0-1 (dgx2)  11/11/24  _x86_64_ (96 CPU)`.
pub fn release_and_host_of(line: &str) -> Option<(&str, &str)> {
    let (release, rest) = line.strip_prefix("Linux ")?.split_once(" (")?;
    let (host, rest) = rest.split_once(')')?;
    rest.contains(" CPU)").then_some((release.trim(), host))
}

/// A text with what `iostat -o JSON` printed as `iostat` prints it without; `None` for other texts.
pub fn text_of_json(text: &str) -> Option<String> {
    let begin = text[..text.find("\"sysstat\"")?].rfind('{')?;
    let mut found = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
    let value = found.next()?.ok()?;
    let behind = &text[begin + found.byte_offset()..];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut out = String::new();
    for host in list(&value["sysstat"]["hosts"]) {
        let word = |key: &str| host[key].as_str().unwrap_or("-").to_owned();
        let [name, release, date, machine] = ["nodename", "release", "date", "machine"].map(word);
        let count = &host["number-of-cpus"];
        out.push_str(&format!("Linux {release} ({name})  {date}  _{machine}_  ({count} CPU)\n"));
        for report in list(&host["statistics"]) {
            table(&mut out, CPU, "", &report["avg-cpu"], "");
            let disks = list(&report["disk"]);
            for (at, disk) in disks.iter().enumerate() {
                let device = disk["disk_device"].as_str().unwrap_or_default();
                table(&mut out, if at == 0 { "Device" } else { "" }, device, disk, "disk_device");
            }
        }
    }
    (!out.is_empty()).then(|| format!("{}\n{out}{behind}", &text[..begin]))
}

/// Adds a head, where it has a name, and its row. Shares have no sign in JSON.
fn table(out: &mut String, head: &str, name: &str, values: &Value, without: &str) {
    let Some(values) = values.as_object() else { return };
    let values: Vec<(&String, &Value)> = values.iter().filter(|(key, _)| *key != without).collect();
    let is_share = |key: &str| head == CPU || ["rrqm", "wrqm", "drqm", "util"].contains(&key);
    let columns: String = values
        .iter()
        .map(|(key, _)| format!(" {}{key}", if is_share(key) { "%" } else { "" }))
        .collect();
    let cells: String = values.iter().map(|(_, value)| format!(" {value}")).collect();
    if !head.is_empty() {
        out.push_str(&format!("\n{head}{columns}\n"));
    }
    out.push_str(&format!("{name}{cells}\n"));
}

struct Iostat {
    head: Vec<String>,
    processors: Vec<String>,
    /// Heads of processors' shares and of devices.
    heads: [usize; 2],
    tables: Tables,
}

impl Default for Iostat {
    fn default() -> Iostat {
        let tables = Tables::new(COMMAND);
        Iostat { head: Vec::new(), processors: Vec::new(), heads: [0; 2], tables }
    }
}

impl Iostat {
    /// Counts a head: the first one of a kind that comes again begins the second report.
    fn begin(&mut self, kind: usize) {
        self.heads[kind] += 1;
        let is_second = self.heads[kind] == 2 && self.heads[1 - kind] < 2;
        if is_second && !are_of_seconds(&self.tables.all) {
            self.tables.all.iter_mut().for_each(|one| one.first_report = one.rows.len());
        }
    }
}

impl Reader for Iostat {
    fn line(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let names = || words[1..].iter().map(|word| (*word).to_owned()).collect();
        if begins_head_of_cpu(line) {
            self.begin(0);
            self.processors = names();
        } else if is_head(line) {
            self.begin(1);
            self.head = names();
            self.processors.clear();
        } else if !self.processors.is_empty()
            && let Some(values) = below(&self.processors, &words)
        {
            let columns = std::mem::take(&mut self.processors);
            self.tables.push(&named(&columns), PROCESSORS, values);
        } else if let Some((device, values)) = row(&self.head, &words) {
            self.tables.push(&named(&self.head), device, values);
        } else {
            let below_a_head = !std::mem::take(&mut self.processors).is_empty();
            return is_between(line) || are_shares(line, below_a_head);
        }
        true
    }

    fn tables(&mut self) -> Vec<Measured> {
        self.tables.take()
    }
}

/// Whether reports can't be means since boot: counts of an interval of one second are whole
/// numbers, and of a mean, two or more are whole by a chance below 1 in 1000. Without a fraction
/// among all figures the tool was told to print none (`--dec=0`).
pub fn are_of_seconds(tables: &[Measured]) -> bool {
    let (mut whole, mut fractions, mut others) = (0, 0, 0);
    for table in tables {
        let rows = table.rows.iter().filter(|row| row.of != PROCESSORS);
        for (name, value) in rows.flat_map(|row| table.columns.iter().zip(&row.values)) {
            let Some(value) = value.filter(|value| *value != 0.0) else { continue };
            let is_whole = |value: f64| value.fract() == 0.0;
            // A kB is two sectors.
            match name.as_str() {
                "r/s" | "w/s" | "d/s" | "tps" | "rrqm/s" | "wrqm/s" if is_whole(value) => {
                    whole += 1
                }
                "rkB/s" | "wkB/s" | "kB_read/s" | "kB_wrtn/s" if is_whole(value * 2.0) => {
                    whole += 1
                }
                name if name.ends_with("/s") && !name.contains("MB") => fractions += 1,
                _ if !is_whole(value) => others += 1,
                _ => {}
            }
        }
    }
    whole >= 2 && fractions == 0 && others > 0
}

/// The columns of a head that were not cut.
fn named(head: &[String]) -> Vec<String> {
    head.iter().filter(|word| !is_cut(word)).cloned().collect()
}

fn row<'l>(head: &[String], words: &[&'l str]) -> Option<(&'l str, Vec<Option<f64>>)> {
    let (device, values) = words.split_first()?;
    let values = below(head, values).filter(|_| !head.is_empty())?;
    let name = device.contains(|c: char| c.is_ascii_alphabetic())
        && !is_cut(device)
        && device.chars().all(|c| c.is_ascii_alphanumeric() || "-_.!".contains(c));
    (name && values.iter().any(Option::is_some)).then_some((*device, values))
}

/// The kernel line, and the times of `-t`.
fn is_between(line: &str) -> bool {
    release_and_host_of(line).is_some()
        || line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(':') && line.len() < 30
}

/// Shares of processors below a head that was cut: they are 100 % together, where the head is gone.
/// Rows of other tools are numbers alone too.
fn are_shares(line: &str, below_a_head: bool) -> bool {
    let shares: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
    let is_whole = |all: &[f64]| (all.iter().sum::<f64>() - 100.0).abs() < 1.0;
    shares.is_some_and(|all| all.len() <= 6 && (all.is_empty() || below_a_head || is_whole(&all)))
}

/// The blanks of a line, in bytes, at which head and rows begin, where a page has joined them.
pub fn rows_on_one_line(line: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let start = ["Device: ", "Device "].iter().find_map(|name| line.find(name));
    let Some(start) = start.filter(|start| *start == 0 || line[..*start].ends_with(' ')) else {
        return places;
    };
    if !is_head(&line[start..]) {
        return places;
    }
    let starts: Vec<usize> =
        line.match_indices(' ').map(|(at, _)| at + 1).filter(|at| *at > start).collect();
    let word = |at: usize| line[at..].split(' ').next().unwrap_or_default();
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().any(|c| c.is_ascii_alphanumeric())
            && !word.contains('/')
    };
    // The head ends before the first device, which stands before a number.
    let rows =
        starts.windows(2).filter(|two| is_name(word(two[0])) && number(word(two[1])).is_some());
    places.extend(rows.map(|two| two[0] - 1));
    if start > 0 && !places.is_empty() {
        places.insert(0, start - 1);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first report is since boot; a mean of it and of a second is of neither.
    #[test]
    fn means_are_of_the_reports_after_the_first() {
        let report = |rate: u32, idle: u32| {
            format!("avg-cpu: %user %idle\n 1.0 {idle}\n\nDevice r/s %util\nvda {rate} 1.0\n\n")
        };
        let means = |text: &str| {
            let mut reader = Iostat::default();
            let lines = text.lines().filter(|line| !line.is_empty());
            lines.for_each(|line| assert!(reader.line(line)));
            let tables = reader.tables();
            let value = |name: &str, column: usize| {
                let all = tables.iter().flat_map(Measured::means).find(|one| one.0 == name);
                all.map(|(_, count, values)| (count, values[column].map(|mean| mean.value)))
            };
            (value("vda", 0), value(PROCESSORS, 1))
        };
        let [boot, second, third] = [report(919, 90), report(2410, 10), report(2412, 20)];
        assert_eq!(means(&boot), (Some((1, Some(919.0))), Some((1, Some(90.0)))));
        let two = (Some((1, Some(2410.0))), Some((1, Some(10.0))));
        assert_eq!(means(&(boot.clone() + &second)), two);
        let three = (Some((2, Some(2411.0))), Some((2, Some(15.0))));
        assert_eq!(means(&(boot + &second + &third)), three);
        let devices = "Device r/s\nvda 919\nDevice r/s\nvda 2410\n";
        assert_eq!(means(devices), (Some((1, Some(2410.0))), None));
        // Counts of a second are whole numbers, those of a mean since boot are not.
        let seconds = "Device r/s rkB/s %util\nvda 900.00 3600.00 1.20\n\
                       Device r/s rkB/s %util\nvda 902.00 3608.00 1.30\n";
        assert_eq!(means(seconds), (Some((2, Some(901.0))), None));
        let without = seconds.replace("1.20", "1.00");
        for boot in [seconds.replace("900.00", "900.01"), without.replace("3600", "0")] {
            assert_eq!(means(&boot), (Some((1, Some(902.0))), None), "{boot}");
        }
    }

    #[test]
    fn rows_of_numbers_alone_are_of_other_tools() {
        let mut reader = Iostat::default();
        assert!(reader.line("Device r/s %util") && reader.line("vda 919 1.0"));
        assert!(
            !reader.line("    0    98    64    64    92    37     0     0  6472  3092 10816    78")
        );
        assert!(!reader.line("0 98 64") && reader.line("   0.85 0.00 2.10 0.00 0.00 97.05"));
    }

    #[test]
    fn json_is_the_same_tables_as_text() {
        let text = r#"$ iostat -x -o JSON
{"sysstat": {"hosts": [{"nodename": "n3", "release": "5.15", "number-of-cpus": 256,
 "statistics": [{"avg-cpu": {"user": 0.85, "idle": 91.72}, "disk": [
 {"disk_device": "nvme0n1", "r/s": 25890.00, "rkB/s": 3313920.00, "util": 99.50},
 {"disk_device": "nvme1n1", "r/s": 25880.00, "rkB/s": 3312640.00, "util": 99.60}]}]}]}}
$ lsblk
"#;
        let text = text_of_json(text).unwrap();
        assert_eq!(text.lines().find_map(release_and_host_of).map(|(_, host)| host), Some("n3"));
        let mut reader = Iostat::default();
        let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('$'));
        assert!(lines.all(|line| reader.line(line)), "{text}");
        assert!(text.starts_with("$ iostat") && text.ends_with("$ lsblk\n"), "{text}");
        let tables = reader.tables();
        let rows: Vec<&str> =
            tables.iter().flat_map(|one| &one.rows).map(|row| row.of.as_str()).collect();
        assert_eq!(rows, [PROCESSORS, "nvme0n1", "nvme1n1"], "{tables:?}");
        assert!(tables.iter().any(|one| one.columns.iter().any(|name| name == "%util")));
        assert_eq!(text_of_json("{\"sysstat\": 1}"), None);
    }
}
