//! `--where`: a condition on a point's values.
//!
//! Grammar, loosest first: `a || b`, `a && b`, `a == b` (`!=`, `<`, `<=`, `>`, `>=`), `a + b`, `a *
//! b`, `!a`, `(a)`. A word is a key's value if it names a key, a number or size if it can be read
//! as one, else text. There is no minus and no division, so `gds-batch` and `/mnt/a` are words.

use gpuio_base::units::parse_bytes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    root: Node,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// At a position, counted from 1.
    #[error("column {0}: {1}; a condition looks like bs*depth<=64M && path!=gds")]
    Form(usize, String),
    #[error("'{0}' is not a number, but {1} needs one")]
    NoNumber(String, &'static str),
    /// A comparison of two constants, most often a typing error.
    #[error("'{0}' compares two constants: neither side names a key that is set in this sweep")]
    NoKey(String),
    /// A value where a condition was needed.
    #[error("'{0}' is neither true nor false; compare it with a value")]
    NoTruth(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Word(String),
    Not(Box<Node>),
    Two(&'static str, Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Truth(bool),
    Number(u128),
    Text(String),
}

/// Operators by precedence; of those with a common prefix, the longest first.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"], &["+"], &["*"]];

type Token = (usize, String);

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// [`ConditionError::Form`] with the column.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let tokens = tokens(text)?;
        let mut reader = Reader { tokens: &tokens, at: 0, end: text.chars().count() + 1, deep: 0 };
        let root = reader.level(0)?;
        match reader.peek() {
            None => Ok(Condition { root }),
            Some(_) => Err(reader.wrong("an operator is missing before this")),
        }
    }

    /// Whether it is true for these values of keys.
    ///
    /// # Errors
    /// If it compares what can't be compared.
    pub fn holds(&self, known: &[(String, String)]) -> Result<bool, ConditionError> {
        truth(&self.root, known)
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, ConditionError> {
    let signs: Vec<char> = text.chars().collect();
    let mut found: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(sign) = signs.get(at).copied() {
        let column = at + 1;
        let two: String = signs.iter().skip(at).take(2).collect();
        if sign.is_whitespace() {
            at += 1;
        } else if ["||", "&&", "==", "!=", "<=", ">="].contains(&two.as_str()) {
            found.push((column, two));
            at += 2;
        } else if "<>+*!()".contains(sign) {
            found.push((column, sign.to_string()));
            at += 1;
        } else if is_word(sign) {
            let word: String = signs.iter().skip(at).take_while(|sign| is_word(**sign)).collect();
            at += word.chars().count();
            found.push((column, word));
        } else {
            return Err(ConditionError::Form(column, format!("'{sign}' has no meaning here")));
        }
    }
    Ok(found)
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || "_-./:,".contains(sign)
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    end: usize,
    deep: u32,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(|(_, token)| token.as_str())
    }

    fn wrong(&self, what: &str) -> ConditionError {
        let column = self.tokens.get(self.at).map_or(self.end, |(column, _)| *column);
        ConditionError::Form(column, what.to_owned())
    }

    fn level(&mut self, level: usize) -> Result<Node, ConditionError> {
        let Some(operators) = LEVELS.get(level) else { return self.single() };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = operators.iter().find(|o| self.peek() == Some(**o)) {
            self.at += 1;
            let right = self.level(level + 1)?;
            left = Node::Two(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn single(&mut self) -> Result<Node, ConditionError> {
        self.deep += 1;
        // Each level of brackets uses stack space.
        if self.deep > 100 {
            return Err(self.wrong("brackets are nested too deeply"));
        }
        let node = match self.peek() {
            Some("!") => {
                self.at += 1;
                Node::Not(Box::new(self.single()?))
            }
            Some("(") => {
                self.at += 1;
                let inner = self.level(0)?;
                if self.peek() != Some(")") {
                    return Err(self.wrong("a closing bracket is missing"));
                }
                self.at += 1;
                inner
            }
            Some(word) if word.chars().all(is_word) => {
                let word = word.to_owned();
                self.at += 1;
                Node::Word(word)
            }
            _ => return Err(self.wrong("a value is missing")),
        };
        self.deep -= 1;
        Ok(node)
    }
}

fn words(node: &Node) -> String {
    match node {
        Node::Word(word) => word.clone(),
        Node::Not(inner) => format!("!{}", words(inner)),
        Node::Two(operator, left, right) => format!("{}{operator}{}", words(left), words(right)),
    }
}

fn truth(node: &Node, known: &[(String, String)]) -> Result<bool, ConditionError> {
    match value(node, known)? {
        Value::Truth(truth) => Ok(truth),
        _ => Err(ConditionError::NoTruth(words(node))),
    }
}

fn number(
    node: &Node,
    known: &[(String, String)],
    operator: &'static str,
) -> Result<u128, ConditionError> {
    match value(node, known)? {
        Value::Number(number) => Ok(number),
        _ => Err(ConditionError::NoNumber(words(node), operator)),
    }
}

fn value(node: &Node, known: &[(String, String)]) -> Result<Value, ConditionError> {
    let (operator, left, right) = match node {
        Node::Word(word) => {
            let named = word.replace('-', "_");
            let found = known.iter().find(|(key, _)| *key == named).map(|(_, value)| value);
            let text = found.unwrap_or(word);
            let number = parse_bytes(text).map(|number| Value::Number(number.into()));
            return Ok(number.unwrap_or_else(|_| Value::Text(text.clone())));
        }
        Node::Not(inner) => return Ok(Value::Truth(!truth(inner, known)?)),
        Node::Two(operator, left, right) => (*operator, left, right),
    };
    Ok(match operator {
        "||" => Value::Truth(truth(left, known)? || truth(right, known)?),
        "&&" => Value::Truth(truth(left, known)? && truth(right, known)?),
        "+" | "*" => {
            let (a, b) = (number(left, known, operator)?, number(right, known, operator)?);
            let more = if operator == "+" { a.saturating_add(b) } else { a.saturating_mul(b) };
            Value::Number(more)
        }
        _ => {
            if !names_one(left, known) && !names_one(right, known) {
                return Err(ConditionError::NoKey(words(node)));
            }
            Value::Truth(compare(operator, left, right, known)?)
        }
    })
}

fn names_one(node: &Node, known: &[(String, String)]) -> bool {
    match node {
        Node::Word(word) => known.iter().any(|(key, _)| *key == word.replace('-', "_")),
        Node::Not(inner) => names_one(inner, known),
        Node::Two(_, left, right) => names_one(left, known) || names_one(right, known),
    }
}

fn compare(
    operator: &'static str,
    left: &Node,
    right: &Node,
    known: &[(String, String)],
) -> Result<bool, ConditionError> {
    if operator == "==" || operator == "!=" {
        let same = value(left, known)? == value(right, known)?;
        return Ok(same == (operator == "=="));
    }
    let (a, b) = (number(left, known, operator)?, number(right, known, operator)?);
    Ok(match operator {
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        _ => a >= b,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holds(text: &str) -> Result<bool, ConditionError> {
        let known = [("bs", "1M"), ("depth", "32"), ("path", "gds-batch"), ("rate_iops", "5k")];
        let known = known.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Condition::parse(text)?.holds(&known)
    }

    #[test]
    fn truths() {
        for text in [
            "bs*depth<=32M && path!=gds",
            "path == gds-batch",
            "bs < 4k || depth >= 32",
            "!(bs<4k) && depth+1 == 33",
            "rate-iops==5k",
            "2+depth*2==66",
        ] {
            assert_eq!(holds(text), Ok(true), "{text}");
        }
        for text in ["bs*depth<32M", "!(path==gds-batch)", "bs>1M && thread>1"] {
            assert_eq!(holds(text), Ok(false), "{text}");
        }
    }

    #[test]
    fn errors_say_where() {
        let form = |text: &str| match holds(text) {
            Err(ConditionError::Form(column, _)) => column,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(form("bs <"), 5);
        assert_eq!(form("(bs<1"), 6);
        assert_eq!(form("bs<1 depth"), 6);
        assert_eq!(form("bs=1"), 3);
        assert_eq!(form(&"(".repeat(500)), 101);
        assert!(matches!(holds("path<4"), Err(ConditionError::NoNumber(..))));
        assert!(matches!(holds("pth!=gds"), Err(ConditionError::NoKey(_))));
        assert!(matches!(holds("bs"), Err(ConditionError::NoTruth(_))));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "[a-z0-9()<>=!&|+* ]{0,40}") {
            let _ = holds(&text);
        }
    }
}
