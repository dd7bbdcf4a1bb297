//! Device activity during the run, and the cost of sampling it.

use gpuio_base::document::{Item, Layout, List, Section};
use gpuio_base::units::whole;
use gpuio_record::{DeviceSeries, Record, Watched, WatchedGroup};

use crate::number::{bytes, float, throughput, time};

/// More lines than this would be less clear than the record.
const MOST_LINES: usize = 8;
/// Devices below this share of the busiest of their kind are left out.
const SHARE: f64 = 0.05;
/// Kinds of devices that bytes pass, in the order of lines.
const KINDS: [&str; 5] = ["block", "gpu", "nfs", "interface", "rdma"];
/// Rates of bytes: key, verb, and the key of the mean request where devices count requests.
const RATES: [(&str, &str, &str); 6] = [
    ("read_bytes_per_second", "read", "read_request_bytes"),
    ("written_bytes_per_second", "wrote", "write_request_bytes"),
    ("received_bytes_per_second", "received", ""),
    ("sent_bytes_per_second", "sent", ""),
    ("pcie_received_bytes_per_second", "received", ""),
    ("pcie_sent_bytes_per_second", "sent", ""),
];

/// A line per device that moved bytes, for each group of jobs, and one line for the sampling
/// itself.
pub(super) fn section(record: &Record) -> Section {
    let Some(watched) = &record.watched else { return Section::default() };
    let of_group = |group: &WatchedGroup| {
        let jobs = record.plan.jobs.iter().filter(|job| job.group == group.group);
        jobs.map(|job| job.name.as_str()).collect::<Vec<_>>().join("+")
    };
    let several = watched.groups.len() > 1;
    let named = |group: &WatchedGroup| if several { of_group(group) + "  " } else { String::new() };
    let all = watched.groups.iter().map(|group| (named(group), group.devices.as_slice()));
    let mut section = lines(&all.collect::<Vec<_>>());
    section.item(Layout::labels(0), Item::new("device sampling", cost(watched)));
    section
}

/// The devices of a kind that moved most of the bytes.
fn busiest(all: &[DeviceSeries]) -> Vec<&DeviceSeries> {
    let of_kind = |kind: &&str| {
        let devices = all.iter().filter(|device| device.probe == *kind);
        let mut busy: Vec<(&DeviceSeries, f64)> =
            devices.map(|device| (device, moved(device))).collect();
        let most = busy.iter().map(|(_, moved)| *moved).fold(0.0, f64::max);
        busy.retain(|(_, moved)| *moved > 0.0 && *moved >= most * SHARE);
        busy.into_iter().map(|(device, _)| device).collect::<Vec<_>>()
    };
    KINDS.iter().flat_map(of_kind).collect()
}

/// Devices, each behind the name of its group.
fn lines(groups: &[(String, &[DeviceSeries])]) -> Section {
    let longest = groups.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(30);
    let of_group = |(name, all): &(String, &[DeviceSeries])| {
        let named =
            |device: &DeviceSeries| (format!("{name:longest$}{}", device.device), words(device));
        busiest(all).into_iter().map(named).collect::<Vec<_>>()
    };
    let devices: Vec<(String, String)> = groups.iter().flat_map(of_group).collect();
    let name = devices.iter().take(MOST_LINES).map(|(name, _)| name.chars().count()).max();
    let items = devices.iter().take(MOST_LINES);
    let items = items.map(|(name, words)| Item::new(name.as_str(), words.as_str()));
    let title = "devices during the run, all processes together:";
    let mut section = Section::new("", if devices.is_empty() { "" } else { title });
    section.list(List::new(Layout::columns(name.unwrap_or(0), 2), items));
    let more = devices.len().saturating_sub(MOST_LINES);
    section.list(List::of(2, (more > 0).then(|| format!("and {more} more, in the record"))));
    section
}

/// Bytes per second in both directions.
fn moved(device: &DeviceSeries) -> f64 {
    RATES.iter().filter_map(|(key, ..)| figure(device, key)).sum()
}

/// Over the whole group. A sampled value does not cover the whole time.
fn figure(device: &DeviceSeries, key: &str) -> Option<f64> {
    let find = |key: &str| device.figures.iter().find(|figure| figure.key == key);
    let sampled = find("pcie_sampled").and_then(|figure| figure.whole) == Some(1.0);
    find(key)?.whole.filter(|_| !(sampled && key.starts_with("pcie_")))
}

