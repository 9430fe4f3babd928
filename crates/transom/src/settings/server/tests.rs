//! What is accepted, what is refused with which words, and what belongs together.

use transom_model::Os;

use super::*;
use crate::arguments::GlobalOptions;
use crate::environment::Environment;
use crate::settings::{FileConfig, Settings};

fn resolve(file: &str, variables: &[(&str, &str)]) -> Result<ServerSettings, SettingsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("my.yaml")).unwrap();
    fs_err::write(&path, file).unwrap();
    let options = GlobalOptions {
        config: Some(path),
        ..GlobalOptions::default()
    };
    let environment = Environment::new(Os::Linux, variables.iter().copied());
    Settings::resolve(Os::Linux, &options, &environment).map(|settings| settings.server)
}

fn problem(text: &str) -> String {
    let problem = FileConfig::parse(text).unwrap_err();
    match &problem.hint {
        Some(hint) => format!("{problem}\nhint: {hint}"),
        None => problem.to_string(),
    }
}

const FULL: &str = "
server:
  dataDir: /srv/transom
  listen: '[::1]:7443'
  names: [api.example.org, 192.0.2.7]
  store: etcd://one:2379,two:2379/shop
  etcd:
    ca: ca.pem
    cert: server.pem
    key: server.key
  maxConnections: 50
  schedulers: ['batch,packing=fill']
";

#[test]
fn everything_can_stand_in_the_file() {
    let settings = resolve(FULL, &[]).unwrap();
    assert_eq!(settings.data_dir.value, "/srv/transom");
    assert_eq!(settings.listen.value.to_string(), "[::1]:7443");
    assert_eq!(settings.names.value.len(), 2);
    assert_eq!(settings.max_connections.value.get(), 50);
    assert_eq!(settings.schedulers.value[0].profile().name, "batch");
    assert!(matches!(settings.etcd_key.source, Source::File { .. }));
    let StoreChoice::Etcd(etcd) = settings.store_choice().unwrap() else {
        panic!("{:?}", settings.store);
    };
    let endpoints: Vec<&str> = etcd.endpoints.iter().map(AsRef::as_ref).collect();
    assert_eq!(endpoints, ["https://one:2379/", "https://two:2379/"]);
    assert_eq!(etcd.prefix, "/shop");
    assert_eq!(etcd.tls.unwrap().own.unwrap().certificate, "server.pem");
}

#[test]
fn a_variable_is_stronger_than_the_file_and_a_flag_than_both() {
    let settings = resolve(
        FULL,
        &[
            ("TRANSOM_SERVER_LISTEN", "127.0.0.1:0"),
            ("TRANSOM_SERVER_NAMES", "a.example, 192.0.2.8"),
            ("TRANSOM_SERVER_STORE", "memory"),
        ],
    )
    .unwrap();
    assert_eq!(settings.listen.value.to_string(), "127.0.0.1:0");
    assert_eq!(
        settings.listen.source.to_string(),
        "variable TRANSOM_SERVER_LISTEN"
    );
    assert_eq!(settings.names.value[1].as_str(), "192.0.2.8");
    // Chosen on purpose: what the file says of etcd is for another day.
    assert!(matches!(settings.store_choice(), Ok(StoreChoice::Memory)));
    let flag = settings
        .listen
        .overruled("127.0.0.1:1".parse().ok(), "--listen");
    assert_eq!(flag.value.to_string(), "127.0.0.1:1");
    assert_eq!(flag.source.to_string(), "flag --listen");
}

#[test]
fn without_a_word_the_server_is_where_the_system_keeps_such_things() {
    let settings = resolve("", &[]).unwrap();
    assert_eq!(settings.data_dir.value, "/var/lib/transom/server");
    assert_eq!(settings.data_dir.source, Source::Default);
    assert!(matches!(settings.store_choice(), Ok(StoreChoice::Local)));
    assert_eq!(
        u64::from(settings.max_connections.value.get()),
        transom_api::Settings::default().max_connections as u64
    );
}

#[test]
fn stores_are_named_by_a_word_or_an_address_with_ports_and_nothing_else() {
    for (text, prefix) in [
        ("etcd://one:2379", "/transom"),
        ("etcd://one:2379/", "/transom"),
        ("etcd://[::1]:2379,192.0.2.1:80/a/b/", "/a/b"),
    ] {
        let name: StoreName = text.parse().unwrap();
        assert_eq!(name.to_string(), text);
        let StoreChoice::Etcd(etcd) = name.choice() else {
            panic!("{text}");
        };
        assert_eq!(etcd.prefix, prefix);
    }
    for text in [
        "",
        "Local",
        "etcd:one:2379",
        "etcd://",
        "etcd://one",
        "etcd://:2379",
        "etcd://one:0",
        "etcd://one:99999",
        "etcd://one:2379,",
        "etcd://me:secret@one:2379",
        "etcd://one?x:2379",
        "etcd://a b:2379",
    ] {
        assert!(text.parse::<StoreName>().is_err(), "{text}");
    }
}

