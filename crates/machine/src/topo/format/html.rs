//! A page with the picture, in which the way between two devices is highlighted. One file, nothing
//! loaded; without scripts it is the picture.

use gpuio_base::document::Page;
use gpuio_base::units::markup;
use gpuio_record::facts::Machine;
use serde_json::{Map, Value};

use super::svg::{self, distance};
use crate::topo::Topology;

pub fn html(machine: &Machine, topology: &Topology) -> String {
    let distances: Map<String, Value> = topology
        .routes
        .iter()
        .map(|route| (format!("{} {}", route.a, route.b), Value::from(distance(route))))
        .collect();
    // `<` occurs only in strings, where it is escaped: the data can't end its element.
    let distances = Value::from(distances).to_string().replace('<', "\\u003c");
    let body = format!(
        "<h1>Topology</h1>\n<p class=\"quiet\">{}. Click two devices, or a cell.</p>\n\
         <div class=\"choose\" hidden><label>from <select id=\"first\"></select></label>\
         <label>to <select id=\"second\"></select></label>\
         <button type=\"button\" id=\"none\">Clear</button>\
         <p id=\"answer\" role=\"status\" aria-live=\"polite\"></p></div>\n\
         <div class=\"picture\" tabindex=\"0\" role=\"group\" aria-label=\"picture\">\n{}</div>\n\
         <script>window.distances = {distances};</script>\n<script>\n{}</script>\n",
        markup(&svg::summary(topology)),
        svg::svg(machine, topology),
        include_str!("../../../assets/topology.js"),
    );
    Page {
        generator: "gpuio topo",
        title: "Topology",
        allows: "script-src 'unsafe-inline'",
        styles: &[include_str!("../../../assets/topology.css")],
        body: &body,
    }
    .html()
}
