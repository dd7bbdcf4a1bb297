//! All mounts and GPUs of a machine: one row each, equal GPUs together.

use gpuio_base::document::{Columns, Look, Section, unique};
use gpuio_base::units::many;
use serde::Serialize;

use super::Why;
use crate::check::verdict::Answer;

/// The answers for all mounts and GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// By mount, then by GPU.
    pub rows: Vec<Row>,
}

/// A mount, and the GPUs for which the answer is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    pub mount_point: String,
    /// Its file system.
    pub fs_type: String,
    /// GPUs with the same answer.
    pub gpus: Vec<String>,
    /// Whether GDS can be on, by the facts.
    pub gds: Answer,
    /// The mode of NVIDIA's libcufile; `null` where it is unknown or none.
    pub nvidia: Option<&'static str>,
    /// The mode of gpuio's libcufile.
    pub gpuio: Option<&'static str>,
}

impl Overview {
    /// Rows of these answers, each with a short name of its GPU; those of a mount must follow each
    /// other.
    pub fn of<'w>(answers: impl Iterator<Item = (&'w Why, String)>) -> Overview {
        let mut rows: Vec<Row> = Vec::new();
        for (why, gpu) in answers {
            let mode = |at: usize| why.ways.get(at).and_then(|way| way.mode);
            let row = Row {
                mount_point: why.mount_point.clone(),
                fs_type: why.fs_type.clone(),
                gpus: vec![gpu],
                gds: why.gds,
                nvidia: mode(0),
                gpuio: mode(1),
            };
            let key = |row: &Row| (row.mount_point.clone(), row.gds, row.nvidia, row.gpuio);
            match rows.iter_mut().find(|known| key(known) == key(&row)) {
                Some(known) => known.gpus.extend(row.gpus),
                None => rows.push(row),
            }
        }
        Overview { rows }
    }

    /// A table; `more` mounts are not in it.
    pub fn section(&self, more: usize) -> Section {
        let way = |mode: Option<&str>, none: &str| match mode {
            Some("compat" | "gpuio") => "host memory".to_owned(),
            Some(direct) => format!("direct ({direct})"),
            None => none.to_owned(),
        };
        const NONE: &str = "not at all, or unknown";
        let table = Columns::<Row>::new()
            .words("mount", |row| row.mount_point.clone())
            .words("type", |row| match row.fs_type.as_str() {
                "" => "unknown".to_owned(),
                known => known.to_owned(),
            })
            .words("GPUs", |row| unique(row.gpus.iter().map(String::as_str)).join(","))
            .words("GDS", |row| match row.gds {
                Answer::Yes => "can be on",
                Answer::No => "off",
                Answer::Unknown => "unknown",
            })
            .words("NVIDIA's libcufile", |row| {
                way(row.nvidia, if row.gds == Answer::Unknown { "unknown" } else { NONE })
            })
            .words("gpuio's libcufile", |row| way(row.gpuio, NONE));
        let mut section = Section::new("overview", "GDS, by the facts of this machine");
        section.table(table.table("mounts and GPUs", &self.rows).look(Look::Indented(2)));
        if more > 0 {
            let more = many(more as u64, "more mount");
            let text = format!("and {more}: name one with --mount");
            section.list(gpuio_base::document::List::of(2, [text]));
        }
        section
    }
}
