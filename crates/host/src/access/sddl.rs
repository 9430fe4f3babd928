//! Windows security descriptors in their text form (SDDL), written and judged without Windows. What
//! cannot be understood is never judged to be private.

use super::Privacy;

/// The local system account.
const SYSTEM: &[&str] = &["SY", "S-1-5-18"];
/// The group of administrators.
const ADMINISTRATORS: &[&str] = &["BA", "S-1-5-32-544"];
/// Stand for the owner of the object, and for whoever creates one inside it.
const OWNER_ALIASES: &[&str] = &["OW", "S-1-3-4", "CO", "S-1-3-0"];

/// Names for the trustees that files are usually exposed to.
const WELL_KNOWN: &[(&[&str], &str)] = &[
    (&["WD", "S-1-1-0"], "Everyone"),
    (&["BU", "S-1-5-32-545"], "Users"),
    (&["AU", "S-1-5-11"], "Authenticated Users"),
    (&["IU", "S-1-5-4"], "Interactive"),
    (&["AN", "S-1-5-7"], "Anonymous"),
    (&["BG", "S-1-5-32-546"], "Guests"),
    (&["NS", "S-1-5-20"], "Network Service"),
    (&["LS", "S-1-5-19"], "Local Service"),
    (&["AC", "S-1-15-2-1"], "All Application Packages"),
    (&["SU", "S-1-5-6"], "Services"),
    (&["NU", "S-1-5-2"], "Network"),
];

/// What a security descriptor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
}

/// A descriptor that lets in the system, the administrators and one user, and inherits nothing.
pub fn render_private(user_sid: &str, kind: Kind) -> String {
    let inheritance = match kind {
        Kind::File => "",
        Kind::Folder => "OICI",
    };
    let user_is_listed = [SYSTEM, ADMINISTRATORS]
        .iter()
        .any(|aliases| aliases.contains(&user_sid));
    let user = (!user_is_listed).then_some(user_sid);
    let entries: String = ["SY", "BA"]
        .into_iter()
        .chain(user)
        .map(|trustee| format!("(A;{inheritance};FA;;;{trustee})"))
        .collect::<Vec<_>>()
        .concat();
    format!("D:P{entries}")
}

/// Who besides the system, the administrators and `user_sid` a descriptor lets read.
pub fn judge(descriptor: &str, user_sid: &str) -> Privacy {
    // An entry that is only passed on says nothing about this object; a folder's own entries are
    // judged again at each file.
    let can_read =
        |flags: &str, rights: &str| !flag_pairs(flags).any(|flag| flag == "IO") && can_read(rights);
    judge_by(descriptor, user_sid, can_read)
}

/// Who besides the system, the administrators and `user_sid` a descriptor lets change a file, or the
/// content of a folder: also the files that it passes the right on to.
pub fn judge_change(descriptor: &str, user_sid: &str) -> Privacy {
    judge_by(descriptor, user_sid, |_, rights| can_change(rights))
}

/// Who a descriptor gives a right that matters, by the flags and rights of an entry.
fn judge_by(descriptor: &str, user_sid: &str, matters: impl Fn(&str, &str) -> bool) -> Privacy {
    let unknown = |why: &str| Privacy::Unknown {
        why: format!("{why} in `{descriptor}`"),
    };
    let Some(list) = access_list(descriptor) else {
        return unknown("there is no access list");
    };
    // Without an access list, everyone may do everything.
    if list.flags.contains("NO_ACCESS_CONTROL") {
        return Privacy::Exposed {
            who: vec!["Everyone".to_owned()],
        };
    }
    let mut who = Vec::new();
    // An owner can always give itself any right.
    if let Some(owner) = owner(descriptor).filter(|owner| !is_trusted(owner, user_sid)) {
        who.push(format!("its owner, {}", readable_name(owner)));
    }
    for entry in list.entries {
        let fields: Vec<&str> = entry.split(';').collect();
        let [kind, flags, rights, _, _, trustee, ..] = fields[..] else {
            return unknown("an entry has too few fields");
        };
        match kind {
            "A" | "XA" | "OA" if matters(flags, rights) && !is_trusted(trustee, user_sid) => {
                who.push(readable_name(trustee));
            }
            // Denials only take away; the others are about auditing and labels.
            "A" | "XA" | "OA" | "D" | "OD" | "XD" | "AU" | "ML" | "RA" | "SP" | "TL" => {}
            _ => return unknown("an entry has an unknown type"),
        }
    }
    who.dedup();
    if who.is_empty() {
        Privacy::Private
    } else {
        Privacy::Exposed { who }
    }
}

/// The owner: a SID, or two letters with the next section right behind them.
fn owner(descriptor: &str) -> Option<&str> {
    let text = &descriptor[section_start(descriptor, "O:")? + 2..];
    if text.starts_with("S-1-") {
        let end = text[1..]
            .find(|c: char| !c.is_ascii_digit() && c != '-')
            .map_or(text.len(), |end| end + 1);
        text.get(..end)
    } else {
        text.get(..2)
    }
}

