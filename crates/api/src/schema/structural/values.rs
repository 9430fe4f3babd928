//! Checks the values of an object, with the sentences that upstream has for what is wrong.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Additional, Rules, Structural, formats};
use crate::field::{FieldError, Path};

impl Structural {
    /// All that is wrong with an object.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.check_value(&Path::default(), object, &mut errors);
        self.check_lists(&Path::default(), object, &mut errors);
        errors
    }

    fn check_value(&self, path: &Path, value: &Value, errors: &mut Vec<FieldError>) {
        if value.is_null() && self.nullable {
            return;
        }
        if !self.has_type(value) {
            let expected = if self.int_or_string {
                "integer,string"
            } else {
                &self.kind
            };
            let found = type_of(value);
            let sentence = format!("{} must be of type {expected}: {found:?}", body(path));
            errors.push(FieldError::type_invalid(path, found, sentence));
            return;
        }
        self.rules.check(path, value, errors);
        match value {
            Value::Object(map) => self.check_fields(path, map, errors),
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        schema.check_value(&path.index(index), item, errors);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_fields(&self, path: &Path, map: &Map<String, Value>, errors: &mut Vec<FieldError>) {
        for name in &self.rules.required {
            if !map.contains_key(name) {
                errors.push(FieldError::required(&path.child(name), ""));
            }
        }
        for (name, value) in map {
            let schema = match (self.properties.get(name), &self.additional) {
                (Some(property), _) => property,
                (None, Some(Additional::Schema(schema))) => schema,
                _ => continue,
            };
            schema.check_value(&path.child(name), value, errors);
        }
        if self.embedded_resource {
            for name in ["apiVersion", "kind"] {
                if map
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .is_empty()
                {
                    let detail = "must not be empty";
                    errors.push(FieldError::required(&path.child(name), detail));
                }
            }
        }
    }

    fn has_type(&self, value: &Value) -> bool {
        if self.int_or_string {
            return matches!(type_of(value), "integer" | "string");
        }
        match self.kind.as_str() {
            "" => true,
            "integer" => is_whole(value),
            "number" => value.is_number(),
            kind => kind == type_of(value),
        }
    }

    /// Items of sets and of lists with keys are there once.
    fn check_lists(&self, path: &Path, value: &Value, errors: &mut Vec<FieldError>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    match (self.properties.get(name), &self.additional) {
                        (Some(property), _) => {
                            property.check_lists(&path.child(name), value, errors);
                        }
                        (None, Some(Additional::Schema(schema))) => {
                            schema.check_lists(&path.key(name), value, errors);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(items) => {
                match self.list_type.as_deref() {
                    Some("set") => duplicates(path, items.iter().cloned(), errors),
                    Some("map") => self.check_keys(path, items, errors),
                    _ => {}
                }
                if let Some(schema) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        schema.check_lists(&path.index(index), item, errors);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_keys(&self, path: &Path, items: &[Value], errors: &mut Vec<FieldError>) {
        for (index, item) in items.iter().enumerate() {
            if !item.is_object() && !item.is_null() {
                errors.push(FieldError::invalid(
                    &path.index(index),
                    item.clone(),
                    "must be an object for an array of list-type map",
                ));
                return;
            }
        }
        let keys = items.iter().map(|item| {
            let fields = self.list_map_keys.iter();
            let key: Map<String, Value> = fields
                .filter_map(|name| Some((name.clone(), item.get(name)?.clone())))
                .collect();
            Value::Object(key)
        });
        duplicates(path, keys, errors);
    }
}

impl Rules {
    fn check(&self, path: &Path, value: &Value, errors: &mut Vec<FieldError>) {
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let texts: Vec<String> = self
                .choices
                .iter()
                .map(|choice| {
                    choice
                        .as_str()
                        .map_or_else(|| choice.to_string(), str::to_owned)
                })
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            errors.push(FieldError::not_supported(path, value.clone(), &texts));
        }
        match value {
            Value::Number(number) => self.check_number(path, value, number.as_f64(), errors),
            Value::String(text) => self.check_text(path, text, errors),
            Value::Array(items) => self.check_items(path, items, errors),
            Value::Object(map) => self.check_properties(path, map, errors),
            Value::Null | Value::Bool(_) => {}
        }
        self.check_alternatives(path, value, errors);
    }

    fn check_number(
        &self,
        path: &Path,
        value: &Value,
        number: Option<f64>,
        errors: &mut Vec<FieldError>,
    ) {
        let Some(number) = number else {
            return;
        };
        let mut wrong = |sentence: String| {
            let sentence = format!("{} should be {sentence}", body(path));
            errors.push(FieldError::invalid(path, value.clone(), sentence));
        };
        if let Some(maximum) = self.maximum {
            if self.exclusive_maximum && number >= maximum {
                wrong(format!("less than {maximum}"));
            } else if number > maximum {
                wrong(format!("less than or equal to {maximum}"));
            }
        }
        if let Some(minimum) = self.minimum {
            if self.exclusive_minimum && number <= minimum {
                wrong(format!("greater than {minimum}"));
            } else if number < minimum {
                wrong(format!("greater than or equal to {minimum}"));
            }
        }
        if let Some(factor) = self.multiple_of
            && factor > 0.0
            && (number / factor).fract() != 0.0
        {
            wrong(format!("a multiple of {factor}"));
        }
    }

    fn check_text(&self, path: &Path, text: &str, errors: &mut Vec<FieldError>) {
        let length = text.chars().count() as u64;
        if let Some(most) = self.max_length
            && length > most
        {
            errors.push(FieldError::too_long(
                path,
                usize::try_from(most).unwrap_or(usize::MAX),
            ));
        }
        if let Some(least) = self.min_length
            && length < least
        {
            let sentence = format!("{} should be at least {least} chars long", body(path));
            errors.push(FieldError::invalid(path, text, sentence));
        }
        if let Some(pattern) = &self.pattern
            && !pattern.is_match(text)
        {
            let sentence = format!("{} should match '{pattern}'", body(path));
            errors.push(FieldError::invalid(path, text, sentence));
        }
        if !formats::fits(&self.format, text) {
            let sentence = format!("{} must be of type {}: {text:?}", body(path), self.format);
            errors.push(FieldError::type_invalid(path, text, sentence));
        }
    }

    fn check_items(&self, path: &Path, items: &[Value], errors: &mut Vec<FieldError>) {
        let length = items.len() as u64;
        if let Some(most) = self.max_items
            && length > most
        {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            errors.push(FieldError::too_many(path, items.len(), most));
        }
        if let Some(least) = self.min_items
            && length < least
        {
            let sentence = format!("{} should have at least {least} items", body(path));
            errors.push(FieldError::invalid(path, length, sentence));
        }
        let mut found = Vec::new();
        if self.unique_items {
            duplicates(path, items.iter().cloned(), &mut found);
        }
        if !found.is_empty() {
            let sentence = format!("{} shouldn't contain duplicates", body(path));
            errors.push(FieldError::invalid(path, "", sentence));
        }
    }

    fn check_properties(
        &self,
        path: &Path,
        map: &Map<String, Value>,
        errors: &mut Vec<FieldError>,
    ) {
        let length = map.len() as u64;
        if let Some(most) = self.max_properties
            && length > most
        {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            errors.push(FieldError::too_many(path, map.len(), most));
        }
        if let Some(least) = self.min_properties
            && length < least
        {
            let sentence = format!("{} should have at least {least} properties", body(path));
            errors.push(FieldError::invalid(path, least, sentence));
        }
    }

    /// Upstream tells of these without a field of their own.
    fn check_alternatives(&self, path: &Path, value: &Value, errors: &mut Vec<FieldError>) {
        let name = path.as_str();
        let mut wrong = |sentence: String, mut nearest: Vec<FieldError>| {
            errors.push(FieldError::invalid(&Path::default(), "", sentence));
            errors.append(&mut nearest);
        };
        let failures = |schema: &Structural| {
            let mut errors = Vec::new();
            schema.check_value(path, value, &mut errors);
            errors
        };
        let all: Vec<FieldError> = self.all_of.iter().flat_map(failures).collect();
        if !all.is_empty() {
            wrong(
                format!("{name:?} must validate all the schemas (allOf)"),
                all,
            );
        }
        let any: Vec<Vec<FieldError>> = self.any_of.iter().map(failures).collect();
        if !any.is_empty() && any.iter().all(|errors| !errors.is_empty()) {
            let sentence = format!("{name:?} must validate at least one schema (anyOf)");
            wrong(sentence, nearest(any));
        }
        let one: Vec<Vec<FieldError>> = self.one_of.iter().map(failures).collect();
        match one.iter().filter(|errors| errors.is_empty()).count() {
            1 => {}
            0 if one.is_empty() => {}
            0 => wrong(
                format!("{name:?} must validate one and only one schema (oneOf). Found none valid"),
                nearest(one),
            ),
            several => wrong(
                format!(
                    "{name:?} must validate one and only one schema (oneOf). Found {several} valid alternatives"
                ),
                Vec::new(),
            ),
        }
        if let Some(not) = &self.not
            && failures(not).is_empty()
        {
            wrong(
                format!("{name:?} must not validate the schema (not)"),
                Vec::new(),
            );
        }
    }
}

/// The alternative with the fewest faults is the one that was meant.
fn nearest(alternatives: Vec<Vec<FieldError>>) -> Vec<FieldError> {
    alternatives
        .into_iter()
        .min_by_key(Vec::len)
        .unwrap_or_default()
}

/// Each value that comes again, at its second place.
fn duplicates(path: &Path, values: impl Iterator<Item = Value>, errors: &mut Vec<FieldError>) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(&path.index(index), value));
        }
    }
}

fn body(path: &Path) -> String {
    format!("{} in body", path.as_str())
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_whole(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
