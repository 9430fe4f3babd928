//! Reads the table of types. Its form is told at the top of `types.txt`.
//!
//! Reading never fails: a word that is not understood is a problem for the tests of this file to find, since
//! the table is part of the program.

use std::sync::Arc;

use super::{Field, Form, ListKind, Merge, Schema, Shape, Type, TypeId, Wire};

/// The types of a table, and what was not understood.
pub(super) struct Table {
    pub(super) schema: Schema,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests look at it"))]
    pub(super) problems: Vec<String>,
}

pub(super) fn parse(text: &str) -> Table {
    let mut reader = Reader {
        names: std::collections::HashMap::new(),
        problems: Vec::new(),
    };
    let lines = || {
        text.lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    for line in lines().filter(|line| !line.starts_with(' ')) {
        let id = TypeId(reader.names.len());
        reader.names.insert(first_word(line), id);
    }
    let mut types: Vec<Type> = Vec::with_capacity(reader.names.len());
    for line in lines() {
        match (line.strip_prefix("  "), types.last_mut()) {
            (Some(field), Some(owner)) => {
                let field = reader.field(field, &owner.name);
                owner.fields.push(field);
            }
            _ => types.push(Type {
                name: first_word(line).to_owned(),
                atomic: line.ends_with(" atomic"),
                ..Type::default()
            }),
        }
    }
    Table {
        schema: Schema::new(types),
        problems: reader.problems,
    }
}

fn first_word(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

struct Reader<'a> {
    names: std::collections::HashMap<&'a str, TypeId>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn field(&mut self, line: &str, owner: &str) -> Field {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let (embedded, number) = self.numbers(words.next().unwrap_or_default(), line);
        let mut wire = Wire {
            embedded,
            ..Wire::default()
        };
        let shape = self.shape(words.next().unwrap_or_default(), owner, &mut wire.form);
        let mut field = Field {
            name,
            number,
            shape,
            required: false,
            list: ListKind::Atomic,
            merge: None,
            atomic: false,
            default: None,
            wire,
        };
        for word in words {
            if !apply(word, &mut field) {
                self.problems.push(format!("{owner}: {line}: {word}"));
            }
        }
        field
    }

    /// `2.1` is number 1 in an embedded message that is number 2.
    fn numbers(&mut self, word: &str, line: &str) -> (u32, u32) {
        let (embedded, number) = word.split_once('.').unwrap_or(("0", word));
        match (embedded.parse(), number.parse()) {
            (Ok(embedded), Ok(number)) => (embedded, number),
            _ => {
                self.problems.push(format!("no number: {line}"));
                (0, 0)
            }
        }
    }

    fn shape(&mut self, word: &str, owner: &str, form: &mut Form) -> Shape {
        if let Some(item) = word.strip_prefix("[]") {
            return Shape::List(Arc::new(self.shape(item, owner, form)));
        }
        if let Some(value) = word.strip_prefix("{}") {
            return Shape::Map(Arc::new(self.shape(value, owner, form)));
        }
        match word {
            "bool" => Shape::Boolean,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "double" => Shape::Double,
            "string" => Shape::String,
            "bytes" => Shape::Bytes,
            "time" => Shape::Time,
            "microtime" => Shape::MicroTime,
            "quantity" => Shape::Quantity,
            "intorstring" => Shape::IntOrString,
            "any" => Shape::Any,
            "schema-or-list" => any(Form::SchemaOrList, form),
            "schema-or-bool" => any(Form::SchemaOrBool, form),
            "schema-or-strings" => any(Form::SchemaOrStrings, form),
            name => self.object(name, owner),
        }
    }

    fn object(&mut self, name: &str, owner: &str) -> Shape {
        let package = owner.rsplit_once('.').map_or("", |(package, _)| package);
        let known = self
            .names
            .get(name)
            .or_else(|| self.names.get(format!("{package}.{name}").as_str()));
        if let Some(id) = known {
            return Shape::Object(*id);
        }
        self.problems.push(format!("{owner}: no type {name}"));
        Shape::Any
    }
}

fn any(special: Form, form: &mut Form) -> Shape {
    *form = special;
    Shape::Any
}

/// Notes one word about a field; false if it is not one.
fn apply(word: &str, field: &mut Field) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    match name {
        "required" => field.required = true,
        "atomic" => field.atomic = true,
        "pointer" => field.wire.pointer = true,
        "always" => field.wire.always = true,
        "wrapped" => field.wire.form = Form::Wrapped,
        "go" => field.wire.go = Some(value.into()),
        "list" if value == "set" => field.list = ListKind::Set,
        "list" => match value.strip_prefix("map:") {
            Some(keys) => field.list = ListKind::Map(keys.split(',').map(str::to_owned).collect()),
            None => return false,
        },
        "patch" => field.merge = Some(merge(value)),
        "default" => match serde_json::from_str(value) {
            Ok(default) => field.default = Some(default),
            Err(_) => return false,
        },
        _ => return false,
    }
    true
}

/// `merge,retainKeys:name`.
fn merge(value: &str) -> Merge {
    let (strategies, key) = match value.split_once(':') {
        Some((strategies, key)) => (strategies, Some(key.to_owned())),
        None => (value, None),
    };
    let has = |strategy| strategies.split(',').any(|word| word == strategy);
    Merge {
        key,
        retain_keys: has("retainKeys"),
        merges: has("merge"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_word_of_the_table_is_understood() {
        let table = parse(super::super::BUILTIN);

        assert_eq!(table.problems, Vec::<String>::new());
        assert!(table.schema.types().len() > 400);
    }

    #[test]
    fn names_are_in_order_so_that_fields_are_found() {
        for kind in parse(super::super::BUILTIN).schema.types() {
            assert!(
                kind.fields.is_sorted_by(|a, b| a.name < b.name),
                "{}",
                kind.name
            );
        }
    }

    #[test]
    fn a_line_says_how_a_field_merges() {
        let table = parse(
            "a.Kind atomic\n  ports 2.4 []Port required list=map:port,protocol patch=merge,retainKeys:port\na.Port\n  protocol 1 string default=\"TCP\" go=v1.Protocol\n",
        );
        let ports = &table.schema.types()[0].fields[0];
        let protocol = &table.schema.types()[1].fields[0];

        assert!(table.schema.types()[0].atomic);
        assert_eq!((ports.wire.embedded, ports.number), (2, 4));
        assert_eq!(ports.shape, Shape::List(Arc::new(Shape::Object(TypeId(1)))));
        assert_eq!(
            ports.list,
            ListKind::Map(vec!["port".into(), "protocol".into()])
        );
        assert_eq!(
            ports.merge,
            Some(Merge {
                key: Some("port".into()),
                retain_keys: true,
                merges: true
            })
        );
        assert_eq!(protocol.default, Some(json!("TCP")));
        assert_eq!(protocol.wire.go.as_deref(), Some("v1.Protocol"));
    }

    #[test]
    fn an_unknown_word_or_type_is_a_problem() {
        let table = parse("a.Kind\n  x 1 string sometimes\n  y one string\n  z 3 Nothing\n");

        assert_eq!(table.problems.len(), 3);
    }
}
