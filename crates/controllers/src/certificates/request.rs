//! Reads what a certificate is asked for.

use std::net::IpAddr;

use x509_parser::{
    certification_request::X509CertificationRequest,
    cri_attributes::ParsedCriAttribute,
    extensions::{GeneralName, ParsedExtension},
    prelude::FromDer,
    x509::AttributeTypeAndValue,
};

const LONGEST: usize = 64 << 10;

/// The names that a request wants to be known by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) common: String,
    pub(super) organizations: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
    /// Mail addresses, URIs and the like.
    pub(super) has_others: bool,
}

impl Names {
    /// `None` if the request cannot be read.
    pub(super) fn read(pem: &[u8]) -> Option<Self> {
        if pem.len() > LONGEST {
            return None;
        }
        let (_, block) = x509_parser::pem::parse_x509_pem(pem).ok()?;
        let (_, request) = X509CertificationRequest::from_der(&block.contents).ok()?;
        let information = &request.certification_request_info;
        let text = |value: &AttributeTypeAndValue<'_>| value.as_str().ok().map(str::to_owned);
        let mut names = Self {
            common: information
                .subject
                .iter_common_name()
                .last()
                .map_or(Some(String::new()), text)?,
            organizations: information
                .subject
                .iter_organization()
                .map(text)
                .collect::<Option<_>>()?,
            ..Self::default()
        };
        for attribute in information.iter_attributes() {
            if let ParsedCriAttribute::ExtensionRequest(wanted) = attribute.parsed_attribute() {
                for extension in &wanted.extensions {
                    names.add(extension.parsed_extension())?;
                }
            }
        }
        Some(names)
    }

    fn add(&mut self, extension: &ParsedExtension<'_>) -> Option<()> {
        let ParsedExtension::SubjectAlternativeName(alternatives) = extension else {
            return Some(());
        };
        for name in &alternatives.general_names {
            match name {
                GeneralName::DNSName(name) => self.hosts.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => self.addresses.push(address(bytes)?),
                _ => self.has_others = true,
            }
        }
        Some(())
    }

    pub(super) fn has_alternatives(&self) -> bool {
        self.has_others || !self.hosts.is_empty() || !self.addresses.is_empty()
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four: Result<[u8; 4], _> = bytes.try_into();
    let sixteen: Result<[u8; 16], _> = bytes.try_into();
    four.map(IpAddr::from).or(sixteen.map(IpAddr::from)).ok()
}
