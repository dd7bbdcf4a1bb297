//! Texts of other tools, read as facts.

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
