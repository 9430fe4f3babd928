//! JSON patch, RFC 6902, with the liberties upstream's library takes: indexes from the end, `replace` of a field
//! that is not there, `test` of a missing field against `null`.
//!
//! Neither a copy nor a move may grow the object without bound, in size or in depth.

use serde_json::{Map, Value};

use crate::status::ApiError;

/// How many operations one patch may have.
const MAX_OPERATIONS: usize = 10_000;
/// How many bytes of JSON all copies of one patch may add.
const MAX_COPIED: usize = 3 * 1024 * 1024;
/// How deep operations may nest values. What is stored must be readable again, and the parser stops at 128.
const MAX_DEPTH: usize = 120;

/// Why an operation does not fit the object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("operation has no `{0}`")]
    Incomplete(&'static str),
    #[error("unexpected kind: {0}")]
    UnknownOperation(String),
    #[error("document is missing path: {0}")]
    MissingPath(String),
    #[error("index or field does not exist: {0}")]
    MissingValue(String),
    #[error("testing value {0} failed")]
    TestFailed(String),
    #[error("copies add more than {MAX_COPIED} bytes")]
    CopiesTooLarge,
    #[error("values are nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Reads the operations, without looking at what they do.
pub(super) fn decode(body: &[u8]) -> Result<Vec<Map<String, Value>>, ApiError> {
    let operations: Vec<Map<String, Value>> = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity is too large: The allowed maximum operations in a JSON patch is \
                 {MAX_OPERATIONS}, got {}",
                operations.len()
            ),
        ));
    }
    Ok(operations)
}

/// Does one operation after the other.
pub(super) fn apply(current: &Value, operations: Vec<Map<String, Value>>) -> Result<Value, Fault> {
    let mut patcher = Patcher {
        document: current.clone(),
        copied: 0,
    };
    for operation in operations {
        patcher.perform(operation)?;
    }
    Ok(patcher.document)
}

struct Patcher {
    document: Value,
    copied: usize,
}

impl Patcher {
    fn perform(&mut self, mut operation: Map<String, Value>) -> Result<(), Fault> {
        let kind = text(&operation, "op")?;
        let path = text(&operation, "path")?;
        // A missing value is the same as null.
        let value = operation.remove("value").unwrap_or_default();
        match kind.as_str() {
            "add" => self.add(&path, value),
            "remove" => self.take(&path).map(drop),
            "replace" => self.replace(&path, value),
            "test" => self.test(&path, &value),
            "move" => {
                let from = text(&operation, "from")?;
                let value = self.take(&from)?;
                self.add(&path, value)
            }
            "copy" => {
                let from = text(&operation, "from")?;
                let value = self.copied_from(&from)?;
                self.add(&path, value)
            }
            _ => Err(Fault::UnknownOperation(kind)),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), Fault> {
        check_depth(path, &value)?;
        let (parent, key) = parent(&mut self.document, path)?;
        match parent {
            Value::Object(fields) => {
                fields.insert(key, value);
            }
            Value::Array(items) if key == "-" => items.push(value),
            Value::Array(items) => {
                let index = index(&key, items.len() + 1)
                    .ok_or_else(|| Fault::MissingValue(path.to_owned()))?;
                items.insert(index, value);
            }
            _ => return Err(Fault::MissingPath(path.to_owned())),
        }
        Ok(())
    }

    fn replace(&mut self, path: &str, value: Value) -> Result<(), Fault> {
        check_depth(path, &value)?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(Fault::MissingValue(path.to_owned()));
            }
            self.document = value;
            return Ok(());
        }
        let (parent, key) = parent(&mut self.document, path)?;
        match parent {
            Value::Object(fields) => {
                fields.insert(key, value);
                Ok(())
            }
            Value::Array(items) => {
                let index = index(&key, items.len());
                match index.and_then(|index| items.get_mut(index)) {
                    Some(item) => {
                        *item = value;
                        Ok(())
                    }
                    None => Err(Fault::MissingValue(path.to_owned())),
                }
            }
            _ => Err(Fault::MissingPath(path.to_owned())),
        }
    }

    fn take(&mut self, path: &str) -> Result<Value, Fault> {
        let missing = || Fault::MissingValue(path.to_owned());
        let (parent, key) = parent(&mut self.document, path)?;
        match parent {
            Value::Object(fields) => fields.remove(&key).ok_or_else(missing),
            Value::Array(items) => {
                let index = index(&key, items.len()).ok_or_else(missing)?;
                Ok(items.remove(index))
            }
            _ => Err(Fault::MissingPath(path.to_owned())),
        }
    }

    fn test(&mut self, path: &str, expected: &Value) -> Result<(), Fault> {
        let found = if path.is_empty() {
            &self.document
        } else {
            self.value(path)?
        };
        if found == expected {
            Ok(())
        } else {
            Err(Fault::TestFailed(path.to_owned()))
        }
    }

    /// What is at a path. A field that is not there is null; an index that is not there is a fault.
    fn value(&mut self, path: &str) -> Result<&Value, Fault> {
        let (parent, key) = parent(&mut self.document, path)?;
        match parent {
            Value::Object(fields) => Ok(fields.get(&key).unwrap_or(&Value::Null)),
            Value::Array(items) => index(&key, items.len())
                .and_then(|index| items.get(index))
                .ok_or_else(|| Fault::MissingValue(path.to_owned())),
            _ => Err(Fault::MissingPath(path.to_owned())),
        }
    }

    fn copied_from(&mut self, path: &str) -> Result<Value, Fault> {
        let left = MAX_COPIED - self.copied;
        let value = self.value(path)?;
        let size = size_of_json(value, left).ok_or(Fault::CopiesTooLarge)?;
        let value = value.clone();
        self.copied += size;
        Ok(value)
    }
}

