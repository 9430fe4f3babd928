//! The objects that words name: `pods`, `pods,services`, `pod web`, `pod/web service/web`. Invariant: both forms are
//! never mixed, so that a name is never taken for a kind.

use super::kinds::{Kind, Kinds};
use crate::failure::{Advice as _, Exit};

/// Objects of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// Which of them; without any, all.
    pub(crate) names: Vec<String>,
}

/// What the words of a command name, in their order.
pub(crate) fn targets(kinds: &Kinds, words: &[String]) -> anyhow::Result<Vec<Target>> {
    if words.iter().any(|word| word.contains('/')) {
        return pairs(kinds, words);
    }
    let Some((first, names)) = words.split_first() else {
        return Ok(Vec::new());
    };
    if names.iter().any(String::is_empty) {
        return Err(anyhow::anyhow!("a name cannot be empty")).exit(Exit::Usage);
    }
    let mut found: Vec<Target> = Vec::new();
    for word in first.split(',') {
        for kind in kinds.find(word)? {
            if found.iter().all(|target| target.kind != kind) {
                let names = names.to_vec();
                found.push(Target { kind, names });
            }
        }
    }
    Ok(found)
}

fn pairs(kinds: &Kinds, words: &[String]) -> anyhow::Result<Vec<Target>> {
    let mut found: Vec<Target> = Vec::new();
    for word in words {
        let pair = word
            .split_once('/')
            .filter(|(kind, name)| !kind.is_empty() && !name.is_empty() && !name.contains('/'));
        let Some((kind, name)) = pair else {
            return Err(anyhow::anyhow!("`{word}` is not of the form KIND/NAME"))
                .hint("either all words are KIND/NAME, or the first is the kind and the others are names")
                .exit(Exit::Usage);
        };
        let kind = kinds.find_one(kind)?;
        match found.last_mut().filter(|target| target.kind == kind) {
            Some(target) => target.names.push(name.to_owned()),
            None => found.push(Target {
                kind,
                names: vec![name.to_owned()],
            }),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::kinds::tests::some;
    use super::*;

    fn meant(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let found = targets(&some(), &words).map_err(|error| error.to_string())?;
        let shown = |target: Target| format!("{} {}", target.kind.name(), target.names.join(","));
        Ok(found.into_iter().map(shown).collect())
    }

    #[test]
    fn kinds_come_first_or_in_each_word() {
        assert_eq!(
            meant(&["po,deploy,pods"]).unwrap(),
            ["pod ", "deployment.apps "]
        );
        assert_eq!(meant(&["pod", "a", "b"]).unwrap(), ["pod a,b"]);
        assert_eq!(
            meant(&["pod/a", "po/b", "deploy/c"]).unwrap(),
            ["pod a,b", "deployment.apps c"]
        );
        assert_eq!(meant(&[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_two_forms_are_not_mixed() {
        for words in [
            &["pod/a", "b"][..],
            &["pod", "a/b"],
            &["pod/"],
            &["/a"],
            &["pod/a/b"],
        ] {
            let error = meant(words).unwrap_err();
            assert!(
                error.contains("is not of the form KIND/NAME"),
                "{words:?}: {error}"
            );
        }
        assert_eq!(meant(&["pod", ""]).unwrap_err(), "a name cannot be empty");
    }
}
