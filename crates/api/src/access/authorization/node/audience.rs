//! For whom a node may ask tokens of its pods' accounts. For admission.
//!
//! A token for an audience that no volume of the pod names would let the node act as the account towards somebody
//! that the pod itself does not speak to; only a right given for that audience allows it.

use serde_json::Value;

use super::{
    references::{self, Sort},
    restriction::{Change, Known},
};

/// Why a node does not get a token for these audiences and this pod; `None` if it does.
pub(super) fn refusal(change: &Change<'_>, pod: &Value, known: &dyn Known) -> Option<String> {
    let audiences = change.object["spec"]["audiences"].as_array();
    let wanted = match audiences.map_or(&[][..], Vec::as_slice) {
        [] => "",
        [only] => only.as_str().unwrap_or_default(),
        _ => return Some("node may only request 0 or 1 audiences".to_owned()),
    };
    let account = &change.resource.name;
    let is_fine = names(pod, wanted, known) || known.may_ask_for(wanted, account);
    (!is_fine).then(|| {
        format!(
            "audience {wanted:?} not found in pod spec volume, the node is not authorized to request tokens for this audience"
        )
    })
}

/// Whether a volume of the pod has tokens for the audience, its own or those of a driver.
fn names(pod: &Value, wanted: &str, known: &dyn Known) -> bool {
    let is_wanted = |source: &Value| source["audience"].as_str().unwrap_or_default() == wanted;
    let driver_wants = |driver: &str| known.driver_audiences(driver).iter().any(|it| it == wanted);
    let volumes = pod["spec"]["volumes"].as_array();
    let own = volumes.into_iter().flatten().any(|volume| {
        let sources = volume["projected"]["sources"].as_array();
        let mut tokens = sources
            .into_iter()
            .flatten()
            .map(|source| &source["serviceAccountToken"])
            .filter(|token| token.is_object());
        tokens.any(is_wanted) || volume["csi"]["driver"].as_str().is_some_and(driver_wants)
    });
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    own || references::of_pod(pod)
        .iter()
        .filter(|(sort, _)| *sort == Sort::Claim)
        .filter_map(|(_, claim)| known.claim_driver(namespace, claim))
        .any(|driver| driver_wants(&driver))
}
