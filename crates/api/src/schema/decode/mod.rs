//! Makes of JSON what Go would make of it by reading it into its types and writing it again.
//!
//! Afterwards an object has only fields that its type has, of the right types, nothing that is null, and
//! nothing empty that Go would leave out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::quantity::{Quantity, QuantityError};
use super::{Field, FieldValidation, Findings, Form, Schema, Shape, TypeId, findings, time};
use crate::status::ApiError;

/// Deeper objects than this are refused; the deepest kind has far fewer levels.
const DEEPEST: usize = 200;

/// Reads `value` as an object of a type. `earlier` is what the reader of the text found; the texts that come
/// back are warnings for the client.
pub fn decode(
    schema: &Schema,
    id: TypeId,
    value: Value,
    mut earlier: Findings,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    let (kind, version) = subject(schema, id, &value);
    let (value, later) = convert(schema, id, value)
        .map_err(|why| findings::cannot_be_handled(&kind, &version, &why))?;
    earlier.extend(later);
    let warnings = earlier.judge(validation, &kind, &version)?;
    Ok((value, warnings))
}

/// The same without a judgement: the object, and the fields that were dropped.
pub fn convert(schema: &Schema, id: TypeId, value: Value) -> Result<(Value, Findings), String> {
    let mut decoder = Decoder {
        schema,
        path: String::new(),
        fields: Vec::new(),
        owner: id,
        findings: Findings::default(),
        depth: 0,
    };
    let value = decoder.shape(&Shape::Object(id), None, Form::Plain, value)?;
    Ok((value.unwrap_or_default(), decoder.findings))
}

/// How messages call the object: as it does itself, or else as its type.
fn subject(schema: &Schema, id: TypeId, value: &Value) -> (String, String) {
    let mut words = schema.get(id).name.rsplit('.');
    let kind = words.next().unwrap_or_default();
    let version = words.next().unwrap_or_default();
    let said = |field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let version =
        said("apiVersion").map_or(version, |text| text.rsplit('/').next().unwrap_or(text));
    (said("kind").unwrap_or(kind).to_owned(), version.to_owned())
}

struct Decoder<'a> {
    schema: &'a Schema,
    /// Where we are, as findings say it: `spec.containers[0].foo`.
    path: String,
    /// Where we are, as Go's errors say it: the fields alone.
    fields: Vec<String>,
    /// The object that the innermost field belongs to.
    owner: TypeId,
    findings: Findings,
    depth: usize,
}

