//! Claims: what must hold of the files that a scene's machines have written. Pure.
//!
//! A claim is a line `WHAT OPERATOR VALUE`. WHAT is a file's name, or a name and a place in its
//! JSON: `read.json#/jobs/0/read/iops`. A step of the place is a key, an index, `KEY=VALUE` or
//! `KEY=VALUE,KEY=VALUE` (the first element of an array that has them), or `*` (all elements: their
//! mean); `~1` is a slash. A file with a JSON value on each line is an array of them.
//!
//! ```text
//! read.rc is 0
//! read.json#/jobs/0/read/iops within 2% of 400
//! read.json#/jobs/0/read/bytes_per_s within 2% of 400 * 4096
//! top.json#/*/devices/device=nvme0n1/figures/reads_per_second within 2% of iostat.reads
//! bench.err contains No space left
//! ```
//!
//! VALUE is a number, another WHAT, or products and sums of these with ` * ` and ` + `; WHAT may be
//! a sum too. `contains` and `lacks` take text to the end of the line.

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) text: String,
    what: Sum,
    test: Test,
}

/// Products that are added; a factor is a number or `FILE#/PLACE`.
#[derive(Debug, Clone)]
struct Sum(Vec<Vec<String>>);

#[derive(Debug, Clone)]
enum Test {
    Is(String),
    Not(String),
    Contains(String),
    Lacks(String),
    /// Per cent, and of what.
    Within(f64, Sum),
    AtLeast(Sum),
    AtMost(Sum),
}

const OPERATORS: &str = "is, not, contains, lacks, within, at-least, at-most";

/// Gives a file's content by its name, if there is one.
pub(super) type Files<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Claim {
    pub(super) fn read(line: &str) -> anyhow::Result<Claim> {
        let is_operator = |word: &&str| OPERATORS.split(", ").any(|one| one == *word);
        let operator = line.split(' ').find(is_operator);
        let operator = operator.with_context(|| format!("operators are {OPERATORS}"))?;
        let parts = line.split_once(&format!(" {operator} "));
        let (what, value) = parts.context("WHAT OPERATOR VALUE")?;
        let value = value.trim();
        let test = match operator {
            "is" => Test::Is(value.to_owned()),
            "not" => Test::Not(value.to_owned()),
            "contains" => Test::Contains(value.to_owned()),
            "lacks" => Test::Lacks(value.to_owned()),
            "within" => {
                let (limit, of) = value.split_once("% of ").context("within N% of VALUE")?;
                Test::Within(limit.parse().context("within: a number")?, Sum::read(of)?)
            }
            "at-least" => Test::AtLeast(Sum::read(value)?),
            _ => Test::AtMost(Sum::read(value)?),
        };
        Ok(Claim { text: line.to_owned(), what: Sum::read(what)?, test })
    }

    /// Checks it; gives what was found.
    ///
    /// # Errors
    /// The claim that does not hold, with the value that was found.
    pub(super) fn check(&self, files: Files) -> anyhow::Result<String> {
        let (found, of) = match &self.test {
            Test::Within(_, of) | Test::AtLeast(of) | Test::AtMost(of) => {
                (self.what.number(files)?, of.number(files)?)
            }
            _ => return self.check_text(files),
        };
        let off = (found - of) / of * 100.0;
        let shown = plain(found);
        match self.test {
            Test::AtLeast(_) => ensure!(found >= of, "{shown} is below {}", plain(of)),
            Test::AtMost(_) => ensure!(found <= of, "{shown} is above {}", plain(of)),
            Test::Within(limit, _) => {
                ensure!(off.abs() <= limit, "{shown} is {off:+.2} % from {}", plain(of));
                return Ok(format!("{shown} ({off:+.2} %)"));
            }
            _ => {}
        }
        Ok(shown)
    }

    fn check_text(&self, files: Files) -> anyhow::Result<String> {
        let found = find(self.what.only()?, files)?.text();
        let shown = shorten(&found);
        let holds = match &self.test {
            Test::Is(text) => found == *text,
            Test::Not(text) => found != *text,
            Test::Contains(text) => found.contains(text),
            Test::Lacks(text) => !found.contains(text),
            _ => false,
        };
        ensure!(holds, "it is {shown}");
        Ok(shown)
    }
}

