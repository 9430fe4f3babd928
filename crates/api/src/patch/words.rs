//! Values in messages the way upstream prints them: `map[image:nginx name:web]`.
//!
//! Only for people; nothing parses this.

use std::fmt::{self, Write};

use serde_json::Value;

/// Prints a value as Go's `%v` does.
pub(super) struct Words<'a>(pub(super) &'a Value);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::String(value) => f.write_str(value),
            Value::Array(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        f.write_char(' ')?;
                    }
                    write!(f, "{}", Words(item))?;
                }
                f.write_char(']')
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                f.write_str("map[")?;
                for (index, (name, value)) in fields.into_iter().enumerate() {
                    if index > 0 {
                        f.write_char(' ')?;
                    }
                    write!(f, "{name}:{}", Words(value))?;
                }
                f.write_char(']')
            }
        }
    }
}
