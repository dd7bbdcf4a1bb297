//! Texts of other tools, read as facts.

mod fuzz;
mod gdscheck;
mod guides;
mod pack;
mod parts;
mod posted;
mod texts;
mod worn;
