//! Tests of `cufile` from outside.

mod absent;
