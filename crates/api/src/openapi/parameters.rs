//! The parameters that requests take.

/// One parameter after the question mark.
pub(super) struct Query {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) words: &'static str,
}

pub(super) const PRETTY: Query = Query {
    name: "pretty",
    kind: "string",
    words: "if `true`, the answer is printed for people",
};
const DRY_RUN: Query = Query {
    name: "dryRun",
    kind: "string",
    words: "`All`: do everything but keep the result",
};
const FIELD_MANAGER: Query = Query {
    name: "fieldManager",
    kind: "string",
    words: "who is making the change",
};
const FIELD_VALIDATION: Query = Query {
    name: "fieldValidation",
    kind: "string",
    words: "what happens to unknown or duplicate fields: `Ignore`, `Warn` or `Strict`",
};
const FORCE: Query = Query {
    name: "force",
    kind: "boolean",
    words: "take over fields of other managers; only for apply",
};
const GRACE: Query = Query {
    name: "gracePeriodSeconds",
    kind: "integer",
    words: "seconds until the object is deleted",
};
const ORPHAN: Query = Query {
    name: "orphanDependents",
    kind: "boolean",
    words: "keep what depends on the object; use propagationPolicy instead",
};
const PROPAGATION: Query = Query {
    name: "propagationPolicy",
    kind: "string",
    words: "what happens to dependents: `Orphan`, `Background` or `Foreground`",
};
const LABEL_SELECTOR: Query = Query {
    name: "labelSelector",
    kind: "string",
    words: "only objects with these labels",
};
const FIELD_SELECTOR: Query = Query {
    name: "fieldSelector",
    kind: "string",
    words: "only objects with these fields",
};
const WATCH: Query = Query {
    name: "watch",
    kind: "boolean",
    words: "send changes as they happen",
};
const BOOKMARKS: Query = Query {
    name: "allowWatchBookmarks",
    kind: "boolean",
    words: "also send events that only tell a version",
};
const VERSION: Query = Query {
    name: "resourceVersion",
    kind: "string",
    words: "which version the answer must have",
};
const VERSION_MATCH: Query = Query {
    name: "resourceVersionMatch",
    kind: "string",
    words: "how the version is meant: `Exact` or `NotOlderThan`",
};
const SECONDS: Query = Query {
    name: "timeoutSeconds",
    kind: "integer",
    words: "when a watch or list ends",
};
const LIMIT: Query = Query {
    name: "limit",
    kind: "integer",
    words: "at most so many objects",
};
const CONTINUE: Query = Query {
    name: "continue",
    kind: "string",
    words: "go on where an earlier answer ended",
};
const INITIAL: Query = Query {
    name: "sendInitialEvents",
    kind: "boolean",
    words: "start a watch with all objects there are",
};

/// The parameters that an action takes.
pub(super) fn parameters(action: &str) -> Vec<&'static Query> {
    match action {
        "list" => vec![
            &BOOKMARKS,
            &CONTINUE,
            &FIELD_SELECTOR,
            &LABEL_SELECTOR,
            &LIMIT,
            &VERSION,
            &VERSION_MATCH,
            &INITIAL,
            &SECONDS,
            &WATCH,
        ],
        "post" | "put" => vec![&DRY_RUN, &FIELD_MANAGER, &FIELD_VALIDATION],
        "patch" => vec![&DRY_RUN, &FIELD_MANAGER, &FIELD_VALIDATION, &FORCE],
        "delete" => vec![&DRY_RUN, &GRACE, &ORPHAN, &PROPAGATION],
        "deletecollection" => vec![
            &CONTINUE,
            &DRY_RUN,
            &FIELD_SELECTOR,
            &GRACE,
            &LABEL_SELECTOR,
            &LIMIT,
            &ORPHAN,
            &PROPAGATION,
            &VERSION,
            &VERSION_MATCH,
            &INITIAL,
            &SECONDS,
        ],
        _ => Vec::new(),
    }
}
