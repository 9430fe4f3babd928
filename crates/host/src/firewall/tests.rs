//! Golden commands of firewall operations, and what is refused.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn api() -> Rule {
    Rule {
        name: "api".to_owned(),
        protocol: Protocol::Tcp,
        ports: vec![6443.into()],
        peers: Vec::new(),
        direction: Direction::Inbound,
    }
}

fn overlay() -> Rule {
    Rule {
        name: "overlay".to_owned(),
        protocol: Protocol::Udp,
        ports: vec![
            4789.into(),
            PortRange {
                first: 30000,
                last: 32767,
            },
        ],
        peers: vec![
            "10.0.0.0/8".parse().unwrap(),
            "fd00::/8".parse().unwrap(),
            "192.168.0.0/16".parse().unwrap(),
        ],
        direction: Direction::Outbound,
    }
}

fn rendered(os: Os) -> String {
    let mut text = String::new();
    for operation in [
        FirewallOperation::Allow(api()),
        FirewallOperation::Allow(overlay()),
        FirewallOperation::Remove {
            name: "api".to_owned(),
            direction: Direction::Inbound,
        },
    ] {
        for command in operation.render_commands(os).unwrap() {
            writeln!(text, "{command}").unwrap();
        }
    }
    text
}

#[test]
fn linux_rules_live_in_our_own_table() {
    insta::assert_snapshot!(rendered(Os::Linux), @r###"
nft -f - <<END
add table inet transom
add chain inet transom input-api { type filter hook input priority filter; policy accept; }
flush chain inet transom input-api
add rule inet transom input-api tcp dport { 6443 } accept
END
nft -f - <<END
add table inet transom
add chain inet transom output-overlay { type filter hook output priority filter; policy accept; }
flush chain inet transom output-overlay
add rule inet transom output-overlay ip daddr { 10.0.0.0/8, 192.168.0.0/16 } udp dport { 4789, 30000-32767 } accept
add rule inet transom output-overlay ip6 daddr { fd00::/8 } udp dport { 4789, 30000-32767 } accept
END
nft -f - <<END
add table inet transom
add chain inet transom input-api { type filter hook input priority filter; policy accept; }
flush chain inet transom input-api
delete chain inet transom input-api
END
"###);
}

#[test]
fn windows_rules_are_members_of_our_group() {
    insta::assert_snapshot!(rendered(Os::Windows), @r###"
powershell.exe -NoLogo -NoProfile -NonInteractive -Command "$ErrorActionPreference = 'Stop'; Get-NetFirewallRule -Name 'transom-input-api' -ErrorAction SilentlyContinue | Where-Object Group -EQ 'Transom' | Remove-NetFirewallRule; New-NetFirewallRule -Name 'transom-input-api' -DisplayName 'Transom: api' -Group 'Transom' -Direction Inbound -Protocol TCP -LocalPort @('6443') -Action Allow | Out-Null"
powershell.exe -NoLogo -NoProfile -NonInteractive -Command "$ErrorActionPreference = 'Stop'; Get-NetFirewallRule -Name 'transom-output-overlay' -ErrorAction SilentlyContinue | Where-Object Group -EQ 'Transom' | Remove-NetFirewallRule; New-NetFirewallRule -Name 'transom-output-overlay' -DisplayName 'Transom: overlay' -Group 'Transom' -Direction Outbound -Protocol UDP -RemotePort @('4789', '30000-32767') -RemoteAddress @('10.0.0.0/8', 'fd00::/8', '192.168.0.0/16') -Action Allow | Out-Null"
powershell.exe -NoLogo -NoProfile -NonInteractive -Command "$ErrorActionPreference = 'Stop'; Get-NetFirewallRule -Name 'transom-input-api' -ErrorAction SilentlyContinue | Where-Object Group -EQ 'Transom' | Remove-NetFirewallRule"
"###);
}

#[test]
fn a_bad_rule_is_refused_with_what_is_wrong() {
    let refused = |rule: Rule| {
        FirewallOperation::Allow(rule)
            .render_commands(Os::Linux)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(Rule {
            ports: vec![0.into()],
            ..api()
        }),
        "the rule `api` names port 0, which no program can listen on"
    );
    assert_eq!(
        refused(Rule {
            ports: Vec::new(),
            ..api()
        }),
        "the rule `api` names no port"
    );
    assert_eq!(
        refused(Rule {
            ports: vec![PortRange { first: 9, last: 8 }],
            ..api()
        }),
        "the rule `api` has the port range `9-8`, which ends before it starts"
    );
    assert_eq!(
        refused(Rule {
            peers: vec!["10.1.2.3/8".parse().unwrap()],
            ..api()
        }),
        "the rule `api` has the peer `10.1.2.3/8` with bits beyond its prefix: `10.0.0.0/8` is meant"
    );
}

#[test]
fn a_name_with_quotes_is_refused_in_both_operations() {
    for name in ["", "a'b", "a\"b", "a b", "A", "1a", "a;b", "ä", "-a"] {
        for operation in [
            FirewallOperation::Allow(Rule {
                name: name.to_owned(),
                ..api()
            }),
            FirewallOperation::Remove {
                name: name.to_owned(),
                direction: Direction::Inbound,
            },
        ] {
            assert!(
                matches!(
                    operation.render_commands(Os::Windows),
                    Err(FirewallError::Name { .. })
                ),
                "{name:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn whatever_the_name_it_is_refused_or_stays_one_word(name in "\\PC{0,60}") {
        let operation = FirewallOperation::Allow(Rule { name: name.clone(), ..api() });
        if let Ok(commands) = operation.render_commands(Os::Linux) {
            let input = commands[0].input.as_deref().unwrap();
            prop_assert_eq!(input.lines().count(), 4);
            let chain = format!("flush chain inet transom input-{name}");
            prop_assert!(input.lines().any(|line| line == chain));
        }
    }
}
