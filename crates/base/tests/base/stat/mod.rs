//! Tests of `stat` from outside.

mod scipy;
