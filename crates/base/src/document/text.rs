//! Texts with an emphasis.

use crate::units::markup;

use crate::document::markdown_page::MarkdownPage;

/// The kind of a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    /// A name or command, as it is typed.
    Code,
    StrongCode,
    /// Less important.
    Quiet,
    /// Only on a page of HTML, where there is room.
    Aside,
    /// A word that something is as it should be, or is not.
    Good,
    Bad,
    /// The following text is on a line of its own, where a cell can have lines.
    Break,
}

/// A text in parts, from the source or from outside: no renderer takes any of it for markup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(Vec<(Tone, String)>);

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        Text::default().and(Tone::Plain, text)
    }
}

impl Text {
    #[must_use]
    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Text {
        let text = text.into();
        if !text.is_empty() || tone == Tone::Break {
            self.0.push((tone, text));
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Without emphasis, in one line.
    pub fn plain(&self) -> String {
        let parts = self.0.iter().filter(|(tone, _)| *tone != Tone::Aside);
        parts.map(|(tone, text)| if *tone == Tone::Break { " " } else { text.as_str() }).collect()
    }

    pub(crate) fn html(&self) -> String {
        let part = |(tone, text): &(Tone, String)| {
            let text = markup(text);
            match tone {
                Tone::Plain => text.into_owned(),
                Tone::Strong => format!("<strong>{text}</strong>"),
                Tone::Code => format!("<code>{text}</code>"),
                Tone::StrongCode => format!("<strong><code>{text}</code></strong>"),
                Tone::Quiet | Tone::Aside => format!("<span class=\"quiet\">{text}</span>"),
                Tone::Good => format!("<span class=\"badge good\">{text}</span>"),
                Tone::Bad => format!("<span class=\"badge bad\">{text}</span>"),
                Tone::Break => "<br>".to_owned(),
            }
        };
        self.0.iter().map(part).collect()
    }

    pub(crate) fn markdown(&self, page: &mut MarkdownPage) {
        let mut bold = false;
        for (tone, text) in self.0.iter().filter(|(tone, _)| *tone != Tone::Aside) {
            let strong = [Tone::Strong, Tone::StrongCode, Tone::Good, Tone::Bad].contains(tone);
            if strong != bold {
                page.markup("**");
                bold = strong;
            }
            match tone {
                Tone::Code | Tone::StrongCode => page.code(text),
                Tone::Break => page.markup("<br>"),
                _ => page.text(text),
            };
        }
        if bold {
            page.markup("**");
        }
    }
}
