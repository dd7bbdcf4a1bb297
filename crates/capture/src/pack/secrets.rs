//! The words that stand for secrets: one for each, the same wherever it occurs.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::addresses;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Secret {
    /// A host's name.
    Host,
    /// A user's name.
    User,
    /// A serial number or a name of the world (WWID).
    Serial,
    Uuid,
    /// A hardware address of a network card.
    Mac,
    /// An IP address.
    Address,
    /// The source of a mount, or a part of it.
    Source,
    /// A logical volume, or what else the device mapper made.
    Volume,
    /// A part of a path, or of a control group's name.
    Path,
    Value,
}

impl Secret {
    /// In words, as the manifest has it.
    pub fn words(self) -> &'static str {
        match self {
            Secret::Host => "host names",
            Secret::User => "user names",
            Secret::Serial => "serial numbers",
            Secret::Uuid => "UUIDs",
            Secret::Mac => "hardware addresses",
            Secret::Address => "IP addresses",
            Secret::Source => "sources of mounts",
            Secret::Volume => "volumes",
            Secret::Path => "parts of paths",
            Secret::Value => "values of options",
        }
    }

    fn stem(self) -> &'static str {
        match self {
            Secret::Host => "host",
            Secret::User => "user",
            Secret::Serial => "serial",
            Secret::Source => "source",
            Secret::Volume => "volume",
            Secret::Path => "part",
            Secret::Value | Secret::Uuid | Secret::Mac | Secret::Address => "value",
        }
    }
}

/// Secrets that were met, with what stands for them.
#[derive(Debug)]
pub(super) struct Secrets {
    key: u64,
    known: HashMap<(Secret, String), String>,
    counts: BTreeMap<Secret, usize>,
    /// Names to be replaced wherever they stand alone as a word.
    names: BTreeMap<String, Secret>,
    /// Names of hosts, IP addresses and sources of mounts stay as they are.
    keep_addresses: bool,
}

impl Secrets {
    pub(super) fn new(key: u64) -> Self {
        Secrets {
            key,
            known: HashMap::new(),
            counts: BTreeMap::new(),
            names: BTreeMap::new(),
            keep_addresses: false,
        }
    }

    pub(super) fn but_addresses(self) -> Self {
        Secrets { keep_addresses: true, ..self }
    }

    pub(super) fn keeps_addresses(&self) -> bool {
        self.keep_addresses
    }

    /// How many there are of each kind.
    pub(super) fn counts(&self) -> &BTreeMap<Secret, usize> {
        &self.counts
    }

    /// Has a name replaced wherever it occurs as a word. A name of one or two letters reveals
    /// nothing, and would be found everywhere.
    pub(super) fn name(&mut self, kind: Secret, name: &str) {
        if name.len() > 2 {
            self.names.insert(name.to_owned(), kind);
        }
    }

    /// The kind of name that a word is.
    pub(super) fn named(&self, word: &str) -> Option<Secret> {
        self.names.get(word).copied()
    }

    /// The token that stands for a secret: `serial3`; a UUID and a hardware address keep their
    /// form.
    pub(super) fn token(&mut self, kind: Secret, value: &str) -> String {
        if self.keep_addresses && matches!(kind, Secret::Host | Secret::Source) {
            return value.to_owned();
        }
        let key = (kind, value.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let number = self.counts.entry(kind).or_insert(0);
        *number += 1;
        let token = match kind {
            Secret::Uuid => format!("00000000-0000-4000-8000-{number:012x}"),
            Secret::Mac => mac(*number),
            _ => format!("{}{number}", kind.stem()),
        };
        self.known.insert(key, token.clone());
        token
    }

    pub(super) fn v4(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        if self.keep_addresses {
            return address;
        }
        let image = addresses::v4(self.key, address);
        self.met(address != image, address.to_string(), image.to_string());
        image
    }

    pub(super) fn v6(&mut self, address: Ipv6Addr) -> Ipv6Addr {
        if self.keep_addresses {
            return address;
        }
        let image = addresses::v6(self.key, address);
        self.met(address != image, address.to_string(), image.to_string());
        image
    }

    fn met(&mut self, changed: bool, address: String, image: String) {
        if changed && self.known.insert((Secret::Address, address), image).is_none() {
            *self.counts.entry(Secret::Address).or_insert(0) += 1;
        }
    }
}

/// An address of the kind that anybody may give out (bit 1 of the first byte).
fn mac(number: usize) -> String {
    let bytes = (number as u64).to_be_bytes();
    format!("02:00:00:{:02x}:{:02x}:{:02x}", bytes[5], bytes[6], bytes[7])
}
