//! Parses the text and keeps the position of every key.

use jsonc_parser::ast::{ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

/// A key with its value and position.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The parts joined by dots: `properties.allow_compat_mode`.
    pub path: String,
    /// Its value. Only keys that hold no group have an entry, and empty groups.
    pub value: Value,
    /// Line of the key, counted from 1.
    pub line: usize,
    /// Column of the key in characters, counted from 1.
    pub column: usize,
}

/// A configuration: its keys in the order of the text, repeated ones each time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    pub entries: Vec<Entry>,
}

impl Config {
    /// The entry that counts: the last one with this key.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.path == path)
    }

    /// The value of a switch; `None` if it is missing or of another type.
    pub fn switch(&self, path: &str) -> Option<bool> {
        self.get(path)?.value.as_bool()
    }

    /// The value of a whole number from 0.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.get(path)?.value.as_u64()
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.value.as_str()
    }

    /// The texts of a list; empty if it is missing.
    pub fn texts(&self, path: &str) -> Vec<&str> {
        let list = self.get(path).and_then(|entry| entry.value.as_array());
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|text| !text.is_empty())
            .collect()
    }
}

/// A text that is not JSON with comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub message: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

/// Parses a text: JSON with comments, and commas before a closing bracket.
///
/// # Errors
/// [`SyntaxError`] with the first position that is invalid.
pub fn read(text: &str) -> Result<Config, SyntaxError> {
    let strict = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let mut places = Positions { text, at: 0, line: 1, column: 1, budget: Budget::default() };
    // The parser's lines also end at a carriage return, unlike those of editors and of the keys
    // below.
    let parsed = parse_to_ast(text, &CollectOptions::default(), &strict).map_err(|error| {
        let (line, column) = places.of(error.range().start);
        SyntaxError { message: error.kind().to_string(), line, column }
    })?;
    let Some(Ast::Object(top)) = parsed.value else {
        let message = "it is no JSON object".to_owned();
        return Err(SyntaxError { message, line: 1, column: 1 });
    };
    let mut config = Config::default();
    flatten("", &top.properties, &mut places, &mut config)?;
    Ok(config)
}

/// Parses a text like [`read`], more leniently, into one object; of a repeated key the last one
/// counts.
///
/// # Errors
/// The parser's message.
pub fn keys(text: &str) -> Result<Map<String, Value>, String> {
    let value = jsonc_parser::parse_to_serde_value::<Value>(text, &ParseOptions::default());
    match value.map_err(|error| error.to_string())? {
        Value::Object(keys) if Budget::default().holds(&keys, 0) => Ok(keys),
        Value::Object(_) => Err(TOO_MANY.to_owned()),
        _ => Err("it is no JSON object".to_owned()),
    }
}

/// Most keys and groups of a configuration: cuFile's own file has a hundred.
const MOST_KEYS: usize = 2000;
/// Most bytes of all keys including their groups: a group's long name precedes each key in it, so
/// that a text of 1 MiB could expand to gigabytes.
const MOST_PATHS: usize = 4 << 20;
const TOO_MANY: &str = "it has more keys, or longer ones, than a configuration of cuFile's";

/// The rest of these limits.
struct Budget {
    keys: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { keys: MOST_KEYS, bytes: MOST_PATHS }
    }
}

impl Budget {
    /// Takes one key; `false` if a limit is reached.
    fn take(&mut self, path_bytes: usize) -> bool {
        let left = self.keys.checked_sub(1).zip(self.bytes.checked_sub(path_bytes));
        (self.keys, self.bytes) = left.unwrap_or((0, 0));
        left.is_some()
    }

    /// Whether the keys of all groups, each after `before` bytes, are within the limits.
    fn holds(&mut self, keys: &Map<String, Value>, before: usize) -> bool {
        keys.iter().all(|(key, value)| {
            let path = before + key.len() + 1;
            self.take(path) && value.as_object().is_none_or(|group| self.holds(group, path))
        })
    }
}

/// Line and column of positions that are queried in ascending order.
struct Positions<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    column: usize,
    budget: Budget,
}

impl Positions<'_> {
    fn of(&mut self, start: usize) -> (usize, usize) {
        for character in self.text.get(self.at..start).unwrap_or_default().chars() {
            if character == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at = self.at.max(start);
        (self.line, self.column)
    }
}

