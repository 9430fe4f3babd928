//! Which build is which release of Windows. Sorted by build, servers before clients of the same
//! build.

use std::fmt;

/// Whether a machine runs Windows Server or a desktop Windows; some builds are both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Product {
    Server,
    Client,
}

/// How long a release is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Ten years of updates.
    LongTerm,
    /// Half-yearly releases, ended in 2022.
    SemiAnnual,
    /// Yearly releases for container hosts.
    Annual,
    /// Desktop releases, whose end depends on the edition.
    Desktop,
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A release of Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    pub build: u32,
    pub product: Product,
    /// What Microsoft calls it.
    pub name: &'static str,
    pub channel: Channel,
    /// The tag of its base images, if it has some.
    pub image_tag: Option<&'static str>,
    /// The last day of security updates, where it does not depend on the edition.
    pub support_ends: Option<Date>,
}

const fn server(
    build: u32,
    name: &'static str,
    channel: Channel,
    image_tag: &'static str,
    support_ends: Option<Date>,
) -> Release {
    Release {
        build,
        product: Product::Server,
        name,
        channel,
        image_tag: Some(image_tag),
        support_ends,
    }
}

const fn client(build: u32, name: &'static str) -> Release {
    Release {
        build,
        product: Product::Client,
        name,
        channel: Channel::Desktop,
        image_tag: None,
        support_ends: None,
    }
}

const fn day(year: u16, month: u8, day: u8) -> Date {
    Date { year, month, day }
}

/// Every release we know, sorted by build.
pub const RELEASES: &[Release] = &[
    client(10240, "Windows 10, version 1507"),
    client(10586, "Windows 10, version 1511"),
    server(
        14393,
        "Windows Server 2016",
        Channel::LongTerm,
        "ltsc2016",
        Some(day(2027, 1, 12)),
    ),
    client(14393, "Windows 10, version 1607"),
    client(15063, "Windows 10, version 1703"),
    server(
        16299,
        "Windows Server, version 1709",
        Channel::SemiAnnual,
        "1709",
        Some(day(2019, 4, 9)),
    ),
    client(16299, "Windows 10, version 1709"),
    server(
        17134,
        "Windows Server, version 1803",
        Channel::SemiAnnual,
        "1803",
        Some(day(2019, 11, 12)),
    ),
    client(17134, "Windows 10, version 1803"),
    server(
        17763,
        "Windows Server 2019",
        Channel::LongTerm,
        "ltsc2019",
        Some(day(2029, 1, 9)),
    ),
    client(17763, "Windows 10, version 1809"),
    server(
        18362,
        "Windows Server, version 1903",
        Channel::SemiAnnual,
        "1903",
        Some(day(2020, 12, 8)),
    ),
    client(18362, "Windows 10, version 1903"),
    server(
        18363,
        "Windows Server, version 1909",
        Channel::SemiAnnual,
        "1909",
        Some(day(2021, 5, 11)),
    ),
    client(18363, "Windows 10, version 1909"),
    server(
        19041,
        "Windows Server, version 2004",
        Channel::SemiAnnual,
        "2004",
        Some(day(2021, 12, 14)),
    ),
    client(19041, "Windows 10, version 2004"),
    server(
        19042,
        "Windows Server, version 20H2",
        Channel::SemiAnnual,
        "20H2",
        Some(day(2022, 8, 9)),
    ),
    client(19042, "Windows 10, version 20H2"),
    client(19043, "Windows 10, version 21H1"),
    client(19044, "Windows 10, version 21H2"),
    client(19045, "Windows 10, version 22H2"),
    server(
        20348,
        "Windows Server 2022",
        Channel::LongTerm,
        "ltsc2022",
        Some(day(2031, 10, 14)),
    ),
    client(22000, "Windows 11, version 21H2"),
    client(22621, "Windows 11, version 22H2"),
    client(22631, "Windows 11, version 23H2"),
    server(
        25398,
        "Windows Server, version 23H2",
        Channel::Annual,
        "windows-server-23H2",
        Some(day(2025, 10, 24)),
    ),
    server(
        26100,
        "Windows Server 2025",
        Channel::LongTerm,
        "ltsc2025",
        None,
    ),
    client(26100, "Windows 11, version 24H2"),
    client(26200, "Windows 11, version 25H2"),
];

/// The release of a build; of a build that is both, the one of `product`.
///
/// A build that only the other product has still gets its name: the caller's idea of the product
/// can come from an image, which never says whether its host is a server.
pub fn release(build: u32, product: Product) -> Option<&'static Release> {
    let of_build = || {
        RELEASES
            .iter()
            .filter(move |release| release.build == build)
    };
    of_build()
        .find(|release| release.product == product)
        .or_else(|| of_build().next())
}
