//! Pairing: which drives, arrays and network cards each GPU should use, how arrays should be
//! regrouped, and what to start with.
//!
//! [`pair()`] is a pure function of a machine's facts and topology: nothing is read, written or
//! run. [`mod@format`] prints the answer, and writes the job file that goes with it. What facts do
//! not tell is said to be unknown; such a way counts as farther than any known one.

mod assign;
mod distance;
mod ends;
pub mod format;
mod links;
mod load;
mod nics;
mod pair;
mod reason;
mod regroup;
mod start;
mod store;
mod wanted;

pub use ends::{Ends, ends};
pub use links::{SharedLink, When};
pub use load::{Direction, Load};
pub use nics::{NearNic, Unused};
pub use pair::{By, Given, NotUsed, Pair, PairExpected, Pairing, StoreKind, pair};

pub use regroup::{Group, Regroup};
pub use start::Start;
pub use wanted::{NotHere, Wanted};
