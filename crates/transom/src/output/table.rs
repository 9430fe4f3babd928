//! Plain aligned columns. Invariant: columns are aligned by what a terminal shows, not by bytes or
//! letters, and no line ends in blanks.

use std::fmt::Write as _;

use clap::builder::styling::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::listing::Shown;

/// Blanks between two columns.
const GAP: usize = 3;

/// A column narrower than this is not worth cutting to fit the terminal.
const NARROWEST: usize = 12;

/// One field of a row: text, and how to show it where styles are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text without a style. A table is one line per row, so control letters are made visible.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self {
            text: one_line(text.as_ref()),
            style: Style::new(),
        }
    }

    /// The value, or the sign for "there is none".
    pub fn optional(value: Option<impl AsRef<str>>) -> Self {
        value.map_or_else(|| Self::new("<none>"), Self::new)
    }

    #[must_use]
    pub fn styled(mut self, style: Style) -> Self {
        self.style = style;
        self
    }
}

impl<Text: AsRef<str>> From<Text> for Cell {
    fn from(text: Text) -> Self {
        Self::new(text)
    }
}

fn one_line(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars()
        .map(|letter| {
            if letter.is_control() {
                letter.escape_default().to_string()
            } else {
                letter.to_string()
            }
        })
        .collect()
}

/// Renders rows below their titles. On a terminal the last column is cut rather than wrapped.
pub fn render_table(titles: &[&str], rows: &[Vec<Cell>], shown: Shown) -> String {
    const TITLE: Style = Style::new().bold();
    let titles: Vec<Cell> = titles
        .iter()
        .map(|title| Cell::new(title).styled(TITLE))
        .collect();
    let lines: Vec<&[Cell]> = std::iter::once(titles.as_slice())
        .chain(rows.iter().map(Vec::as_slice))
        .collect();
    let widths: Vec<usize> = (0..titles.len())
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.text.width()).max().unwrap_or(0)
        })
        .collect();
    let last_width = shown.width.map(|width| {
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
        width.saturating_sub(before).max(NARROWEST)
    });
    lines
        .iter()
        .map(|line| render_line(line, &widths, last_width, shown))
        .collect()
}

fn render_line(
    cells: &[Cell],
    widths: &[usize],
    last_width: Option<usize>,
    shown: Shown,
) -> String {
    let mut line = String::new();
    // Blanks are owed, not written, so that empty fields at the end leave none behind.
    let mut owed = 0;
    for (column, cell) in cells.iter().enumerate() {
        let text = match last_width {
            Some(limit) if column + 1 == widths.len() => shown.cut(&cell.text, limit),
            _ => cell.text.clone(),
        };
        let padding = widths[column].saturating_sub(text.width()) + GAP;
        if text.is_empty() {
            owed += padding;
            continue;
        }
        let style = cell.style;
        line += &" ".repeat(owed);
        // Writing to a string cannot fail.
        let _ = write!(line, "{style}{text}{style:#}");
        owed = padding;
    }
    line + "\n"
}

impl Shown {
    /// At most `limit` columns of `text`; the sign of the cut is among them.
    pub fn cut(self, text: &str, limit: usize) -> String {
        if text.width() <= limit {
            return text.to_owned();
        }
        let sign = if self.unicode { "…" } else { "..." };
        let mut kept = String::new();
        let mut room = limit.saturating_sub(sign.width());
        for letter in text.chars() {
            let width = letter.width().unwrap_or(0);
            if width > room {
                break;
            }
            room -= width;
            kept.push(letter);
        }
        kept + sign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Option<usize>, unicode: bool) -> Shown {
        Shown {
            now: jiff::Timestamp::UNIX_EPOCH,
            width,
            unicode,
        }
    }

    fn table(rows: &[[&str; 3]], width: Option<usize>) -> String {
        let rows: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| row.map(Cell::from).to_vec())
            .collect();
        let text = render_table(&["NAME", "STATE", "DETAIL"], &rows, shown(width, true));
        // A letter of two characters would look like one in the source.
        let text = text.replace("e\u{301}", "<e´>");
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn columns_are_aligned_by_what_the_terminal_shows() {
        insta::assert_snapshot!(
            table(&[["web", "running", "a"], ["日本", "échec", "b"], ["e\u{301}", "", "c"]], None),
            @"
        NAME   STATE     DETAIL
        web    running   a
        日本   échec     b
        <e´>                c
        "
        );
    }

    #[test]
    fn no_line_ends_in_blanks() {
        let text = table(&[["web", "", ""], ["", "", ""]], None);
        assert!(text.lines().all(|line| line == line.trim_end()), "{text:?}");
    }

    #[test]
    fn only_the_last_column_is_cut_and_never_to_nothing() {
        let row = [
            "a-rather-long-name",
            "running",
            "something long to read, with 日本語",
        ];
        insta::assert_snapshot!(table(&[row], Some(50)), @r"
        NAME                 STATE     DETAIL
        a-rather-long-name   running   something long to …
        ");
        insta::assert_snapshot!(table(&[row], Some(5)), @r"
        NAME                 STATE     DETAIL
        a-rather-long-name   running   something l…
        ");
        assert_eq!(shown(None, true).cut("日本語", 4), "日…");
        assert_eq!(shown(None, false).cut("abcdef", 5), "ab...");
    }

    #[test]
    fn a_line_break_in_a_value_cannot_forge_a_row() {
        let text = table(&[["a\nb", "\u{1b}[31mred", "\t"]], None);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(r"a\nb") && text.contains(r"\u{1b}[31mred"));
    }
}
