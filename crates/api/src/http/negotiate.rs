//! In which form a client wants its answer.

use crate::status::ApiError;

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

impl Encoding {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// What an object is turned into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Object,
    Table,
    /// Only metadata.
    Partial,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub encoding: Encoding,
    pub view: View,
    /// `v1beta1` of the group meta.k8s.io was asked for.
    pub beta: bool,
}

impl Form {
    pub const JSON: Self = Self {
        encoding: Encoding::Json,
        view: View::Object,
        beta: false,
    };
}

/// One part of an `Accept` header.
#[derive(Clone, Debug)]
pub struct MediaRange<'a> {
    pub media: &'a str,
    pub parameters: Vec<(&'a str, &'a str)>,
}

impl MediaRange<'_> {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    }
}

/// The parts of an `Accept` header, the wanted ones first.
pub fn media_ranges(header: &str) -> Vec<MediaRange<'_>> {
    let mut ranges: Vec<(f32, MediaRange<'_>)> = header
        .split(',')
        .map(|part| {
            let mut pieces = part.split(';').map(str::trim);
            let media = pieces.next().unwrap_or_default();
            let parameters: Vec<(&str, &str)> =
                pieces.filter_map(|piece| piece.split_once('=')).collect();
            let quality = parameters
                .iter()
                .find(|(key, _)| *key == "q")
                .and_then(|(_, value)| value.parse().ok())
                .unwrap_or(1.0);
            (quality, MediaRange { media, parameters })
        })
        .filter(|(quality, range)| *quality > 0.0 && !range.media.is_empty())
        .collect();
    ranges.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    ranges.into_iter().map(|(_, range)| range).collect()
}

/// Chooses the first form that is wanted and can be given.
pub fn choose(accept: Option<&str>, has_protobuf: bool) -> Result<Form, ApiError> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Ok(Form::JSON);
    };
    media_ranges(accept)
        .iter()
        .find_map(|range| form(range, has_protobuf))
        .ok_or_else(|| {
            let mut offered = vec!["application/json", "application/yaml"];
            if has_protobuf {
                offered.push("application/vnd.kubernetes.protobuf");
            }
            ApiError::new(
                406,
                "NotAcceptable",
                format!(
                    "only the following media types are accepted: {}",
                    offered.join(", ")
                ),
            )
        })
}

fn form(range: &MediaRange<'_>, has_protobuf: bool) -> Option<Form> {
    let encoding = match range.media {
        "application/json" | "*/*" | "application/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        "application/vnd.kubernetes.protobuf" if has_protobuf => Encoding::Protobuf,
        _ => return None,
    };
    let view = match range.parameter("as") {
        None => View::Object,
        Some("Table") => View::Table,
        Some("PartialObjectMetadata" | "PartialObjectMetadataList") => View::Partial,
        Some(_) => return None,
    };
    let beta = range.parameter("v") == Some("v1beta1");
    if view != View::Object
        && (range.parameter("g") != Some("meta.k8s.io")
            || !matches!(range.parameter("v"), Some("v1" | "v1beta1")))
    {
        return None;
    }
    // Nobody asks for tables in protobuf; the next wanted form is taken.
    if encoding == Encoding::Protobuf && view == View::Table {
        return None;
    }
    Some(Form {
        encoding,
        view,
        beta,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectls_headers_are_understood() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(choose(Some(table), true).unwrap().view, View::Table);
        let protobuf = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(
            choose(Some(protobuf), true).unwrap().encoding,
            Encoding::Protobuf
        );
        assert_eq!(
            choose(Some(protobuf), false).unwrap().encoding,
            Encoding::Json
        );
        assert_eq!(
            choose(Some("application/json, */*"), true).unwrap(),
            Form::JSON
        );
        assert_eq!(choose(None, true).unwrap(), Form::JSON);
    }

    #[test]
    fn quality_decides_the_order() {
        let form = choose(Some("application/json;q=0.5, application/yaml"), true).unwrap();
        assert_eq!(form.encoding, Encoding::Yaml);
    }

    #[test]
    fn what_nobody_can_give_is_not_acceptable() {
        assert_eq!(choose(Some("text/html"), true).unwrap_err().code, 406);
        let unknown = "application/json;as=Chart;v=v1;g=meta.k8s.io";
        assert_eq!(choose(Some(unknown), true).unwrap_err().code, 406);
    }
}
