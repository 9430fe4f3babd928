//! Reading `/etc/passwd` and `/etc/group`. Pure text in, accounts out, so that a bad line is a test
//! and not a surprise; a line that is no entry is skipped, as the C library does.

use std::collections::BTreeSet;

use super::{Account, AccountId};

/// The text of the two files.
#[derive(Debug, Clone, Default)]
pub struct AccountFiles {
    pub passwd: String,
    pub group: String,
}

/// Why the files could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AccountFilesError {
    #[error("could not read the user database")]
    Read {
        #[from]
        source: std::io::Error,
    },
}

/// One line of `/etc/passwd`.
struct Entry<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
    home: &'a str,
    shell: &'a str,
}

impl AccountFiles {
    /// The account of a name or, if no name matches, of a number.
    pub fn find(&self, name: &str) -> Option<Account> {
        let number: Option<u32> = name.parse().ok();
        self.entries()
            .find(|entry| entry.name == name)
            .or_else(|| number.and_then(|number| self.entries().find(|entry| entry.uid == number)))
            .map(|entry| self.account(&entry))
    }

    /// The account of a number.
    pub fn find_by_uid(&self, uid: u32) -> Option<Account> {
        self.entries()
            .find(|entry| entry.uid == uid)
            .map(|entry| self.account(&entry))
    }

    /// The number of a group of users by its name.
    pub fn find_group(&self, name: &str) -> Option<u32> {
        self.group.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [group, _, gid, _] = fields[..] else {
                return None;
            };
            let is_meant = group == name && !name.is_empty();
            is_meant.then(|| gid.parse().ok()).flatten()
        })
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.passwd.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, _, home, shell] = fields[..] else {
                return None;
            };
            Some(Entry {
                name: Some(name).filter(|name| !name.is_empty())?,
                uid: uid.parse().ok()?,
                gid: gid.parse().ok()?,
                home,
                shell,
            })
        })
    }

    fn account(&self, entry: &Entry<'_>) -> Account {
        let others: BTreeSet<u32> = self
            .groups_of(entry.name)
            .filter(|gid| *gid != entry.gid)
            .collect();
        let path = |text: &str| (!text.is_empty()).then(|| text.into());
        Account {
            name: entry.name.to_owned(),
            id: AccountId::Unix {
                uid: entry.uid,
                gid: entry.gid,
                groups: [entry.gid].into_iter().chain(others).collect(),
            },
            home: path(entry.home),
            shell: path(entry.shell),
        }
    }

    fn groups_of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = u32> + 'a {
        self.group.lines().filter_map(move |line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [_, _, gid, members] = fields[..] else {
                return None;
            };
            let is_member = members.split(',').any(|member| member.trim() == user);
            is_member.then(|| gid.parse().ok()).flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> AccountFiles {
        AccountFiles {
            passwd: "root:x:0:0:root:/root:/bin/bash\n\
                     broken line\n\
                     nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n\
                     web:x:1001:1001:,,,:/srv/web:\n\
                     1001:x:1002:1002::/home/number:/bin/sh\n\
                     :x:5:5::/:/bin/sh\n\
                     bad:x:-1:0::/:/bin/sh\n"
                .to_owned(),
            group: "root:x:0:\n\
                    web:x:1001:web\n\
                    docker:x:999:web,other\n\
                    adm:x:4:other,web\n\
                    websters:x:7:webster\n"
                .to_owned(),
        }
    }

    #[test]
    fn a_user_has_the_primary_group_first_and_then_the_others() {
        let web = files().find("web").unwrap();
        assert_eq!(
            web,
            Account {
                name: "web".to_owned(),
                id: AccountId::Unix {
                    uid: 1001,
                    gid: 1001,
                    groups: vec![1001, 4, 999],
                },
                home: Some("/srv/web".into()),
                shell: None,
            }
        );
    }

    #[test]
    fn a_number_is_a_uid_unless_someone_is_called_so() {
        assert_eq!(files().find("65534").unwrap().name, "nobody");
        assert_eq!(files().find("1001").unwrap().name, "1001");
        assert_eq!(files().find_by_uid(1001).unwrap().name, "web");
    }

    #[test]
    fn lines_that_are_no_entries_make_no_user() {
        assert_eq!(files().find("bad"), None);
        assert_eq!(files().find(""), None);
        assert_eq!(files().find("5"), None);
        assert_eq!(files().find("broken line"), None);
    }
}
