//! Tests of `pattern` from outside.

mod repeats;
