//! One pair in words.

use gpuio_base::document::{Columns, Document, Look, Section};

use super::short;
use crate::topo::link::rate_text;
use crate::topo::{Class, Evidence, Explanation, Link, Route, slot};

/// The pair's class, its stations with the links between them, and what it shares.
pub fn pair(explanation: &Explanation) -> Document {
    let route = &explanation.route;
    let mut page = Document::new(format!("{} to {}", route.a, route.b));
    let mut first = Section::default();
    first.paragraph(format!("{} to {}: {}", route.a, route.b, class(route)));
    if let Some(count) = bridges(route) {
        first.paragraph(count);
    }
    match (route.nvlinks.known(), route.nvlinks.why()) {
        (Some(links), _) if *links > 0 => {
            first.paragraph(format!("In addition to PCIe: {links} NVLinks."));
        }
        (_, Some(why)) => drop(first.paragraph(format!("NVLinks: unknown, {why}."))),
        _ => {}
    }
    if explanation.hops.is_empty() {
        first.paragraph("No path to show: a PCI function is not known.");
        page.push(first);
        return page;
    }
    page.push(first);
    let mut rows: Vec<(String, String)> = Vec::new();
    for hop in &explanation.hops {
        let address = hop.address.as_deref().unwrap_or_default();
        rows.push((short(address).to_owned(), hop.what.clone()));
        if hop.leads_on {
            rows.push(("  |".to_owned(), link_text(hop.link.as_ref())));
        }
    }
    let table = Columns::<(String, String)>::new()
        .words("", |(address, _)| address.clone())
        .key("address")
        .words("", |(_, what)| what.clone())
        .key("what");
    page.begin("", "").table(table.table("stations", rows).look(Look::Indented(2)));
    let last = page.begin("", "");
    last.paragraph(match &explanation.narrowest {
        Some(link) => format!(
            "Narrowest link: above {}, {}{}, without packets' headers.",
            short(&link.address),
            link.text(),
            link.bytes_per_second.map(|rate| format!(", {}", rate_text(rate))).unwrap_or_default()
        ),
        None => "Narrowest link: unknown, as not every link is known.".to_owned(),
    });
    last.paragraph(match &route.shared_above {
        Some(address) => format!(
            "Both use the link above {} to reach processor and memory{}.",
            short(address),
            route.shared_link.as_ref().map(|link| format!(": {}", link.text())).unwrap_or_default()
        ),
        None => apart(explanation),
    });
    page
}

/// The answer where no shared link is known: the class shows whether there is one.
fn apart(explanation: &Explanation) -> String {
    let route = &explanation.route;
    let ends = [explanation.hops.first(), explanation.hops.last()];
    let [one, other] = ends.map(|hop| hop.and_then(|hop| hop.address.as_deref()).map(slot));
    match route.class.known() {
        Some(class) if *class >= Class::Phb => {
            "They share no link to reach processor and memory.".to_owned()
        }
        Some(_) => "They share a link to reach processor and memory; which one is not \
                    reported."
            .to_owned(),
        None if one.is_some() && one == other => {
            "They are functions of one device, and share its link.".to_owned()
        }
        None => {
            let why = route.class.why().unwrap_or("no reason is known");
            format!("Whether they share a link is unknown: {why}.")
        }
    }
}

fn class(route: &Route) -> String {
    match (route.class.known(), route.class.why()) {
        (Some(class), _) => {
            let printed = match route.evidence {
                Evidence::Facts => "",
                Evidence::Printed => " (as nvidia-smi printed; PCI does not show it)",
                Evidence::PrintedElsewhere => {
                    " (as nvidia-smi printed for another pair across the same host bridges)"
                }
            };
            format!("{}, {}{printed}", class.name(), class.meaning())
        }
        (None, why) => format!("unknown, {}", why.unwrap_or("no reason is known")),
    }
}

fn bridges(route: &Route) -> Option<String> {
    let least = if route.at_least { "At least " } else { "" };
    let plural = |count: u32, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {more}"),
    };
    let bridges = plural(route.bridges?, "bridge", "bridges");
    let switches = route.switches.filter(|count| *count > 0);
    let switches = switches.map(|count| plural(count, "switch", "switches"));
    let switches = switches.map(|switches| format!(", of {switches}")).unwrap_or_default();
    Some(format!("{least}{bridges} between{switches}."))
}

fn link_text(link: Option<&Link>) -> String {
    let Some(link) = link else { return "link unknown".to_owned() };
    let mark = link.mark();
    let mark = if mark.is_empty() { mark } else { format!("  {mark}") };
    format!("{}{mark}", link.text())
}
