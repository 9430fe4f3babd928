//! The rules of Windows versions, walked as a whole: the matrix is a snapshot, the laws are
//! properties.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn version(text: &str) -> WindowsVersion {
    text.parse().unwrap()
}

#[test]
fn the_whole_matrix_of_known_builds() {
    let mut hosts: Vec<u32> = RELEASES.iter().map(|release| release.build).collect();
    hosts.dedup();
    let containers: Vec<&Release> = RELEASES
        .iter()
        .filter(|release| release.image_tag.is_some())
        .collect();
    let mut matrix =
        String::from("P: process and Hyper-V, p: with a note, H: Hyper-V only\n\nhost ");
    for container in &containers {
        write!(matrix, " {}", container.build).unwrap();
    }
    for host in hosts {
        write!(matrix, "\n{host}").unwrap();
        for container in &containers {
            let verdict = |isolation| {
                compatibility(
                    &WindowsVersion::of_build(host),
                    &WindowsVersion::of_build(container.build),
                    isolation,
                )
            };
            let mark = match (verdict(Isolation::Process), verdict(Isolation::HyperV)) {
                (Verdict::Compatible, Verdict::Compatible) => 'P',
                (Verdict::CompatibleWithNote(_), Verdict::Compatible) => 'p',
                (Verdict::Incompatible { .. }, Verdict::Compatible) => 'H',
                (Verdict::Incompatible { .. }, Verdict::Incompatible { .. }) => '-',
                odd => panic!("process isolation without Hyper-V isolation: {odd:?}"),
            };
            write!(matrix, "     {mark}").unwrap();
        }
    }
    insta::assert_snapshot!(matrix, @r###"
P: process and Hyper-V, p: with a note, H: Hyper-V only

host  14393 16299 17134 17763 18362 18363 19041 19042 20348 25398 26100
10240     -     -     -     -     -     -     -     -     -     -     -
10586     -     -     -     -     -     -     -     -     -     -     -
14393     p     -     -     -     -     -     -     -     -     -     -
15063     H     -     -     -     -     -     -     -     -     -     -
16299     H     p     -     -     -     -     -     -     -     -     -
17134     H     H     p     -     -     -     -     -     -     -     -
17763     H     H     H     P     -     -     -     -     -     -     -
18362     H     H     H     H     P     -     -     -     -     -     -
18363     H     H     H     H     H     P     -     -     -     -     -
19041     H     H     H     H     H     H     P     -     -     -     -
19042     H     H     H     H     H     H     H     P     -     -     -
19043     H     H     H     H     H     H     H     H     -     -     -
19044     H     H     H     H     H     H     H     H     -     -     -
19045     H     H     H     H     H     H     H     H     -     -     -
20348     H     H     H     H     H     H     H     H     P     -     -
22000     H     H     H     H     H     H     H     H     p     -     -
22621     H     H     H     H     H     H     H     H     p     -     -
22631     H     H     H     H     H     H     H     H     p     -     -
25398     H     H     H     H     H     H     H     H     P     P     -
26100     H     H     H     H     H     H     H     H     P     P     P
26200     H     H     H     H     H     H     H     H     H     H     p
"###);
}

#[test]
fn an_operator_can_read_every_kind_of_answer() {
    let mut answers = String::new();
    for (host, container, isolation) in [
        ("10.0.17763.5820", "10.0.17763.1", Isolation::Process),
        ("10.0.17763.1039", "10.0.17763.973", Isolation::Process),
        ("10.0.20348", "10.0.17763", Isolation::Process),
        ("10.0.20348", "10.0.26100", Isolation::HyperV),
        ("10.0.26100", "10.0.20348", Isolation::Process),
        ("10.0.26100", "10.0.19042", Isolation::Process),
        ("10.0.26200", "10.0.20348", Isolation::Process),
        ("10.0.22631", "10.0.20348", Isolation::Process),
        ("10.0.14393.1914", "10.0.14393.1944", Isolation::Process),
        ("10.0.14393", "10.0.14393.1944", Isolation::Process),
        ("10.0.17134.1", "10.0.17134.2", Isolation::Process),
        ("6.3.9600", "10.0.17763", Isolation::HyperV),
        ("10.0.20348", "6.3.9600", Isolation::HyperV),
    ] {
        let verdict = compatibility(&version(host), &version(container), isolation);
        writeln!(answers, "{container} on {host}, {isolation}:\n  {verdict}").unwrap();
    }
    insta::assert_snapshot!(answers, @r###"
10.0.17763.1 on 10.0.17763.5820, process:
  compatible: 32-bit programs fail: only one of host and container has the updates of February 2020
10.0.17763.973 on 10.0.17763.1039, process:
  compatible: 32-bit programs fail: only one of host and container has the updates of February 2020
10.0.17763 on 10.0.20348, process:
  the container's build 17763 cannot use the kernel of the host's build 20348: needs a host with build 17763 (Windows Server 2019)
10.0.26100 on 10.0.20348, hyperv:
  the container's build 26100 is newer than the host's build 20348: needs a host with build 26100 (Windows Server 2025) or newer
10.0.20348 on 10.0.26100, process:
  compatible
10.0.19042 on 10.0.26100, process:
  the container's build 19042 cannot use the kernel of the host's build 26100: needs a host with build 19042 (Windows Server, version 20H2)
10.0.20348 on 10.0.26200, process:
  the container's build 20348 cannot use the kernel of the host's build 26200: needs a host with a build from 20348 (Windows Server 2022) to 26100 (Windows Server 2025)
10.0.20348 on 10.0.22631, process:
  compatible: Windows 11, version 23H2 runs process-isolated containers for development and test only
10.0.14393.1944 on 10.0.14393.1914, process:
  the container's 10.0.14393.1944 and the host's 10.0.14393.1914 have different updates: needs a host with exactly version 10.0.14393.1944 (Windows Server 2016)
10.0.14393.1944 on 10.0.14393, process:
  compatible: build 14393 wants the same updates on host and container, and one of the revisions is not known
10.0.17134.2 on 10.0.17134.1, process:
  compatible: different updates on host and container are not guaranteed to work with build 17134
10.0.17763 on 6.3.9600, hyperv:
  the host's Windows 6.3.9600 has no containers: needs a host with build 17763 (Windows Server 2019) or newer
6.3.9600 on 10.0.20348, hyperv:
  no container can have the version 6.3.9600: needs another image
"###);
}

#[test]
fn a_version_is_refused_with_what_is_wrong() {
    let fault = |text: &str| text.parse::<WindowsVersion>().unwrap_err().to_string();
    assert_eq!(
        fault("10.0"),
        "`10.0` is not a Windows version: it has 2 numbers instead of three or four, as in `10.0.20348.2113`"
    );
    assert_eq!(fault(""), "`` is not a Windows version: `` is not a number");
    assert_eq!(
        fault("10.0.+5"),
        "`10.0.+5` is not a Windows version: `+5` is not a number"
    );
    assert_eq!(
        fault("10.0.99999999999"),
        "`10.0.99999999999` is not a Windows version: `99999999999` is too large"
    );
}

#[test]
fn the_label_of_a_node_has_no_revision() {
    assert_eq!(version("10.0.20348.2113").build_label(), "10.0.20348");
}

#[test]
fn a_build_that_is_server_and_client_is_told_apart() {
    let name = |product| release(26100, product).unwrap().name;
    assert_eq!(name(Product::Server), "Windows Server 2025");
    assert_eq!(name(Product::Client), "Windows 11, version 24H2");
    assert_eq!(
        release(22631, Product::Server).unwrap().product,
        Product::Client
    );
    assert_eq!(release(1, Product::Server), None);
}

#[test]
fn releases_are_sorted_and_each_is_there_once() {
    for pair in RELEASES.windows(2) {
        let key = |release: &Release| (release.build, release.product);
        assert!(
            key(&pair[0]) < key(&pair[1]),
            "{} before {}",
            pair[0].name,
            pair[1].name
        );
    }
}

fn any_build() -> impl Strategy<Value = u32> {
    prop_oneof![
        proptest::sample::select(RELEASES).prop_map(|release| release.build),
        9000..30_000_u32,
        any::<u32>(),
    ]
}

fn any_version() -> impl Strategy<Value = WindowsVersion> {
    (
        prop_oneof![4 => Just((10, 0)), 1 => (any::<u32>(), any::<u32>())],
        any_build(),
        proptest::option::of(prop_oneof![0..3000_u32, any::<u32>()]),
    )
        .prop_map(|((major, minor), build, revision)| {
            WindowsVersion::new(major, minor, build, revision)
        })
}

fn container_version() -> impl Strategy<Value = WindowsVersion> {
    (14393..40_000_u32, proptest::option::of(0..3000_u32))
        .prop_map(|(build, revision)| WindowsVersion::new(10, 0, build, revision))
}

proptest! {
    #[test]
    fn a_version_is_read_as_it_is_written(version in any_version()) {
        prop_assert_eq!(version.to_string().parse(), Ok(version));
        let json = serde_json::to_string(&version).unwrap();
        prop_assert_eq!(serde_json::from_str::<WindowsVersion>(&json).unwrap(), version);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[0-9.+ -]{0,30}|\\PC{0,20}") {
        if let Ok(version) = text.parse::<WindowsVersion>() {
            prop_assert_eq!(version.to_string().parse(), Ok(version));
        }
    }

    #[test]
    fn a_container_runs_on_its_own_version(version in container_version()) {
        for isolation in Isolation::ALL {
            prop_assert!(compatibility(&version, &version, isolation).runs());
        }
    }

    #[test]
    fn process_isolation_never_allows_more_than_hyper_v(host in any_version(), container in any_version()) {
        if compatibility(&host, &container, Isolation::Process).runs() {
            prop_assert!(compatibility(&host, &container, Isolation::HyperV).runs());
        }
    }

    #[test]
    fn a_newer_host_keeps_running_hyper_v_containers(
        host in container_version(),
        more in 0..10_000_u32,
        container in any_version(),
    ) {
        let newer = WindowsVersion { build: host.build + more, ..host };
        if compatibility(&host, &container, Isolation::HyperV).runs() {
            prop_assert!(compatibility(&newer, &container, Isolation::HyperV).runs());
        }
    }

    #[test]
    fn no_host_runs_a_newer_container(host in container_version(), more in 1..10_000_u32) {
        let container = WindowsVersion { build: host.build + more, ..host };
        for isolation in Isolation::ALL {
            prop_assert!(!compatibility(&host, &container, isolation).runs());
        }
    }

    #[test]
    fn what_a_refusal_asks_for_is_enough(
        host in any_version(),
        container in any_version(),
        other in any_version(),
    ) {
        for isolation in Isolation::ALL {
            if let Verdict::Incompatible { needs, .. } = compatibility(&host, &container, isolation) {
                prop_assert!(!needs.is_met_by(&host));
                prop_assert_eq!(
                    needs.is_met_by(&other) && (container.build != 14393 || other.revision.is_some()),
                    compatibility(&other, &container, isolation).runs()
                        && (container.build != 14393 || other.revision.is_some()),
                    "{}", needs
                );
            }
        }
    }

    #[test]
    fn without_a_stable_interface_only_the_same_build_runs(
        host in 14393..20348_u32,
        container in 14393..40_000_u32,
    ) {
        let runs = compatibility(
            &WindowsVersion::of_build(host),
            &WindowsVersion::of_build(container),
            Isolation::Process,
        )
        .runs();
        prop_assert_eq!(runs, host == container);
    }
}
