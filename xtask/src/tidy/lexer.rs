//! Tells code from comments and literals in Rust text, keeping every line where it is. It knows just
//! enough of the language that a word in a string is never taken for code.

/// The same text twice: once with comments and the insides of literals blanked, once with all but the
/// comments blanked.
pub(crate) struct Split {
    pub(crate) code: String,
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

pub(crate) fn split(text: &str) -> Split {
    let characters: Vec<char> = text.chars().collect();
    let mut split = Split {
        code: String::new(),
        comments: String::new(),
    };
    let mut at = 0;
    while at < characters.len() {
        let (kind, length) = next(&characters, at);
        for character in &characters[at..at + length] {
            split.push(*character, kind);
        }
        at += length;
    }
    split
}

impl Split {
    fn push(&mut self, character: char, kind: Kind) {
        let blank = if character == '\n' { '\n' } else { ' ' };
        let quote = kind == Kind::Literal && character == '"';
        self.code.push(if kind == Kind::Code || quote {
            character
        } else {
            blank
        });
        self.comments.push(if kind == Kind::Comment {
            character
        } else {
            blank
        });
    }
}

/// What starts at `at`, and how many characters it has: at least one.
fn next(text: &[char], at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    let after_word = at > 0 && is_word(text[at - 1]);
    match rest {
        ['/', '/', ..] => (Kind::Comment, until(rest, |rest| rest[0] == '\n')),
        ['/', '*', ..] => (Kind::Comment, block_comment(rest)),
        ['"', ..] => (Kind::Literal, string(rest)),
        ['r' | 'b' | 'c', ..] if !after_word => {
            raw_string(rest).map_or((Kind::Code, 1), |length| (Kind::Literal, length))
        }
        ['\'', ..] => character(rest).map_or((Kind::Code, 1), |length| (Kind::Literal, length)),
        _ => (Kind::Code, 1),
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn until(rest: &[char], end: impl Fn(&[char]) -> bool) -> usize {
    (0..rest.len())
        .find(|&at| end(&rest[at..]))
        .unwrap_or(rest.len())
}

fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

fn string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r"…"`, `br#"…"#` and the like; none if this is only a name that starts so.
fn raw_string(rest: &[char]) -> Option<usize> {
    let prefix = rest
        .iter()
        .take_while(|character| matches!(character, 'b' | 'c' | 'r'))
        .count();
    if !rest[..prefix].contains(&'r') || prefix > 2 {
        return None;
    }
    let hashes = rest[prefix..]
        .iter()
        .take_while(|character| **character == '#')
        .count();
    let body = prefix + hashes + 1;
    if rest.get(body - 1) != Some(&'"') {
        return None;
    }
    let closes = |rest: &[char]| {
        rest[0] == '"'
            && rest.len() > hashes
            && rest[1..=hashes].iter().all(|character| *character == '#')
    };
    let end = body + until(&rest[body..], closes);
    Some((end + 1 + hashes).min(rest.len()))
}

/// The length of a character literal; none if this is a lifetime.
fn character(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', _, tail @ ..] => {
            Some(3 + tail.iter().position(|character| *character == '\'')? + 1)
        }
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_comments_and_literals_are_not_code() {
        let text = "let a = \"unsafe\"; // unsafe\n/* unsafe /* unsafe */ unsafe */ let b = 'u';\n\
                    let c = r#\"unsafe \" unsafe\"#; let d = b\"unsafe\"; let e = \"\\\"unsafe\";";
        let split = split(text);
        assert!(!split.code.contains("unsafe"), "{}", split.code);
        assert_eq!(split.comments.matches("unsafe").count(), 4);
    }

    #[test]
    fn code_after_each_kind_of_literal_is_code_again() {
        for literal in [
            "\"\"",
            "r\"\\\"",
            "br##\"#\"##",
            "'\\''",
            "'\"'",
            "'\\u{1F600}'",
            "b'\\\\'",
            "/**/",
            "//\n",
        ] {
            let split = split(&format!("{literal} after"));
            assert!(split.code.contains("after"), "{literal}: {}", split.code);
        }
    }

    #[test]
    fn lifetimes_and_names_are_code() {
        let text = "fn f<'a>(bar: &'a str, r: u8) -> &'static str { crate::r#type(bar) }";
        assert_eq!(split(text).code, text);
    }

    #[test]
    fn lines_stay_where_they_are_even_in_broken_text() {
        for text in [
            "\"open\n\n",
            "/* open\n\n",
            "r#\"open\n\n",
            "'\\\n\n",
            "a\n// b\n",
        ] {
            let split = split(text);
            assert_eq!(split.code.lines().count(), text.lines().count(), "{text:?}");
            assert_eq!(
                split.comments.chars().count(),
                text.chars().count(),
                "{text:?}"
            );
        }
    }
}
