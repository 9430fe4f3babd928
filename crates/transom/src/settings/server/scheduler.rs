//! A scheduler that pods can name, as people write it: `batch,packing=fill,images=5`. Invariant: what is not
//! said is as with the usual scheduler, and what is said twice or cannot be is refused.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transom_scheduler::{Packing, Profile};

/// What can be said of a scheduler behind its name.
const KEYS: &str =
    "packing, nodes, taints, affinity, resources, balance, images, spread or neighbours";
/// As much as a part of a score may count.
const MOST: i64 = 100;

/// A scheduler that pods can name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SchedulerName {
    text: String,
    profile: Profile,
}

impl SchedulerName {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }
}

impl FromStr for SchedulerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let is_name = |letter: char| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.')
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err("expected a name and perhaps more, such as batch,packing=fill".to_owned());
        }
        let mut profile = Profile::named(name);
        let mut said = Vec::new();
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if said.contains(&key) {
                return Err(format!("`{key}` is there twice"));
            }
            said.push(key);
            set(&mut profile, key, value)?;
        }
        Ok(Self {
            text: text.to_owned(),
            profile,
        })
    }
}

fn set(profile: &mut Profile, key: &str, value: &str) -> Result<(), String> {
    let weights = &mut profile.weights;
    let weight = match key {
        "packing" => {
            profile.packing = match value {
                "spread" => Packing::Spread,
                "fill" => Packing::Fill,
                _ => return Err("expected packing=spread or packing=fill".to_owned()),
            };
            return Ok(());
        }
        "nodes" => {
            let percent = value
                .parse()
                .ok()
                .filter(|percent| (1..=100).contains(percent));
            let percent = percent.ok_or("expected nodes=PERCENT, from 1 to 100")?;
            profile.enough_nodes = Some(percent);
            return Ok(());
        }
        "taints" => &mut weights.taints,
        "affinity" => &mut weights.affinity,
        "resources" => &mut weights.resources,
        "balance" => &mut weights.balance,
        "images" => &mut weights.images,
        "spread" => &mut weights.spread,
        "neighbours" => &mut weights.neighbours,
        _ => return Err(format!("`{key}` is not {KEYS}")),
    };
    let number = value
        .parse()
        .ok()
        .filter(|number| (0..=MOST).contains(number));
    *weight = number.ok_or_else(|| format!("expected {key}=NUMBER, from 0 to {MOST}"))?;
    Ok(())
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Schedulers with blanks between them, as a variable has them.
pub(super) fn schedulers(text: &str) -> Result<Vec<SchedulerName>, String> {
    text.split_whitespace().map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_usual() {
        let named: SchedulerName = "batch".parse().unwrap();
        assert_eq!(*named.profile(), Profile::named("batch"));
        let text = "batch,packing=fill,nodes=20,images=0,resources=7";
        let named: SchedulerName = text.parse().unwrap();
        let mut wanted = Profile::named("batch");
        wanted.packing = Packing::Fill;
        wanted.enough_nodes = Some(20);
        wanted.weights.images = 0;
        wanted.weights.resources = 7;
        assert_eq!(*named.profile(), wanted);
        assert_eq!(named.to_string(), text);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_was_expected() {
        for (text, why) in [
            (
                "",
                "expected a name and perhaps more, such as batch,packing=fill",
            ),
            (
                "packing=fill",
                "expected a name and perhaps more, such as batch,packing=fill",
            ),
            ("a,packing=tight", "expected packing=spread or packing=fill"),
            ("a,nodes=0", "expected nodes=PERCENT, from 1 to 100"),
            ("a,images", "expected images=NUMBER, from 0 to 100"),
            ("a,images=101", "expected images=NUMBER, from 0 to 100"),
            ("a,images=1,images=2", "`images` is there twice"),
            (
                "a,ports=1",
                "`ports` is not packing, nodes, taints, affinity, resources, balance, images, spread or neighbours",
            ),
        ] {
            assert_eq!(text.parse::<SchedulerName>(), Err(why.to_owned()), "{text}");
        }
        assert!(schedulers("a b,packing=fill").is_ok_and(|all| all.len() == 2));
        assert!(schedulers("a B").is_err());
    }
}