fn text(operation: &Map<String, Value>, name: &'static str) -> Result<String, Fault> {
    operation
        .get(name)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or(Fault::Incomplete(name))
}

/// The object or list that a path ends in, and the last part of the path.
fn parent<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Fault> {
    let missing = || Fault::MissingPath(path.to_owned());
    let (start, rest) = path.split_once('/').ok_or_else(missing)?;
    // What stands before the first slash is ignored by upstream; a pointer begins with the slash.
    if !start.is_empty() {
        return Err(missing());
    }
    let (parents, key) = match rest.rsplit_once('/') {
        Some((parents, key)) => (Some(parents), key),
        None => (None, rest),
    };
    let mut place = document;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let part = unescape(part);
        place = match place {
            Value::Object(fields) => fields.get_mut(&part),
            Value::Array(items) => index(&part, items.len()).and_then(|index| items.get_mut(index)),
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    Ok((place, unescape(key)))
}

fn unescape(part: &str) -> String {
    if part.contains('~') {
        part.replace("~1", "/").replace("~0", "~")
    } else {
        part.to_owned()
    }
}

/// The position an index names among `length` positions; negative ones count from the end.
fn index(text: &str, length: usize) -> Option<usize> {
    let number: i64 = text.parse().ok()?;
    let index = if number < 0 {
        length.checked_sub(usize::try_from(number.unsigned_abs()).ok()?)?
    } else {
        usize::try_from(number).ok()?
    };
    (index < length).then_some(index)
}

fn check_depth(path: &str, value: &Value) -> Result<(), Fault> {
    let above = path.matches('/').count();
    let allowed = MAX_DEPTH.checked_sub(above).ok_or(Fault::TooDeep)?;
    if fits(value, allowed) {
        Ok(())
    } else {
        Err(Fault::TooDeep)
    }
}

/// Whether a value has at most this many levels of lists and objects.
fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|value| fits(value, levels - 1)),
        _ => true,
    }
}

/// How long the JSON of a value is, or `None` if that is more than `limit`.
fn size_of_json(value: &Value, limit: usize) -> Option<usize> {
    struct Counter {
        size: usize,
        limit: usize,
    }
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.size += bytes.len();
            if self.size > self.limit {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter { size: 0, limit };
    serde_json::to_writer(&mut counter, value).ok()?;
    Some(counter.size)
}