fn words(device: &DeviceSeries) -> String {
    let mut words = Vec::new();
    for (key, verb, request) in RATES {
        let Some(rate) = figure(device, key).filter(|rate| *rate > 0.0) else { continue };
        let size = figure(device, request)
            .map(|size| format!(" ({} per request)", bytes(whole(size.round()))));
        words.push(format!("{verb} {}{}", throughput(rate), size.unwrap_or_default()));
    }
    if let Some(queue) = figure(device, "queue") {
        words.push(format!("{queue:.1} requests in flight"));
    }
    if let Some(busy) = figure(device, "busy_percent") {
        // Counted in milliseconds, so it can slightly exceed 100.
        words.push(format!("{:.0} % busy", busy.min(100.0)));
    }
    words.join(", ")
}

fn cost(watched: &Watched) -> String {
    let every = time(watched.interval_ns);
    let clocks: u64 = watched.groups.iter().map(WatchedGroup::length_ns).sum();
    let cost = match watched.cpu_ns {
        Some(cpu_ns) if clocks > 0 => {
            let share = float(cpu_ns) / float(clocks) * 100.0;
            format!("cost {} of CPU time ({share:.2} % of one CPU)", time(cpu_ns))
        }
        _ => "its cost is unknown".to_owned(),
    };
    format!("every {every}, {} samples; {cost}", watched.samples)
}

#[cfg(test)]
mod tests {
    use gpuio_base::document::Document;
    use gpuio_record::FigureSeries;

    use super::*;

    fn text(devices: &[DeviceSeries]) -> String {
        let mut page = Document::default();
        page.push(lines(&[(String::new(), devices)])).terminal(100)
    }

    fn device(probe: &str, device: &str, figures: &[(&str, f64)]) -> DeviceSeries {
        let figure = |&(key, value): &(&str, f64)| FigureSeries {
            key: key.to_owned(),
            whole: Some(value),
            values: vec![Some(value)],
        };
        let figures = figures.iter().map(figure).collect();
        DeviceSeries { probe: probe.to_owned(), device: device.to_owned(), figures }
    }

    #[test]
    fn a_device_is_a_line_of_rates_requests_and_queue() {
        let disk = device(
            "block",
            "sdb",
            &[
                ("read_bytes_per_second", 531_712.0 * 1024.0),
                ("read_request_bytes", 262_144.0),
                ("written_bytes_per_second", 0.0),
                ("queue", 1.79),
                ("busy_percent", 100.2),
            ],
        );
        let idle = device("block", "sda", &[("read_bytes_per_second", 4096.0), ("queue", 0.0)]);
        let words = "read 519 MiB/s (256 KiB per request), 1.8 requests in flight, 100 % busy";
        let head = "devices during the run, all processes together:";
        assert_eq!(text(&[idle.clone(), disk]), format!("{head}\n  sdb  {words}\n"));
        assert!(text(&[idle]).contains("sda"), "alone, it is the busiest");
    }

    #[test]
    fn what_the_driver_sampled_is_no_figure_of_the_whole() {
        let rate = ("pcie_received_bytes_per_second", 1e9);
        assert_eq!(text(&[device("gpu", "GPU0", &[rate, ("pcie_sampled", 1.0)])]), "");
        let counted = text(&[device("gpu", "GPU0", &[rate, ("pcie_sampled", 0.0)])]);
        assert!(counted.ends_with("GPU0  received 954 MiB/s\n"), "{counted}");
    }

    #[test]
    fn each_group_has_its_devices() {
        let disk = [device("block", "sdb", &[("read_bytes_per_second", 1024.0 * 1024.0)])];
        let mut page = Document::default();
        page.push(lines(&[("save  ".to_owned(), &disk), ("restore  ".to_owned(), &disk)]));
        let text = page.terminal(100);
        assert!(text.contains("  save     sdb  read 1.00 MiB/s\n  restore  sdb  read "), "{text}");
    }

    #[test]
    fn many_devices_end_in_a_number() {
        let all: Vec<DeviceSeries> = (0..10)
            .map(|nth| device("block", &format!("sd{nth}"), &[("read_bytes_per_second", 1e6)]))
            .collect();
        assert!(text(&all).ends_with("  and 2 more, in the record\n"));
    }

    #[test]
    fn the_cost_is_a_share_of_the_clock() {
        let group = WatchedGroup {
            began_ns: 6_000_000_000,
            ends_ns: vec![6_000_000_001, 8_000_000_000],
            ..WatchedGroup::default()
        };
        let mut watched = Watched {
            interval_ns: 1_000_000_000,
            samples: 3,
            cpu_ns: Some(1_000_000),
            groups: vec![group],
        };
        let words = "every 1.00 s, 3 samples; cost 1.00 ms of CPU time (0.05 % of one CPU)";
        assert_eq!(cost(&watched), words);
        watched.cpu_ns = None;
        assert!(cost(&watched).ends_with("is unknown"));
    }
}