impl Decoder<'_> {
    /// `None` is what null means: nothing.
    fn shape(
        &mut self,
        shape: &Shape,
        go: Option<&str>,
        form: Form,
        value: Value,
    ) -> Result<Option<Value>, String> {
        if value.is_null() && *shape != Shape::Any {
            return Ok(None);
        }
        if self.depth >= DEEPEST {
            return Err("exceeded max depth".to_owned());
        }
        self.depth += 1;
        let value = match (shape, value) {
            (Shape::Object(id), Value::Object(map)) => self.object(*id, map)?,
            (Shape::List(item), Value::Array(items)) => self.list(item, go, form, items)?,
            (Shape::Map(item), Value::Object(map)) => self.map(item, go, form, map)?,
            (Shape::Any, value) => self.any(form, value)?,
            (Shape::Boolean, value @ Value::Bool(_)) => value,
            (Shape::String, value @ Value::String(_)) => value,
            (Shape::Int32 | Shape::Int64, Value::Number(number)) => {
                self.integer(shape, go, &number)?
            }
            (Shape::Double, value @ Value::Number(_)) => value,
            (Shape::Bytes, Value::String(text)) => bytes(&text)?,
            (Shape::Time, Value::String(text)) => time::seconds(time::parse(&text)?).into(),
            (Shape::MicroTime, Value::String(text)) => time::micros(time::parse(&text)?).into(),
            (Shape::Quantity, value) => quantity(&value)?.1.into(),
            (Shape::IntOrString, value @ Value::String(_)) => value,
            (Shape::IntOrString, Value::Number(number)) => {
                self.integer(&Shape::Int32, None, &number)?
            }
            (Shape::IntOrString, value) => return Err(self.mismatch(&value, &Shape::Int32, None)),
            (Shape::Time | Shape::MicroTime, value) => {
                return Err(self.mismatch(&value, &Shape::String, None));
            }
            (shape, value) => return Err(self.mismatch(&value, shape, go)),
        };
        self.depth -= 1;
        Ok(Some(value))
    }

    fn object(&mut self, id: TypeId, map: Map<String, Value>) -> Result<Value, String> {
        let owner = std::mem::replace(&mut self.owner, id);
        let kind = self.schema.get(id);
        let mut decoded = Map::new();
        for (name, value) in map {
            let before = self.enter(&name);
            match kind.field(&name) {
                Some(field) => {
                    self.fields.push(name);
                    let value = self.shape(
                        &field.shape,
                        field.wire.go.as_deref(),
                        field.wire.form,
                        value,
                    )?;
                    let name = self.fields.pop().unwrap_or_default();
                    if let Some(value) = value
                        && !is_left_out(field, &value)
                    {
                        decoded.insert(name, value);
                    }
                }
                None if kind.open => {
                    decoded.insert(name, value);
                }
                None => self.findings.unknown(&self.path),
            }
            self.path.truncate(before);
        }
        self.owner = owner;
        Ok(Value::Object(decoded))
    }

    fn list(
        &mut self,
        item: &Shape,
        go: Option<&str>,
        form: Form,
        items: Vec<Value>,
    ) -> Result<Value, String> {
        let go = go.and_then(|name| name.strip_prefix("[]"));
        let mut decoded = Vec::with_capacity(items.len());
        for (index, value) in items.into_iter().enumerate() {
            let before = self.path.len();
            self.path.push('[');
            self.path.push_str(&index.to_string());
            self.path.push(']');
            let value = self.shape(item, go, form, value)?;
            self.path.truncate(before);
            decoded.push(value.unwrap_or_else(|| zero(item)));
        }
        Ok(Value::Array(decoded))
    }

    fn map(
        &mut self,
        item: &Shape,
        go: Option<&str>,
        form: Form,
        map: Map<String, Value>,
    ) -> Result<Value, String> {
        let go = go.and_then(|name| name.strip_prefix("map[string]"));
        let mut decoded = Map::new();
        for (name, value) in map {
            let before = self.enter(&name);
            let value = match (item, value) {
                // Amounts of resources have one form; upstream's defaults see to it.
                (Shape::Quantity, Value::Null) => Some("0".into()),
                (Shape::Quantity, value) => {
                    Some(quantity(&value)?.0.rounded_to_milli().to_string().into())
                }
                (item, value) => self.shape(item, go, form, value)?,
            };
            self.path.truncate(before);
            decoded.insert(name, value.unwrap_or_else(|| zero(item)));
        }
        Ok(Value::Object(decoded))
    }

    /// Raw JSON stays as it is. A schema inside a custom resource definition is read leniently, as upstream
    /// does: what it drops there is not worth a finding.
    fn any(&mut self, form: Form, value: Value) -> Result<Value, String> {
        if form == Form::Plain {
            return Ok(value);
        }
        let schema = Shape::Object(self.owner);
        let before = self.findings.clone();
        let value = match (form, value) {
            (_, value @ Value::Object(_)) => self.shape(&schema, None, Form::Plain, value)?,
            (Form::SchemaOrBool, value @ Value::Bool(_)) => Some(value),
            (Form::SchemaOrBool, _) => return Err("boolean or JSON schema expected".to_owned()),
            (Form::SchemaOrList, Value::Array(items)) => {
                Some(self.list(&schema, None, Form::Plain, items)?)
            }
            (Form::SchemaOrStrings, Value::Array(items)) => {
                Some(self.list(&Shape::String, None, Form::Plain, items)?)
            }
            (_, value) => return Err(self.mismatch(&value, &schema, None)),
        };
        self.findings = before;
        Ok(value.unwrap_or_default())
    }

    fn integer(
        &self,
        shape: &Shape,
        go: Option<&str>,
        number: &serde_json::Number,
    ) -> Result<Value, String> {
        let whole = number.as_i64().or_else(|| whole(number.as_f64()?));
        let fits = match shape {
            Shape::Int32 => whole.filter(|whole| i32::try_from(*whole).is_ok()),
            _ => whole,
        };
        fits.map(Value::from)
            .ok_or_else(|| self.cannot_unmarshal(&format!("number {number}"), shape, go))
    }

    fn mismatch(&self, value: &Value, shape: &Shape, go: Option<&str>) -> String {
        let what = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.cannot_unmarshal(what, shape, go)
    }

    fn cannot_unmarshal(&self, what: &str, shape: &Shape, go: Option<&str>) -> String {
        let expected = go.map_or_else(|| self.go_type(shape), str::to_owned);
        if self.fields.is_empty() {
            return format!("json: cannot unmarshal {what} into Go value of type {expected}");
        }
        let owner = &self.schema.get(self.owner).name;
        format!(
            "json: cannot unmarshal {what} into Go struct field {}.{} of type {expected}",
            owner.rsplit('.').next().unwrap_or_default(),
            self.fields.join(".")
        )
    }

    /// What Go calls a type.
    fn go_type(&self, shape: &Shape) -> String {
        match shape {
            Shape::Boolean => "bool".to_owned(),
            Shape::Int32 => "int32".to_owned(),
            Shape::Int64 => "int64".to_owned(),
            Shape::Double => "float64".to_owned(),
            Shape::String => "string".to_owned(),
            Shape::Bytes => "[]uint8".to_owned(),
            Shape::Time => "v1.Time".to_owned(),
            Shape::MicroTime => "v1.MicroTime".to_owned(),
            Shape::Quantity => "resource.Quantity".to_owned(),
            Shape::IntOrString => "intstr.IntOrString".to_owned(),
            Shape::Any => "runtime.RawExtension".to_owned(),
            Shape::List(item) => format!("[]{}", self.go_type(item)),
            Shape::Map(item) => format!("map[string]{}", self.go_type(item)),
            Shape::Object(id) => {
                let name = &self.schema.get(*id).name;
                let mut words = name.rsplitn(3, '.');
                let kind = words.next().unwrap_or_default();
                format!("{}.{kind}", words.next().unwrap_or_default())
            }
        }
    }

    fn enter(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        before
    }
}

