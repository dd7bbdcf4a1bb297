//! The types of a run: the plan, the machine, the results and the warnings.
//!
//! Plain data with serde, versioned by [`SCHEMA_VERSION`]; the published JSON Schema is generated
//! from these types. [`metric`] says what of a result is shown, where and under which name: to add
//! one, add a row there. Nothing here computes a result, prints, or looks at the system.
#![warn(missing_docs)]

mod beside;
mod ceiling;
mod cost;
mod cufile;
mod derived;
mod direction;
mod expected;
pub mod facts;
mod feed;
mod holes;
mod injected;
mod io_failure;
mod log_plan;
mod mapped;
pub mod merge;
pub mod metric;
mod order;
mod others;
mod part;
mod plan;
mod proof;
mod ranks;
mod replay;
mod result;
mod run_of;
mod stay;
mod steady;
mod stop;
mod sum;
mod sweep;
mod timing;
mod totals;
mod verification;
mod warning;
mod watched;

pub use gpuio_base::catalog::MemoryKind;

pub use beside::{ComputationCost, ComputationKind, ComputationPlan, GpuComputation, JobAlone};
pub use ceiling::{Ceiling, CeilingKind, CeilingPlan, CeilingSource, OfCeiling, Towards};
pub use cost::{CpuCost, CpuScope};
pub use cufile::CufileUsed;
pub use direction::{DirectionResult, Latency, TimeSpan};
pub use expected::{Expected, JobExpected};
pub use feed::{
    AcceleratorResult, AcceleratorSearch, AcceleratorTry, Column, EpochResult, FeedCompute,
    FeedPlan, FeedResult, FeedRule, FeedTime, SampleOrder, SampleSize, ServiceLevel, TierPlan,
    TierResult,
};
pub use holes::{ContentReading, HolesReading};
pub use injected::InjectedFaults;
pub use io_failure::IoFailure;
pub use log_plan::LogPlan;
pub use mapped::{BreakEven, MappedResult};
pub use metric::{Metric, Side};
pub use order::{Distribution, FadviseHint, Follow, Order, Zone};
pub use others::{DeviceTraffic, NOISE_BYTES, OthersCounted, ProcessorTime};
pub use part::{PartPlan, RepeatPlan};
pub use plan::{
    Arrivals, BlockShare, Choice, Compressible, DirectMode, FanOut, Fill, FlushPlan, Gpu,
    GuardNote, JobPlan, LayoutKind, LayoutPlan, LeftOut, Pacing, PathChoice, Plan, RangeKind,
    RangesPlan, Region, Stripe, TargetKind, TargetPlan, ThinkPlan, VerifyMode, Via, WorkerPlan,
};
pub use proof::{Assessment, Evidence, Proof, Route, Source, Verdict};
pub use ranks::{
    HostJobExpected, RankGroup, RankHost, RankJob, RankJobRates, RankOf, RankProof, RankRow,
    RanksEnd, RanksResult, RateOver, Straggler,
};
pub use replay::{
    RecordedCalls, RecordedLatency, ReplayOrder, ReplayPace, ReplayPlan, ReplayResult,
};
pub use result::{
    ActualEngine, CacheReading, ContentDigest, DrawnSizes, EndedHow, FAILURES_MOST, FanOutResult,
    FileLegCounters, FlushResult, GpuResult, InitiatedResult, JobResult, LibraryBytes,
    LibraryResult, NeverStarted, Point, Record, SegmentBytes, SetupTimes, Stonewall,
    StorageReading, Tool, ViaResult, WorkerResult,
};
pub use run_of::RunOf;
pub use steady::{Steady, SteadyFigure, SteadyPlan};
pub use stop::{BytesOf, Stop};
pub use sweep::{BUDGET, SWEEP_FILE, SWEEP_VERSION, Sweep, SweepAxis, SweepPoint};
pub use totals::{DirectionTotal, RunTotals};
pub use verification::{VerifyMismatch, VerifyOutcome, VerifySubject, WrittenAs};
pub use warning::{
    OTHER_CPU_SHARE, SHORT_NS, Severity, Spell, ThreadsOf, Warning, WarningAbout, WarningKind,
    cpu_takers, warning_kinds,
};
pub use watched::{DeviceSeries, FigureSeries, Watched, WatchedGroup};

/// Version of the record's schema. It rises when a field is removed, renamed, changes its meaning
/// or becomes nullable: changes that a reader of the previous version cannot handle. New fields do
/// not raise it.
pub const SCHEMA_VERSION: u32 = 3;

/// The oldest version that gpuio still reads. Version 1 always had rates of totals and
/// percentiles. Versions 1 and 2 used other names for some fields and values; each of these has a
/// serde alias, so they read to the same values.
pub const OLDEST_SCHEMA: u32 = 1;
