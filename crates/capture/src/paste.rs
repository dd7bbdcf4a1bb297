//! Texts as people paste them: terminal colours, Markdown, quotes, prompts, several commands'
//! output one after the other.
//!
//! [`plain`] takes the decoration away and keeps the lines, so that positions of errors hold.
//! [`read`] parts a text where a command stands, gives each part to the kind that it looks like,
//! and the lines that this kind does not print to another. The rest is noted.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::prompt::{begins, heading, is_dots, is_prompt, is_ruler};
use crate::unfold::unfolded;
use crate::{CaptureError, Captured, TextRead, cufile_json, kind_of};

/// Parts within parts: lines that one kind left, read by another, and so on.
const DEEPEST: usize = 8;
/// More parts than anybody pastes into one text.
const MOST_PARTS: usize = 256;

/// A text without decoration, line by line as many as before.
pub(crate) fn plain(text: &str) -> String {
    let is_markup = text.trim_start().trim_start_matches('\u{feff}').starts_with(['<', '{']);
    let lines: Vec<Cow<'_, str>> = text.lines().map(|line| undecorated(line, is_markup)).collect();
    let depth = lines.iter().filter(|line| !line.trim().is_empty());
    let depth = depth.map(|line| line.len() - line.trim_start_matches(' ').len()).min();
    let depth = depth.unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    for line in lines {
        out.push_str(line.get(depth..).unwrap_or_default());
        out.push('\n');
    }
    out
}

fn undecorated(line: &str, is_markup: bool) -> Cow<'_, str> {
    let line = behind_time(line);
    let marks = ['\u{1b}', '\u{a0}', '\u{feff}', '*', '`', '&', '>', '\r', '<'];
    // Marks of a terminal whose first character was lost on the way.
    let worn = ["[4m", "[0m", "[1m"];
    if !line.contains(marks) && !worn.iter().any(|mark| line.contains(mark)) {
        return Cow::Borrowed(line.trim_end());
    }
    let mut line = without_colours(line).replace('\u{a0}', " ").replace(['\u{feff}', '\r'], "");
    if !is_markup {
        // A fence around code, with the language's name behind it.
        if line.trim_start().starts_with("```") {
            return Cow::Borrowed("");
        }
        let mut quoted = &*line;
        while let Some(rest) = quoted.strip_prefix("> ").or_else(|| quoted.strip_prefix(">>")) {
            quoted = rest;
        }
        line = quoted.replace("**", "").replace('`', " ");
        line = worn.iter().fold(line, |line, mark| line.replace(mark, ""));
        for tag in ["<p>", "</p>", "<br>", "<br/>", "<br />", "<pre>", "</pre>"] {
            line = line.replace(tag, "");
        }
        if line.contains('&') {
            let signs = line.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ");
            line = signs.replace("&quot;", "\"").replace("&amp;", "&");
        }
    }
    line.truncate(line.trim_end().len());
    Cow::Owned(line)
}

/// A line of a log without its time: `[2024-03-11T02:11:09] …`, also with a blank for the `T`.
fn behind_time(line: &str) -> &str {
    let digits = |text: &str, signs: &str| {
        text.len() == signs.len()
            && text.bytes().zip(signs.bytes()).all(|(byte, sign)| match sign {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b' '),
                _ => byte == sign,
            })
    };
    let parts = line.strip_prefix('[').and_then(|line| line.split_once("] "));
    let timed = parts
        .filter(|(time, _)| time.get(..19).is_some_and(|time| digits(time, "0000-00-00T00:00:00")));
    timed.map_or(line, |(_, rest)| rest)
}

/// A line without the marks of a terminal (`ESC [ 4 m`, which underlines).
fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let ends = |c: char| c.is_ascii_alphabetic();
        let end = part.find(ends).filter(|_| part.starts_with('['));
        out.push_str(end.map_or(part, |end| &part[end + 1..]));
    }
    out
}