impl Sum {
    fn read(text: &str) -> anyhow::Result<Sum> {
        let factors = |term: &str| term.split(" * ").map(|one| one.trim().to_owned()).collect();
        let sum: Vec<Vec<String>> = text.split(" + ").map(factors).collect();
        let is_plain = |factor: &String| !factor.is_empty() && !factor.contains(' ');
        ensure!(sum.iter().flatten().all(is_plain), "{text}: numbers or FILE#/PLACE, with + and *");
        Ok(Sum(sum))
    }

    /// The place, where it is one.
    fn only(&self) -> anyhow::Result<&str> {
        match self.0.as_slice() {
            [term] if term.len() == 1 => Ok(&term[0]),
            _ => bail!("a text is no sum"),
        }
    }

    fn number(&self, files: Files) -> anyhow::Result<f64> {
        let mut sum = 0.0;
        for term in &self.0 {
            let mut product = 1.0;
            for factor in term {
                product *= match factor.parse::<f64>() {
                    Ok(number) => number,
                    Err(_) => find(factor, files)?.number()?,
                };
            }
            sum += product;
        }
        Ok(sum)
    }
}

/// The subject of a claim.
enum Found {
    Text(String),
    /// One value, or all that `*` selected.
    Json(Vec<Value>),
}

impl Found {
    fn text(&self) -> String {
        match self {
            Found::Text(text) => text.trim().to_owned(),
            Found::Json(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        }
    }

    fn number(&self) -> anyhow::Result<f64> {
        let Found::Json(values) = self else {
            let text = self.text();
            return text.parse().with_context(|| format!("{} is no number", shorten(&text)));
        };
        let mut sum = 0.0;
        let mut count = 0.0;
        for value in values {
            sum += value.as_f64().with_context(|| format!("{value} is no number"))?;
            count += 1.0;
        }
        Ok(sum / count)
    }
}

fn find(what: &str, files: Files) -> anyhow::Result<Found> {
    let (name, place) = what.split_once('#').unwrap_or((what, ""));
    let text = files(name).with_context(|| format!("there is no {name}"))?;
    if place.is_empty() {
        return Ok(Found::Text(text));
    }
    let root = json(&text).with_context(|| format!("{name} is no JSON"))?;
    let mut values = vec![root];
    for step in place.split('/').filter(|step| !step.is_empty()) {
        let step = step.replace("~1", "/");
        let mut next = Vec::new();
        for value in values {
            next.extend(go(value, &step).with_context(|| format!("{name} has no {step}"))?);
        }
        ensure!(!next.is_empty(), "{name} has nothing at {step}");
        values = next;
    }
    Ok(Found::Json(values))
}

fn json(text: &str) -> Option<Value> {
    let lines = || text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    serde_json::from_str(text).ok().or_else(|| lines().ok().map(Value::Array))
}

fn go(value: Value, step: &str) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) if step == "*" => Some(values),
        Value::Array(mut values) => {
            let fits = |value: &Value| step.split(',').all(|one| has(value, one));
            let at = match step.contains('=') {
                true => values.iter().position(fits)?,
                false => step.parse().ok()?,
            };
            (at < values.len()).then(|| vec![values.swap_remove(at)])
        }
        Value::Object(mut fields) => fields.shift_remove(step).map(|field| vec![field]),
        _ => None,
    }
}

/// Whether a value has this `KEY=VALUE`.
fn has(value: &Value, pair: &str) -> bool {
    let (key, wanted) = pair.split_once('=').unwrap_or((pair, ""));
    text(&value[key]) == wanted
}

/// A value as text: a string without quotes.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn plain(number: f64) -> String {
    if number.abs() < 1000.0 { format!("{number:.3}") } else { format!("{number:.0}") }
}

/// The end of a long text, in one line: errors come last.
fn shorten(text: &str) -> String {
    const MOST: usize = 160;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let skip = line.chars().count().saturating_sub(MOST);
    let dots = if skip > 0 { "…" } else { "" };
    format!("{dots}{}", line.chars().skip(skip).collect::<String>())
}
