//! What the flags are, against what is written and tested about them.

mod documented;
mod flags;
mod pages;
