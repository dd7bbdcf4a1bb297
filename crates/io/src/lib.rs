//! Moves bytes: `engine` between a file and host memory, `path` from there to where the user asked
//! for them. No options, no statistics, no threads of the load live here.
//!
//! The two seams are [`engine::Engine`] and [`path::Path`]. Both are driven by one worker thread:
//! it pushes, submits and reaps; nothing calls back into it.
#![allow(unsafe_code)]

pub mod buf;
pub mod clock;
pub mod engine;
pub mod path;
