//! How far each device is from the GPUs: a cell for each, in the row of the device.

use super::draw::{Draw, fit, width};
use super::layout::Layout;
use super::style::of_route;
use super::{BOX, SMALL};
use crate::topo::{DeviceKind, Evidence, Route, Topology};

/// Columns at most where there is no GPU.
const MOST_OTHERS: usize = 24;

/// A cell is at least so wide, for `NODE`.
const LEAST: u32 = 34;
/// The widest heading without a cut.
const WIDEST: u32 = 120;

/// The matrix, with as much space as its headings need.
pub(super) struct Matrix {
    columns: Vec<usize>,
    cell: u32,
}

impl Matrix {
    /// Columns are the GPUs, in the tree's order; without GPUs, all devices.
    pub(super) fn of(topology: &Topology) -> Matrix {
        let gpus: Vec<usize> = topology.of_kind(DeviceKind::Gpu).map(|(index, _)| index).collect();
        let columns = match gpus.is_empty() {
            true => (0..topology.devices.len().min(MOST_OTHERS)).collect(),
            false => gpus,
        };
        let names = columns.iter().map(|column| &topology.devices[*column].name);
        let widest = names.map(|name| width(name, SMALL) + 6).max().unwrap_or(0);
        Matrix { columns, cell: widest.clamp(LEAST, WIDEST) }
    }

    pub(super) fn width(&self) -> u32 {
        u32::try_from(self.columns.len()).unwrap_or(u32::MAX / 200) * self.cell
    }

    /// Names over the columns, and a cell for each row and column.
    pub(super) fn draw(&self, topology: &Topology, layout: &Layout, left: u32, draw: &mut Draw) {
        let columns = || self.columns.iter().zip((left..).step_by(self.cell as usize));
        for (column, x) in columns() {
            let name = &topology.devices[*column].name;
            for y in layout.headings() {
                draw.open(name);
                let words = fit(name, SMALL, self.cell - 2);
                draw.text("gt-mid gt-small", (x + self.cell / 2 - 1, y), &words);
                draw.close();
            }
        }
        for row in &layout.rows {
            let name = &topology.devices[row.device].name;
            for (column, x) in columns() {
                let route = topology.route(row.device, *column);
                let other = &topology.devices[*column].name;
                if row.device == *column {
                    self.cell(("gt-x", "X"), (name, other), name, (x, row.y), draw);
                } else if let Some(route) = route {
                    let look = (of_route(Some(route)), &*route.cell());
                    self.cell(look, (name, other), &title(route), (x, row.y), draw);
                }
            }
        }
    }

    fn cell(
        &self,
        look: (&str, &str),
        pair: (&str, &str),
        title: &str,
        at: (u32, u32),
        draw: &mut Draw,
    ) {
        let (x, y) = at;
        draw.open_as("gt-cell", &[("a", pair.0), ("b", pair.1)], title);
        draw.rect(look.0, (x, y - BOX / 2), (self.cell - 2, BOX), 2);
        draw.text("gt-in", (x + self.cell / 2 - 1, y + 4), &fit(look.1, SMALL, self.cell - 2));
        draw.close();
    }
}

/// The distance between two devices in words.
pub(in crate::topo::format) fn title(route: &Route) -> String {
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
        Evidence::PrintedElsewhere => " (as nvidia-smi printed across the same host bridges)",
    };
    format!("{} to {}: {class}{printed}{links}", route.a, route.b)
}
