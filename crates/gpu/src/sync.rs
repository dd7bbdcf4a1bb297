//! The types that the parts without locks are made of. `cargo xtask model` runs their sources with
//! loom's in the place of these: every order of threads, and every value that a load may see.

pub(crate) use std::sync::atomic;
