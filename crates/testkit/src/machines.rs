//! Tables of whole machines; `machines/README.md` has the words of a table.

use std::collections::BTreeMap;
use std::sync::Mutex;

use gpuio_record::facts::Machine;

use crate::tree;

/// A server of 16 GPUs, of NVIDIA's guide.
pub const DGX_2: &str = include_str!("../machines/dgx-2.table");
/// A server of eight GPUs.
pub const DGX_A100: &str = include_str!("../machines/dgx-a100.table");
pub const DGX_STATION: &str = include_str!("../machines/dgx-station.table");
/// A server with two sockets and InfiniBand.
pub const R7525: &str = include_str!("../machines/r7525.table");
pub const VIRTUAL: &str = include_str!("../machines/virtual.table");

/// `/proc/driver/nvidia-fs/stats` of version 4.0.
pub const NVIDIA_FS_STATS: &str = include_str!("../machines/nvidia_fs_stats_4.0.txt");

/// The machine of a table, as gpuio reads it. A tree has thousands of files: each is written once.
pub fn read(table: &str) -> Machine {
    static READ: Mutex<BTreeMap<String, Machine>> = Mutex::new(BTreeMap::new());
    let mut known = READ.lock().unwrap();
    let machine = || gpuio_host::machine::read(&tree::build(table).root());
    known.entry(table.to_owned()).or_insert_with(machine).clone()
}
