//! What the project's commands print: the only file here that writes to the terminal. Headings and
//! tables go to standard output; the programs we start write where they like.
#![expect(
    clippy::print_stdout,
    reason = "printing is this file's job, and nobody else's"
)]

use std::time::Duration;

/// Prints one line.
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// Announces what is about to happen.
pub(crate) fn heading(text: &str) {
    println!("\n==> {text}");
}

/// Prints rows under a header, each column as wide as its widest cell.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) {
    println!("{}", render_table(header, rows));
}

fn render_table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let header = header.iter().map(ToString::to_string).collect();
    let lines: Vec<String> = std::iter::once(&header)
        .chain(rows)
        .map(|row| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            format!("  {}", cells.join("   ").trim_end())
        })
        .collect();
    lines.join("\n")
}

/// A duration as people say it: `840ms`, `12.3s`, `4m05s`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    } else if seconds >= 1 {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        format!("{}ms", time.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["long".to_owned(), "2".to_owned()],
        ];
        assert_eq!(
            render_table(&["name", "n"], &rows),
            "  name   n\n  a      1\n  long   2"
        );
    }

    #[test]
    fn durations_read_well_at_every_size() {
        assert_eq!(duration(Duration::from_millis(840)), "840ms");
        assert_eq!(duration(Duration::from_millis(12_340)), "12.3s");
        assert_eq!(duration(Duration::from_secs(245)), "4m05s");
    }
}
