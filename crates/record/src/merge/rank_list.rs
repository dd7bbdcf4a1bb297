//! Ranks in words.

use gpuio_base::units::format_cpu_list;

/// `rank 3`, `ranks 0-3,8`.
pub fn rank_list(ranks: &[u32]) -> String {
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", format_cpu_list(ranks))
}
