//! The formats over hand-made records. One binary: linking a JSON Schema validator five times
//! would cost more than all tests together.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a panic fails the test, and the numbers are small and written here"
)]

mod browser;
mod compare;
mod csv_rules;
mod documents;
mod first_screen;
mod gdsio_line;
mod looks;
mod one_load;
mod origins;
mod own_questions;
mod page_loads;
mod proof_text;
mod ranks;
mod records;
mod samples;
mod schema;
mod set_formats;
mod snapshots;
mod text_rules;
