//! As much XML as hwloc writes: tags with attributes, no text between them.
//!
//! People send fragments, with tags cut out and lines of dots between: whether tags are closed is
//! not checked, and what stands between tags is passed over.

use std::borrow::Cow;

use crate::{CaptureError, Captured};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag<'t> {
    /// Its name; that of a closing tag without the slash.
    pub(crate) name: &'t str,
    /// Attributes in their order, entities undone.
    pub(crate) attributes: Vec<(&'t str, Cow<'t, str>)>,
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

/// More attributes than any tag of hwloc's has.
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
    pub(crate) fn next(&mut self) -> Result<Option<Tag<'t>>, CaptureError> {
        loop {
            let Some(start) = self.text[self.at..].find('<').map(|at| self.at + at) else {
                return Ok(None);
            };
            self.at = start + 1;
            let rest = &self.text[self.at..];
            // Declarations, comments and the document's type.
            let skipped = [("?", "?>"), ("!--", "-->"), ("!", ">")];
            let skipped = skipped.iter().find(|(begin, _)| rest.starts_with(begin));
            let Some((_, end)) = skipped else { return self.tag(start).map(Some) };
            let length = rest.find(end).ok_or_else(|| error(self.text, start, "an end of it"))?;
            self.at += length + end.len();
        }
    }

    fn tag(&mut self, start: usize) -> Result<Tag<'t>, CaptureError> {
        let closes = self.eat('/');
        let name = self.word();
        if name.is_empty() {
            return Err(error(self.text, self.at, "a tag's name"));
        }
        let mut attributes = Vec::new();
        loop {
            self.blanks();
            if self.eat('>') {
                return Ok(Tag { name, attributes, opens: !closes, closes, at: start });
            }
            if self.eat('/') {
                if self.eat('>') {
                    return Ok(Tag { name, attributes, opens: false, closes, at: start });
                }
                return Err(error(self.text, self.at, "`>`"));
            }
            if attributes.len() == MOST_ATTRIBUTES {
                return Err(error(self.text, self.at, "fewer attributes"));
            }
            attributes.push(self.attribute()?);
        }
    }

    fn attribute(&mut self) -> Result<(&'t str, Cow<'t, str>), CaptureError> {
        let key = self.word();
        if key.is_empty() {
            return Err(error(self.text, self.at, "an attribute, `>` or `/>`"));
        }
        self.blanks();
        if !self.eat('=') {
            return Err(error(self.text, self.at, "`=` and the attribute's value"));
        }
        self.blanks();
        let quote = if self.eat('"') { '"' } else { '\'' };
        if quote == '\'' && !self.eat('\'') {
            return Err(error(self.text, self.at, "a value in quotes"));
        }
        let rest = &self.text[self.at..];
        let length = rest.find(quote).filter(|end| !rest[..*end].contains('<'));
        let length =
            length.ok_or_else(|| error(self.text, self.at, "a value that ends in a quote"))?;
        self.at += length + 1;
        Ok((key, unescape(&rest[..length])))
    }

    fn eat(&mut self, mark: char) -> bool {
        let there = self.text[self.at..].starts_with(mark);
        self.at += if there { mark.len_utf8() } else { 0 };
        there
    }

    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn word(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-:.".contains(c)));
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }
}

/// The entities that XML has of itself; others stay as they are.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    Cow::Owned(plain.replace("&apos;", "'").replace("&amp;", "&"))
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