#[test]
fn a_wrong_value_in_the_file_names_its_line_and_what_was_expected() {
    insta::assert_snapshot!(problem("server:\n  listen: 6443\n"), @"
    line 2, column 11: expected an address and a port, such as 0.0.0.0:6443
    1 | server:
    2 |   listen: 6443
      |           ^
    ");
    insta::assert_snapshot!(problem("server:\n  names: ['https://api']\n"), @"
    line 2, column 11: expected a host name or an address without a port, such as api.example.org
    1 | server:
    2 |   names: ['https://api']
      |           ^
    ");
    insta::assert_snapshot!(problem("server:\n  store: mysql\n"), @"
    line 2, column 10: expected `local`, `memory` or etcd://HOST:PORT
    1 | server:
    2 |   store: mysql
      |          ^
    ");
    insta::assert_snapshot!(problem("server:\n  dataDir: ''\n"), @"
    line 2, column 12: expected a path, which is not empty
    1 | server:
    2 |   dataDir: ''
      |            ^
    ");
    insta::assert_snapshot!(problem("server:\n  maxConnections: 0\n"), @"
    line 2, column 19: expected a number from 1 to 4294967295
    1 | server:
    2 |   maxConnections: 0
      |                   ^
    ");
    insta::assert_snapshot!(problem("server:\n  datadir: /srv\n"), @"
    line 2, column 3: unknown key `datadir`
    1 | server:
    2 |   datadir: /srv
      |   ^^^^^^^
    hint: did you mean `dataDir`?
    ");
    insta::assert_snapshot!(problem("server:\n  etcd:\n    certificate: a.pem\n"), @"
    line 3, column 5: unknown key `certificate`
    2 |   etcd:
    3 |     certificate: a.pem
      |     ^^^^^^^^^^^
    hint: did you mean `cert`?
    ");
}

#[test]
fn a_wrong_variable_is_named_with_what_was_expected() {
    let refused = |name, value| {
        let error = resolve("", &[(name, value)]).unwrap_err();
        format!("{error}\nhint: {}", error.hint().unwrap())
    };
    insta::assert_snapshot!(refused("TRANSOM_SERVER_LISTEN", "localhost:1"), @"
    the variable TRANSOM_SERVER_LISTEN cannot be `localhost:1`
    hint: expected an address and a port, such as 0.0.0.0:6443
    ");
    insta::assert_snapshot!(refused("TRANSOM_SERVER_NAMES", "a,,b"), @"
    the variable TRANSOM_SERVER_NAMES cannot be `a,,b`
    hint: expected a host name or an address without a port, such as api.example.org
    ");
    insta::assert_snapshot!(refused("TRANSOM_SERVER_STORE", "etcd"), @"
    the variable TRANSOM_SERVER_STORE cannot be `etcd`
    hint: expected `local`, `memory` or etcd://HOST:PORT
    ");
    insta::assert_snapshot!(refused("TRANSOM_SERVER_MAX_CONNECTIONS", "-1"), @"
    the variable TRANSOM_SERVER_MAX_CONNECTIONS cannot be `-1`
    hint: expected a number from 1 to 4294967295
    ");
}

#[test]
fn halves_of_a_connection_to_etcd_are_refused_with_the_way_forward() {
    let refused = |file: &str, variables: &[_]| {
        let error = resolve(file, variables)
            .unwrap()
            .store_choice()
            .unwrap_err();
        assert_eq!(error.exit(), Exit::Configuration);
        format!("{error}\nhint: {}", error.hint())
    };
    let store = ("TRANSOM_SERVER_STORE", "etcd://one:2379");
    let cert = ("TRANSOM_SERVER_ETCD_CERT", "a.pem");
    let key = ("TRANSOM_SERVER_ETCD_KEY", "a.key");
    insta::assert_snapshot!(refused("", &[store, cert]), @"
    the setting server.etcd.cert (variable TRANSOM_SERVER_ETCD_CERT) needs server.etcd.key
    hint: set it with --etcd-key, TRANSOM_SERVER_ETCD_KEY or server.etcd.key in the configuration file
    ");
    insta::assert_snapshot!(refused("", &[store, key]), @"
    the setting server.etcd.key (variable TRANSOM_SERVER_ETCD_KEY) needs server.etcd.cert
    hint: set it with --etcd-cert, TRANSOM_SERVER_ETCD_CERT or server.etcd.cert in the configuration file
    ");
    insta::assert_snapshot!(refused("", &[store, cert, key]), @"
    the setting server.etcd.cert (variable TRANSOM_SERVER_ETCD_CERT) needs server.etcd.ca
    hint: set it with --etcd-ca, TRANSOM_SERVER_ETCD_CA or server.etcd.ca in the configuration file
    ");
    let authority = ("TRANSOM_SERVER_ETCD_CA", "ca.pem");
    insta::assert_snapshot!(refused("", &[authority]), @"
    the setting server.etcd.ca (variable TRANSOM_SERVER_ETCD_CA) is for etcd, and no store was chosen
    hint: set etcd://HOST:PORT with --store, TRANSOM_SERVER_STORE or server.store in the configuration file
    ");
}