/// Reads a text that may hold several commands' outputs.
///
/// # Errors
/// Nothing in it is understood, or the kind that it looks like refuses it.
pub(crate) fn read(name: &str, text: &str, captured: &mut Captured) -> Result<(), CaptureError> {
    if text.len() > crate::LONG {
        return Err(CaptureError::too_long(text.len()));
    }
    // Mistakes in cuFile's file are reported where they stand.
    let json = &cufile_json::KIND;
    let titled = cufile_json::below_a_title(text);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| cufile_json::begins(line)).unwrap_or(0);
    let above = lines.iter().take(first).any(|line| !line.trim().is_empty());
    let whole = !above && kind_of(text).is_some_and(|kind| kind.command == json.command);
    // Another command's output, the end of a code block or words behind the JSON are no mistakes.
    let more = |line: &&str| is_prompt(line) || line.trim_start().starts_with("```");
    let last = lines.iter().rposition(|line| line.starts_with('}')).unwrap_or(lines.len());
    let ends = lines.iter().skip(last + 1).all(|line| line.trim().is_empty());
    let alone = !lines.iter().skip(first).any(more);
    if alone && (whole || ends && titled.is_some()) {
        let (text, skipped) = titled.unwrap_or_else(|| (text.to_owned(), Vec::new()));
        crate::add_plain(json, &text, captured)?;
        let commands = vec![json.command];
        captured.texts.push(TextRead { name: name.to_owned(), commands, skipped });
        return Ok(());
    }
    let unfolded = unfolded(text);
    let mut own = TextRead { name: name.to_owned(), commands: Vec::new(), skipped: Vec::new() };
    let read = read_parts(&unfolded, captured, &mut own);
    if let Cow::Owned(unfolded) = &unfolded {
        let places = places(text, unfolded);
        own.skipped.iter_mut().for_each(|one| put_back(one, &places));
        return read.map(|()| captured.texts.push(own)).map_err(|mut error| {
            put_back(&mut error, &places);
            error
        });
    }
    read.map(|()| captured.texts.push(own))
}

/// Where each line of an unfolded text begins in the text: a line, and characters before it there.
fn places(text: &str, unfolded: &str) -> Vec<(usize, usize)> {
    // A newline stands for each blank that is not there any more, so bytes stay where they are.
    let (mut at, mut place) = (0, (0, 0));
    let mut all = Vec::new();
    for line in unfolded.split('\n') {
        all.push(place);
        at += line.len();
        place = match text.as_bytes().get(at) {
            Some(b' ') => (place.0, place.1 + line.chars().count() + 1),
            _ => (place.0 + 1, 0),
        };
        at += 1;
    }
    all
}

fn put_back(error: &mut CaptureError, places: &[(usize, usize)]) {
    if let Some((line, before)) = places.get(error.index()) {
        error.line = line + 1;
        error.column += before;
    }
}

fn read_parts(
    unfolded: &str,
    captured: &mut Captured,
    own: &mut TextRead,
) -> Result<(), CaptureError> {
    let plain = plain(unfolded);
    let lines: Vec<&str> = plain.lines().collect();
    let mut found = Found::default();
    let mut start = 0;
    let starts = (1..lines.len()).filter(|at| begins(&lines, *at));
    let ends: Vec<usize> = starts.take(MOST_PARTS).collect();
    for end in ends.into_iter().chain([lines.len()]) {
        part(&lines, (start, end), captured, &mut found, DEEPEST)?;
        start = end;
    }
    if found.commands.is_empty() {
        return Err(found.first.unwrap_or_else(|| {
            let wanted = "the output of a tool that gpuio reads (docs/machines.md lists them)";
            let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
            CaptureError::new(first, lines.get(first).copied().unwrap_or_default(), 0, wanted)
        }));
    }
    (own.commands, own.skipped) = (found.commands, found.skipped);
    own.skipped.sort_by_key(|one| one.line);
    Ok(())
}

/// The results of reading so far.
#[derive(Default)]
struct Found {
    commands: Vec<&'static str>,
    skipped: Vec<CaptureError>,
    first: Option<CaptureError>,
    /// Runs of skipped lines that were given to another kind.
    tries: usize,
}

