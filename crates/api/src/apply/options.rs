//! What a request must say about its writer.
//!
//! An applier always has a name, since its name is what it owns fields under.

use crate::{
    field::{FieldError, Path},
    status::ApiError,
};

/// How long a manager's name may be, in bytes.
const MAX_NAME: usize = 128;

/// The name a writer has in managed fields: what the request says, or the program that sent it.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for letter in program.chars().filter(|letter| !letter.is_control()) {
        if name.len() + letter.len_utf8() > MAX_NAME {
            break;
        }
        name.push(letter);
    }
    name
}

/// Checks `fieldManager` and `force` of a patch.
pub fn check_options(
    field_manager: &str,
    force: Option<bool>,
    is_apply: bool,
) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let manager = Path::new("fieldManager");
    if is_apply && field_manager.is_empty() {
        errors.push(FieldError::required(
            &manager,
            "is required for apply patch",
        ));
    }
    if !is_apply && force.is_some() {
        errors.push(FieldError::forbidden(
            &Path::new("force"),
            "may not be specified for non-apply patch",
        ));
    }
    if field_manager.len() > MAX_NAME {
        errors.push(FieldError::too_long(&manager, MAX_NAME));
    }
    if let Some((index, _)) = field_manager
        .char_indices()
        .find(|(_, letter)| letter.is_control())
    {
        errors.push(FieldError::invalid(
            &manager,
            field_manager,
            format!(
                "should only contain printable characters (unprintable character at index {index})"
            ),
        ));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(
            "meta.k8s.io",
            "PatchOptions",
            "",
            &errors,
        ))
    }
}
