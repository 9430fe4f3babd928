//! The subresource by which a scheduler gives a pod its node.

use serde_json::Value;

use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        read::Read,
    },
};

pub(in crate::validation) fn binding(faults: &mut Faults, binding: &Value) {
    let path = Path::new("target");
    let target = &binding["target"];
    if !matches!(target.text("kind"), "" | "Node") {
        faults.push(FieldError::not_supported(
            &path.child("kind"),
            target.text("kind"),
            &["Node", "<empty>"],
        ));
    }
    faults.not_empty(target, &path, &["name"]);
}
