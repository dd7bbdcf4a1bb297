//! Tests of `mpi` from outside.

mod messages;
