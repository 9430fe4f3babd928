//! Who a container's program is: by number, or by a name that only its image knows.

use std::io::Read;

use camino::Utf8PathBuf;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::{RuntimeError, Security};

/// Nobody needs longer lists of users.
const LONGEST_FILE: u64 = 4 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct User {
    pub(in super::super) id: u32,
    pub(in super::super) group: u32,
    pub(in super::super) additional: Vec<u32>,
}

/// The lists of an image's users.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Accounts {
    passwd: String,
    group: String,
}

impl Accounts {
    /// Reads the lists out of layers, the highest first.
    pub(in super::super) fn read(layers: &[Utf8PathBuf]) -> Self {
        Self {
            passwd: read_first(layers, "etc/passwd"),
            group: read_first(layers, "etc/group"),
        }
    }

    /// The user of a container: what its pod says, or else what its image says.
    pub(in super::super) fn find(
        &self,
        security: &Security,
        image: &str,
    ) -> Result<User, RuntimeError> {
        let (image_user, image_group) = image.split_once(':').unwrap_or((image, ""));
        let (user, mut group, name) = match security.user {
            Some(number) => {
                let number = in_range(number)?;
                let known =
                    self.user_by(|entry| entry.get(2).is_some_and(|id| *id == number.to_string()));
                (
                    number,
                    known.as_ref().map_or(0, |known| known.1),
                    known.map(|known| known.2),
                )
            }
            None => self.find_image_user(image_user)?,
        };
        if security.user.is_none() && !image_group.is_empty() {
            group = self.find_group(image_group)?;
        }
        if let Some(number) = security.group {
            group = in_range(number)?;
        }
        let mut additional: Vec<u32> = Vec::new();
        for number in &security.supplemental_groups {
            additional.push(in_range(*number)?);
        }
        if let Some(name) = name {
            additional.extend(self.groups_of(&name));
        }
        additional.push(group);
        additional.sort_unstable();
        additional.dedup();
        Ok(User {
            id: user,
            group,
            additional,
        })
    }

    fn find_image_user(&self, name: &str) -> Result<(u32, u32, Option<String>), RuntimeError> {
        if name.is_empty() {
            return Ok((0, 0, Some("root".to_owned())));
        }
        if let Some((user, group, name)) = self.user_by(|entry| entry.first() == Some(&name)) {
            return Ok((user, group, Some(name)));
        }
        let number: u32 = name.parse().map_err(|_| {
            RuntimeError::Invalid(format!(
                "unable to find user {name}: no matching entries in passwd file"
            ))
        })?;
        let known = self.user_by(|entry| entry.get(2) == Some(&name));
        Ok((
            number,
            known.as_ref().map_or(0, |known| known.1),
            known.map(|known| known.2),
        ))
    }

    fn find_group(&self, name: &str) -> Result<u32, RuntimeError> {
        let found = entries(&self.group).find(|entry| entry.first() == Some(&name));
        let number = found
            .as_ref()
            .and_then(|entry| entry.get(2).copied())
            .unwrap_or(name);
        number.parse().map_err(|_| {
            RuntimeError::Invalid(format!(
                "unable to find group {name}: no matching entries in group file"
            ))
        })
    }

    fn user_by(&self, matches: impl Fn(&Vec<&str>) -> bool) -> Option<(u32, u32, String)> {
        let entry = entries(&self.passwd).find(matches)?;
        match entry.as_slice() {
            [name, _, user, group, ..] => {
                Some((user.parse().ok()?, group.parse().ok()?, (*name).to_owned()))
            }
            _ => None,
        }
    }

    fn groups_of(&self, name: &str) -> Vec<u32> {
        entries(&self.group)
            .filter(|entry| {
                entry
                    .get(3)
                    .is_some_and(|members| members.split(',').any(|member| member == name))
            })
            .filter_map(|entry| entry.get(2)?.parse().ok())
            .collect()
    }
}

fn entries(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(':').collect())
}

fn in_range(number: i64) -> Result<u32, RuntimeError> {
    u32::try_from(number)
        .map_err(|_| RuntimeError::Invalid(format!("{number} is no number of a user or group")))
}

/// A file of the highest layer that has it. Links are followed inside of that layer only.
fn read_first(layers: &[Utf8PathBuf], path: &str) -> String {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    for layer in layers {
        let Ok(folder) = rustix::fs::open(
            layer.as_str(),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        ) else {
            continue;
        };
        if let Ok(file) = rustix::fs::openat2(&folder, path, flags, Mode::empty(), resolve) {
            let mut text = String::new();
            let read = std::fs::File::from(file)
                .take(LONGEST_FILE)
                .read_to_string(&mut text);
            return if read.is_ok() { text } else { String::new() };
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> Accounts {
        Accounts {
            passwd: "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/:/bin/false\nbroken\n".to_owned(),
            group: "root:x:0:\nweb:x:34:\nextra:x:50:web,other\n".to_owned(),
        }
    }

    fn user(user: u32, group: u32, additional: &[u32]) -> User {
        User {
            id: user,
            group,
            additional: additional.to_vec(),
        }
    }

    #[test]
    fn users_come_from_the_image_by_name_and_by_number() {
        let nobody = Security::default();
        let find = |image| accounts().find(&nobody, image).expect("a user");
        assert_eq!(find(""), user(0, 0, &[0]));
        assert_eq!(find("web"), user(33, 34, &[34, 50]));
        assert_eq!(find("33"), user(33, 34, &[34, 50]));
        assert_eq!(find("web:extra"), user(33, 50, &[50]));
        assert_eq!(find("1234:77"), user(1234, 77, &[77]));
        assert!(accounts().find(&nobody, "missing").is_err());
        assert!(accounts().find(&nobody, "web:missing").is_err());
    }

    #[test]
    fn a_pod_overrules_its_image() {
        let security = Security {
            user: Some(1000),
            group: Some(3000),
            supplemental_groups: vec![4000],
            ..Security::default()
        };
        assert_eq!(
            accounts().find(&security, "web").expect("a user"),
            user(1000, 3000, &[3000, 4000])
        );
        let negative = Security {
            user: Some(-1),
            ..Security::default()
        };
        assert!(accounts().find(&negative, "").is_err());
    }
}
