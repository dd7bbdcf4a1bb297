//! Values that everything else is made of. Pure: no file, no clock, no environment, and no other
//! crate of ours.
//!
//! - [`units`]: sizes, rates and times, one parse and one print each; text from outside made fit to
//!   be shown.
//! - [`stat`]: histograms, live counters, intervals of ratios.
//! - [`pattern`]: what every byte of a data file is.
//! - [`catalog`]: engines, paths and kinds of memory as data.
//! - [`trace`]: recorded calls of programs, as bytes.
//! - [`cufilejson`]: cuFile's configuration, with the position of every key.
//! - [`document`]: the output of a verb, and the renderers that print it.
//! - [`measured`]: figures that other tools print while a load runs.
//! - [`mod@nearest`]: the word that was probably meant.
//! - [`safetensors`]: headers of model files.
//!
//! It must not hold the types of a machine, a request or a result (`gpuio_record`), or anything
//! that does something.

pub mod catalog;
pub mod cufilejson;
pub mod document;
pub mod measured;
pub mod nearest;
pub mod pattern;
pub mod safetensors;
pub mod stat;
pub mod trace;
pub mod units;
