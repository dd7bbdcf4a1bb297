//! The crate from outside, as others use it.

mod cufile;
mod dcgm;
mod mpi;
