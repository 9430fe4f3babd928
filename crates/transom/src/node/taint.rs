//! Taints as people write them: `key=value:Effect`, `key:Effect`.

use k8s_openapi::api::core::v1::Taint;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// A taint of a flag.
pub(crate) fn parse(text: &str) -> Result<Taint, String> {
    let (left, effect) = text.rsplit_once(':').ok_or_else(|| {
        format!("expected KEY[=VALUE]:EFFECT, as `os=windows:NoSchedule`; `{text}` has no effect")
    })?;
    if !EFFECTS.contains(&effect) {
        return Err(format!(
            "`{effect}` is no effect: use {}",
            EFFECTS.join(", ")
        ));
    }
    let (key, value) = match left.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (left, None),
    };
    if key.is_empty() {
        return Err("a taint needs a key, as `os=windows:NoSchedule`".to_owned());
    }
    Ok(Taint {
        key: key.to_owned(),
        value,
        effect: effect.to_owned(),
        time_added: None,
    })
}

/// The same text again.
pub(crate) fn render(taint: &Taint) -> String {
    match &taint.value {
        Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
        None => format!("{}:{}", taint.key, taint.effect),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taint_has_a_key_an_effect_and_perhaps_a_value() {
        let taint = parse("os=windows:NoSchedule").unwrap();
        assert_eq!(
            (taint.key.as_str(), taint.value.as_deref()),
            ("os", Some("windows"))
        );
        assert_eq!(parse("gpu:NoExecute").unwrap().value, None);
        for text in [
            "os=windows:NoSchedule",
            "gpu:NoExecute",
            "empty=:NoSchedule",
        ] {
            assert_eq!(render(&parse(text).unwrap()), text);
        }
    }

    #[test]
    fn what_is_wrong_with_a_taint_is_said() {
        for (text, expected) in [
            ("os=windows", "no effect"),
            ("os=windows:Never", "use NoSchedule"),
            ("=x:NoSchedule", "needs a key"),
        ] {
            let fault = parse(text).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