fn part(
    lines: &[&str],
    (start, end): (usize, usize),
    captured: &mut Captured,
    found: &mut Found,
    deep: usize,
) -> Result<(), CaptureError> {
    let mut text = lines[start..end].join("\n");
    let mut own = lines[start..end].iter().filter(|line| !line.trim().is_empty());
    // A command that printed nothing: the next prompt shows that nothing was cut.
    let silent = own.next().is_some_and(|line| is_prompt(line)) && own.next().is_none();
    if silent && lines.get(end).is_some_and(|line| is_prompt(line)) {
        text.push_str("\n$");
    }
    let mut kind = kind_of(&text);
    let may_be_json = kind.is_none_or(|kind| kind.command == cufile_json::KIND.command);
    if may_be_json && let Some((json, from, to)) = json_of_cufile(lines, start, end) {
        (text, kind) = (json, Some(&cufile_json::KIND));
        for (from, to) in [(start, from), (to, end)] {
            let other = (deep > 0).then(|| kind_of(&lines[from..to].join("\n"))).flatten();
            match other {
                Some(_) => part(lines, (from, to), captured, found, deep - 1)?,
                None => found.skip(lines, from, to),
            }
        }
    }
    let Some(kind) = kind else {
        found.skip(lines, start, end);
        return Ok(());
    };
    let before = std::mem::take(&mut captured.skipped);
    let added = crate::add_plain(kind, &text, captured);
    let skipped = std::mem::replace(&mut captured.skipped, before);
    if let Err(mut error) = added {
        error.line += start;
        let alone = start == 0 && end == lines.len();
        // The other parts of a text with several count.
        if alone || error.is_too_much() {
            return Err(error);
        }
        found.first.get_or_insert(error);
        found.skip(lines, start, end);
        return Ok(());
    }
    if !found.commands.contains(&kind.command) {
        found.commands.push(kind.command);
    }
    for (from, to) in runs(&skipped, lines, start) {
        found.tries += 1;
        let other =
            (deep > 0 && found.tries <= MOST_PARTS).then(|| kind_of(&lines[from..to].join("\n")));
        match other.flatten() {
            Some(other) if !std::ptr::eq(other.command, kind.command) => {
                part(lines, (from, to), captured, found, deep - 1)?;
            }
            _ => found.keep(&skipped, start, (from, to)),
        }
    }
    Ok(())
}

/// cuFile's file among other lines, with blank lines above so that mistakes keep their place, and
/// its lines.
fn json_of_cufile(lines: &[&str], start: usize, end: usize) -> Option<(String, usize, usize)> {
    let first = (start..end).find(|at| cufile_json::begins(lines[*at]))?;
    let last = (first..end).rev().find(|at| lines[*at].starts_with('}'))?;
    let json = lines[first..=last].join("\n");
    (cufile_json::KIND.looks_like)(&json).then(|| ("\n".repeat(first) + &json, first, last + 1))
}

/// Skipped lines that stand together, blank ones between them, as ranges of all lines. They may
/// have been skipped in any order, and more than once.
fn runs(skipped: &[CaptureError], lines: &[&str], start: usize) -> Vec<(usize, usize)> {
    let skipped: BTreeSet<usize> = skipped.iter().map(|one| start + one.index()).collect();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut apart = true;
    for (at, line) in lines.iter().enumerate().skip(start) {
        match (skipped.contains(&at), runs.last_mut()) {
            (true, Some((_, to))) if !apart => *to = at + 1,
            (true, _) => runs.push((at, at + 1)),
            (false, _) => {
                apart |= !line.trim().is_empty();
                continue;
            }
        }
        apart = false;
    }
    runs
}

impl Found {
    /// Lines of no kind.
    fn skip(&mut self, lines: &[&str], start: usize, end: usize) {
        let known =
            |line: &str| is_dots(line) || is_ruler(line) || is_prompt(line) || heading(line);
        let left = (start..end).filter(|index| !known(lines[*index]));
        self.skipped.extend(left.map(|index| {
            CaptureError::new(index, lines[index], 0, "a line of a tool that gpuio reads")
        }));
    }

