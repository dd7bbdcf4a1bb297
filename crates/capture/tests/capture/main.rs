//! Texts of other tools, read as facts.
#![allow(clippy::unwrap_used, reason = "a panic is a test's failure")]

mod bundles;
mod catalogue;
mod fuzz;
mod gdscheck;
mod guides;
mod kinds;
mod machines;
mod pack;
mod parts;
mod posted;
mod texts;
mod worn;
