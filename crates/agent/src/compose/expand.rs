//! `$(NAME)` in commands, arguments and values. `$$` is a dollar; an unknown name stays as it is written.

/// Replaces what `lookup` knows.
pub(crate) fn expand(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some(inner) = rest.strip_prefix("$(")
            && let Some(end) = inner.find(')')
        {
            let name = &inner[..end];
            match lookup(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&rest[..end + 3]),
            }
            rest = &inner[end + 1..];
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_dollars_escaped() {
        let lookup = |name: &str| (name == "A").then(|| "$(B)".to_owned());
        for (text, wanted) in [
            ("x$(A)y", "x$(B)y"),
            ("$(C)", "$(C)"),
            ("$$(A)", "$(A)"),
            ("$", "$"),
            ("$(", "$("),
            ("$(A", "$(A"),
            ("$()", "$()"),
            ("ü$Aü$(A)", "ü$Aü$(B)"),
            ("$$$(A)$$", "$$(B)$"),
        ] {
            assert_eq!(expand(text, lookup), wanted, "{text}");
        }
    }
}
