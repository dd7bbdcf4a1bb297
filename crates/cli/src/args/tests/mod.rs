//! The flags agree with the texts and tests about them.

mod documented;
mod flags;
mod pages;
