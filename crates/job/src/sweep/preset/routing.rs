//! Routes from storage to a near and a far GPU: direct, through host memory, over NVLink through
//! the near one, and the effect of cuFile's settings of dynamic routing.

use super::{PLAIN, Preset};
use crate::sweep::Axis;

pub(super) const PRESET: Preset = Preset {
    name: "routing",
    summary: "routes to a GPU near the data and to a far one: direct, through host memory, over \
        NVLink; on network mounts cuFile's dynamic routing too",
    // A cuFile call is one I/O per thread; every route gets as many, so that they are comparable.
    keys: &[
        ("rw", "read"),
        ("bs", "1M"),
        ("threads", "16"),
        ("depth", "1"),
        ("runtime", "5s"),
        ("ramp", "500ms"),
    ],
    axes: &["path=gds,staged,routed"],
    routes: true,
    ..PLAIN
};

/// Whether cuFile may choose a route by itself, and which it takes (NVIDIA, GPUDirect Storage
/// Troubleshooting Guide, "GDS Configuration File Changes to Support Dynamic Routing").
const DYNAMIC: &str = "cufile.properties.rdma_dynamic_routing";
const ORDER: &str = "cufile.properties.rdma_dynamic_routing_order";
const ROUTES: [&str; 4] = ["GPU_MEM_NVLINKS", "GPU_MEM", "SYS_MEM", "P2P"];

/// Adds the axes that depend on the machine: GPUs, the near one first, and on a `network` mount
/// cuFile's own routes, each alone. Existing axes are kept.
pub fn routes(axes: &mut Vec<Axis>, gpus: Vec<String>, network: bool) {
    let has = |axes: &[Axis], key: &str| axes.iter().any(|axis| axis.key == key);
    if !has(axes, "gpu") {
        axes.insert(0, Axis { key: "gpu".to_owned(), values: gpus });
    }
    if network && !has(axes, DYNAMIC) && !has(axes, ORDER) {
        let values = ["false", "true"].map(str::to_owned).into();
        axes.push(Axis { key: DYNAMIC.to_owned(), values });
        let values = ROUTES.map(|route| format!("[\"{route}\"]")).into();
        axes.push(Axis { key: ORDER.to_owned(), values });
    }
}

/// Whether a point is a route of its own: path `routed` goes from the near GPU to another one, only
/// cuFile paths use cuFile's settings, and an order of routes only matters if cuFile may choose.
pub fn is_route(axes: &[Axis], point: &[String]) -> bool {
    let first = |axis: &Axis, value: &String| axis.values.first() == Some(value);
    let all = || axes.iter().zip(point);
    let is = |key: &str, value: &str| all().any(|(axis, at)| axis.key == key && at == value);
    let routed = is("path", "routed");
    let cufile = all().any(|(axis, at)| axis.key == "path" && at.starts_with("gds"));
    all().all(|(axis, at)| match axis.key.as_str() {
        "gpu" => !(routed && first(axis, at)),
        ORDER if is(DYNAMIC, "false") => first(axis, at),
        key if key.starts_with("cufile.") && !cufile => first(axis, at),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Mode, grid};

    fn points(gpus: &[&str], network: bool) -> Vec<String> {
        let mut axes: Vec<Axis> =
            PRESET.axes.iter().map(|text| Axis::parse(text).unwrap()).collect();
        routes(&mut axes, gpus.iter().map(|gpu| (*gpu).to_owned()).collect(), network);
        let mut points = grid(&axes, Mode::Full, None, &[]).unwrap();
        points.retain(|point| is_route(&axes, point));
        points.iter().map(|point| point.join(" ")).collect()
    }

    /// The five routes of NVIDIA's table: with and without affinity, through host memory, over
    /// NVLink.
    #[test]
    fn a_local_drive_has_the_five_routes() {
        let five = ["0 gds", "0 staged", "4 gds", "4 staged", "4 routed"];
        assert_eq!(points(&["0", "4"], false), five);
        assert_eq!(points(&["0"], false), ["0 gds", "0 staged"]);
    }

    #[test]
    fn a_network_mount_has_cufiles_routes_one_by_one() {
        let points = points(&["0", "4"], true);
        let of = |start: &str| points.iter().filter(|point| point.starts_with(start)).count();
        // One without choice and one for each route that cuFile may choose.
        assert_eq!((of("0 gds"), of("4 gds")), (5, 5), "{points:?}");
        assert_eq!((of("0 staged"), of("4 staged"), of("4 routed"), points.len()), (1, 1, 1, 13));
        assert!(points.contains(&"4 gds true [\"GPU_MEM_NVLINKS\"]".to_owned()), "{points:?}");
        for axis in [DYNAMIC, ORDER] {
            let key = axis.strip_prefix("cufile.").unwrap();
            assert!(key.starts_with("properties.rdma_dynamic_routing"));
        }
    }

    #[test]
    fn axes_of_the_command_line_stay() {
        let mut axes = vec![Axis::parse("gpu=2,3").unwrap()];
        routes(&mut axes, vec!["0".to_owned()], false);
        assert_eq!((axes.len(), axes[0].values.join(" ")), (1, "2 3".to_owned()));
    }
}
