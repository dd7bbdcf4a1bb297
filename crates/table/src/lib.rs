//! Tables in text: the only place that aligns columns.
//!
//! [`Grid`] has a row of headings and fits a width: it narrows its gaps and splits the names of its
//! first column. [`in_columns`] aligns rows without headings at any width. comfy-table draws both.
//! Pure: cells in, text out. What may not live here: what a cell says, and the screen of `top`,
//! whose columns keep their widths from one interval to the next (`gpuio_watch`).

mod columns;
mod grid;

pub use columns::{in_columns, indented_columns};
pub use grid::{Column, Grid, figures, words};
