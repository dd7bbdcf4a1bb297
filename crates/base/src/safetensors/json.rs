//! The JSON of a header.
//!
//! As strict as the format's library: no field of an entry twice, numbers are whole and not
//! negative, texts are texts, what is not known is passed over but has to be JSON. No tree is made
//! of it, so that a header of 100 MB takes no gigabytes of memory.

use std::fmt;

use crate::units::printable_short;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use crate::safetensors::{Dtype, shown};

const METADATA: &str = "__metadata__";

/// The entries of a header, as they stand there: a name may come twice.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) entries: Vec<(String, Entry)>,
    pub(crate) metadata: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    pub(crate) data_offsets: (u64, u64),
}

/// Parses a header. An error is a byte of it, and what is wrong there.
pub(crate) fn parse(text: &str) -> Result<Parsed, (usize, String)> {
    let mut within = None;
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = HeaderSeed { within: &mut within }.deserialize(&mut json);
    parsed.and_then(|parsed| json.end().map(|()| parsed)).map_err(|error| {
        let words = error.to_string();
        let what = words.rsplit_once(" at line ").map_or(&*words, |(what, _)| what);
        let what = match what.strip_prefix("unknown variant `").and_then(|of| of.split_once("`, "))
        {
            Some((dtype, known)) => format!("its dtype {} is unknown: {known}", shown(dtype)),
            None => printable_short(what).into_owned(),
        };
        let what = match (error.is_data(), within.as_deref()) {
            (false, _) => format!("the header is no JSON: {what}"),
            (true, Some(METADATA)) => format!("{METADATA}: {what}"),
            (true, Some(name)) => format!("tensor '{}': {what}", shown(name)),
            (true, None) => what,
        };
        (place(text, &error), what)
    })
}

/// Where an error is.
fn place(text: &str, error: &serde_json::Error) -> usize {
    let before: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    (before + error.column().saturating_sub(1)).min(text.len())
}

struct HeaderSeed<'a> {
    /// The name whose value is wrong.
    within: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for HeaderSeed<'_> {
    type Value = Parsed;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Parsed, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeaderSeed<'_> {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a header, which is a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let (mut entries, mut metadata) = (Vec::new(), None);
        while let Some(name) = map.next_key::<String>()? {
            let value = if name != METADATA {
                map.next_value().map(Value::Entry)
            } else if metadata.is_some() {
                Err(A::Error::duplicate_field(METADATA))
            } else {
                map.next_value().map(Value::Metadata)
            };
            match value {
                Ok(Value::Entry(entry)) => entries.push((name, entry)),
                Ok(Value::Metadata(texts)) => metadata = Some(texts),
                Err(error) => {
                    *self.within = Some(name);
                    return Err(error);
                }
            }
        }
        let metadata = metadata.flatten().map(|texts| texts.0).unwrap_or_default();
        Ok(Parsed { entries, metadata })
    }
}

/// The value of a name.
enum Value {
    Entry(Entry),
    Metadata(Option<Texts>),
}

/// A JSON object of texts.
struct Texts(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct OfTexts;

        impl<'de> Visitor<'de> for OfTexts {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts, A::Error> {
                let mut all = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    all.push(pair);
                }
                Ok(Texts(all))
            }
        }

        json.deserialize_map(OfTexts)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_struct("entry", &["dtype", "shape", "data_offsets"], OfEntry)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Dtype,
    Shape,
    DataOffsets,
    #[serde(other)]
    Other,
}

struct OfEntry;

impl<'de> Visitor<'de> for OfEntry {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
            place: &mut Option<T>,
            name: &'static str,
            map: &mut A,
        ) -> Result<(), A::Error> {
            match place.replace(map.next_value()?) {
                Some(_) => Err(A::Error::duplicate_field(name)),
                None => Ok(()),
            }
        }

        let (mut dtype, mut shape, mut data_offsets) = (None, None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::Dtype => once(&mut dtype, "dtype", &mut map)?,
                Field::Shape => once(&mut shape, "shape", &mut map)?,
                Field::DataOffsets => once(&mut data_offsets, "data_offsets", &mut map)?,
                Field::Other => {
                    map.next_value::<Passed>()?;
                }
            }
        }
        Ok(Entry {
            dtype: dtype.ok_or_else(|| A::Error::missing_field("dtype"))?,
            shape: shape.ok_or_else(|| A::Error::missing_field("shape"))?,
            data_offsets: data_offsets.ok_or_else(|| A::Error::missing_field("data_offsets"))?,
        })
    }

    /// The fields without their names, in this order, which the format's library takes too.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entry, A::Error> {
        let short = |have| A::Error::invalid_length(have, &OfEntry);
        Ok(Entry {
            dtype: list.next_element()?.ok_or_else(|| short(0))?,
            shape: list.next_element()?.ok_or_else(|| short(1))?,
            data_offsets: list.next_element()?.ok_or_else(|| short(2))?,
        })
    }
}

/// A value that is of no use here. Unlike serde's `IgnoredAny` it is read in full, so that
/// numbers, texts and depth have to be JSON's.
struct Passed;

impl<'de> Deserialize<'de> for Passed {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Passed)
    }
}

impl<'de> Visitor<'de> for Passed {
    type Value = Passed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Passed, E> {
        Ok(Passed)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Passed, E> {
        Ok(Passed)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Passed, E> {
        Ok(Passed)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Passed, E> {
        Ok(Passed)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Passed, E> {
        Ok(Passed)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Passed, E> {
        Ok(Passed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Passed, A::Error> {
        while list.next_element::<Passed>()?.is_some() {}
        Ok(Passed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Passed, A::Error> {
        while map.next_entry::<String, Passed>()?.is_some() {}
        Ok(Passed)
    }
}
