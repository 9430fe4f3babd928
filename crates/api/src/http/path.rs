//! What a path of the API names.

/// The object or the objects that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    pub group: String,
    pub version: String,
    pub plural: String,
    /// Empty for resources of the whole cluster, and for lists over all namespaces.
    pub namespace: String,
    pub name: String,
    pub subresource: String,
    /// What follows the subresource; only proxies have it.
    pub rest: String,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Resource(ResourcePath),
    /// `/api` and `/apis`.
    Groups {
        core: bool,
    },
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` and `/apis/<group>/<version>`.
    Version {
        group: String,
        version: String,
    },
    /// Everything else, like `/version`.
    Other,
}

/// Reads a path. Segments are decoded one by one, so that an encoded slash stays in its name.
pub fn parse(path: &str) -> Option<Target> {
    let segments: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(decode)
        .collect::<Option<_>>()?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let target = match segments.as_slice() {
        ["api"] => Target::Groups { core: true },
        ["apis"] => Target::Groups { core: false },
        ["api", version] => Target::Version {
            group: String::new(),
            version: (*version).to_owned(),
        },
        ["apis", group] => Target::Group((*group).to_owned()),
        ["apis", group, version] => Target::Version {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
        },
        ["api", version, rest @ ..] => Target::Resource(resource("", version, rest)?),
        ["apis", group, version, rest @ ..] => Target::Resource(resource(group, version, rest)?),
        _ => Target::Other,
    };
    Some(target)
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Option<ResourcePath> {
    let (namespace, rest) = match rest {
        // A namespace's own subresources look like resources in it.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name, subresource, tail) = match rest {
        [plural] => (*plural, "", "", &[][..]),
        [plural, name] => (*plural, *name, "", &[][..]),
        [plural, name, subresource, tail @ ..] => (*plural, *name, *subresource, tail),
        [] => return None,
    };
    if plural.is_empty() || (!tail.is_empty() && subresource != "proxy") {
        return None;
    }
    Some(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        rest: tail.join("/"),
    })
}

/// Undoes percent encoding; `None` if it is broken or is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> (String, String, String, String, String) {
        match parse(path) {
            Some(Target::Resource(found)) => (
                found.group,
                found.namespace,
                found.plural,
                found.name,
                found.subresource,
            ),
            other => panic!("{path}: {other:?}"),
        }
    }

    fn strings(parts: [&str; 5]) -> (String, String, String, String, String) {
        let [group, namespace, plural, name, subresource] = parts.map(ToOwned::to_owned);
        (group, namespace, plural, name, subresource)
    }

    #[test]
    fn paths_name_resources() {
        for (path, expected) in [
            ("/api/v1/pods", ["", "", "pods", "", ""]),
            (
                "/api/v1/namespaces/default/pods/a",
                ["", "default", "pods", "a", ""],
            ),
            (
                "/api/v1/namespaces/default/pods/a/log",
                ["", "default", "pods", "a", "log"],
            ),
            ("/api/v1/namespaces", ["", "", "namespaces", "", ""]),
            ("/api/v1/namespaces/a", ["", "", "namespaces", "a", ""]),
            (
                "/api/v1/namespaces/a/finalize",
                ["", "", "namespaces", "a", "finalize"],
            ),
            (
                "/api/v1/namespaces/a/status",
                ["", "", "namespaces", "a", "status"],
            ),
            (
                "/apis/apps/v1/namespaces/n/deployments/d/scale",
                ["apps", "n", "deployments", "d", "scale"],
            ),
            (
                "/api/v1/namespaces/n/configmaps/a%2Fb",
                ["", "n", "configmaps", "a/b", ""],
            ),
        ] {
            assert_eq!(resource(path), strings(expected), "{path}");
        }
    }

    #[test]
    fn other_paths_are_told_apart() {
        assert_eq!(parse("/api"), Some(Target::Groups { core: true }));
        assert_eq!(parse("/apis/"), Some(Target::Groups { core: false }));
        assert_eq!(parse("/apis/apps"), Some(Target::Group("apps".into())));
        assert_eq!(parse("/version"), Some(Target::Other));
        assert_eq!(parse("/api/v1/pods/a/b/c/d"), None);
        assert_eq!(parse("/api/v1/%zz"), None);
        assert_eq!(parse("/api/v1/%ff"), None);
    }
}
