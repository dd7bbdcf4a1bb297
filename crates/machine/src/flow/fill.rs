//! Max–min fair filling.

use crate::flow::{Flow, Network, PartId};

/// Parts this near to saturation, relative to their all, count as saturated: rounding of sums.
const NEAR: f64 = 1e-9;

/// The limit that ended a flow's rise.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// Parts on its path were busy all of the time, by indices in [`Flow::uses`]: those that
    /// saturated at the same moment.
    Parts(Vec<usize>),
    Own,
    /// Nothing: no part on its path has a figure.
    Nothing,
}

/// A flow's share.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    /// Bytes per second; infinite with [`Limit::Nothing`].
    pub bytes_per_s: f64,
    pub limit: Limit,
}

/// Raises all flows together, equally fast in bytes per second, until a part on the path is busy
/// all of the time or a flow has reached its own limit; the flows concerned stay there and the
/// others rise on ("progressive filling": Bertsekas and Gallager, *Data Networks*, 6.5.2). The
/// result is max–min fair: no flow could have more without one that has less giving some up.
///
/// Each round ends at least one flow, so the work is flows squared times parts.
pub fn fill(network: &Network, flows: &[Flow]) -> Vec<Filled> {
    let mut rates: Vec<Option<Filled>> = vec![None; flows.len()];
    let mut level = 0.0_f64;
    let mut busy = vec![0.0_f64; network.len()];
    while rates.iter().any(Option::is_none) {
        let mut rise = vec![0.0_f64; network.len()];
        let rising = flows.iter().zip(&rates).filter(|(_, rate)| rate.is_none());
        for one in rising.clone().flat_map(|(flow, _)| &flow.uses) {
            rise[one.part.index()] += one.busy_s_per_byte;
        }
        let free = |index: usize| (1.0 - busy[index]).max(0.0) / rise[index];
        let parts = (0..network.len()).filter(|index| rise[*index] > 0.0).map(free);
        let own = rising.filter_map(|(flow, _)| Some(flow.own_limit.as_ref()?.0 - level));
        let step = parts.chain(own).fold(f64::INFINITY, f64::min).max(0.0);
        if step == f64::INFINITY {
            let open = rates.iter_mut().filter(|rate| rate.is_none());
            open.for_each(|rate| *rate = Some(Filled::unlimited()));
            break;
        }
        level += step;
        busy.iter_mut().zip(&rise).for_each(|(busy, rise)| *busy += step * rise);
        let full = |part: PartId| rise[part.index()] > 0.0 && busy[part.index()] >= 1.0 - NEAR;
        for (flow, rate) in flows.iter().zip(&mut rates).filter(|(_, rate)| rate.is_none()) {
            *rate = flow.stopped(level, &full);
        }
    }
    rates.into_iter().map(|rate| rate.unwrap_or_else(Filled::unlimited)).collect()
}

impl Flow {
    fn stopped(&self, level: f64, full: &dyn Fn(PartId) -> bool) -> Option<Filled> {
        let counted = self.uses.iter().enumerate().filter(|(_, one)| one.busy_s_per_byte > 0.0);
        let parts: Vec<usize> =
            counted.filter(|(_, one)| full(one.part)).map(|(index, _)| index).collect();
        let own = self.own_limit.as_ref().is_some_and(|(most, _)| level >= most * (1.0 - NEAR));
        let limit = match (parts.is_empty(), own) {
            (_, true) => Limit::Own,
            (false, false) => Limit::Parts(parts),
            (true, false) => return None,
        };
        Some(Filled { bytes_per_s: level, limit })
    }
}

impl Filled {
    fn unlimited() -> Self {
        Filled { bytes_per_s: f64::INFINITY, limit: Limit::Nothing }
    }
}
