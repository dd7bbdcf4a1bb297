//! Colours and fonts.

use crate::{Class, Route};

/// The style sheet: light, and dark where the reader's system is.
pub(super) const SHEET: &str = "\
.gt { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 11px; }
.gt-back { fill: #ffffff; }
.gt text { fill: #1c2733; }
.gt-band { fill: #f2f5f8; stroke: #d5dce4; }
.gt-head { font-weight: bold; font-size: 12px; }
.gt .gt-soft, .gt .gt-note { fill: #5b6875; }
.gt-small { font-size: 9px; }
.gt-box { fill: #ffffff; stroke: #77848f; }
.gt-gpu { fill: #dff3d8; stroke: #4b8b2e; }
.gt-nic { fill: #dcebfb; stroke: #2f6fb3; }
.gt-drive { fill: #fdebd3; stroke: #b5701c; }
.gt-line { fill: none; stroke: #9aa5b0; stroke-width: 1.5; }
.gt-slow { stroke: #d0021b; stroke-width: 2.5; }
.gt-port { stroke: #c77700; stroke-width: 2; }
.gt .gt-slow-text { fill: #c00018; font-weight: bold; }
.gt .gt-port-text { fill: #9a5b00; }
.gt .gt-in { fill: #10202e; text-anchor: middle; font-size: 10px; }
.gt-mid { text-anchor: middle; }
.gt-x { fill: #e3e7eb; }
.gt-nv { fill: #b79ae0; }
.gt-pix { fill: #5cb85c; }
.gt-pxb { fill: #b2d860; }
.gt-phb { fill: #f6e26b; }
.gt-node { fill: #f7b26a; }
.gt-sys { fill: #ea8378; }
.gt-none { fill: #ffffff; stroke: #9aa5b0; stroke-dasharray: 2 2; }
@media (prefers-color-scheme: dark) {
.gt-back { fill: #14191f; }
.gt text { fill: #e3e9ef; }
.gt-band { fill: #1c232b; stroke: #323c47; }
.gt .gt-soft, .gt .gt-note { fill: #9daab6; }
.gt-box { fill: #252e38; stroke: #77848f; }
.gt-gpu { fill: #23401a; } .gt-nic { fill: #1a3350; } .gt-drive { fill: #47300f; }
.gt .gt-slow-text { fill: #ff7a85; } .gt .gt-port-text { fill: #f0b45a; }
.gt .gt-in { fill: #10202e; }
.gt-none { fill: #c6ced6; }
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

/// The style of a class.
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
