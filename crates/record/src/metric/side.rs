//! One direction of a job: where metrics are read.

use crate::{DirectionResult, JobExpected, JobPlan, JobResult, OfCeiling, Record, Towards};

/// One direction of a job that ran, with the record around it.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The record.
    pub record: &'a Record,
    /// The job's plan.
    pub plan: &'a JobPlan,
    /// The job's result.
    pub result: &'a JobResult,
    /// Which direction.
    pub direction: Towards,
}

impl<'a> Side<'a> {
    /// The figures measured in this direction.
    pub fn figures(&self) -> &'a DirectionResult {
        self.direction.of(self.result)
    }

    /// The same of the job without the GPU computation that ran beside it.
    pub fn alone(&self) -> Option<&'a DirectionResult> {
        let alone = &self.result.beside.as_ref()?.alone;
        Some(match self.direction {
            Towards::Read => &alone.read,
            Towards::Write => &alone.write,
        })
    }

    /// The expected performance of the parts on its route; absent in records without it.
    pub fn expected(&self) -> Option<&'a JobExpected> {
        self.record
            .expected
            .iter()
            .find(|one| one.job == self.plan.name && one.direction == self.direction)
    }
}

impl Towards {
    /// `read` or `write`.
    pub fn name(self) -> &'static str {
        match self {
            Towards::Read => "read",
            Towards::Write => "write",
        }
    }

    /// This direction of a job's result.
    pub fn of(self, job: &JobResult) -> &DirectionResult {
        match self {
            Towards::Read => &job.read,
            Towards::Write => &job.write,
        }
    }
}

impl JobPlan {
    /// The directions that it is to do, reads first.
    pub fn directions(&self) -> &'static [Towards] {
        match self.read_percent {
            0 => &[Towards::Write],
            100.. => &[Towards::Read],
            _ => &[Towards::Read, Towards::Write],
        }
    }
}

impl Record {
    /// Bytes per second of the ceiling that a result is compared with.
    pub fn ceiling_rate(&self, of: &OfCeiling) -> Option<f64> {
        let named = self.ceilings.iter().find(|ceiling| ceiling.plan.name == of.ceiling);
        named.and_then(|ceiling| ceiling.bytes_per_s)
    }
}
