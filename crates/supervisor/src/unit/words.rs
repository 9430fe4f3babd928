//! Splits a value into words with quotes and escapes, and writes words back. For any words,
//! splitting what was written gives the same words again.
//!
//! # Platform behavior
//!
//! On Linux the escapes are systemd's: `\n`, `\t`, `\s`, `\\`, `\"`, `\x41`, `\101`, `\u00e4` work
//! inside and outside of quotes; an unknown escape stays as it is and is reported.
//!
//! On Windows a backslash is an ordinary character, so that `C:\new\table.exe` and `\\server\share`
//! mean what they say, quoted or not. Only a run of backslashes directly before a quote that could
//! end or start a quotation is special, with the rule of Windows programs: `2n` backslashes stand
//! for `n` and the quote counts, `2n+1` stand for `n` and a literal quote.

use transom_model::os::Os;

/// One word. A bare `;` is a separator; a quoted or escaped one is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub is_separator: bool,
}

/// What splitting found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    pub words: Vec<Word>,
    /// Escapes that mean nothing and were kept as written.
    pub unknown_escapes: Vec<String>,
}

/// Why a text cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    #[error("a {quote} is opened and never closed")]
    Unbalanced { quote: char },
    #[error("the escapes do not form valid UTF-8")]
    NotUtf8,
}

impl Words {
    /// The texts alone, where `;` has no meaning.
    pub fn into_texts(self) -> Vec<String> {
        self.words.into_iter().map(|word| word.text).collect()
    }
}

/// Splits at white space outside of quotes.
pub fn split(text: &str, os: Os) -> Result<Words, SplitError> {
    let mut splitter = Splitter {
        rest: text.trim_start(),
        os,
        found: Words::default(),
    };
    while !splitter.rest.is_empty() {
        splitter.next_word()?;
        splitter.rest = splitter.rest.trim_start();
    }
    Ok(splitter.found)
}

struct Splitter<'a> {
    rest: &'a str,
    os: Os,
    found: Words,
}

impl Splitter<'_> {
    fn next_word(&mut self) -> Result<(), SplitError> {
        let ends_after = |length: usize| {
            self.rest[length..]
                .chars()
                .next()
                .is_none_or(char::is_whitespace)
        };
        for (raw, is_separator) in [(";", true), ("\\;", false)] {
            if self.rest.starts_with(raw) && ends_after(raw.len()) {
                self.rest = &self.rest[raw.len()..];
                self.found.words.push(Word {
                    text: ";".to_owned(),
                    is_separator,
                });
                return Ok(());
            }
        }
        let mut bytes = Vec::new();
        let mut quote: Option<char> = None;
        while let Some(character) = self.rest.chars().next() {
            match (character, quote) {
                (space, None) if space.is_whitespace() => break,
                ('\\', _) => self.backslash(&mut bytes, quote),
                ('"' | '\'', None) => {
                    quote = Some(character);
                    self.rest = &self.rest[1..];
                }
                (end, Some(open)) if end == open => {
                    quote = None;
                    self.rest = &self.rest[1..];
                }
                (other, _) => {
                    push_character(&mut bytes, other);
                    self.rest = &self.rest[other.len_utf8()..];
                }
            }
        }
        if let Some(quote) = quote {
            return Err(SplitError::Unbalanced { quote });
        }
        let text = String::from_utf8(bytes).map_err(|_| SplitError::NotUtf8)?;
        self.found.words.push(Word {
            text,
            is_separator: false,
        });
        Ok(())
    }

    /// Consumes what starts with a backslash.
    fn backslash(&mut self, bytes: &mut Vec<u8>, quote: Option<char>) {
        match self.os {
            Os::Linux => self.escape(bytes),
            Os::Windows => self.backslash_run(bytes, quote),
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) {
        if let Some(length) = unescape_one(&self.rest[1..], bytes) {
            self.rest = &self.rest[1 + length..];
            return;
        }
        let kept: String = self.rest.chars().take(2).collect();
        self.rest = &self.rest[kept.len()..];
        bytes.extend_from_slice(kept.as_bytes());
        self.found.unknown_escapes.push(kept);
    }

    fn backslash_run(&mut self, bytes: &mut Vec<u8>, quote: Option<char>) {
        let count = self.rest.len() - self.rest.trim_start_matches('\\').len();
        self.rest = &self.rest[count..];
        let next = self.rest.chars().next().filter(|next| match quote {
            Some(open) => *next == open,
            None => matches!(next, '"' | '\''),
        });
        let Some(mark) = next else {
            bytes.extend(std::iter::repeat_n(b'\\', count));
            return;
        };
        bytes.extend(std::iter::repeat_n(b'\\', count / 2));
        if count % 2 == 1 {
            push_character(bytes, mark);
            self.rest = &self.rest[1..];
        }
    }
}

fn push_character(bytes: &mut Vec<u8>, character: char) {
    let mut buffer = [0; 4];
    bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
}

/// Decodes the escape after a backslash; returns its length, or `None` if it is not one.
fn unescape_one(text: &str, bytes: &mut Vec<u8>) -> Option<usize> {
    let simple = match text.chars().next()? {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        's' => b' ',
        '\\' => b'\\',
        '"' => b'"',
        '\'' => b'\'',
        'x' => return push_number(text, 1, 2, 16, bytes),
        'u' => return push_scalar(text, 4, bytes),
        'U' => return push_scalar(text, 8, bytes),
        '0'..='3' => return push_number(text, 0, 3, 8, bytes),
        _ => return None,
    };
    bytes.push(simple);
    Some(1)
}

/// A byte written in digits. Zero is no character of an argument, so it is no escape either.
fn push_number(
    text: &str,
    from: usize,
    digits: usize,
    radix: u32,
    bytes: &mut Vec<u8>,
) -> Option<usize> {
    let written = text.get(from..from + digits)?;
    if !written.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let byte = u8::from_str_radix(written, radix).ok()?;
    if byte == 0 {
        return None;
    }
    bytes.push(byte);
    Some(from + digits)
}

fn push_scalar(text: &str, digits: usize, bytes: &mut Vec<u8>) -> Option<usize> {
    let written = text.get(1..=digits)?;
    if !written.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let character = char::from_u32(u32::from_str_radix(written, 16).ok()?)?;
    if character == '\0' {
        return None;
    }
    push_character(bytes, character);
    Some(1 + digits)
}

/// Writes one word so that `split` gives it back.
pub fn quote(word: &str, os: Os) -> String {
    let special = |character: char| {
        character.is_whitespace()
            || character.is_control()
            || matches!(character, '"' | '\'' | ';' | '#')
            || (os == Os::Linux && character == '\\')
    };
    if !word.is_empty() && !word.contains(special) {
        // A value that ends in a backslash would be taken for a continued line.
        if !word.ends_with('\\') {
            return word.to_owned();
        }
    }
    match os {
        Os::Linux => quote_with_escapes(word),
        Os::Windows => quote_with_runs(word),
    }
}

fn quote_with_escapes(word: &str) -> String {
    let mut quoted = String::from("\"");
    for character in word.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => {
                quoted.extend(["\\u", &format!("{:04x}", u32::from(control))]);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn quote_with_runs(word: &str) -> String {
    let mut quoted = String::from("\"");
    let mut run = 0;
    for character in word.chars() {
        match character {
            '\\' => run += 1,
            '"' => {
                quoted.extend(std::iter::repeat_n('\\', run + 1));
                run = 0;
            }
            _ => run = 0,
        }
        quoted.push(character);
    }
    quoted.extend(std::iter::repeat_n('\\', run));
    quoted.push('"');
    quoted
}
