//! `lspci -tv` (pciutils): the tree of buses, drawn with characters.
//!
//! A line holds a path downwards: `+-04.0-[32-36]----00.0-[33-36]--+-00.0-[34]----00.0  NVIDIA …`,
//! that is a device, the range of buses below it, the one device there and so on. A `+` opens a bus
//! with several devices, and lines that begin with `+` or `\` in its column are on that bus.
//! People send the tree through grep: where the line that opens a column is gone, the range of
//! buses still shows which bridge is above, but not the ports in between; a device
//! whose own bus is unknown is left out. Where a page has drawn its blanks together, columns mean
//! nothing: then a port is on the last bus that was opened and holds the buses below it.

use std::collections::BTreeMap;

use gpuio_record::facts::PciFacts;

use crate::hwloc::domain_and_bus;
use crate::merge::function;
use crate::{CaptureError, Kind, MOST_FUNCTIONS, lines, merge};

pub(crate) const KIND: Kind = Kind {
    command: "lspci -tv",
    gives: "the PCIe tree; classes by the names in it; also `-t`",
    most_bytes: crate::SHORT,
    looks_like: |text| text.lines().any(is_certain),
    add: |text, captured| {
        let mut skipped = Vec::new();
        let found = parse(text, &mut |why| skipped.push(why))?;
        merge::functions(captured, found);
        skipped.into_iter().for_each(|why| captured.skip(why));
        Ok(())
    },
};

/// Whether no other tool prints such a line: a branch with buses or a device right behind its mark.
fn is_certain(line: &str) -> bool {
    let body = line.trim_start_matches([' ', '|']);
    let marks = ["-+-", "+-", "\\-", "-"];
    let Some(rest) = marks.iter().find_map(|mark| body.strip_prefix(mark)) else { return false };
    let buses = rest.starts_with('[') && rest.contains(']');
    let hex = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    buses
        || hex(0)
            && hex(1)
            && rest.as_bytes().get(2) == Some(&b'.')
            && hex(3)
            && !body.starts_with("-")
}

const WHY: &str = "lspci -tv does not report it";

/// The bus that a column of the drawing stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Bus {
    /// All root buses hang here.
    Top,
    Known(KnownBus),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownBus {
    domain: u32,
    first: u8,
    last: u8,
    /// The bridge above; `None` for a root bus, and where that line was cut.
    bridge: Option<String>,
    /// The root bus at the top of the path, where it is shown.
    root: Option<String>,
}

#[derive(Default)]
struct Tree {
    found: Vec<PciFacts>,
    /// Open buses by the column of their `+`.
    open: BTreeMap<usize, Open>,
    /// The domain of the last root bus: the listing has no other mark of it.
    domain: u32,
    /// A device of the line is on a bus that is not known.
    left_out: bool,
    /// Blanks were drawn together: buses are open in the order of their opening, under numbers
    /// instead of columns.
    collapsed: bool,
    /// Buses that were opened.
    opened: usize,
    /// Bars before the lines of the next bus that the line opens.
    bars: usize,
}

/// Whether the blanks of the drawing were drawn together: whole, each line below the first of a
/// tree has many.
fn is_collapsed(text: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '|']).len();
    let drawn: Vec<&str> = lines(text).map(|(_, line)| &line[..indent(line)]).collect();
    let barred = drawn.iter().filter(|indent| indent.contains('|')).count();
    // A tree without its root keeps no blanks before its branches either.
    let root = lines(text).position(|(_, line)| line.starts_with("-["));
    let below = drawn.iter().skip(root.map_or(drawn.len(), |root| root + 1));
    (barred > 1 || below.count() > 0) && !drawn.iter().any(|indent| indent.contains("  "))
}

/// A bus that a column stands for.
#[derive(Debug, Clone)]
struct Open {
    bus: Bus,
    /// The last device and function on it: they ascend.
    last: Option<(u8, u8)>,
    /// Bars before its lines: of the columns to the left that go on. They are as many on all of
    /// them, whichever lines were cut.
    bars: usize,
}

