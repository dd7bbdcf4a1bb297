//! How much jobs and computations on the GPUs of all ranks slow each other.

use crate::{ComputationCost, GpuComputation, JobAlone};

use crate::merge::jobs::{DirectionSum, add_verify};

/// The sum of ranks, which ran alone at the same time and with their computations at the same time.
#[derive(Debug, Default)]
pub(crate) struct CostSum {
    gpus: Vec<GpuComputation>,
    read: DirectionSum,
    write: DirectionSum,
    alone: JobAlone,
    /// The longest time that a rank ran alone; none where one is not known.
    time_ns: Option<u64>,
    /// Bytes per second alone and with the computation, where known of all.
    rates: Option<(f64, f64)>,
    unknown: Option<String>,
    any: bool,
}

impl CostSum {
    pub(crate) fn add(&mut self, rank: u32, cost: &ComputationCost) {
        let first = !std::mem::replace(&mut self.any, true);
        let named = |gpu: &GpuComputation| GpuComputation { rank: Some(rank), ..gpu.clone() };
        self.gpus.extend(cost.gpus.iter().map(named));
        let alone = &cost.alone;
        self.read.add(&alone.read);
        self.write.add(&alone.write);
        self.alone.failed += alone.failed;
        add_verify(&mut self.alone.verify, alone.verify.as_ref(), &format!("rank {rank}"));
        let (known_time, known_rates) = match first {
            true => (Some(0), Some((0.0, 0.0))),
            false => (self.time_ns, self.rates),
        };
        let time_ns = alone.measured.map(|span| span.length_ns());
        self.time_ns = known_time.zip(time_ns).map(|(all, one)| all.max(one));
        let rate = alone.read.bytes_per_s + alone.write.bytes_per_s;
        self.rates = known_rates
            .zip(cost.io_ratio)
            .map(|((all, with), ratio)| (all + rate, with + rate * ratio));
        if let (None, Some(why)) = (&self.unknown, &cost.io_unknown) {
            self.unknown = Some(format!("rank {rank}: {why}"));
        }
    }

    /// The cost of all; the ratio is that of the ranks' rates, added.
    pub(crate) fn finish(mut self) -> Option<ComputationCost> {
        // Records come in any order.
        self.gpus.sort_by_key(|gpu| gpu.rank);
        if !self.any {
            return None;
        }
        let time_ns = self.time_ns.unwrap_or(0);
        let alone = JobAlone {
            read: self.read.finish(time_ns),
            write: self.write.finish(time_ns),
            ..self.alone
        };
        let ratio = self.rates.map(|(all, with)| with / all).filter(|ratio| ratio.is_finite());
        let unknown = self.unknown.unwrap_or_else(|| "a rank has none".to_owned());
        Some(ComputationCost {
            gpus: self.gpus,
            alone,
            io_ratio: ratio,
            io_unknown: ratio.is_none().then_some(unknown),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DirectionResult, TimeSpan};

    fn cost(bytes: u64, bytes_per_s: f64, end_ns: u64, ratio: Option<f64>) -> ComputationCost {
        let read = DirectionResult { bytes, bytes_per_s, ..DirectionResult::default() };
        let measured = Some(TimeSpan { begin_ns: 0, end_ns });
        ComputationCost {
            gpus: vec![GpuComputation::default()],
            alone: JobAlone { read, measured, ..JobAlone::default() },
            io_ratio: ratio,
            io_unknown: ratio.is_none().then(|| "it moved nothing".to_owned()),
        }
    }

    #[test]
    fn ratios_are_weighted_by_what_ranks_moved_alone() {
        let mut sum = CostSum::default();
        sum.add(1, &cost(100, 100.0, 2_000_000_000, Some(0.9)));
        sum.add(0, &cost(300, 300.0, 1_000_000_000, Some(0.5)));
        let all = sum.finish().unwrap();
        assert!((all.io_ratio.unwrap() - (150.0 + 90.0) / 400.0).abs() < 1e-12);
        assert!((all.alone.read.bytes_per_s - 200.0).abs() < 1e-9, "until the last was done");
        assert_eq!(all.gpus.iter().map(|gpu| gpu.rank).collect::<Vec<_>>(), [Some(0), Some(1)]);
    }

    #[test]
    fn without_the_ratio_of_one_rank_there_is_none() {
        let mut sum = CostSum::default();
        sum.add(0, &cost(300, 300.0, 1, Some(0.5)));
        sum.add(4, &cost(0, 0.0, 1, None));
        let all = sum.finish().unwrap();
        assert_eq!(all.io_ratio, None);
        assert_eq!(all.io_unknown.as_deref(), Some("rank 4: it moved nothing"));
        assert!(CostSum::default().finish().is_none());
    }
}
