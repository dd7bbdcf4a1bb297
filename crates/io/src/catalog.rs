//! The tables of engines and paths as data.

use gpuio_base::catalog::{Catalog, EngineInfo, PathInfo};

use crate::engine::ENGINES;
use crate::path::PATHS;

/// The info of each entry of [`PATHS`] and [`ENGINES`], in their order, without the function that
/// opens it.
pub static CATALOG: Catalog = Catalog { paths: &PATH_INFOS, engines: &ENGINE_INFOS };

static PATH_INFOS: [PathInfo; PATHS.len()] = {
    let mut infos = [PATHS[0].info; PATHS.len()];
    let mut at = 0;
    while at < infos.len() {
        infos[at] = PATHS[at].info;
        at += 1;
    }
    infos
};

static ENGINE_INFOS: [EngineInfo; ENGINES.len()] = {
    let mut infos = [ENGINES[0].info; ENGINES.len()];
    let mut at = 0;
    while at < infos.len() {
        infos[at] = ENGINES[at].info;
        at += 1;
    }
    infos
};