fn flatten(
    prefix: &str,
    props: &[ObjectProp<'_>],
    places: &mut Positions<'_>,
    config: &mut Config,
) -> Result<(), SyntaxError> {
    for prop in props {
        let (line, column) = places.of(prop.start());
        let length = prefix.len() + prop.name.as_str().len() + 1;
        if !places.budget.take(length) {
            return Err(SyntaxError { message: TOO_MANY.to_owned(), line, column });
        }
        let path = format!("{prefix}{}", prop.name.as_str());
        match &prop.value {
            // The paths in a table of mounts are the user's.
            Ast::Object(group)
                if !group.properties.is_empty() && !path.ends_with("mount_table") =>
            {
                flatten(&format!("{path}."), &group.properties, places, config)?;
            }
            value => config.entries.push(Entry { path, value: plain(value), line, column }),
        }
    }
    Ok(())
}

fn plain(value: &Ast<'_>) -> Value {
    match value {
        Ast::StringLit(text) => Value::String(text.value.to_string()),
        // A number that JSON does not allow stays as written.
        Ast::NumberLit(number) => serde_json::from_str(number.value)
            .unwrap_or_else(|_| Value::String(number.value.to_owned())),
        Ast::BooleanLit(switch) => Value::Bool(switch.value),
        Ast::Object(group) => {
            let pairs = group.properties.iter();
            pairs.map(|prop| (prop.name.as_str().to_owned(), plain(&prop.value))).collect()
        }
        Ast::Array(list) => list.elements.iter().map(plain).collect(),
        Ast::NullKeyword(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  // ü\n  \"logging\": { \"level\": \"ERROR\" },\n  \"fs\": {\n    \
                        \"nfs\": { \"mount_table\": { \"/a.b\": [\"10.0.0.1\"] } },\n  },\n  \
                        /* é */ \"denylist\": { \"drivers\": [ ], }, \"denylist\": {}\n}";

    #[test]
    fn keys_have_their_places() {
        let config = read(TEXT).unwrap();
        let places: Vec<(&str, usize, usize)> =
            config.entries.iter().map(|e| (e.path.as_str(), e.line, e.column)).collect();
        assert_eq!(
            places,
            [
                ("logging.level", 3, 16),
                ("fs.nfs.mount_table", 5, 14),
                ("denylist.drivers", 7, 25),
                ("denylist", 7, 44),
            ]
        );
        assert_eq!(config.text("logging.level"), Some("ERROR"));
        assert_eq!(config.switch("logging.level"), None);
        assert!(config.texts("denylist.drivers").is_empty());
    }

    #[test]
    fn what_is_no_json_has_its_place() {
        let error = read("{\n  \"logging\": { \"level\": }\n}").unwrap_err();
        assert_eq!(error.line, 2, "{error:?}");
        assert_eq!(read("[1]").unwrap_err().message, "it is no JSON object");
        assert!(read("{ 'a': 1 }").is_err());
        assert!(keys("[1]").unwrap_err().contains("no JSON object"));
    }

    /// Found by `cargo xtask fuzz`.
    #[test]
    fn errors_count_lines_as_keys_do() {
        let error = read("{\n\r \"a\": b\n}").unwrap_err();
        assert_eq!((error.line, error.column), (2, 8), "{error:?}");
        let error = read("{ \"ä\": b }").unwrap_err();
        assert_eq!((error.line, error.column), (1, 8), "{error:?}");
    }

    #[test]
    fn neither_many_keys_nor_long_groups_cost_time_and_memory() {
        let group = |name: &str, count: u32| {
            let keys: Vec<String> = (0..count).map(|number| format!("\"{number}\": 1")).collect();
            format!("{{\"{name}\": {{{}}}}}", keys.join(","))
        };
        for text in [group(&"g".repeat(400_000), 50), group("g", 2001)] {
            let error = read(&text).unwrap_err();
            assert_eq!((error.message.as_str(), error.line), (TOO_MANY, 1));
            assert_eq!(super::keys(&text).unwrap_err(), TOO_MANY);
        }
        let fits = group("group", 1999);
        assert_eq!(read(&fits).unwrap().entries.len(), 1999);
        assert!(super::keys(&fits).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in r#"[\{\}\[\]":,/\*a-z0-9\.\n ]{0,80}"#) {
            if let Ok(config) = read(&text) {
                for entry in &config.entries {
                    let line = text.lines().nth(entry.line - 1).unwrap();
                    let at = line.chars().nth(entry.column - 1);
                    proptest::prop_assert_eq!(at, Some('"'));
                }
            }
        }
    }
}
