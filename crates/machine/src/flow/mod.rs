//! Computes what hardware, real or described, should deliver, and which part is the bottleneck.
//!
//! - A [`Network`] holds the parts that bytes pass (drives, links, network ports, servers), each
//!   with the share of its time that one byte of a [`Flow`] takes. [`fill()`] raises all flows
//!   together until parts saturate (max–min fair), which gives each flow's bottleneck.
//! - [`of_machine`] builds network and flows from a machine's facts (links of PCIe by
//!   `topo::climb`), [`paper`] from a description, `jobs` from a plan. `expectation` turns the
//!   answer into `record::Expected`.
//! - [`Portion`] is a stream without its machine: what it takes of each part. Portions of several
//!   hosts, which are small and can be sent, make one network again, in which servers are parts of
//!   all hosts ([`of_hosts`], [`of_ranks`]).
//! - Figures of drives and servers come from [`Figures`]: a built-in table of data sheets, a
//!   user's file, or the command line. A missing figure makes the answer unknown, with the reason;
//!   the parts with known figures still bound it from above.
//!
//! Pure: nothing here reads the system or a clock, or prints. The `cli` reads the machine for it
//! after the run, outside every clock. docs/expectation.md has the model and its sources.
//!
//! To add a drive: a section of `drives.ini`, with its source; a family of drives or of network
//! cards: one of `families.ini`.

mod drive;
mod expectation;
mod figures;
mod fill;
mod hosts;
mod ini;
mod jobs;
pub mod link;
mod machine;
mod network;
pub mod paper;
mod portion;
mod processors;
mod raid;
mod server;
mod stream;

pub use expectation::{Expectation, StreamExpected, uncounted_depth};
pub use figures::{DriveFigures, Figures, NicFigures, PortFigures};
pub use fill::{Filled, Limit, fill};
pub use hosts::{
    HostExpected, HostJob, HostPortions, HostsExpected, RanksExpected, of_hosts, of_ranks,
    set_expected,
};
pub use ini::FileError;
pub use jobs::{hold_against, of_jobs, portions_of_jobs};
pub use machine::of_machine;
pub use network::{Flow, Network, Part, PartId, Use};
pub use portion::{Portion, portions_of_streams};
pub use raid::{Io, Level, Load};
pub use server::ServerFigures;
pub use stream::{By, End, Pattern, Storage, Stream};
