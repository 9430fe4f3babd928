//! The bill of materials of a package in the `CycloneDX` format. It has neither time nor random number,
//! so that the same package always has the same one.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use transom_model::Os;
use transom_model::package::PackageId;

/// Where one of the sources came from. The address has no user and no password in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    pub name: String,
    pub url: String,
    pub pin: Pin,
}

/// What makes a source the same for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pin {
    Commit(String),
    Sha1(String),
}

/// Describes a package, what it was made of and what it needs.
pub(super) fn render(
    id: &PackageId,
    os: Os,
    origins: &[Origin],
    requires: &BTreeSet<PackageId>,
) -> Value {
    let mut components: Vec<Value> = origins.iter().map(source).collect();
    components.extend(requires.iter().map(package));
    let needed: Vec<&str> = requires.iter().map(PackageId::as_str).collect();
    let mut described = package(id);
    described["properties"] = json!([{"name": "transom:os", "value": os}]);
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": described},
        "components": components,
        "dependencies": [{"ref": id, "dependsOn": needed}],
    })
}

fn package(id: &PackageId) -> Value {
    json!({
        "type": "application",
        "bom-ref": id,
        "name": id.name_str(),
        "version": id.version_str(),
    })
}

fn source(origin: &Origin) -> Value {
    let mut component = json!({
        "type": "file",
        "bom-ref": format!("source:{}", origin.name),
        "name": origin.name,
    });
    match &origin.pin {
        Pin::Commit(commit) => {
            component["version"] = json!(commit);
            component["pedigree"] = json!({"commits": [{"uid": commit, "url": origin.url}]});
            component["externalReferences"] = json!([{"type": "vcs", "url": origin.url}]);
        }
        Pin::Sha1(sha1) => {
            component["hashes"] = json!([{"alg": "SHA-1", "content": sha1}]);
            component["externalReferences"] = json!([{"type": "distribution", "url": origin.url}]);
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_to_a_component() {
        let origins = [
            Origin {
                name: "a".to_owned(),
                url: "https://example.com/a.git".to_owned(),
                pin: Pin::Commit("1".repeat(40)),
            },
            Origin {
                name: "b".to_owned(),
                url: "https://example.com/b.tar.gz".to_owned(),
                pin: Pin::Sha1("2".repeat(40)),
            },
        ];
        let requires = BTreeSet::from(["dep--1".parse().unwrap()]);
        let bom = render(
            &"tool--2".parse().unwrap(),
            Os::Windows,
            &origins,
            &requires,
        );
        insta::assert_json_snapshot!(bom["components"][1], @r#"
        {
          "bom-ref": "source:b",
          "externalReferences": [
            {
              "type": "distribution",
              "url": "https://example.com/b.tar.gz"
            }
          ],
          "hashes": [
            {
              "alg": "SHA-1",
              "content": "2222222222222222222222222222222222222222"
            }
          ],
          "name": "b",
          "type": "file"
        }
        "#);
        let references: BTreeSet<&str> = bom["components"]
            .as_array()
            .unwrap()
            .iter()
            .chain([&bom["metadata"]["component"]])
            .map(|component| component["bom-ref"].as_str().unwrap())
            .collect();
        assert_eq!(
            references,
            BTreeSet::from(["tool--2", "source:a", "source:b", "dep--1"])
        );
        assert_eq!(bom["dependencies"][0]["dependsOn"][0], "dep--1");
        assert_eq!(
            bom["components"][0]["pedigree"]["commits"][0]["uid"],
            "1".repeat(40)
        );
    }
}
