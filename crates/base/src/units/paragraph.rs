//! Text broken into lines at spaces.

use std::fmt::Write as _;

use crate::units::printable_short;

/// `text`, which may be from outside, behind `head`, in lines of at most `width` characters where
/// its words allow that. The lines after the first begin with `indent` spaces. Each line ends with
/// a line feed and without spaces.
///
/// ```
/// let lines = gpuio_base::units::paragraph("fix: ", 5, "mount it again", 12);
/// assert_eq!(lines, "fix: mount\n     it\n     again\n");
/// ```
pub fn paragraph(head: &str, indent: usize, text: &str, width: usize) -> String {
    let text = printable_short(text);
    let mut out = String::new();
    let mut line = head.to_owned();
    let mut bare = true;
    for word in text.split(' ') {
        let long = line.chars().count() + 1 + word.chars().count() > width;
        if long && !bare {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
            bare = true;
        }
        if !bare {
            line.push(' ');
        }
        line.push_str(word);
        bare = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
    out
}
