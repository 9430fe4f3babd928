//! Strings that many objects share, kept once.
//!
//! Two texts are equal if and only if their characters are: that equal ones are usually the same allocation
//! only makes it faster to find out.

use std::{
    borrow::Borrow,
    collections::HashSet,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

/// A shared string.
#[derive(Clone)]
pub struct Text(Arc<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// How many texts there may be before the unused are looked for.
const FEW: usize = 4096;

/// All texts that are in use, and for a while some that were.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    known: HashSet<Text>,
    sweep_at: usize,
}

impl Texts {
    pub(crate) fn keep(&mut self, text: &str) -> Text {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        if self.known.len() >= self.sweep_at.max(FEW) {
            // Labels and names come and go with pods: without this the set would only ever grow.
            self.known.retain(|text| Arc::strong_count(&text.0) > 1);
            self.sweep_at = self.known.len() * 2;
        }
        let text = Text::from(text);
        self.known.insert(text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_kept_once_and_equal_whoever_made_them() {
        let mut texts = Texts::default();
        let (one, two) = (texts.keep("a"), texts.keep("a"));
        assert!(Arc::ptr_eq(&one.0, &two.0));
        assert_eq!(one, Text::from("a"));
        assert_ne!(one, texts.keep("b"));
    }

    #[test]
    fn texts_that_nobody_uses_any_more_are_forgotten() {
        let mut texts = Texts::default();
        let kept = texts.keep("kept");
        for number in 0..FEW * 10 {
            texts.keep(&number.to_string());
        }
        assert!(texts.known.len() <= FEW * 2, "{}", texts.known.len());
        assert!(Arc::ptr_eq(&texts.keep("kept").0, &kept.0));
    }
}
