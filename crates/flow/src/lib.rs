//! Expectation: what hardware, read or described, should deliver.
//!
//! A [`Network`] holds the parts that bytes pass (drives, links, network ports, servers), each
//! with the share of its time that one byte of a [`Flow`] takes. [`fill()`] raises all flows
//! together until parts saturate (max–min fair), and so names each flow's bottleneck.
//! [`of_machine`] makes network and flows of a machine's facts, [`paper`] of a description.
//! Figures of drives and servers come from [`Figures`]: a built-in table of data sheets, a user's
//! file, or a user's words. A figure that is missing makes the answer unknown, with the reason,
//! never a guess; the parts with known figures still bound it from above.
//!
//! Pure: nothing here reads the system or a clock, or prints.

mod drive;
mod expectation;
mod figures;
mod fill;
mod ini;
mod jobs;
pub mod link;
mod machine;
mod network;
pub mod paper;
mod processors;
mod raid;
mod server;
mod stream;

pub use expectation::{Expectation, StreamExpected};
pub use figures::{DriveFigures, Figures};
pub use fill::{Filled, Limit, fill};
pub use ini::FileError;
pub use jobs::{hold_against, of_jobs};
pub use machine::of_machine;
pub use network::{Flow, Network, Part, PartId, Use};
pub use raid::{Io, Level, Load};
pub use server::ServerFigures;
pub use stream::{By, End, Pattern, Storage, Stream};
