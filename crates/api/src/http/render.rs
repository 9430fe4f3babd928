//! Objects as tables, as metadata alone, and as lists.

use bytes::{BufMut as _, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{cache::Listing, object, registry::Kind, table};

fn meta_version(beta: bool) -> &'static str {
    if beta {
        "meta.k8s.io/v1beta1"
    } else {
        "meta.k8s.io/v1"
    }
}

/// Only the metadata of an object.
pub(crate) fn partial(value: &Value, beta: bool) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": meta_version(beta),
        "metadata": value["metadata"],
    })
}

/// Objects as rows; `include` says how much of each object comes with its row.
pub(crate) fn table(
    kind: &Kind,
    values: &[Value],
    metadata: &Value,
    include: &str,
    with_columns: bool,
    now: Timestamp,
    beta: bool,
) -> Value {
    let custom = kind.custom.as_ref().map(|custom| &custom.columns);
    let rows: Vec<Value> = values
        .iter()
        .map(|value| {
            let cells = match custom {
                Some(columns) => columns.cells(value, now),
                None => table::cells(&kind.group, &kind.kind, value, now),
            };
            let mut row = json!({"cells": cells});
            let conditions = table::conditions(&kind.group, &kind.kind, value);
            if !conditions.is_empty() {
                row["conditions"] = conditions.into();
            }
            match include {
                "None" => {}
                "Object" => row["object"] = value.clone(),
                _ => row["object"] = partial(value, beta),
            }
            row
        })
        .collect();
    let heads: Vec<Value> = match custom {
        _ if !with_columns => Vec::new(),
        Some(columns) => columns.heads(),
        None => table::columns(&kind.group, &kind.kind)
            .iter()
            .map(table::Column::to_value)
            .collect(),
    };
    json!({
        "kind": "Table",
        "apiVersion": meta_version(beta),
        "metadata": metadata,
        "columnDefinitions": if with_columns { heads.into() } else { Value::Null },
        "rows": rows,
    })
}

/// The metadata of a list.
pub(crate) fn list_metadata(listing: &Listing, next: Option<&str>) -> Value {
    let mut metadata = json!({"resourceVersion": listing.revision.to_string()});
    if let Some(next) = next {
        metadata["continue"] = next.into();
        if let Some(remaining) = listing.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    metadata
}

/// A list in JSON, put together from the bytes that are cached.
pub(crate) fn json_list(kind: &Kind, listing: &Listing, next: Option<&str>) -> Bytes {
    // Lists of custom resources name the type of each item; lists of built-in ones do not.
    let item_head = kind
        .custom
        .as_ref()
        .map(|_| object::type_head(&kind.api_version(), &kind.kind));
    let head_size = item_head.as_ref().map_or(1, String::len);
    let size: usize = listing
        .items
        .iter()
        .map(|item| item.json.len() + head_size + 1)
        .sum();
    let mut bytes = BytesMut::with_capacity(size + 256);
    bytes.put_slice(object::type_head(&kind.api_version(), &kind.list_kind).as_bytes());
    bytes.put_slice(b"\"metadata\":");
    bytes.put_slice(list_metadata(listing, next).to_string().as_bytes());
    bytes.put_slice(b",\"items\":[");
    for (index, item) in listing.items.iter().enumerate() {
        if index > 0 {
            bytes.put_u8(b',');
        }
        match &item_head {
            Some(head) => {
                bytes.put_slice(head.as_bytes());
                bytes.put_slice(item.json.get(1..).unwrap_or_default());
            }
            None => bytes.put_slice(&item.json),
        }
    }
    bytes.put_slice(b"]}\n");
    bytes.freeze()
}
