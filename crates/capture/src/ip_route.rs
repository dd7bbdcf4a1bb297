//! `ip route` and `ip -6 route` (iproute2): the main table.

use gpuio_host::net::Route;

use crate::network::cidr;
use crate::{CaptureError, Captured, Kind, MOST_DEVICES, lines};

pub(crate) const KIND: Kind = Kind {
    command: "ip route",
    gives: "routes, and the cards of NFS mounts",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(is_route),
    add,
};

/// Routes that lead nowhere, or to this machine, or to all (ip-route(8)).
const NO_WAY: [&str; 8] =
    ["unreachable", "blackhole", "prohibit", "throw", "local", "broadcast", "multicast", "anycast"];

fn is_route(line: &str) -> bool {
    let to = line.split_whitespace().next().unwrap_or_default();
    (to == "default" || cidr(to).is_some()) && line.contains(" dev ") && line.len() > to.len()
}

fn add(text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    captured.network.table.get_or_insert_default();
    // The destination of a route with several next hops, each of which has a line.
    let mut several = false;
    for (index, line) in lines(text) {
        let wanted = |part: &str, what| CaptureError::at(index, line, part, what);
        let table = captured.network.table.get_or_insert_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first().copied() else { continue };
        let after = |key: &str| words.windows(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
        let dev = after("dev").unwrap_or_default();
        if first == "nexthop" && several {
            // Which of them a packet takes is unknown, unless they are the same interface.
            if let Some(route) = table.last_mut() {
                match route.interface.as_str() {
                    "" if !dev.is_empty() => route.interface = dev.to_owned(),
                    one if one != dev => route.interface = SEVERAL.to_owned(),
                    _ => {}
                }
            }
            continue;
        }
        several = false;
        let other_table = after("table").is_some_and(|name| name != "main");
        let gone = words.iter().any(|word| ["dead", "linkdown"].contains(word));
        if NO_WAY.contains(&first) || other_table || gone {
            continue;
        }
        let to = match first {
            // The gateway shows the address family; a route on a link has that of the table.
            "default" => {
                let six =
                    after("via").is_some_and(|via| via.contains(':')) || line.contains(" pref ");
                cidr(if six { "::/0" } else { "0.0.0.0/0" })
            }
            to => cidr(to),
        };
        let Some((to, prefix)) = to else {
            let why = wanted(first, "a destination, like default or 192.0.2.0/24");
            captured.skip(why);
            continue;
        };
        several = dev.is_empty();
        let metric = after("metric").and_then(|metric| metric.parse().ok()).unwrap_or(0);
        table.push(Route { interface: dev.to_owned(), to, prefix, metric });
        if table.len() > MOST_DEVICES {
            return Err(wanted(line, "fewer routes"));
        }
    }
    Ok(())
}

/// Stands for the interface of a route with next hops over several: no interface has blanks.
pub(crate) const SEVERAL: &str = "several next hops";