/// The functions of the tree, with the bridge above each.
pub(crate) fn parse(
    text: &str,
    skip: &mut dyn FnMut(CaptureError),
) -> Result<Vec<PciFacts>, CaptureError> {
    let mut tree = Tree { collapsed: is_collapsed(text), ..Tree::default() };
    for (index, line) in lines(text) {
        tree.left_out = false;
        if let Err(why) = (Line { index, text: line, at: 0 }).read(&mut tree) {
            skip(why);
        } else if tree.left_out {
            skip(CaptureError::new(index, line, 0, "a device on a bus that the text shows"));
        }
        if tree.found.len() > MOST_FUNCTIONS {
            return Err(CaptureError::new(index, line, 0, "fewer devices"));
        }
    }
    adopt(&mut tree.found);
    Ok(tree.found)
}

/// Functions whose path was cut get the nearest bridge whose buses hold them.
fn adopt(found: &mut [PciFacts]) {
    let mut bridges: Vec<(u32, u8, u8, String, Option<String>)> = Vec::new();
    for one in found.iter() {
        if let (Some(first), Some(last), Some((domain, _))) =
            (one.secondary_bus, one.subordinate_bus, domain_and_bus(&one.address))
        {
            bridges.push((domain, first, last, one.address.clone(), one.host_bridge.clone()));
        }
    }
    // The smallest range first.
    bridges.sort_by_key(|(_, first, last, ..)| last - first);
    for one in found.iter_mut().filter(|one| one.parent.is_none() && one.host_bridge.is_none()) {
        let Some((domain, bus)) = domain_and_bus(&one.address) else { continue };
        let holds = |(of, first, last, address, _): &&(u32, u8, u8, String, Option<String>)| {
            *of == domain && (*first..=*last).contains(&bus) && *address != one.address
        };
        if let Some((.., address, root)) = bridges.iter().find(holds) {
            one.parent = Some(address.clone());
            one.host_bridge.clone_from(root);
        }
    }
}

#[derive(Clone, Copy)]
struct Line<'t> {
    index: usize,
    text: &'t str,
    /// The next byte.
    at: usize,
}