/// Whether Go leaves a field out because it holds nothing.
pub fn is_left_out(field: &Field, value: &Value) -> bool {
    if field.required || field.wire.always {
        return false;
    }
    match (&field.shape, value) {
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        (Shape::String | Shape::Bytes, Value::String(text)) => {
            text.is_empty() && !field.wire.pointer
        }
        (Shape::Boolean, value) => *value == Value::Bool(false) && !field.wire.pointer,
        (Shape::Int32 | Shape::Int64 | Shape::IntOrString, value) => {
            value.as_i64() == Some(0) && !field.wire.pointer
        }
        _ => false,
    }
}

/// What null is where something must stand: in a list or a map.
fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Boolean => false.into(),
        Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString => 0.into(),
        Shape::String | Shape::Bytes => "".into(),
        Shape::Quantity => "0".into(),
        Shape::Object(_) | Shape::Map(_) => Value::Object(Map::new()),
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Time | Shape::MicroTime | Shape::Any => Value::Null,
    }
}

/// A number that was written as `3.0`, as some writers of YAML do.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked: whole, and exact in both"
    )]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// The amount, and the text for it that the client gave.
fn quantity(value: &Value) -> Result<(Quantity, String), String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err(QuantityError::Form.to_string()),
    };
    match Quantity::parse(&text) {
        Ok(quantity) => Ok((quantity, text)),
        Err(error) => Err(error.to_string()),
    }
}

fn bytes(text: &str) -> Result<Value, String> {
    let text: String = text
        .chars()
        .filter(|character| !"\r\n".contains(*character))
        .collect();
    match STANDARD.decode(&text) {
        Ok(_) => Ok(text.into()),
        Err(error) => Err(format!(
            "illegal base64 data at input byte {}",
            match error {
                base64::DecodeError::InvalidByte(offset, _)
                | base64::DecodeError::InvalidLastSymbol(offset, _) => offset,
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding =>
                    text.len() / 4 * 4,
            }
        )),
    }
}

#[cfg(test)]
mod tests;