struct AccessList<'a> {
    flags: &'a str,
    entries: Vec<&'a str>,
}

/// The discretionary list of a descriptor: its flags and the text of its entries.
fn access_list(descriptor: &str) -> Option<AccessList<'_>> {
    let start = section_start(descriptor, "D:")? + 2;
    let section = &descriptor[start..];
    let flags = section.split('(').next().unwrap_or_default();
    let flags = flags.split("S:").next().unwrap_or_default();
    let mut entries = Vec::new();
    let mut rest = &section[flags.len()..];
    while let Some(body) = rest.strip_prefix('(') {
        // Conditions contain parentheses of their own.
        let end = closing(body)?;
        entries.push(&body[..end]);
        rest = &body[end + 1..];
    }
    Some(AccessList { flags, entries })
}

/// Where a section starts, outside all parentheses.
fn section_start(descriptor: &str, mark: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in descriptor.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ if depth == 0 && descriptor[at..].starts_with(mark) => return Some(at),
            _ => {}
        }
    }
    None
}

fn closing(body: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, c) in body.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Flags and rights are written as pairs of letters.
fn flag_pairs(text: &str) -> impl Iterator<Item = &str> {
    (0..text.len())
        .step_by(2)
        .map(|at| text.get(at..at + 2).unwrap_or(""))
}

/// Whether rights allow to read the content, or to give oneself that right.
fn can_read(rights: &str) -> bool {
    /// Read data, change the list, take ownership, and the generic all and read.
    const READING: u32 = 0x0000_0001 | 0x0004_0000 | 0x0008_0000 | 0x1000_0000 | 0x8000_0000;
    if let Some(hexadecimal) = rights.strip_prefix("0x").or(rights.strip_prefix("0X")) {
        return u32::from_str_radix(hexadecimal, 16).map_or(true, |mask| mask & READING != 0);
    }
    // Rights without reading; any other, and any we do not know, counts as reading.
    !flag_pairs(rights).all(|right| {
        matches!(
            right,
            "FW" | "FX" | "GW" | "GX" | "RC" | "SD" | "DC" | "WP" | "LO" | "DT" | "SW" | "RP"
        )
    })
}

/// Whether rights allow to change the content, to remove it, or to give oneself such a right.
fn can_change(rights: &str) -> bool {
    /// Write and append data, remove what is inside, remove, change the list, take ownership, and the
    /// generic all and write.
    const CHANGING: u32 =
        0x0000_0002 | 0x0000_0004 | 0x0000_0040 | 0x0001_0000 | 0x000C_0000 | 0x5000_0000;
    if let Some(hexadecimal) = rights.strip_prefix("0x").or(rights.strip_prefix("0X")) {
        return u32::from_str_radix(hexadecimal, 16).map_or(true, |mask| mask & CHANGING != 0);
    }
    // Rights to read, execute and look at; any other, and any we do not know, counts as changing.
    !flag_pairs(rights).all(|right| {
        matches!(
            right,
            "FR" | "FX" | "GR" | "GX" | "RC" | "CC" | "SW" | "WP" | "LO"
        )
    })
}

fn is_trusted(trustee: &str, user_sid: &str) -> bool {
    trustee == user_sid
        || [SYSTEM, ADMINISTRATORS, OWNER_ALIASES]
            .iter()
            .any(|aliases| aliases.contains(&trustee))
}

