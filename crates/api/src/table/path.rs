//! The simple form of `JSONPath` that printer columns and field selectors are written in.
//!
//! A path is read once and then followed without a way back: following takes no longer than the object is big,
//! times the steps of the path.

use serde_json::Value;

/// How long a path may be. A definition that needs more is a mistake.
const MAX_LENGTH: usize = 4096;

/// A path like `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("must be a simple json path starting with .")]
    NoDot,
    #[error("is longer than {MAX_LENGTH} bytes")]
    TooLong,
    #[error("`{0}` is not closed")]
    NotClosed(char),
    #[error("`{0}` is not understood")]
    NotUnderstood(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    /// From, and up to but without.
    Slice(Option<i64>, Option<i64>),
    All,
    Where(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: JsonPath,
    /// What it is compared with; nothing asks only whether it is there.
    compare: Option<(Operator, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Value(Value),
    Path(JsonPath),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl JsonPath {
    /// Reads a path, with or without braces around it.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_LENGTH {
            return Err(PathError::TooLong);
        }
        let text = text.trim();
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        let text = inner.unwrap_or(text);
        if !text.starts_with(['.', '[']) {
            return Err(PathError::NoDot);
        }
        Self::read(text, true)
    }

    /// `filters` says whether a step may have a filter: filters have none inside, which bounds the recursion.
    fn read(text: &str, filters: bool) -> Result<Self, PathError> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (inside, after) = until_closed(inside)?;
                steps.push(bracket(inside, filters)?);
                rest = after;
            } else {
                let (name, after) = field_name(rest.strip_prefix('.').unwrap_or(rest));
                match name.as_str() {
                    // A dot before a bracket, or a lone one, means what is here.
                    "" => {}
                    "*" => steps.push(Step::All),
                    _ => steps.push(Step::Field(name)),
                }
                if after.len() == rest.len() {
                    return Err(PathError::NotUnderstood(rest.to_owned()));
                }
                rest = after;
            }
        }
        Ok(Self { steps })
    }

    /// The first value the path leads to.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.follow(object).into_iter().next()
    }

    /// All values the path leads to.
    pub fn follow<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.take(value, &mut next);
            }
            found = next;
        }
        found
    }
}

impl Step {
    fn take<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        match (self, value) {
            (Self::Field(name), Value::Object(fields)) => found.extend(fields.get(name)),
            (Self::Index(index), Value::Array(items)) => {
                found.extend(position(*index, items.len()).and_then(|index| items.get(index)));
            }
            (Self::Slice(from, to), Value::Array(items)) => {
                let bound = |bound: Option<i64>, otherwise: usize| match bound {
                    None => otherwise,
                    Some(bound) if bound < 0 => position(bound, items.len()).unwrap_or(0),
                    Some(bound) => usize::try_from(bound)
                        .unwrap_or(usize::MAX)
                        .min(items.len()),
                };
                let (from, to) = (bound(*from, 0), bound(*to, items.len()));
                found.extend(items.get(from..to).into_iter().flatten());
            }
            (Self::All, Value::Array(items)) => found.extend(items),
            (Self::All, Value::Object(fields)) => found.extend(fields.values()),
            (Self::Where(filter), Value::Array(items)) => {
                found.extend(items.iter().filter(|item| filter.holds(item)));
            }
            _ => {}
        }
    }
}

/// Where an index is in a list; negative ones count from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    if index < 0 {
        length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    } else {
        usize::try_from(index).ok()
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let Some(left) = self.left.first(item) else {
            return false;
        };
        let Some((operator, operand)) = &self.compare else {
            return true;
        };
        let right = match operand {
            Operand::Value(value) => value,
            Operand::Path(path) => match path.first(item) {
                Some(value) => value,
                None => return false,
            },
        };
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().partial_cmp(&right.as_f64())
            }
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            _ => None,
        };
        match (operator, order) {
            (Operator::Equal, order) => order.is_some_and(std::cmp::Ordering::is_eq),
            (Operator::NotEqual, order) => order.is_none_or(std::cmp::Ordering::is_ne),
            (_, None) => false,
            (Operator::Less, Some(order)) => order.is_lt(),
            (Operator::LessOrEqual, Some(order)) => order.is_le(),
            (Operator::Greater, Some(order)) => order.is_gt(),
            (Operator::GreaterOrEqual, Some(order)) => order.is_ge(),
        }
    }
}

/// The name at the beginning, in which a backslash takes the meaning from the next letter.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[place..]),
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            _ => name.push(letter),
        }
    }
    (name, "")
}

/// What is inside of a bracket, and what is after it. Brackets in quotes or in further brackets do not close it.
fn until_closed(text: &str) -> Result<(&str, &str), PathError> {
    let mut quote = None;
    let mut depth = 0_usize;
    let mut escaped = false;
    for (place, letter) in text.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Ok((&text[..place], &text[place + 1..])),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    Err(PathError::NotClosed(quote.unwrap_or('[')))
}

fn bracket(inside: &str, filters: bool) -> Result<Step, PathError> {
    let inside = inside.trim();
    let not_understood = || PathError::NotUnderstood(format!("[{inside}]"));
    if inside == "*" {
        return Ok(Step::All);
    }
    if let Some(name) = unquoted(inside) {
        return Ok(Step::Field(name));
    }
    if let Some(condition) = inside
        .strip_prefix("?(")
        .and_then(|text| text.strip_suffix(')'))
    {
        if !filters {
            return Err(not_understood());
        }
        return filter(condition).map(Step::Where);
    }
    let number = |text: &str| -> Result<Option<i64>, PathError> {
        match text.trim() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| not_understood()),
        }
    };
    match inside.split_once(':') {
        Some((from, to)) => Ok(Step::Slice(number(from)?, number(to)?)),
        None => number(inside)?.map(Step::Index).ok_or_else(not_understood),
    }
}

/// A text in quotes, without them.
fn unquoted(text: &str) -> Option<String> {
    let quote = text
        .chars()
        .next()
        .filter(|letter| matches!(letter, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut result = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => result.extend(letters.next()),
            letter if letter == quote => return None,
            letter => result.push(letter),
        }
    }
    Some(result)
}

fn filter(condition: &str) -> Result<Filter, PathError> {
    let place = outside_quotes(condition);
    let Some((at, text, operator)) = place else {
        let left = item_path(condition.trim())?;
        return Ok(Filter {
            left,
            compare: None,
        });
    };
    let left = item_path(condition[..at].trim())?;
    let right = condition[at + text.len()..].trim();
    let operand = if right.starts_with('@') {
        Operand::Path(item_path(right)?)
    } else if let Some(text) = unquoted(right) {
        Operand::Value(text.into())
    } else {
        let value: Value =
            serde_json::from_str(right).map_err(|_| PathError::NotUnderstood(right.to_owned()))?;
        Operand::Value(value)
    };
    Ok(Filter {
        left,
        compare: Some((operator, operand)),
    })
}

/// The first operator that is not in quotes.
fn outside_quotes(text: &str) -> Option<(usize, &'static str, Operator)> {
    let mut quote = None;
    for (place, letter) in text.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            None => {
                let found = OPERATORS
                    .iter()
                    .find(|(name, _)| text[place..].starts_with(name));
                if let Some((name, operator)) = found {
                    return Some((place, name, *operator));
                }
            }
        }
    }
    None
}

/// A path that begins at the item, `@.type`.
fn item_path(text: &str) -> Result<JsonPath, PathError> {
    let path = text
        .strip_prefix('@')
        .ok_or_else(|| PathError::NotUnderstood(text.to_owned()))?;
    JsonPath::read(path, false)
}