    fn keep(&mut self, skipped: &[CaptureError], start: usize, (from, to): (usize, usize)) {
        let inside = skipped.iter().filter(|one| (from..to).contains(&(start + one.index())));
        let inside = inside.filter(|one| !is_ruler(&one.text));
        self.skipped.extend(inside.cloned().map(|mut one| {
            one.line += start;
            one
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_goes_and_lines_stay() {
        let text = "  **> x**\r\n  \u{1b}[4mGPU0\u{1b}[0m\u{a0}&lt;\n```bash\n\n";
        assert_eq!(plain(text), "> x\nGPU0 <\n\n\n");
        assert_eq!(plain("\t[4mGPU0\tCPU Affinity[0m\n"), "\tGPU0\tCPU Affinity\n");
        let log = "[2024-03-11T02:11:09] a\n[2024-03-11 02:11:09.125] b\n[  1.5] c\n[0-1] d\n";
        assert_eq!(plain(log), "a\nb\n[  1.5] c\n[0-1] d\n");
        assert_eq!(plain("> $ lspci\n> 00:01.0 A\n"), "$ lspci\n00:01.0 A\n");
        assert_eq!(plain("<a b=\"&lt;\">\n"), "<a b=\"&lt;\">\n", "XML has its own signs");
    }

    #[test]
    fn cufile_s_file_among_other_texts_is_read_as_it_is() {
        let json = "{\n  // as delivered\n  \"logging\": { \"level\": \"TRACE\" },\n  \
                    \"properties\": {\n    \"force_compat_mode\": true\n  }\n}\n";
        let mount = "$ mount\n/dev/nvme1n1 on /data type xfs (rw,relatime)\n\n";
        let below = "$ uname -r\n5.15.0-1-generic\n";
        for text in [
            format!("{mount}$ cat /etc/cufile.json\n{json}{below}"),
            format!("$ cat /etc/cufile.json\n{json}\n{mount}{below}"),
            format!("{mount}{below}# Its configuration\n\n```json\n{json}```\n\nIs it right?\n"),
        ] {
            let mut captured = Captured::default();
            read("post", &text, &mut captured).unwrap();
            let cufile = captured.machine.cufile.text.known().unwrap().as_deref().unwrap().trim();
            assert_eq!(cufile, json.trim(), "{text}");
            assert_eq!(captured.machine.mounts.len(), 1, "{text}");
            assert!(captured.machine.host.kernel.release.is_some(), "{text}");
        }
    }

    /// Lines of the kernel's log without a fact do not keep another tool's output from being read.
    #[test]
    fn a_log_that_says_nothing_is_no_reason_to_refuse_the_rest() {
        let text = "I built it on RHEL:\n```\n[192745.286125] nvidia_fs: Initializing nvfs driver \
                    module\n```\nBut its utility reports\n```\n./gdscheck.py -p\n GDS release \
                    version: 1.7.2.10\n nvidia_fs version:  2.17 libcufile version: 2.12\n \
                    Platform: x86_64\n\nNFS                : Supported\n```\n";
        let mut captured = Captured::default();
        read("post", text, &mut captured).unwrap();
        let drivers = &captured.machine.gdscheck.as_ref().unwrap().drivers;
        assert_eq!((drivers.len(), drivers[0].name.as_str()), (1, "NFS"));
        assert!(captured.remarks.iter().any(|one| one.contains("1 line says nothing")));
        read("log", "[  1.123456] nvidia_fs: hello\n", &mut captured).unwrap();
    }

    #[test]
    fn places_are_of_the_text_as_it_was_pasted() {
        let drawn = "-[0000:00]-+-00.0 +-01.0-[01]----00.0 +-02.0 odd +-x\n";
        let text = format!("# lspci -t\n{drawn}no such words +-03.0 nor these\n");
        let mut captured = Captured::default();
        read("text", &text, &mut captured).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let skipped = &captured.texts[0].skipped;
        assert!(skipped.iter().any(|one| one.line == 3), "{skipped:?}");
        for one in skipped {
            let there: String = lines[one.index()].chars().skip(one.column - 1).collect();
            assert!(there.starts_with(one.text.trim_end()), "{one:?} at {there:?}");
        }
    }
}
