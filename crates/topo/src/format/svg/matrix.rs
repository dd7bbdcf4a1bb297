//! How far each device is from the GPUs: a cell for each, in the row of the device.

use super::draw::{Draw, fit};
use super::layout::Layout;
use super::style::of_route;
use super::{BOX, CELL};
use crate::{DeviceKind, Evidence, Route, Topology};

/// Columns at most where there is no GPU.
const MOST_OTHERS: usize = 24;

/// Devices that have a column: GPUs, in the tree's order; without GPUs, all.
pub(super) fn columns(topology: &Topology) -> Vec<usize> {
    let gpus: Vec<usize> = topology.of_kind(DeviceKind::Gpu).map(|(index, _)| index).collect();
    if gpus.is_empty() {
        return (0..topology.devices.len().min(MOST_OTHERS)).collect();
    }
    gpus
}

pub(super) fn width(columns: &[usize]) -> u32 {
    u32::try_from(columns.len()).unwrap_or(u32::MAX / 100) * CELL
}

/// Names over the columns, and a cell for each row and column.
pub(super) fn draw(
    topology: &Topology,
    columns: &[usize],
    layout: &Layout,
    left: u32,
    draw: &mut Draw,
) {
    for (column, x) in columns.iter().zip((left..).step_by(CELL as usize)) {
        let name = &topology.devices[*column].name;
        for y in layout.headings() {
            draw.open(name);
            draw.text("gt-mid gt-small", (x + CELL / 2 - 1, y), &fit(name, 9, CELL - 2));
            draw.close();
        }
    }
    for row in &layout.rows {
        for (column, x) in columns.iter().zip((left..).step_by(CELL as usize)) {
            let route = topology.route(row.device, *column);
            if row.device == *column {
                cell(("gt-x", "X"), &topology.devices[*column].name, (x, row.y), draw);
            } else if let Some(route) = route {
                cell((of_route(Some(route)), &route.cell()), &title(route), (x, row.y), draw);
            }
        }
    }
}

fn cell(look: (&str, &str), title: &str, at: (u32, u32), draw: &mut Draw) {
    let (x, y) = at;
    draw.open(title);
    draw.rect(look.0, (x, y - BOX / 2), (CELL - 2, BOX), 2);
    draw.text("gt-in", (x + CELL / 2 - 1, y + 4), &fit(look.1, 10, CELL - 2));
    draw.close();
}

fn title(route: &Route) -> String {
    let class = match route.class.known() {
        Some(class) => format!("{}, {}", class.name(), class.meaning()),
        None => format!("not known, {}", route.class.why().unwrap_or("no reason is known")),
    };
    let links = match route.nvlinks.known() {
        Some(links) if *links > 0 => format!("; {links} NVLinks"),
        _ => String::new(),
    };
    let printed = match route.evidence {
        Evidence::Facts => "",
        Evidence::Printed => " (as nvidia-smi printed)",
    };
    format!("{} to {}: {class}{printed}{links}", route.a, route.b)
}