fn readable_name(trustee: &str) -> String {
    WELL_KNOWN
        .iter()
        .find(|(aliases, _)| aliases.contains(&trustee))
        .map_or_else(|| trustee.to_owned(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn who_may_change_a_folder_is_told_from_who_may_read_it() {
        const USER: &str = "S-1-5-21-1-2-3-1001";
        let private = render_private(USER, Kind::Folder);
        assert_eq!(judge_change(&private, USER), Privacy::Private);
        // Reading and executing is no harm.
        for rights in ["0x1200a9", "FRFX", "GRGX", "FR"] {
            let list = format!("O:BAD:(A;OICI;FA;;;SY)(A;OICI;{rights};;;BU)");
            assert_eq!(judge_change(&list, USER), Privacy::Private, "{rights}");
        }
        // What a folder right below `C:\\` inherits, in its two halves.
        for entry in ["A;ID;0x1301bf;;;AU", "A;OICIIOID;SDGXGWGR;;;AU"] {
            let list = format!("O:BAD:(A;OICI;FA;;;SY)({entry})");
            let who = vec!["Authenticated Users".to_owned()];
            assert_eq!(
                judge_change(&list, USER),
                Privacy::Exposed { who },
                "{entry}"
            );
        }
        for rights in [
            "LC", "DC", "FW", "GA", "FA", "WD", "WO", "SD", "DT", "0x4", "0xz", "??",
        ] {
            let list = format!("O:BAD:(A;;{rights};;;WD)");
            let found = judge_change(&list, USER);
            assert!(matches!(found, Privacy::Exposed { .. }), "{rights}");
        }
        let foreign = judge_change("O:BUD:(A;;FA;;;SY)", USER);
        assert!(matches!(foreign, Privacy::Exposed { .. }));
        assert!(matches!(
            judge_change("O:BA", USER),
            Privacy::Unknown { .. }
        ));
    }

    use super::*;

    const USER: &str = "S-1-5-21-1-2-3-1001";

    fn exposed(who: &[&str]) -> Privacy {
        Privacy::Exposed {
            who: who.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_private_file_is_open_to_three() {
        assert_eq!(
            render_private(USER, Kind::File),
            "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;S-1-5-21-1-2-3-1001)"
        );
    }

    #[test]
    fn a_private_folder_passes_its_access_on() {
        assert_eq!(
            render_private(USER, Kind::Folder),
            "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;S-1-5-21-1-2-3-1001)"
        );
    }

    #[test]
    fn a_service_of_the_system_is_not_listed_twice() {
        assert_eq!(
            render_private("S-1-5-18", Kind::File),
            "D:P(A;;FA;;;SY)(A;;FA;;;BA)"
        );
    }

    #[test]
    fn what_we_write_we_judge_private() {
        for kind in [Kind::File, Kind::Folder] {
            assert_eq!(judge(&render_private(USER, kind), USER), Privacy::Private);
        }
    }

    #[test]
    fn the_usual_list_of_a_new_file_is_exposed_to_users() {
        let inherited =
            "O:BAG:DUD:AI(A;ID;FA;;;BA)(A;ID;FA;;;SY)(A;ID;0x1200a9;;;BU)(A;ID;0x1301bf;;;AU)";
        assert_eq!(
            judge(inherited, USER),
            exposed(&["Users", "Authenticated Users"])
        );
        assert_eq!(judge("D:(A;;FR;;;WD)S:AI", USER), exposed(&["Everyone"]));
        assert_eq!(
            judge("D:(A;;GA;;;S-1-5-21-9-9-9-500)", USER),
            exposed(&["S-1-5-21-9-9-9-500"])
        );
    }

    #[test]
    fn no_list_at_all_is_exposed_to_everyone() {
        assert_eq!(judge("D:NO_ACCESS_CONTROL", USER), exposed(&["Everyone"]));
        assert!(matches!(judge("O:BAG:DU", USER), Privacy::Unknown { .. }));
    }

    #[test]
    fn an_empty_list_lets_nobody_in() {
        assert_eq!(judge("D:P", USER), Privacy::Private);
        assert_eq!(judge("O:BAD:PS:AI", USER), Privacy::Private);
    }

    #[test]
    fn denials_and_rights_without_reading_do_not_expose() {
        assert_eq!(judge("D:(D;;FA;;;WD)(A;;FA;;;BA)", USER), Privacy::Private);
        assert_eq!(judge("D:(A;;0x100080;;;BU)", USER), Privacy::Private);
        assert_eq!(
            judge("D:(A;OICIIO;FA;;;WD)(A;;FA;;;BA)", USER),
            Privacy::Private
        );
        assert_eq!(
            judge("D:(A;;WD;;;BU)", USER),
            exposed(&["Users"]),
            "may change the list"
        );
    }

    #[test]
    fn a_foreign_owner_exposes_a_file_whatever_its_list() {
        let private = render_private(USER, Kind::File);
        for (owner, seen) in [
            (
                "S-1-5-21-9-9-9-1002",
                exposed(&["its owner, S-1-5-21-9-9-9-1002"]),
            ),
            ("BU", exposed(&["its owner, Users"])),
            (USER, Privacy::Private),
            ("BA", Privacy::Private),
        ] {
            assert_eq!(judge(&format!("O:{owner}{private}"), USER), seen);
            assert_eq!(judge(&format!("O:{owner}G:DU{private}"), USER), seen);
        }
    }

    #[test]
    fn a_condition_with_parentheses_is_still_one_entry() {
        assert_eq!(
            judge("D:(XA;;FR;;;WD;(@User.x == (1)))(A;;FA;;;BA)", USER),
            exposed(&["Everyone"])
        );
    }

    proptest! {
        #[test]
        fn no_descriptor_makes_the_judge_panic(text in "[DOGSPAI:();x0-9ä]{0,40}|\\PC{0,30}") {
            let _ = judge(&text, USER);
        }

        #[test]
        fn one_more_reader_is_always_seen(trustee in "S-1-5-21-[0-9]{1,3}", right in "FA|FR|GA|GR|0x1") {
            let private = render_private(USER, Kind::File);
            let open = format!("{private}(A;;{right};;;{trustee})");
            prop_assert_eq!(judge(&open, USER), exposed(&[&trustee]));
        }
    }
}
