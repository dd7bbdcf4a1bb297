//! All mounts and GPUs of a machine: one row each, equal GPUs together.

use gpuio_table::indented_columns;
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
    #[must_use]
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

    /// A table with headings.
    #[must_use]
    pub fn text(&self) -> String {
        let head = ["mount", "type", "GPUs", "GDS", "NVIDIA's libcufile", "gpuio's libcufile"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let way = |mode: Option<&str>, none: &str| match mode {
            Some("compat" | "gpuio") => "host memory".to_owned(),
            Some(direct) => format!("direct ({direct})"),
            None => none.to_owned(),
        };
        for row in &self.rows {
            let gds = match row.gds {
                Answer::Yes => "can be on",
                Answer::No => "off",
                Answer::Unknown => "unknown",
            };
            let none =
                if row.gds == Answer::Unknown { "unknown" } else { "not at all, or unknown" };
            rows.push(vec![
                row.mount_point.clone(),
                if row.fs_type.is_empty() { "unknown".to_owned() } else { row.fs_type.clone() },
                row.gpus.join(","),
                gds.to_owned(),
                way(row.nvidia, none),
                way(row.gpuio, "not at all, or unknown"),
            ]);
        }
        format!("GDS, by the facts of this machine\n{}", indented_columns(&rows))
    }
}
