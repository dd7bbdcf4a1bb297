//! The work of devices in the last intervals, for a line of small bars.

use std::collections::{HashMap, VecDeque};

use gpuio_watch::Interval;

/// Intervals that are remembered, and bars that are shown.
pub(super) const MOST: usize = 24;

/// Bars from nothing to the most.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The trends of all devices, the latest last.
#[derive(Debug, Default)]
pub(super) struct History {
    of: HashMap<(&'static str, String), VecDeque<Option<f64>>>,
}

impl History {
    /// Adds an interval. Devices that are gone are forgotten.
    pub(super) fn add(&mut self, interval: &Interval) {
        let mut kept = HashMap::new();
        for table in &interval.tables {
            let Some(trend) = &table.probe.trend else { continue };
            for row in &table.rows {
                let key = (table.probe.name, row.name.clone());
                let mut values = self.of.remove(&key).unwrap_or_default();
                values.push_back(row.change.as_ref().and_then(trend.of));
                while values.len() > MOST {
                    values.pop_front();
                }
                kept.insert(key, values);
            }
        }
        self.of = kept;
    }

    /// A bar for each interval, the latest at the right end, and the most of them: bars reach from
    /// 0 to it. An interval without a figure is a blank.
    pub(super) fn bars(&self, probe: &'static str, device: &str) -> (String, Option<f64>) {
        let Some(values) = self.of.get(&(probe, device.to_owned())) else {
            return (" ".repeat(MOST), None);
        };
        let most = values.iter().flatten().copied().reduce(f64::max);
        let bar = |value: &Option<f64>| {
            let (Some(value), Some(most)) = (value, most) else { return ' ' };
            if *value <= 0.0 || most <= 0.0 {
                return BARS[0];
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of eight"
            )]
            let step = (value / most * 7.0).ceil().clamp(0.0, 7.0) as usize;
            BARS[step]
        };
        let bars: String = values.iter().map(bar).collect();
        (format!("{}{bars}", " ".repeat(MOST - values.len())), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_reach_from_nothing_to_the_most_and_unknown_is_blank() {
        let values = [Some(0.0), None, Some(1.0), Some(50.0), Some(100.0)];
        let key = ("block", "vda".to_owned());
        let history = History { of: HashMap::from([(key, VecDeque::from(values))]) };
        let (bars, most) = history.bars("block", "vda");
        assert_eq!(bars.trim_start(), "▁ ▂▅█");
        assert_eq!((bars.chars().count(), most), (MOST, Some(100.0)));
        assert_eq!(history.bars("block", "vdb"), (" ".repeat(MOST), None));
    }
}
