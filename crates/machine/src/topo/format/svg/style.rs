//! Colours and fonts.

use crate::topo::{Class, Route};

/// The style sheet: light, and dark where the reader's system is.
pub(super) const SHEET: &str = "\
.gt { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px; }
.gt-back { fill: #ffffff; }
.gt text { fill: #1c2733; }
.gt-band { fill: #f2f5f8; stroke: #d5dce4; }
.gt-head { font-weight: bold; }
.gt .gt-soft, .gt .gt-note { fill: #55616d; }
.gt-small { font-size: 11px; }
.gt-box { fill: #ffffff; stroke: #77848f; }
.gt-gpu { fill: #dff3d8; stroke: #4b8b2e; }
.gt-nic { fill: #dcebfb; stroke: #2f6fb3; }
.gt-drive { fill: #fdebd3; stroke: #b5701c; }
.gt-line { fill: none; stroke: #9aa5b0; stroke-width: 1.5; }
.gt-slow { stroke: #d0021b; stroke-width: 2.5; }
.gt-port { stroke: #c77700; stroke-width: 2; }
.gt .gt-slow-text { fill: #c00018; font-weight: bold; }
.gt .gt-port-text { fill: #8a5200; }
.gt .gt-in { text-anchor: middle; font-size: 11px; }
.gt-mid { text-anchor: middle; }
.gt-x { fill: #e3e7eb; }
.gt-nv { fill: #cdb8ee; }
.gt-nvline { stroke: #7a4fc0; stroke-width: 2; }
.gt-switch { fill: #ece3fa; stroke: #7a4fc0; }
.gt-pix { fill: #6fc2a1; }
.gt-pxb { fill: #a9dcc6; }
.gt-phb { fill: #d0e6f4; }
.gt-node { fill: #e2e9f0; }
.gt-sys { fill: #fbfcfd; stroke: #d5dce4; }
.gt-none { fill: #ffffff; stroke: #9aa5b0; stroke-dasharray: 2 2; }
@media (prefers-color-scheme: dark) {
.gt-back { fill: #14191f; }
.gt text { fill: #e3e9ef; }
.gt-band { fill: #1c232b; stroke: #323c47; }
.gt .gt-soft, .gt .gt-note { fill: #a3b0bc; }
.gt-box { fill: #252e38; stroke: #77848f; }
.gt-gpu { fill: #23401a; } .gt-nic { fill: #1a3350; } .gt-drive { fill: #47300f; }
.gt .gt-slow-text { fill: #ff8a93; } .gt .gt-port-text { fill: #f0b45a; }
.gt-slow { stroke: #ff5a68; }
.gt-x { fill: #39434d; } .gt-nv { fill: #55398c; } .gt-switch { fill: #33244f; }
.gt-nvline, .gt-switch { stroke: #a98be0; }
.gt-pix { fill: #23805d; } .gt-pxb { fill: #1f5a48; } .gt-phb { fill: #2a475c; }
.gt-node { fill: #303a45; } .gt-sys { fill: #1c232b; stroke: #3a4550; }
.gt-none { fill: #14191f; }
}
";

/// The style of a cell, by the preferred link: NVLinks before PCIe.
pub(super) fn of_route(route: Option<&Route>) -> &'static str {
    let Some(route) = route else { return "gt-x" };
    if route.nvlinks.known().is_some_and(|links| *links > 0) {
        return "gt-nv";
    }
    route.class.known().map_or("gt-none", |class| of_class(*class))
}

pub(super) fn of_class(class: Class) -> &'static str {
    match class {
        Class::X => "gt-x",
        Class::Pix => "gt-pix",
        Class::Pxb => "gt-pxb",
        Class::Phb => "gt-phb",
        Class::Node => "gt-node",
        Class::Sys => "gt-sys",
    }
}
