//! "Did you mean": the known name nearest to a mistyped one.

/// The nearest of `names`, if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    written: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Comparing megabytes with every name would let one line cost minutes.
    if written.len() > 64 {
        return None;
    }
    let lower = written.to_ascii_lowercase();
    let allowed = (written.chars().count() / 4).clamp(1, 3);
    names
        .into_iter()
        .map(|name| (distance(&lower, &name.to_ascii_lowercase()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// How many characters must be changed, added, removed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_previous: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=right.len()).collect();
    for (row, character) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let change = previous[column] + usize::from(character != other);
            let mut best = change
                .min(previous[column + 1] + 1)
                .min(current[column] + 1);
            let is_swap =
                row > 0 && column > 0 && *character == right[column - 1] && left[row - 1] == *other;
            if is_swap {
                best = best.min(before_previous[column - 1] + 1);
            }
            current.push(best);
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_mistakes_find_the_name_that_was_meant() {
        let names = ["ExecStart", "ExecStartPre", "Restart", "RestartSec"];
        assert_eq!(nearest("ExceStart", names), Some("ExecStart"));
        assert_eq!(nearest("restartsec", names), Some("RestartSec"));
        assert_eq!(nearest("ExecStrtPre", names), Some("ExecStartPre"));
        assert_eq!(nearest("Colour", names), None);
        assert_eq!(nearest(&"x".repeat(100_000), names), None);
    }
}
