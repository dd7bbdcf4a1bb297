//! GPUs by their distance from where data lies.

use crate::topo::{Class, DeviceKind, Topology};
use gpuio_record::facts::Machine;

use crate::pair::distance::{Distance, class, mean};
use crate::pair::store::stock;
use crate::pair::{DeviceAbsent, StoreKind, Wanted};

/// The GPUs seen from a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// The mount that serves it.
    pub mount: String,
    /// Whether that is reached over a network.
    pub network: bool,
    /// GPUs with the class of the route to the nearest drive or card of the mount, nearest first,
    /// of equally near ones in the driver's order. `None` where the route is not known.
    pub gpus: Vec<(String, Option<Class>)>,
}

/// How far each GPU is from the mount that serves the directory at `path`.
///
/// # Errors
/// [`DeviceAbsent`] where no mount is known that serves it.
pub fn ends(machine: &Machine, topology: &Topology, path: &str) -> Result<Ends, DeviceAbsent> {
    let wanted = Wanted { mounts: vec![path.to_owned()], ..Wanted::default() };
    let stock = stock(machine, topology, &wanted)?;
    let Some(store) = stock.stores.first() else {
        let why = "no mount is known that holds it".to_owned();
        return Err(DeviceAbsent { flag: "--directory", name: path.to_owned(), why });
    };
    let mut gpus: Vec<(Distance, usize)> = topology
        .of_kind(DeviceKind::Gpu)
        .map(|(gpu, _)| (mean(topology, gpu, &store.parts), gpu))
        .collect();
    gpus.sort_by_key(|(distance, _)| *distance);
    let gpus = gpus.into_iter().map(|(_, gpu)| {
        let classes = store.parts.iter().map(|part| class(topology, gpu, *part));
        let nearest = classes.collect::<Option<Vec<Class>>>().and_then(|all| all.into_iter().min());
        (topology.devices[gpu].name.clone(), nearest)
    });
    Ok(Ends {
        mount: store.name.clone(),
        network: store.kind == StoreKind::NetworkMount,
        gpus: gpus.collect(),
    })
}
