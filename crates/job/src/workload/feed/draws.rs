//! Samples that are drawn by Zipf's law, each by its place in the order alone, so that every reader
//! knows its own without those of others.

use gpuio_record::{Distribution, FeedPlan, SampleOrder};

use super::Shape;
use crate::workload::sequence::permutation::Permutation;
use crate::workload::sequence::spread::Spread;
use crate::workload::sequence::stream::{Stream, Use, derive};

#[derive(Debug, Clone)]
pub struct Draws {
    spread: Spread,
    /// Scatters hot ranks over the data set, in all epochs alike.
    scatter: Permutation,
    units: u64,
    seed: u64,
}

impl Draws {
    /// Those of this plan; `None` where its order draws nothing.
    pub fn of(plan: &FeedPlan, seed: u64) -> Option<Draws> {
        let SampleOrder::Zipf { theta } = plan.order else { return None };
        let units = Shape::new(plan).units();
        // A plan has no other theta than one that fits.
        let spread = Spread::new(&Distribution::Zipf { theta }, units, 0).ok()?;
        Some(Draws { spread, scatter: Permutation::new(units, seed, 0), units, seed })
    }

    /// The unit at a place of an epoch's order.
    pub fn unit(&self, epoch: u64, position: u64) -> u64 {
        let place = epoch.wrapping_mul(self.units).wrapping_add(position);
        let mut stream = Stream::new(derive(self.seed, Use::Samples, place), Use::Samples);
        self.scatter.at(self.spread.draw(&mut stream, self.units))
    }

    /// How often each unit is drawn in an epoch.
    pub fn counts(&self, epoch: u64) -> Vec<u32> {
        let mut counts = vec![0; usize::try_from(self.units).unwrap_or(0)];
        for position in 0..self.units {
            let unit = usize::try_from(self.unit(epoch, position)).unwrap_or(usize::MAX);
            counts[unit] += 1;
        }
        counts
    }
}