impl Line<'_> {
    fn read(mut self, tree: &mut Tree) -> Result<(), CaptureError> {
        let indent = self.text.bytes().take_while(|byte| matches!(byte, b' ' | b'|')).count();
        self.at = indent + 1;
        let mark = self.text.as_bytes().get(indent);
        let bars = self.text.bytes().take(indent).filter(|byte| *byte == b'|').count();
        // Below `+` the line's own column goes on.
        tree.bars = bars + usize::from(mark == Some(&b'+'));
        let mut column = match mark {
            // The first line has its dash where later ones have blanks.
            Some(b'-') => {
                tree.open.clear();
                self.branch(tree, Some(&Bus::Top))
            }
            Some(b'+' | b'\\') if tree.collapsed => {
                while self.eat("-") {}
                if self.rest().starts_with('[') { self.top(tree) } else { self.holder(tree, bars) }
            }
            Some(b'+' | b'\\') => {
                tree.open.retain(|column, _| *column <= indent);
                self.branch(tree, None);
                Some(indent)
            }
            _ => {
                return Err(CaptureError::new(self.index, self.text, indent, "`+-`, `\\-` or `-`"));
            }
        };
        let mut bus = column.and_then(|column| tree.open.get(&column)).map(|open| open.bus.clone());
        if mark == Some(&b'\\') {
            // The last of its bus: nothing comes in this column any more.
            match (tree.collapsed, column) {
                (true, Some(number)) => drop(tree.open.remove(&number)),
                (true, None) => {}
                (false, _) => {
                    let open = tree.open.get_mut(&indent);
                    open.into_iter().for_each(|open| open.bus = Bus::Top);
                }
            }
        }
        if self.rest().starts_with('[') {
            let (domain, first, last) = self.range()?;
            tree.domain = domain.unwrap_or(0);
            let root = Some(format!("{:04x}:{first:02x}", tree.domain));
            let known = KnownBus { domain: tree.domain, first, last, bridge: None, root };
            bus = Some(Bus::Known(known));
            if !self.rest().starts_with('-') {
                return self.end();
            }
            column = self.branch(tree, bus.as_ref());
            // A root bus without devices: `-[0000:00]-`.
            if self.rest().trim().is_empty() {
                return Ok(());
            }
        }
        while let Some((below, next)) = self.one(tree, bus.as_ref(), column)? {
            bus = Some(below);
            column = next;
            if tree.found.len() > MOST_FUNCTIONS {
                return Err(self.wanted("fewer devices"));
            }
        }
        Ok(())
    }

    /// In a tree without columns: where all root buses hang; those that were opened are done.
    fn top(self, tree: &mut Tree) -> Option<usize> {
        tree.open.retain(|_, open| open.bus == Bus::Top);
        tree.open.first_key_value().map(|(number, _)| *number)
    }

    /// In a tree without columns: the last open bus that has as many bars before its lines and
    /// holds the buses below the next device; of a device without, the only one. The buses that
    /// were opened after it are done.
    fn holder(self, tree: &mut Tree, bars: usize) -> Option<usize> {
        let mut ahead = self;
        let device = ahead.device().ok()?;
        let range = if ahead.eat("-") { Some(ahead.range().ok()?) } else { None };
        let holds = |open: &Open| match &open.bus {
            Bus::Known(bus) if open.bars == bars && open.last < Some(device) => {
                range.is_none_or(|range| bus.holds(range) && range.1 > bus.first)
            }
            Bus::Known(_) | Bus::Top => false,
        };
        let mut all = tree.open.iter().rev().filter(|(_, open)| holds(open));
        let number = *all.next()?.0;
        if range.is_none() && all.next().is_some() {
            return None;
        }
        tree.open.retain(|other, _| *other <= number);
        Some(number)
    }

    /// One device and what is drawn behind it: the bus below and its column, where more follows.
    fn one(
        &mut self,
        tree: &mut Tree,
        bus: Option<&Bus>,
        column: Option<usize>,
    ) -> Result<Option<(Bus, Option<usize>)>, CaptureError> {
        let device = self.device()?;
        let below = if self.rest().starts_with("-[") {
            self.at += 1;
            Some(self.range()?)
        } else {
            None
        };
        let known = match bus {
            Some(Bus::Known(known)) => Some(known),
            _ => None,
        };
        // A device that claims buses which its column does not have, or that does not ascend: the
        // line that opened the column anew was cut.
        let open = column.and_then(|column| tree.open.get_mut(&column));
        let ascends = open.is_none_or(|open| open.last.replace(device) < Some(device));
        let known = known.filter(|bus| ascends && below.is_none_or(|range| bus.holds(range)));
        let address = known.map(|bus| {
            format!("{:04x}:{:02x}:{:02x}.{:x}", bus.domain, bus.first, device.0, device.1)
        });
        if let (Some(address), Some(bus)) = (&address, known) {
            let mut one = function(address.clone(), WHY);
            one.parent.clone_from(&bus.bridge);
            one.host_bridge.clone_from(&bus.root);
            let below = below.filter(|(_, first, _)| *first > bus.first);
            one.secondary_bus = below.map(|(_, first, _)| first);
            one.subordinate_bus = below.map(|(_, _, last)| last);
            one.name = self.name();
            tree.found.push(one);
        } else {
            tree.left_out = true;
        }
        let Some((domain, first, last)) = below else { return self.end().map(|()| None) };
        let domain = domain.or(known.map(|bus| bus.domain)).unwrap_or(tree.domain);
        let root = known.and_then(|bus| bus.root.clone());
        // A bridge that is not configured has bus 0 below it, which leads nowhere.
        let address = address.filter(|_| known.is_some_and(|bus| first > bus.first));
        let bus = Bus::Known(KnownBus { domain, first, last, bridge: address, root });
        let rest = self.rest();
        // Stops at the first other character: trimming from the end would walk a tail of dashes
        // once for each device before it.
        if rest.bytes().all(|byte| byte == b'-') || rest.starts_with("  ") {
            return Ok(None);
        }
        let column = self.branch(tree, Some(&bus));
        Ok(Some((bus, column)))
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn wanted(&self, what: &'static str) -> CaptureError {
        CaptureError::new(self.index, self.text, self.at, what)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let there = self.rest().starts_with(mark);
        self.at += if there { mark.len() } else { 0 };
        there
    }

    /// `----`, or `--+-` which opens a column for `bus`: that column.
    fn branch(&mut self, tree: &mut Tree, bus: Option<&Bus>) -> Option<usize> {
        while self.eat("-") {}
        let column = self.at;
        if !self.eat("+") {
            return None;
        }
        while self.eat("-") {}
        tree.opened += 1;
        let bars = tree.bars;
        tree.bars += 1;
        let column = if tree.collapsed { tree.opened } else { column };
        // A cut tree may open the same column anew.
        while tree.open.last_key_value().is_some_and(|(open, _)| *open >= column) {
            tree.open.pop_last();
        }
        // Deeper than there are buses no tree is.
        if tree.open.len() > usize::from(u8::MAX) {
            tree.open.pop_first();
        }
        tree.open.extend(bus.cloned().map(|bus| (column, Open { bus, last: None, bars })));
        Some(column)
    }

    /// `[da]`, `[d8-e7]`, `[0000:d7]`, and `[0000:d8-0000:e7]` of old versions.
    fn range(&mut self) -> Result<(Option<u32>, u8, u8), CaptureError> {
        // Counts the characters before it: not for each range of a long line.
        let wrong = || self.wanted("buses in brackets, like [d8-e7]");
        let inside = self.rest().strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let Some((inside, _)) = inside else { return Err(wrong()) };
        let length = inside.len() + 2;
        let (first, last) = inside.split_once('-').unwrap_or((inside, inside));
        let bus = |text: &str| -> Option<(Option<u32>, u8)> {
            let (domain, bus) = match text.rsplit_once(':') {
                Some((domain, bus)) => (Some(u32::from_str_radix(domain, 16).ok()?), bus),
                None => (None, text),
            };
            Some((domain, u8::from_str_radix(bus, 16).ok()?))
        };
        let (Some((domain, first)), Some((_, last))) = (bus(first), bus(last)) else {
            return Err(wrong());
        };
        if first > last {
            return Err(wrong());
        }
        self.at += length;
        Ok((domain, first, last))
    }

    /// `0c.0`.
    fn device(&mut self) -> Result<(u8, u8), CaptureError> {
        let wrong = || self.wanted("a device and function, like 0c.0");
        let text = self.rest().get(..4).ok_or_else(wrong)?;
        let parts = text.split_once('.').and_then(|(device, function)| {
            let device = u8::from_str_radix(device, 16).ok().filter(|device| *device < 32)?;
            let function =
                u8::from_str_radix(function, 16).ok().filter(|function| *function < 8)?;
            Some((device, function))
        });
        let parts = parts.filter(|_| text.as_bytes()[2] == b'.').ok_or_else(wrong)?;
        self.at += 4;
        Ok(parts)
    }

    /// The name behind a device at the end of the line.
    fn name(&self) -> Option<String> {
        let name = self.rest().strip_prefix(' ')?.trim();
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn end(&self) -> Result<(), CaptureError> {
        let rest = self.rest();
        if rest.is_empty() || rest.starts_with(' ') {
            return Ok(());
        }
        Err(self.wanted("a name after a blank, or the end of the line"))
    }
}

impl KnownBus {
    fn holds(&self, (_, first, last): (Option<u32>, u8, u8)) -> bool {
        // A root bus is printed without its last one.
        let root = self.bridge.is_none() && self.first == self.last;
        root || self.first <= first && last <= self.last
    }
}
