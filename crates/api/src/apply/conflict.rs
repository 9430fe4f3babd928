//! Fields that an applier wants and somebody else owns, and how that is told.

use super::{managed::Owner, set::FieldSet};
use crate::status::{ApiError, Cause, Details};

/// What one owner would lose.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conflict {
    pub(super) owner: Owner,
    pub(super) fields: FieldSet,
}

/// Tells all conflicts at once.
pub(super) fn error(conflicts: &[Conflict]) -> ApiError {
    let mut causes = Vec::new();
    let mut sections = Vec::new();
    for conflict in conflicts {
        let owner = conflict.owner.describe();
        sections.push(format!("conflicts with {owner}:"));
        for path in conflict.fields.paths() {
            sections.push(format!("- {path}"));
            causes.push(Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {owner}"),
                field: path,
            });
        }
    }
    let message = match causes.as_slice() {
        [only] => format!(
            "Apply failed with 1 conflict: {}: {}",
            only.message, only.field
        ),
        several => format!(
            "Apply failed with {} conflicts: {}",
            several.len(),
            sections.join("\n")
        ),
    };
    let mut error = ApiError::new(409, "Conflict", message);
    error.details = Some(Box::new(Details {
        causes,
        ..Details::default()
    }));
    error
}
