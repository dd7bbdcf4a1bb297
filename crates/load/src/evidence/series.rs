//! Samples as the record keeps them: a column per device and figure.

use std::collections::HashMap;

use gpuio_record::{DeviceSeries, FigureSeries, WatchedGroup};
use gpuio_watch::{Interval, Probe};

use crate::evidence::reconcile::Counted;
use crate::evidence::sampler::Series;

/// The work of a group's devices. Figures that were never known, and devices of which nothing was,
/// are left out.
pub(crate) fn group(group: u32, taken: &Series) -> WatchedGroup {
    let pairs = taken.samples.windows(2);
    let intervals: Vec<Interval> =
        pairs.map(|pair| Interval::between(&pair[0], &pair[1])).collect();
    let ends = taken.samples.iter().skip(1).map(|end| end.at_ns.saturating_sub(taken.start));
    let mut devices = Devices { intervals: intervals.len(), ..Devices::default() };
    for (nth, interval) in intervals.iter().enumerate() {
        devices.add(interval, |figure, value| figure.values[nth] = value);
    }
    if let Some(whole) = whole(taken) {
        devices.add(&whole, |figure, value| figure.whole = value);
    }
    let known =
        |figure: &FigureSeries| figure.whole.is_some() || figure.values.iter().any(Option::is_some);
    let mut devices = devices.list;
    devices.iter_mut().for_each(|device| device.figures.retain(known));
    devices.retain(|device| !device.figures.is_empty());
    let began_ns = taken.from.saturating_sub(taken.start);
    WatchedGroup { group, began_ns, ends_ns: ends.collect(), devices }
}

/// Puts the rates of GPUs' links over the whole group where they are counters: those of the jobs'
/// GPUs are what the PCIe meter counted, as in the evidence.
pub(crate) fn put_links(group: &mut WatchedGroup, counted: &Counted) {
    for gpu in counted.gpus.iter().filter(|gpu| !gpu.sampled) {
        let name = format!("GPU{}", gpu.index);
        let is = |device: &&mut DeviceSeries| device.probe == "gpu" && device.device == name;
        let Some(device) = group.devices.iter_mut().find(is) else { continue };
        // Where it is 1, the series has samples of 20 ms, and nothing over the whole group.
        if !device.figures.iter().any(|one| one.key == "pcie_sampled" && one.whole == Some(0.0)) {
            continue;
        }
        for figure in &mut device.figures {
            match figure.key.as_str() {
                "pcie_received_bytes_per_second" => figure.whole = Some(gpu.received_per_s),
                "pcie_sent_bytes_per_second" => figure.whole = Some(gpu.sent_per_s),
                _ => {}
            }
        }
    }
}

/// The changes from the first sample to the last; `None` without two.
pub(crate) fn whole(taken: &Series) -> Option<Interval> {
    let (first, last) = (taken.samples.first()?, taken.samples.last()?);
    (taken.samples.len() > 1).then(|| Interval::between(first, last))
}

#[derive(Default)]
struct Devices {
    intervals: usize,
    list: Vec<DeviceSeries>,
    places: HashMap<(&'static str, String), usize>,
}

impl Devices {
    /// Appends the figures of an interval to their columns, new columns at the end.
    fn add(&mut self, interval: &Interval, put: impl Fn(&mut FigureSeries, Option<f64>)) {
        for table in &interval.tables {
            for row in &table.rows {
                let device = self.device(table.probe, &row.name);
                for (series, value) in device.figures.iter_mut().zip(row.figures(table.probe)) {
                    // JSON has no number for what is no number.
                    put(series, value.filter(|value| value.is_finite()));
                }
            }
        }
    }

    fn device(&mut self, probe: &'static Probe, name: &str) -> &mut DeviceSeries {
        let next = self.list.len();
        let place = *self.places.entry((probe.name, name.to_owned())).or_insert(next);
        if place == next {
            let column = |key: &str| FigureSeries {
                key: key.to_owned(),
                whole: None,
                values: vec![None; self.intervals],
            };
            self.list.push(DeviceSeries {
                probe: probe.name.to_owned(),
                device: name.to_owned(),
                figures: probe.figures.iter().map(|figure| column(figure.key)).collect(),
            });
        }
        &mut self.list[place]
    }
}

#[cfg(test)]
mod tests {
    use gpuio_watch::{PROBES, Reading, Sample};

    use super::*;
    use crate::evidence::reconcile::Gpu;

    /// A sample in which a disk, where it is there, has read so many sectors.
    fn sample(at_ns: u64, sectors: Option<u64>) -> Sample {
        let reading = |sectors| {
            let mut values = vec![Some(0); 11];
            (values[0], values[2]) = (Some(sectors / 8), Some(sectors));
            Reading { name: "sda".to_owned(), identity: 0, values, about: String::new() }
        };
        let of = |probe: &Probe| match probe.name {
            "block" => Ok(sectors.map(reading).into_iter().collect()),
            _ => Err("left out".to_owned()),
        };
        Sample { at_ns, probes: PROBES.iter().map(of).collect() }
    }

    #[test]
    fn figures_are_columns_as_long_as_the_axis() {
        const S: u64 = 1_000_000_000;
        let samples = vec![sample(S, Some(0)), sample(2 * S, Some(8)), sample(3 * S, Some(2056))];
        let taken = Series { start: S, from: S, samples, count: 3, cpu_ns: 0 };
        let group = group(4, &taken);
        assert_eq!((group.group, &group.ends_ns[..]), (4, &[S, 2 * S][..]));
        let [disk] = &group.devices[..] else { panic!("{:?}", group.devices) };
        assert_eq!((disk.probe.as_str(), disk.device.as_str()), ("block", "sda"));
        let figure = |key: &str| disk.figures.iter().find(|one| one.key == key);
        let read = figure("read_bytes_per_second").unwrap();
        assert_eq!(read.values, [Some(4096.0), Some(1_048_576.0)]);
        assert_eq!(read.whole, Some(526_336.0));
        assert!(figure("write_await_seconds").is_none(), "no write, no wait");
    }

    #[test]
    fn links_have_the_rates_of_the_evidence_where_they_are_counted() {
        let figure = |key: &str, whole| FigureSeries {
            key: key.to_owned(),
            whole: Some(whole),
            values: Vec::new(),
        };
        let put = |sampled, by_sample| {
            let figures = vec![
                figure("pcie_received_bytes_per_second", 7.0),
                figure("pcie_sampled", sampled),
            ];
            let (probe, device) = ("gpu".to_owned(), "GPU3".to_owned());
            let devices = vec![DeviceSeries { probe, device, figures }];
            let mut group = WatchedGroup { devices, ..WatchedGroup::default() };
            let gpu = Gpu { index: 3, received_per_s: 9.0, sampled: by_sample, ..Gpu::default() };
            put_links(&mut group, &Counted { gpus: vec![gpu], ..Counted::default() });
            group.devices[0].figures[0].whole
        };
        assert_eq!(put(0.0, false), Some(9.0));
        assert_eq!(put(1.0, false), Some(7.0), "samples of 20 ms stay");
        assert_eq!(put(0.0, true), Some(7.0));
    }

    #[test]
    fn a_device_that_comes_late_is_unknown_until_then() {
        let samples = vec![sample(1, None), sample(1_000_000_001, Some(8)), sample(3, Some(8))];
        let taken = Series { start: 0, from: 0, samples, count: 3, cpu_ns: 0 };
        assert_eq!(group(0, &taken).devices, [], "new, and then no time passed");
    }
}
