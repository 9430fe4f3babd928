//! The page of Kubernetes kinds: written from the registry that serves them.

use std::fmt::Write as _;

use transom_api::registry::{Kind, Registry, Support};

const HEAD: &str = "\
# Kubernetes kinds

Written by `cargo xtask generate` from the registry of the API server. Reference: Kubernetes 1.36.

Verbs do what upstream's do, with JSON, YAML and (but for custom resources) protobuf; lists and watches with selectors, pages,
bookmarks, tables and metadata alone. What comes of the objects is told by the column *support*: *full* is what upstream does;
*partial* says what is there or missing; *none* are objects that can be written and read, and nothing acts on them.

";

const TAIL: &str = "
## Beyond kinds

| | |
|---|---|
| custom resources | full: structural schemas, defaults, pruning, validation, status, scale, printer columns, selectable fields; conversion between versions by name only; none: rules in CEL (`x-kubernetes-validations` is kept and not evaluated), conversion webhooks |
| patches | full: JSON, merge, strategic merge, server-side apply with managed fields |
| admission | the built-in plugins of upstream; none: webhooks and CEL policies, which discovery does not offer |
| flow control | own limits per user with fair turns; none: `flowcontrol.apiserver.k8s.io` |
| `metrics.k8s.io` | full: asked from the nodes' agents (`/stats/summary`), at most 15 seconds old |
| aggregated API servers | none |
| dynamic resource allocation (`resource.k8s.io`) | none |
| own kinds under `transom.dev` | `Image`: what images are for, as registries and nodes told it; others come with the services that need them |
| running pods | full: `log`, `exec`, `attach`, `portforward` and `proxy` go to the node's agent over TLS, WebSocket and SPDY as they come |
";

pub(super) fn render_page() -> String {
    let registry = Registry::builtin();
    let kinds = registry.kinds();
    let mut page = HEAD.to_owned();
    page.push_str(
        "| kind | version | scope | verbs | support | subresources |\n|---|---|---|---|---|---|\n",
    );
    for kind in kinds.iter() {
        page.push_str(&row(kind));
    }
    page.push_str(TAIL);
    page
}

fn row(kind: &Kind) -> String {
    let verbs: Vec<&str> = kind.verbs.iter().map(|verb| verb.as_str()).collect();
    let verbs = if verbs.len() == 8 {
        "all".to_owned()
    } else {
        verbs.join(", ")
    };
    let subresources: Vec<String> = kind
        .subresources
        .iter()
        .map(|subresource| match kind.support(subresource.name) {
            Support::Full => subresource.name.to_owned(),
            lacking => format!("{} ({})", subresource.name, render_support(lacking)),
        })
        .collect();
    let scope = if kind.namespaced {
        "namespace"
    } else {
        "cluster"
    };
    let mut row = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        row,
        "| {} | {} | {scope} | {verbs} | {} | {} |",
        kind.kind,
        kind.api_version(),
        render_support(kind.support("")),
        subresources.join(", "),
    );
    row
}

fn render_support(support: Support) -> String {
    match support {
        Support::Full => "full".to_owned(),
        Support::Partial(text) => format!("partial: {text}"),
        Support::None(text) => format!("none: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_full_of_what_is_and_what_is_missing_of_the_rest() {
        let page = render_page();
        let line = |start: &str| {
            page.lines()
                .find(|line| line.starts_with(start))
                .unwrap_or_else(|| panic!("no line {start}"))
        };
        assert!(line("| ConfigMap |").contains("| all | full |"));
        assert!(line("| NetworkPolicy |").contains("| none: "));
        assert!(line("| Service |").contains("| partial: "));
    }
}
