//! Tags of XML, by quick-xml, where people send fragments: with tags cut out and lines of dots
//! between. Whether tags are closed is not checked, and what stands between tags is passed over.

use std::borrow::Cow;

use quick_xml::XmlVersion;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;
use quick_xml::reader::Reader;

use crate::{CaptureError, Captured};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag<'t> {
    /// Its name; that of a closing tag without the slash.
    pub(crate) name: &'t str,
    /// Attributes in their order, entities undone.
    attributes: Vec<(&'t str, Cow<'t, str>)>,
    /// Whether it opens an element that is closed later.
    pub(crate) opens: bool,
    pub(crate) closes: bool,
    /// Where it begins, in bytes.
    pub(crate) at: usize,
}

impl Tag<'_> {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_ref())
    }
}

/// More mistakes than a text has that is worth reading: each costs a look at all lines before.
const MOST_MISTAKES: usize = 100;

/// More attributes than any tag of hwloc's has; others are passed over.
const MOST_ATTRIBUTES: usize = 100;

/// The tags of a text, one after the other.
pub(crate) struct Tags<'t> {
    text: &'t str,
    at: usize,
    mistakes: usize,
}

impl<'t> Tags<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Tags { text, at: 0, mistakes: 0 }
    }

    /// The text up to the next tag.
    pub(crate) fn content(&self) -> &'t str {
        let rest = &self.text[self.at..];
        &rest[..rest.find('<').unwrap_or(rest.len())]
    }

    /// The next tag that is one; what is none is passed over, such as one that was cut.
    pub(crate) fn next_understood(
        &mut self,
        captured: &mut Captured,
    ) -> Result<Option<Tag<'t>>, CaptureError> {
        loop {
            match self.next() {
                Ok(tag) => return Ok(tag),
                Err(why) => self.skip(captured, why)?,
            }
        }
    }

    /// Passes over a tag.
    pub(crate) fn skip(
        &mut self,
        captured: &mut Captured,
        why: CaptureError,
    ) -> Result<(), CaptureError> {
        if self.mistakes == MOST_MISTAKES {
            return Err(why);
        }
        self.mistakes += 1;
        captured.skip(why);
        Ok(())
    }

    /// The next tag; `None` at the end.
    fn next(&mut self) -> Result<Option<Tag<'t>>, CaptureError> {
        while let Some(start) = self.text[self.at..].find('<').map(|at| self.at + at) {
            let rest = &self.text[start..];
            // No tag has a `<` in it: one that was cut ends before the next, which a reader of the
            // whole text would take for its attributes. Comments and declarations may have one.
            let any = rest[1..].starts_with(['!', '?']);
            let next = rest[1..].find('<').filter(|_| !any);
            let piece = &rest[..next.map_or(rest.len(), |at| at + 1)];
            let mut reader = Reader::from_str(piece);
            reader.config_mut().allow_unmatched_ends = true;
            let torn = |at| error(self.text, start + at, "a whole tag, with values in quotes");
            self.at = start + 1;
            // A value without an end begins behind the last quote.
            let quote = piece.rfind(['"', '\'']).filter(|_| !any);
            let event =
                reader.read_event().map_err(|_| torn(quote.map_or(0, |quote| quote + 1)))?;
            let length = usize::try_from(reader.buffer_position()).unwrap_or(piece.len());
            self.at = start + length;
            // Lengths of the marks before and behind name and attributes.
            let (name, before, behind) = match &event {
                Event::Start(tag) => (tag.name(), 1, 1),
                Event::Empty(tag) => (tag.name(), 1, 2),
                Event::End(tag) => (tag.name(), 2, 1),
                _ => continue,
            };
            let (closes, opens) = (before == 2, before == behind);
            let inside = &piece[before..length - behind];
            let name = &inside[..name.0.len()];
            let mut all = Attributes::new(if closes { "" } else { inside }, name.len());
            let all = all.with_checks(false).take(MOST_ATTRIBUTES).map(|found| {
                let found = found.map_err(|_| torn(0))?;
                let value = found.normalized_value(XmlVersion::Implicit1_0);
                Ok((found.key.0, value.unwrap_or(found.value)))
            });
            let attributes = all.collect::<Result<Vec<_>, _>>()?;
            if name.is_empty() {
                return Err(torn(0));
            }
            return Ok(Some(Tag { name, attributes, opens, closes, at: start }));
        }
        Ok(None)
    }
}

/// An error at a byte of the whole text.
pub(crate) fn error(text: &str, at: usize, wanted: &'static str) -> CaptureError {
    // Where it ends too early is behind its last character, not on a line that is not there.
    let at = at.min(text.trim_end().len());
    let before = &text.as_bytes()[..at];
    let index = before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    CaptureError::new(index, line, at - start, wanted)
}
