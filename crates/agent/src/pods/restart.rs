//! Whether a container that ended is started again.

use k8s_openapi::api::core::v1::Container;
use transom_runtime::ContainerState;

use super::view::{Kind, View};

/// Judges by how the newest container of that name ended.
pub(crate) fn should_restart(view: &View, spec: &Container, kind: Kind) -> bool {
    let code = match view.newest(&spec.name).map(|newest| &newest.state) {
        Some(ContainerState::Exited(ended)) => ended.exit_code,
        // It went with its sandbox: nobody knows how.
        Some(ContainerState::Running { .. }) => 137,
        Some(ContainerState::Created) | None => return kind != Kind::Ephemeral,
    };
    if kind == Kind::Ephemeral {
        return false;
    }
    for rule in spec.restart_policy_rules.iter().flatten() {
        let Some(codes) = &rule.exit_codes else {
            continue;
        };
        let listed = codes.values.iter().flatten().any(|value| *value == code);
        let matches = match codes.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        };
        if matches {
            return rule.action.starts_with("Restart");
        }
    }
    let policy = spec
        .restart_policy
        .as_deref()
        .unwrap_or(view.restart_policy());
    match (policy, kind) {
        // An init container that did its work is done, whatever the policy.
        ("Always", Kind::Init) => code != 0,
        ("Always", _) => true,
        ("OnFailure", _) => code != 0,
        _ => false,
    }
}
